"""Records of a calibration: named unknowns, measured numbers, and the protocol of a problem that can be linearised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import CalibrationError
from ..text import short_repr

Group = Literal["base", "joint", "tool", "marker", "compliance", "weight"]
"""What an unknown belongs to: base frame, joint frames, tool frame, markers, springs, first moments of links."""

FRAMES = ("base", "tool", "marker")
"""Groups of unknowns that belong to the set-up, not to the arm."""

COORDINATES = ("x", "y", "z", "rx", "ry", "rz", "distance")
"""What an equation measures: a position [m], a rotation vector [rad], or a distance between markers [m]."""


def finite(array: ArrayLike, shape: tuple[int | None, ...], what: str) -> np.ndarray:
    """Return an array of finite numbers of a shape, in which None stands for any length from 1 on.

    Raises:
        CalibrationError: If the shape is another one, or a number is not finite.
    """
    given = np.asarray(array, dtype=float)
    bad = np.argwhere(~np.isfinite(given))
    pairs = zip(given.shape, shape, strict=False)
    if given.ndim != len(shape) or not all(size == wanted or (wanted is None and size) for size, wanted in pairs):
        got = f"shape {given.shape}"
    elif len(bad):
        got = f"{given[tuple(bad[0])]} at {tuple(bad[0].tolist())}"
    else:
        return given
    allowed = ", ".join("N" if size is None else str(size) for size in shape)
    raise CalibrationError(f"{what}: got {got}, allowed are finite numbers of shape ({allowed})")


@dataclass(frozen=True)
class Unknown:
    """An unknown of a calibration.

    Attributes:
        name: ``offset2``, ``x3``, ``ry4``, ``base_x``, ``tool_rz``, ``x[marker_1]``, ``k2``, ``k21``, ``k4x``, ``MX3``.
        group: What it belongs to.
        unit: ``m``, ``rad``, ``rad/(N m)``, ``m/N``, ``kg m`` or ``kg``.
        nominal: Its value by the robot's file or the set-up.
        meaning: Its description: ``offset of joint_2 about its own axis``.
        known: Whether its nominal value is exact: it has an effect and is not fitted.
    """

    name: str
    group: Group
    unit: str
    nominal: float
    meaning: str
    known: bool = False


@dataclass(frozen=True, eq=False)
class MeasuredJoint:
    """Positions of a joint at all configurations.

    Attributes:
        name: Of the joint.
        unit: ``rad`` or ``m``.
        q: Its positions (poses,).
    """

    name: str
    unit: str
    q: np.ndarray


@dataclass(frozen=True, eq=False)
class MeasurementEquations:
    """Measured numbers, one an equation.

    Attributes:
        measured: The numbers (E,) [m or rad].
        pose: Number of the configuration that each belongs to (E,), 0, 1, ...
        marker: Number of the marker (E,), 0, 1, ...; of the first one for distances.
        coordinate: Number among ``COORDINATES`` (E,).
        row: Number of the row of the measurements that it comes from (E,).
        poses: Names of the configurations.
        markers: Names of the markers.
        joints: Positions of the joints that move the measured link; empty if not known.
        declared: Standard deviations that the instrument's maker states (E,) [m], NaN where none; None if none at all.
    """

    __repr__ = short_repr

    measured: np.ndarray
    pose: np.ndarray
    marker: np.ndarray
    coordinate: np.ndarray
    row: np.ndarray
    poses: tuple[str, ...]
    markers: tuple[str, ...]
    joints: tuple[MeasuredJoint, ...] = ()
    declared: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of equations."""
        return len(self.measured)

    def taken(self, chosen: np.ndarray) -> MeasurementEquations:
        """Return some of the equations, by numbers or as a mask; names stay."""
        return MeasurementEquations(
            self.measured[chosen], self.pose[chosen], self.marker[chosen], self.coordinate[chosen],
            self.row[chosen], self.poses, self.markers, self.joints,
            None if self.declared is None else self.declared[chosen],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Linearised:
    """Residuals and their derivatives at some values of the unknowns: ``measured - predicted ~ residual - B dX``.

    Attributes:
        residual: Measured minus predicted (E,).
        jacobian: B (E, p), derivatives of the predicted numbers (P3 eq. 4).
    """

    __repr__ = short_repr

    residual: np.ndarray
    jacobian: np.ndarray


class CalibrationProblem(Protocol):
    """Unknowns, equations, and residuals with their derivatives at given values."""

    @property
    def parameters(self) -> Sequence[Unknown]:
        """The unknowns (p)."""
        ...

    @property
    def equations(self) -> MeasurementEquations:
        """The measured numbers (E)."""
        ...

    @property
    def start(self) -> np.ndarray:
        """Values from which a fit starts (p,)."""
        ...

    def at(self, values: np.ndarray) -> Linearised:
        """Return residuals and derivatives at values (p,) of the unknowns."""
        ...

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Return the residuals (E,) alone."""
        ...

    def taken(self, chosen: np.ndarray) -> CalibrationProblem:
        """Return the problem with some of its equations, by numbers or as a mask."""
        ...
