"""A full constrained design of a 6-joint arm: ours, SLSQP with finite differences over Pinocchio's loop, and FIGAROH.

Ours and SLSQP have the same task: a Fourier series of 5 harmonics and 10 s that starts at rest, the same limits of
position, velocity, acceleration and torque, log det of the information. Both are judged by the same code, Pinocchio's
columns at instants that neither has seen. What is not alike is in SLSQP's favour: it keeps the limits at its samples
only, ours at every instant, with proof; its time does not include what it prepares, ours includes all.

``python -m benchmarks.design_full [SECONDS]`` allows SLSQP so many seconds of CPU time. FIGAROH runs in the interpreter
that STEELYARD_FIGAROH names (see ``benchmarks.peers.figaroh_design``). It searches other motions, splines through
waypoints, for the condition number, so ours is asked for that, too.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.peers.constrained_task import DesignTask, excess_between, task_for
from benchmarks.peers.figaroh_design import FigarohSettings
from benchmarks.peers.figaroh_design import design as figaroh_design
from benchmarks.peers.information import EFFECTS, fourier_basis
from benchmarks.peers.pinocchio_logdet import PinocchioLogDet
from benchmarks.peers.slsqp_design import DesignReached
from benchmarks.peers.slsqp_design import design as slsqp_design
from steelyard.excitation import Design, DesignLimits, DesignSettings
from steelyard.excitation import design as design_experiment

ROBOT, HARMONICS, PERIOD = "ur10e", 5, 10.0
ACCELERATION = 10.0
SAMPLES = 200
"""Instants at which SLSQP looks at criterion and limits."""

JUDGED = 2001
"""Instants at which motions are compared."""

SECONDS_ALLOWED = 300.0
FIGAROH_ALLOWED = 1800.0
TIME_WANTED, RATIO_WANTED = 10, 20


@dataclass(frozen=True, eq=False)
class OurDesign:
    """What ours gave.

    Attributes:
        design: The design.
        cpu: CPU seconds, from the robot to the proven motion and what it promises.
        wall: Seconds on the clock.
    """

    design: Design
    cpu: float
    wall: float


class Judge:
    """Criterion and limits of any motion of the task, by Pinocchio, at instants that nobody was asked about.

    Args:
        task: The task.
    """

    def __init__(self, task: DesignTask) -> None:
        self.task = task
        instants = (np.arange(JUDGED) + 0.5) * PERIOD / JUDGED
        self.requested = replace(task.requested, basis=fourier_basis(HARMONICS, PERIOD, instants))
        self.peer = PinocchioLogDet(self.requested)

    def coefficients(self, design: Design) -> np.ndarray:
        """Return a design's Fourier coefficients (n, m) as the peers have them."""
        instants = np.linspace(0.0, PERIOD, 101)[:-1]
        basis = fourier_basis(HARMONICS, PERIOD, instants)[0]
        return np.linalg.lstsq(basis.T, design.trajectory.at(instants).q.T, rcond=None)[0].T

    def log_det(self, X: np.ndarray) -> float:
        """Return log det."""
        return self.peer.value(X)

    def condition(self, X: np.ndarray) -> float:
        """Return the condition number of the columns."""
        return float(np.sqrt(np.linalg.cond(self.peer.information(X))))

    def excess(self, X: np.ndarray) -> float:
        """Return by how much of a limit a motion breaks it, in per cent."""
        return 100 * excess_between(self.task, X, PERIOD)


def our_design(task: DesignTask, criterion: str, threads: int = 1) -> OurDesign:
    """Design by ours, default settings but for what the task says."""
    settings = DesignSettings(
        duration=PERIOD, harmonics=HARMONICS, noise=1.0, rate=SAMPLES / PERIOD, criterion=criterion, threads=threads
    )
    limits = DesignLimits(task.limits, task.torque, "motor")
    began, began_cpu = time.perf_counter(), time.process_time()
    found = design_experiment(task.requested.model.robot, settings, torque="motor", effects=EFFECTS, limits=limits)
    return OurDesign(found, time.process_time() - began_cpu, time.perf_counter() - began)


