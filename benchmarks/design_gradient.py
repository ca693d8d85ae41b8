"""Value and gradient of log det of the information in a motion: ours against JAX's reverse mode and Pinocchio's loop.

All answer the same question: the same columns of a 7-joint arm, the same instants, all coefficients of a Fourier
series free. That their answers agree is checked before anything is timed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

import numpy as np

from benchmarks.peers.information import Question, question, random_coefficients
from benchmarks.timing import Timing, ratio, round_robin
from steelyard.excitation import CRITERIA, Information, unknowns

ROBOT = "kuka_lwr4"
ROUNDS, REPEATS = 25, 20
SLOW_ROUNDS = 5
VALUE_AGREEMENT, GRADIENT_AGREEMENT = 1e-9, 1e-6
"""Largest relative difference of values, and of gradients from JAX's; forward differences are less exact."""

DIFFERENCES_AGREEMENT = 1e-4
JAX_WANTED, PINOCCHIO_WANTED = 10, 100

Answer = Callable[[np.ndarray], tuple[float, np.ndarray]]


class OurLogDet:
    """log det and its gradient as a search for the best motion evaluates them.

    Args:
        requested: The question.
    """

    def __init__(self, requested: Question) -> None:
        chosen = unknowns(requested.model, 1.0 / requested.weights, rate=1.0)
        self.information, self.criterion = Information(chosen), CRITERIA["d"]
        self.basis, self.size = requested.basis, len(chosen.columns)

    def value_and_gradient(self, X: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log det and its gradient by X (n, m)."""
        q, qd, qdd = (X @ rows for rows in self.basis)
        sampled = self.information.sampled((q, qd, qdd))
        # The criterion is -log det over the number of columns.
        value, gradient = self.criterion.log_value(self.information.matrix(sampled, "noise", sampled.count), 1.0)
        back = self.information.pull_back((q, qd, qdd), sampled, {"noise": gradient}, sampled.count)
        by_X = np.sum([by_motion @ rows.T for by_motion, rows in zip(back, self.basis, strict=True)], axis=0)
        return -self.size * value, -self.size * by_X


def run() -> None:
    """Print times and ratios, one thread, CPU time."""
    requested = question(ROBOT)
    X = random_coefficients(requested)
    ours = OurLogDet(requested).value_and_gradient
    print(
        f"value and gradient of log det, 7 joints, {len(requested.base.names)} columns, {X.size} coefficients, "
        f"{requested.basis.shape[2]} samples, one thread, CPU time; load average {os.getloadavg()[0]:.1f}"
    )
    _race(requested, X, ours, _jax_peers(requested), ROUNDS, GRADIENT_AGREEMENT, JAX_WANTED)
    _race(requested, X, ours, _pinocchio_peer(requested), SLOW_ROUNDS, DIFFERENCES_AGREEMENT, PINOCCHIO_WANTED)


def _race(
    requested: Question,
    X: np.ndarray,
    ours: Answer,
    peers: dict[str, Answer],
    rounds: int,
    agreement: float,
    wanted: int,
) -> None:
    """Check that all answers agree, then time them in turns."""
    for name, theirs in peers.items():
        _check(name, ours(X), theirs(X), agreement)
    if not peers:
        return

    def ours_repeated() -> None:
        for _ in range(REPEATS):
            ours(X)

    contestants = {name: lambda run=run: run(X) for name, run in peers.items()}
    times = round_robin({"ours": ours_repeated, **contestants}, rounds)
    mine = Timing(tuple(seconds / REPEATS for seconds in times["ours"].seconds))
    print(f"  ours{'':40s} {_told(mine)}, {rounds} rounds of {REPEATS} in turns with")
    for name in peers:
        print(f"    {name:42s} {_told(times[name])}; ours: times faster {ratio(times[name], mine)}  (wanted: {wanted})")


def _told(timing: Timing) -> str:
    least, most = (1e3 * end(timing.seconds) for end in (min, max))
    return f"{1e3 * timing.median:.2f} ms ({least:.2f} to {most:.2f})"


def _check(name: str, ours: tuple[float, np.ndarray], theirs: tuple[float, np.ndarray], agreement: float) -> None:
    """Refuse to time what is not the same function."""
    apart = abs(ours[0] - theirs[0]) / abs(theirs[0])
    turned = float(np.abs(ours[1] - theirs[1]).max() / np.abs(theirs[1]).max())
    if not (apart < VALUE_AGREEMENT and turned < agreement):
        raise ArithmeticError(f"{name} answers another question: value apart {apart:.1e}, gradient {turned:.1e}")
    print(f"  agrees with {name}: value to {apart:.0e}, gradient to {turned:.0e}")


def _jax_peers(requested: Question) -> dict[str, Answer]:
    if importlib.util.find_spec("jax") is None:
        print("  JAX is not installed here (make bench-peers): left out")
        return {}
    from benchmarks.peers.jax_logdet import VARIANTS, JaxLogDet

    return {f"JAX, {name}": JaxLogDet(requested, name).value_and_gradient for name in VARIANTS}


def _pinocchio_peer(requested: Question) -> dict[str, Answer]:
    if importlib.util.find_spec("pinocchio") is None:
        print("  Pinocchio is not installed here: left out")
        return {}
    from benchmarks.peers.pinocchio_logdet import PinocchioLogDet

    return {"Pinocchio's loop, forward differences": PinocchioLogDet(requested).value_and_gradient}
