"""The calibration problem: unknowns, measured equations, their predictions by the chain and exact derivatives.

``measured - predicted ~ residual - B dX`` (P3 eq. 4), with B exact at any values of the unknowns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...errors import CalibrationError, nearest_match, require_type
from ...robot import AnyRobot, ElementaryMotion, Robot, load_robot, transform_from_placement
from ...text import short_repr
from ..measurement.files import read_measurements
from ..measurement.measurements import Measurements, instrument_sigma
from ..measurement.setup import CalibrationSetup, completed_setup, moving_chain
from ..records import FRAMES, Linearised, MeasuredJoint, MeasurementEquations, Unknown, finite
from .chain import NO_FRAME, ChainFrames, ChainSamples, MeasuredChain
from .equations import DISTANCE, FIRST_ROTATION, Prediction, equations_of, loads_of
from .registration import Registration, register
from .unknowns import PRINCIPAL, springs_at_nodes_left_out, unknown_parameters, with_known_springs

# Where a compliance begins of which nothing is known while weights are unknown too [rad/(N m) or m/N]: behind a
# rigid joint no weight shows.
_SOFT = 1e-6


@dataclass(frozen=True, eq=False)
class MeasuredProblem:
    """Unknowns and equations of a measured arm. Make one with :func:`measured_problem`.

    Attributes:
        robot: The arm.
        setup: How it was measured; its markers are in the order of the measurements.
        measurements: What was measured.
        parameters: The unknowns (p).
        equations: The measured numbers (E): of each kind of rows all x, then all y, then all z, then rotations.
        start: Where a fit begins (p,).
        registration: Where base, tool and markers are at the start.
        chain: The compiled chain.
    """

    __repr__ = short_repr

    robot: Robot
    setup: CalibrationSetup
    measurements: Measurements
    parameters: tuple[Unknown, ...]
    equations: MeasurementEquations
    start: np.ndarray
    registration: Registration
    chain: MeasuredChain

    def at(self, values: np.ndarray) -> Linearised:
        """Return residuals (E,) and exact derivatives (E, p) at values (p,) of the unknowns."""
        residual, derivatives = self._prediction.linearised(self._checked(values))
        return Linearised(_frozen(residual), _frozen(derivatives.T))

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Return the residuals (E,) alone; those of a rotation are ``log(R_measured R_predicted^T)``."""
        return _frozen(self._prediction.residual(self._checked(values)))

    def taken(self, chosen: np.ndarray) -> MeasuredProblem:
        """Return the problem with some of its equations, by numbers or as a mask; unknowns and start stay."""
        return replace(self, equations=self.equations.taken(chosen))

    def with_measurements(self, measurements: Measurements) -> MeasuredProblem:
        """Return the problem of other measurements of the same arm and set-up; nothing is compiled again."""
        if measurements.markers != self.measurements.markers or _orientation(measurements) != _orientation(
            self.measurements
        ):
            raise CalibrationError(
                f"other measurements: got markers {', '.join(measurements.markers)}, allowed are those of the problem, "
                f"{', '.join(self.measurements.markers)}, with orientations as there; make a problem of their own"
            )
        return _problem(self.chain, measurements)

    def for_validation(self, measurements: Measurements) -> MeasuredProblem:
        """Return the problem of measurements to validate with: base, tool and markers start where they do here.

        Markers may be in another order, and some of them missing.
        """
        if _orientation(measurements) and not _orientation(self.measurements):
            raise CalibrationError(
                "measurements to validate with: got poses, allowed are positions of markers as in those that were "
                "fitted; fit poses too, or leave the orientation out"
            )
        own = _with_markers(measurements, self.measurements.markers)
        return replace(self, measurements=own, equations=equations_of(own))

    def base_pose(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (3, 3) and position (3,) of the robot's base in the measurement frame."""
        return self._frame("base", values, self.registration.base)

    def tool_pose(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (3, 3) and position (3,) of the tool in the measured link's frame."""
        return self._frame("tool", values, self.registration.tool)

    def marker_positions(self, values: np.ndarray) -> np.ndarray:
        """Return the markers' positions (M, 3) in the measured link's frame [m]."""
        return _frozen(self._prediction.markers(self._checked(values)))

    def frame_pose(
        self, values: np.ndarray, q: np.ndarray, wrench: np.ndarray | None = None, point: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (N, 3, 3) and position (N, 3) of the measured link in the robot's base frame.

        Args:
            values: The unknowns (p,).
            q: Actuated joint positions (na, N).
            wrench: Force and moment (6, N) in robot base axes; none by default.
            point: Where the wrench acts (3,) or (3, N), in the measured link's frame; its origin by default.
        """
        inner, samples = self._in_base(values, q, wrench, point)
        rotation, position = self.chain.poses(inner, samples, ChainFrames(NO_FRAME, NO_FRAME))
        return rotation.transpose(2, 0, 1), position.T

    def frame_derivatives(
        self, values: np.ndarray, q: np.ndarray, wrench: np.ndarray | None = None, point: np.ndarray | None = None
    ) -> np.ndarray:
        """Return how the measured link moves with every unknown (6, p, N): shift and small turn, in base axes."""
        inner, samples = self._in_base(values, q, wrench, point)
        *_, derivatives = self.chain.pose_derivatives(inner, samples, ChainFrames(NO_FRAME, NO_FRAME))
        derivatives[self._outside] = 0.0
        return derivatives.transpose(1, 0, 2)

    def _frame(self, frame: str, values: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_name = dict(zip(self.chain.names, self._checked(values).tolist(), strict=True))
        turns = tuple(
            ElementaryMotion("rotate", axis, by_name.get(f"{frame}_r{letter}", 0.0), letter)
            for letter, axis in PRINCIPAL.items()
        )
        shift = np.array([by_name.get(f"{frame}_{letter}", 0.0) for letter in PRINCIPAL])
        rotation = numbers[:9].reshape(3, 3) @ transform_from_placement(turns)[0]
        return _frozen(rotation), _frozen(numbers[9:] + shift)

    def _in_base(
        self, values: np.ndarray, q: np.ndarray, wrench: np.ndarray | None, point: np.ndarray | None
    ) -> tuple[np.ndarray, ChainSamples]:
        """Return values with base and tool where their parents are, and checked samples."""
        q = _columns_of(q, len(self.robot.actuated), None, "joint positions")
        wrench = None if wrench is None else _columns_of(wrench, 6, q.shape[1], "wrench")
        point = None if point is None else _columns_of(point, 3, q.shape[1], "load point")
        return np.where(self._outside, 0.0, self._checked(values)), self.chain.samples(q, wrench, point)

    @property
    def _outside(self) -> np.ndarray:
        """Which unknowns are not the arm's own (p,)."""
        return np.array([each.group in FRAMES for each in self.parameters], dtype=bool)

    def _checked(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(finite(values, (len(self.parameters),), "values of the unknowns"))

    @cached_property
    def _prediction(self) -> Prediction:
        return Prediction(self.chain, self.registration, self.measurements, self.equations)


def measured_problem(
    robot: AnyRobot, setup: CalibrationSetup, measurements: Measurements | str | os.PathLike[str]
) -> MeasuredProblem:
    """Return the unknowns and equations of measurements of an arm.

    Base, tool and markers of which the set-up gives no start are found from the measurements (``register``).

    Raises:
        CalibrationError: If nothing was measured, the set-up does not fit the arm, or the measurements do not fix a
            base of which nothing is known.
    """
    robot = load_robot(robot)
    if isinstance(measurements, str | os.PathLike):
        measurements = read_measurements(measurements, robot, setup)
    require_type(measurements, Measurements, "measurements", "Measurements or the path of a file", CalibrationError)
    setup = with_known_springs(robot, completed_setup(setup, measurements.markers))
    for joint in springs_at_nodes_left_out(robot, setup):
        note = (
            f"the robot's file gives the compliance of {joint} at nodes; it is left out, name the joint in "
            "[elastic] joints and its positions in nodes to take it"
        )
        measurements = replace(measurements, notes=(*measurements.notes, note))
    names = tuple(each.name for each in unknown_parameters(robot, setup, orientation=_orientation(measurements)))
    return _problem(MeasuredChain(robot, setup, names), measurements)


def _problem(chain: MeasuredChain, measurements: Measurements) -> MeasuredProblem:
    robot, setup = chain.robot, chain.setup
    equations = equations_of(measurements)
    if not equations.size:
        raise CalibrationError(
            f"measurements: got {measurements.rows} rows without a finite number, needed are measured positions"
        )
    equations = replace(
        equations,
        joints=_joint_positions(robot, setup, measurements),
        declared=_declared(setup, measurements, equations),
    )
    orientation = _orientation(measurements)
    nominal = np.array([each.nominal for each in unknown_parameters(robot, setup, orientation=orientation)])
    samples = chain.samples(measurements.q, *loads_of(setup, measurements.load))
    rotation, position = chain.poses(nominal, samples, ChainFrames(NO_FRAME, NO_FRAME))
    registration = register(setup, measurements, rotation.transpose(2, 0, 1), position.T)
    parameters = unknown_parameters(robot, setup, orientation=orientation, markers=registration.markers)
    start = _frozen(np.array([_start(each, setup) for each in parameters]))
    return MeasuredProblem(robot, setup, measurements, parameters, equations, start, registration, chain)


def _with_markers(measurements: Measurements, markers: tuple[str, ...]) -> Measurements:
    """Return measurements whose markers are numbered as in a list that has them all."""
    missing = [name for name in measurements.markers if name not in markers]
    if missing:
        raise CalibrationError(
            f"measurements to validate with: got marker '{missing[0]}', allowed are those that were fitted, "
            f"{', '.join(markers) or 'none'}{nearest_match(missing[0], markers)}"
        )
    number = np.array([*(markers.index(name) for name in measurements.markers), -1], dtype=int)
    return replace(measurements, markers=markers, marker=number[measurements.marker], other=number[measurements.other])


def _joint_positions(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> tuple[MeasuredJoint, ...]:
    """Return the positions of the joints that move the measured link, by configuration; NaN where it has no row."""
    moving = {body.joint.name for body in moving_chain(robot, setup.link)}
    poses, first = np.unique(measurements.pose, return_index=True)
    found = []
    for body, row in zip(robot.actuated, measurements.q, strict=True):
        if body.joint.name in moving:
            q = np.full(len(measurements.poses), np.nan)
            q[poses] = row[first]
            found.append(MeasuredJoint(body.joint.name, "m" if body.joint.kind == "prismatic" else "rad", _frozen(q)))
    return tuple(found)


def _declared(
    setup: CalibrationSetup, measurements: Measurements, equations: MeasurementEquations
) -> np.ndarray | None:
    """Return the instrument's stated noise of every equation (E,) [m], NaN for rotations; None if none is stated."""
    if setup.sigma is None and (setup.tracker is None or set(measurements.kind) - {"position", "pose"}):
        return None
    sigma = instrument_sigma(setup, measurements)
    if sigma is None:
        return None
    turned = (equations.coordinate >= FIRST_ROTATION) & (equations.coordinate < DISTANCE)
    column = np.where(equations.coordinate == DISTANCE, 0, equations.coordinate % 3)
    return _frozen(np.where(turned, np.nan, sigma[equations.row, column]))


def _orientation(measurements: Measurements) -> bool:
    return bool(measurements.of_kind("pose").any())


def _start(parameter: Unknown, setup: CalibrationSetup) -> float:
    blind = parameter.group == "compliance" and setup.elastic.own_weight == "unknown" and parameter.nominal == 0
    return _SOFT if blind else parameter.nominal


def _columns_of(array: np.ndarray, rows: int, count: int | None, what: str) -> np.ndarray:
    """Return a finite array (rows, count); one column serves all."""
    given = np.asarray(array, dtype=float)
    given = given[:, None] if given.ndim == 1 and count is not None else given
    given = finite(given, (rows, 1 if given.shape[1:] == (1,) else count), what)
    return np.ascontiguousarray(np.broadcast_to(given, (rows, count or given.shape[1])))


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