def run(seconds_allowed: float = SECONDS_ALLOWED) -> None:
    """Print times and what was reached."""
    task = task_for(ROBOT, SAMPLES, PERIOD, ACCELERATION)
    judge = Judge(task)
    print(
        f"{ROBOT}, {HARMONICS} harmonics, {PERIOD:g} s, limits of position, velocity, acceleration {ACCELERATION:g} "
        f"rad/s^2, torque; log det at {JUDGED} other instants; load average {os.getloadavg()[0]:.1f}"
    )
    ours = our_design(task, "d")
    X = judge.coefficients(ours.design)
    reached = judge.log_det(X)
    print(
        f"  ours, {len(ours.design.starts)} starts: {ours.cpu:.1f} s CPU, {ours.wall:.1f} s wall  (wanted: "
        f"{TIME_WANTED}); log det {reached:.3f}, limits broken by {judge.excess(X):.3f} %",
        flush=True,
    )
    _print_slsqp(judge, ours, reached, slsqp_design(task, seconds_allowed, clock=time.process_time))
    interpreter = os.environ.get("STEELYARD_FIGAROH")
    if interpreter is None:
        print("  FIGAROH: STEELYARD_FIGAROH names no interpreter that has it: left out")
        return
    _print_figaroh(judge, interpreter)


def _print_slsqp(judge: Judge, ours: OurDesign, wanted: float, theirs: DesignReached) -> None:
    """Print what SLSQP reached, and after which time it was as good as ours, if it was."""
    values = [judge.log_det(X) for X in theirs.motions]
    if not values:
        print(f"  SLSQP: no motion that keeps its limits in {theirs.seconds:.0f} s CPU")
        return
    best = int(np.argmax(values))
    print(
        f"  SLSQP, {SAMPLES} samples: {theirs.seconds:.1f} s CPU, {theirs.starts} starts; log det {values[best]:.3f} "
        f"after {theirs.history[best][0]:.1f} s, limits broken by {judge.excess(theirs.motions[best]):.3f} %"
    )
    level = [at for (at, _), value in zip(theirs.history, values, strict=True) if value >= wanted]
    if level:
        print(
            f"    as good as ours after {level[0]:.1f} s CPU: ours {level[0] / ours.cpu:.1f} times faster  "
            f"(wanted: {RATIO_WANTED})"
        )
    else:
        print(f"    never as good as ours: ours more than {theirs.seconds / ours.cpu:.1f} times faster  "
              f"(wanted: {RATIO_WANTED})")  # fmt: skip


def _print_figaroh(judge: Judge, interpreter: str) -> None:
    """Print condition numbers: FIGAROH's motion through 6 waypoints 2 s apart, which last as long, and ours."""
    ours = our_design(judge.task, "condition")
    print(
        f"  ours, by the condition number: {ours.cpu:.1f} s CPU, {ours.wall:.1f} s wall; condition number "
        f"{judge.condition(judge.coefficients(ours.design)):.1f}"
    )
    settings = FigarohSettings(waypoints=6, seconds_between=2.0, rate=int(SAMPLES / PERIOD), acceleration=ACCELERATION)
    theirs = figaroh_design(interpreter, judge.task.requested.model.robot, settings, FIGAROH_ALLOWED)
    if not theirs.samples:
        print(f"  FIGAROH: no motion; {theirs.output.strip().splitlines()[-1:]}")
        return
    print(
        f"  FIGAROH: {theirs.reported['cpu_seconds']:.1f} s CPU, {theirs.reported['seconds']:.1f} s wall, converged "
        f"{theirs.reported['converged'][0]}; condition number {theirs.condition:.1f}; ours: times faster "
        f"{theirs.reported['cpu_seconds'] / ours.cpu:.1f}"
    )


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS_ALLOWED)
