"""The problem that maximum likelihood solves: its settings, measured periodic motions as arrays, compiled torques.

Torques, their rows by the parameters and their slopes by the motion are compiled from the model's own graph. The exact
sign of Coulomb friction has no slope but a step. Its columns are computed at velocities of their own, the directions,
which an iteration can hold while it moves the motion: a reversal then moves by an instant, and the cost stays smooth.
With a smooth sign (a width above zero) there is no such column and directions have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
from scipy import linalg

from ...configuration import Kind, list_of, number, whole_number
from ...errors import EstimateError, nearest_match
from ...kernel import BatchFunction, compile_batch
from ...model import Model
from ...observe import Equations, check_fields
from ...signals.fourier import fourier_basis

_KINDS: dict[str, Kind[Any]] = {
    "period": number(above=0),
    "tolerance": number(above=0),
    "most_iterations": whole_number(1),
    "sign_width": number(least=0),
    "position_noise": list_of(number(least=0), None, "a list of standard deviations"),
    "torque_noise": list_of(number(above=0), None, "a list of standard deviations"),
    "lines": list_of(whole_number(1), None, "a list of harmonics"),
}


@dataclass(frozen=True)
class LikelihoodSettings:
    """Settings of maximum likelihood; None is found from the data.

    Attributes:
        period: Period of the motion [s].
        harmonics: Lines of the motion, as multiples of one over the period: a number K for 1 to K, or a list.
        position_noise: Standard deviation of the noise on a sample of each joint's position, or one for all
            [rad or m]; 0: this position is exact.
        torque_noise: Standard deviation of the noise on a sample of each equation's torque, or one for all [N m or N].
        algorithm: ``gauss_newton``: damped only where a whole step does not lower the cost; ``levenberg_marquardt``:
            damped from the start.
        tolerance: The iteration ends when the step that is left is below this many standard deviations, all
            unknowns together.
        most_iterations: Steps, at most.
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; 0 for the exact one; None: the model's.
    """

    period: float | None = None
    harmonics: int | tuple[int, ...] | None = None
    position_noise: tuple[float, ...] | None = None
    torque_noise: tuple[float, ...] | None = None
    algorithm: Literal["gauss_newton", "levenberg_marquardt"] = "gauss_newton"
    tolerance: float = 1e-6
    most_iterations: int = 50
    sign_width: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, _KINDS, "ml", EstimateError)
        if self.harmonics is not None and not self.lines:
            raise EstimateError("ml harmonics: got none, allowed is at least one line, such as 5 for lines 1 to 5")

    @property
    def lines(self) -> tuple[int, ...] | None:
        """The lines of the motion, if they are given."""
        if self.harmonics is None:
            return None
        if isinstance(self.harmonics, int):
            return tuple(range(1, self.harmonics + 1))
        return tuple(sorted(set(self.harmonics)))


@dataclass(frozen=True, eq=False)
class TorqueFunctions:
    """Compiled functions of ``(q, qd, qdd, directions, theta)``, E equations, n joints, c parameters.

    Make one with :func:`torque_functions`.

    Attributes:
        columns: Names of the parameters theta.
        steps: Whether any column has a step, so that directions matter.
        torque: To ``W theta`` (E, N).
        linear: To the structural non-zeros of W (E, c) and of ``d(W theta)/d(q, qd, qdd)`` (E, 3 n).
    """

    columns: tuple[str, ...]
    steps: bool
    torque: BatchFunction
    linear: BatchFunction

    def torques(self, motion: np.ndarray, directions: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return torques (E, N) of a motion (3, n, N) with velocities (n, N) that give the directions."""
        return self.torque.dense(*motion, directions, theta)[0][:, 0]

    def rows_and_slopes(
        self, motion: np.ndarray, directions: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return W (E, c, N) and slopes of the torques by q, qd and qdd (E, 3, n, N)."""
        rows, slopes = self.linear.dense(*motion, directions, theta)
        return rows, slopes.reshape(len(slopes), 3, -1, slopes.shape[2])


_Key = tuple[tuple[str, ...], bool, float]
_COMPILED: WeakKeyDictionary[Equations, dict[_Key, TorqueFunctions]] = WeakKeyDictionary()


def torque_functions(
    equations: Equations, columns: Sequence[str], *, loaded: bool = True, sign_width: float | None = None
) -> TorqueFunctions:
    """Return the compiled functions of some columns; compiled once for each choice and cached with the equations.

    Args:
        equations: The equations.
        columns: The unknowns, of ``equations.names``.
        loaded: Whether rows have the payload's columns, if the model has any.
        sign_width: Width of the smooth sign; None: the model's.
    """
    model = equations.model
    width = model.sign_width if sign_width is None else float(sign_width)
    key = (tuple(columns), loaded or model.payload == "none", width)
    cache = _COMPILED.setdefault(equations, {})
    if key not in cache:
        cache[key] = _compiled(replace(model, sign_width=width), key[0], loaded=key[1])
    return cache[key]


def _compiled(model: Model, columns: tuple[str, ...], *, loaded: bool) -> TorqueFunctions:
    for name in columns:
        if name not in model.names:
            raise EstimateError(f"ml: no parameter '{name}' in the model{nearest_match(name, model.names)}")
    motion = model.motion
    symbols = [motion.q, motion.qd, motion.qdd]
    regressor = model.regressor if loaded else model.unloaded_regressor
    matrix = ca.sparsify(regressor(*symbols)[:, [model.names.index(name) for name in columns]])
    directions, theta = ca.SX.sym("directions", *motion.qd.shape), ca.SX.sym("theta", len(columns))
    held = [_held(matrix[:, k], motion.qd, directions, ca.vertcat(*symbols)) for k in range(len(columns))]
    rows = ca.horzcat(*held)
    torque = ca.densify(ca.mtimes(rows, theta))
    slopes = ca.sparsify(ca.jacobian(torque, ca.vertcat(*symbols)))
    inputs, names = [*symbols, directions, theta], ["q", "qd", "qdd", "directions", "theta"]
    return TorqueFunctions(
        columns,
        bool(ca.depends_on(rows, directions)),
        compile_batch(ca.Function("torques", inputs, [ca.cse(torque)], names, ["tau"])),
        compile_batch(ca.Function("rows_and_slopes", inputs, ca.cse([rows, slopes]), names, ["W", "T"])),
    )


def _held(column: ca.SX, velocity: ca.SX, directions: ca.SX, motion: ca.SX) -> ca.SX:
    """Return a column of W, written with directions if it changes with the velocity by steps alone."""
    slope = ca.sparsify(ca.jacobian(ca.densify(column), motion))
    has_steps_alone = slope.nnz() == 0 and ca.depends_on(column, velocity)
    return ca.substitute(column, velocity, directions) if has_steps_alone else column


@dataclass(frozen=True, eq=False)
class LikelihoodRun:
    """One recording: n joints, E equations, N instants, m coefficients a joint.

    Attributes:
        q: Measured positions (n, N) [rad or m].
        y: Measured torques (E, N) [N m or N].
        basis: B (3, m, N) of the motions, see :func:`motion_basis`.
        position_deviation: Standard deviation of a sample of each position (n,); 0: the fitted motion is taken as it
            is.
        torque_deviation: Standard deviation of a sample of each torque (E,), above 0.
        loaded: Whether it carries the payload of the model.
        label: Name, for messages.
    """

    q: np.ndarray
    y: np.ndarray
    basis: np.ndarray
    position_deviation: np.ndarray
    torque_deviation: np.ndarray
    loaded: bool = True
    label: str = "recording"

    def __post_init__(self) -> None:
        joints, count = self.q.shape
        size = self.basis.shape[1] if self.basis.ndim == 3 else 0
        for what, got, wanted in (
            ("basis", self.basis.shape, (3, size, count)),
            ("y", self.y.shape, (len(self.y), count)),
            ("position_deviation", self.position_deviation.shape, (joints,)),
            ("torque_deviation", self.torque_deviation.shape, (len(self.y),)),
        ):
            if got != wanted:
                raise EstimateError(f"ml, {self.label}: {what} has shape {got}, needed is {wanted}")
        for what in ("q", "y", "basis", "position_deviation", "torque_deviation"):
            if not np.isfinite(getattr(self, what)).all():
                raise EstimateError(f"ml, {self.label}: {what} has values that are not finite; cut them out")
        if (self.position_deviation < 0).any() or (self.torque_deviation <= 0).any():
            raise EstimateError(
                f"ml, {self.label}: noise of positions {self.position_deviation.tolist()}, of torques "
                f"{self.torque_deviation.tolist()}; allowed are deviations from 0 on, and above 0 for torques"
            )

    @property
    def free(self) -> np.ndarray:
        """Joints whose motion is unknown (n,): those with noise on their positions."""
        return self.position_deviation > 0


@dataclass(frozen=True, eq=False)
class LikelihoodProblem:
    """Minimise ``sum (q - q(delta))^2 / sigma_q^2 + sum (y - W(q(delta), ...) theta)^2 / sigma_y^2`` (P4.2).

    Attributes:
        equations: The model's equations.
        columns: The unknowns theta, of ``equations.names``; the others are zero.
        runs: The recordings; each has a motion delta of its own.
        sign_width: Width of the smooth sign in friction; None: the model's.
    """

    equations: Equations
    columns: tuple[str, ...]
    runs: tuple[LikelihoodRun, ...]
    sign_width: float | None = None

    def __post_init__(self) -> None:
        if not self.runs:
            raise EstimateError("ml: no recording is given; at least one is needed")
        shape = (len(self.equations.joints), len(self.equations.kinds_joints))
        for run in self.runs:
            if (len(run.q), len(run.y)) != shape:
                raise EstimateError(
                    f"ml, {run.label}: {len(run.q)} positions and {len(run.y)} torques; the model has {shape[0]} "
                    f"joints and {shape[1]} equations"
                )

    @property
    def rows(self) -> int:
        """Number of measured torques."""
        return sum(run.y.size for run in self.runs)

    def functions(self, run: LikelihoodRun) -> TorqueFunctions:
        """Return the compiled torques of a recording."""
        return torque_functions(self.equations, self.columns, loaded=run.loaded, sign_width=self.sign_width)


@dataclass(frozen=True, eq=False)
class FittedMotion:
    """A motion's coefficients from the positions alone: ``q = delta B0`` by least squares, one triangle.

    Attributes:
        coefficients: delta (n, m).
        triangle: R (m, m) of ``B0^T``.
        squares: Sum of squared residuals of each joint (n,).
    """

    coefficients: np.ndarray
    triangle: np.ndarray
    squares: np.ndarray


def fitted_motion(run: LikelihoodRun) -> FittedMotion:
    """Fit the motion of a recording to its positions alone.

    Raises:
        EstimateError: If the coefficients are not identifiable from the instants.
    """
    basis = run.basis[0].T
    orthogonal, triangle = np.linalg.qr(basis)
    smallest = np.abs(np.diag(triangle)).min(initial=np.inf) if basis.shape[0] >= basis.shape[1] else 0.0
    if smallest < 1e-9 * np.sqrt(len(basis)):
        raise EstimateError(
            f"ml, {run.label}: the {basis.shape[1]} coefficients of a joint's motion are not identifiable from "
            f"{len(basis)} instants; record longer, or take fewer harmonics"
        )
    coefficients = linalg.solve_triangular(triangle, orthogonal.T @ run.q.T).T
    squares = np.sum((run.q - coefficients @ run.basis[0]) ** 2, axis=1)
    return FittedMotion(coefficients, triangle, squares)


def motion_basis(time: np.ndarray, period: float, lines: Sequence[int]) -> np.ndarray:
    """Return B (3, m, N): positions, velocities and accelerations of one, the sines and the cosines; m = 2 K + 1.

    With delta the coefficients (n, m) of a motion, ``q = delta B[0]``, ``qd = delta B[1]``, ``qdd = delta B[2]``.

    Args:
        time: Times (N,) [s].
        period: Period [s].
        lines: The K lines, as multiples of one over the period.
    """
    count = len(lines)
    angular = 2 * np.pi / period * np.array(lines, dtype=float)[:, None]
    position = fourier_basis(np.asarray(time, dtype=float), 1 / period, lines).T
    sines, cosines = position[1 : count + 1], position[count + 1 :]
    nothing = np.zeros((1, position.shape[1]))
    velocity = np.concatenate([nothing, angular * cosines, -angular * sines])
    acceleration = np.concatenate([nothing, -(angular**2) * sines, -(angular**2) * cosines])
    return np.stack([position, velocity, acceleration])
