"""The measured chain: a symbolic graph of frames with errors and joints with springs, compiled over many samples.

``T = Base * prod_i [placement_i * Error_i * JointMotion_i(q_i) * Spring_i] * link frame * (marker | Tool)``. Springs
are P3's virtual joints: each turns (or slides) by its compliance times the load it bears, taken at the undeflected
posture first and once more at the deflected one. Positions and poses come with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import casadi as ca
import numpy as np

from ...errors import CalibrationError
from ...kernel import BatchFunction, compile_batch
from ...physics import Transform, exact_geometry
from ...physics.kinematics import IDENTITY, joint_coordinates, rotation_about
from ...robot import Body, ElementaryMotion, Robot
from ..measurement.setup import Between, CalibrationSetup, moving_chain
from .unknowns import FIRST_MOMENTS_AND_MASS, PRINCIPAL, bodies_with_weight, error_motions, joint_springs

# The torques are taken at the undeflected posture, then at the deflected one.
_LOAD_PASSES = 2


@dataclass(frozen=True)
class ChainSymbols:
    """Symbols that the graph is a function of.

    Attributes:
        q: Actuated joint positions (na,).
        wrench: Force and moment (6,) in robot base axes.
        load_point: Where the wrench acts (3,), in the measured link's frame.
        node_weights: Share of each node in its joint's compliance, joints of the chain one after the other.
        point: A point (3,) in the measured link's frame.
        base: Rotation (9, row by row) and translation (3) of the base before its unknown part.
        tool: The same of the tool.
        values: The unknowns (p,).
        names: Their names.
    """

    q: ca.SX
    wrench: ca.SX
    load_point: ca.SX
    node_weights: ca.SX
    point: ca.SX
    base: ca.SX
    tool: ca.SX
    values: ca.SX
    names: tuple[str, ...]

    def unknown(self, name: str) -> ca.SX | None:
        """Return the symbol of an unknown, None if it is not one."""
        return self.values[self.names.index(name)] if name in self.names else None

    def unknowns(self, names: Iterable[str]) -> ca.SX:
        """Return the symbols of unknowns that there are (k,)."""
        return self.values[[self.names.index(name) for name in names]]


@dataclass(frozen=True)
class _Wrench:
    """Force and moment about the base's origin, in base axes."""

    force: ca.SX
    moment: ca.SX

    def plus(self, other: _Wrench) -> _Wrench:
        return _Wrench(self.force + other.force, self.moment + other.moment)


def chain_symbols(robot: Robot, nodes: int, names: tuple[str, ...]) -> ChainSymbols:
    """Return fresh symbols for a robot, a number of nodes and the names of the unknowns."""
    sizes = {
        "q": len(robot.actuated), "wrench": 6, "load_point": 3, "node_weights": nodes, "point": 3,
        "base": 12, "tool": 12, "values": len(names),
    }  # fmt: skip
    return ChainSymbols(**{name: ca.SX.sym(name, size) for name, size in sizes.items()}, names=names)


def unknown_frame(frame: str, numbers: ca.SX, symbols: ChainSymbols) -> Transform:
    """Return ``Trans(t0 + (x, y, z)) R0 Rot_x Rot_y Rot_z`` of base or tool, with R0 and t0 as numbers (12,)."""
    rotation = ca.reshape(numbers[:9], 3, 3).T
    shift = [symbols.unknown(f"{frame}_{letter}") for letter in PRINCIPAL]
    translation = numbers[9:] + ca.vertcat(*(ca.SX(0) if value is None else value for value in shift))
    turns = [
        (ElementaryMotion("rotate", axis, 0.0, letter), symbols.unknown(f"{frame}_r{letter}"))
        for letter, axis in PRINCIPAL.items()
    ]
    return Transform(rotation, translation).then(_folded(turns))


class ChainGraph:
    """The bodies of the chain and those that load it, each with its frame at rest, its springs and its weight."""

    def __init__(self, robot: Robot, setup: CalibrationSetup, symbols: ChainSymbols) -> None:
        self._robot, self._link, self._symbols = robot, setup.link, symbols
        geometry = exact_geometry(robot)
        self._positions = joint_coordinates(robot, symbols.q)
        self._end = geometry.frames[setup.link]
        self._bodies = moving_chain(robot, setup.link)
        self._rest = {body.number: self._at_rest(body, geometry.bodies[body.number - 1]) for body in robot.bodies}
        self._springs = self._compliances(setup)
        self._weights = {body.number: self._weight(body, setup) for body in bodies_with_weight(robot, setup)}

    def link_pose(self) -> Transform:
        """Return the pose of the measured link in the robot's base frame, errors and springs included."""
        bent: dict[int, list[ca.SX]] = {}
        numbers = [body.number for body in self._bodies]
        for _ in range(_LOAD_PASSES if self._springs else 0):
            bent = self._deflections(self._poses(bent, [*numbers, *self._weights]))
        return self._measured(self._poses(bent, numbers))

    def _measured(self, poses: dict[int, Transform]) -> Transform:
        return poses[self._bodies[-1].number if self._bodies else 0].then(self._end)

    def _at_rest(self, body: Body, placement: Transform) -> Transform:
        """Return a body's frame in its parent's at q = 0, with its errors; only bodies of the chain have any."""
        errors = [(motion, self._symbols.unknown(motion.name)) for motion in error_motions(body)]
        return placement.then(_folded(errors))

    def _compliances(self, setup: CalibrationSetup) -> dict[int, list[tuple[ElementaryMotion, ca.SX]]]:
        """Return, by body, the motion that each spring allows and its compliance at the present joint position."""
        found: dict[int, list[tuple[ElementaryMotion, ca.SX]]] = {}
        shares = self._symbols.node_weights
        for body in self._bodies:
            for spring in joint_springs(self._robot, body, setup.elastic):
                values = self._symbols.unknowns(spring.names)
                own_shares, shares = shares[: len(spring.nodes)], shares[len(spring.nodes) :]
                compliance = ca.dot(own_shares, values) if spring.nodes else values
                found.setdefault(body.number, []).append((spring.motion, compliance))
        return found

    def _weight(self, body: Body, setup: CalibrationSetup) -> ca.SX:
        """Return first moments and mass (4,) of a body."""
        if setup.elastic.own_weight == "unknown":
            return self._symbols.unknowns(f"{label}{body.number}" for label in FIRST_MOMENTS_AND_MASS)
        if body.inertia is None:
            raise CalibrationError(
                f"own_weight 'model' needs the mass of every link behind a spring and '{body.link}' of "
                f"'{self._robot.name}' has none; give its inertia, or set own_weight to 'unknown' or 'none'"
            )
        return ca.sparsify(ca.SX(ca.DM(list(body.inertia[6:10]))))

    def _poses(self, bent: dict[int, list[ca.SX]], wanted: Iterable[int]) -> dict[int, Transform]:
        """Return the poses in the base frame of bodies and of those they hang on, at given deflections."""
        poses = {0: IDENTITY}
        for number in sorted(self._with_parents(wanted)):
            body = self._robot.bodies[number - 1]
            motions = [(body.joint.motion(0.0), self._positions[number - 1])]
            springs, amounts = self._springs.get(number, []), bent.get(number, [])
            motions += [(motion, amount) for (motion, _), amount in zip(springs, amounts, strict=False)]
            poses[number] = poses[body.parent].then(self._rest[number]).then(_folded(motions))
        return poses

    def _with_parents(self, numbers: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for number in numbers:
            while number and number not in found:
                found.add(number)
                number = self._robot.bodies[number - 1].parent
        return found

    def _deflections(self, poses: dict[int, Transform]) -> dict[int, list[ca.SX]]:
        """Return the deflection of each spring: compliance times the load about (or along) its axis, ``k J^T F``."""
        borne = self._borne(poses)
        bent: dict[int, list[ca.SX]] = {}
        for number, springs in self._springs.items():
            pose, load = poses[number], borne[number]
            moment = load.moment - ca.cross(pose.translation, load.force)
            for motion, compliance in springs:
                axis = ca.mtimes(pose.rotation, ca.sparsify(ca.SX(ca.DM(motion.axis))))
                effort = load.force if motion.kind == "translate" else moment
                bent.setdefault(number, []).append(compliance * ca.dot(axis, effort))
        return bent

    def _borne(self, poses: dict[int, Transform]) -> dict[int, _Wrench]:
        """Return the load of each joint: the applied wrench and the weights of all bodies behind it."""
        borne = {number: _Wrench(ca.SX(3, 1), ca.SX(3, 1)) for number in poses}
        link, symbols = self._measured(poses), self._symbols
        at = link.translation + ca.mtimes(link.rotation, symbols.load_point)
        force = symbols.wrench[:3]
        borne[self._bodies[-1].number] = _Wrench(force, symbols.wrench[3:] + ca.cross(at, force))
        gravity = ca.sparsify(ca.SX(ca.DM(self._robot.gravity)))
        for number in sorted(poses, reverse=True):
            if number in self._weights:
                moments, mass = self._weights[number][:3], self._weights[number][3]
                first = ca.mtimes(poses[number].rotation, moments) + mass * poses[number].translation
                borne[number] = borne[number].plus(_Wrench(mass * gravity, ca.cross(first, gravity)))
            if number:
                parent = self._robot.bodies[number - 1].parent
                borne[parent] = borne[parent].plus(borne[number])
        return borne


def _folded(motions: Iterable[tuple[ElementaryMotion, ca.SX | None]]) -> Transform:
    """Multiply elementary motions, each by its amount; None is no motion. Neighbours about one axis are added first."""
    present = [(motion, amount) for motion, amount in motions if amount is not None]
    result = IDENTITY
    for (kind, axis), group in groupby(present, key=lambda pair: (pair[0].kind, pair[0].axis)):
        amount = sum((amount for _, amount in group), start=ca.SX(0))
        if kind == "translate":
            step = Transform(IDENTITY.rotation, ca.sparsify(ca.SX(ca.DM(axis)) * amount))
        else:
            step = Transform(rotation_about(axis, ca.sin(amount), ca.cos(amount)), IDENTITY.translation)
        result = result.then(step)
    return Transform(ca.sparsify(result.rotation), ca.sparsify(result.translation))


NO_FRAME = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
"""Rotation (9) and translation (3) of a frame that is where its parent is."""
NO_FRAME.setflags(write=False)


class ChainSamples(NamedTuple):
    """Configurations and loads of N samples.

    Attributes:
        q: Actuated joint positions (na, N).
        wrench: Force and moment (6, N) in robot base axes.
        load_point: Where it acts (3, N), in the measured link's frame [m].
        node_weights: Share of each node in its joint's compliance (nodes, N).
    """

    q: np.ndarray
    wrench: np.ndarray
    load_point: np.ndarray
    node_weights: np.ndarray


class ChainFrames(NamedTuple):
    """Rotations and translations (12,) of base and tool, before their unknown parts."""

    base: np.ndarray
    tool: np.ndarray


@dataclass(frozen=True, eq=False)
class MeasuredChain:
    """The chain from the measurement frame to markers and tool, with unknowns.

    Functions are compiled when they are first called.

    Attributes:
        robot: The arm.
        setup: How it was measured.
        names: Names of the unknowns (p), as of ``unknown_parameters``.
    """

    robot: Robot
    setup: CalibrationSetup
    names: tuple[str, ...]

    def samples(
        self, q: np.ndarray, wrench: np.ndarray | None = None, load_point: np.ndarray | None = None
    ) -> ChainSamples:
        """Return samples at joint positions (na, N) under wrenches (6, N) at points (3, N) of the measured link.

        No wrench is none; no point is the origin of the measured link's frame.
        """
        count = q.shape[1]
        wrench = np.zeros((6, count)) if wrench is None else wrench
        point = np.zeros((3, count)) if load_point is None else load_point
        return ChainSamples(q, wrench, point, node_weights(self.robot, self.setup, q))

    def points(self, values: np.ndarray, samples: ChainSamples, point: np.ndarray, frames: ChainFrames) -> np.ndarray:
        """Return where points (3, N) of the measured link are in the measurement frame (3, N)."""
        (position,) = self._points(*samples, point, *frames, values)
        return position

    def point_derivatives(
        self, values: np.ndarray, samples: ChainSamples, point: np.ndarray, frames: ChainFrames
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return positions as ``points``, and their derivatives.

        Returns:
            Positions (3, N); derivatives by the unknowns, transposed (p, 3, N); derivatives by the point itself: the
            rotation (3, 3, N) of the measured link in the measurement frame.
        """
        count = samples.q.shape[1]
        out = (np.empty((3, 1, count)), np.zeros((len(self.names), 3, count)), np.zeros((3, 3, count)))
        inputs = (*samples, point, *frames, values)
        position, derivatives, rotation = self._point_derivatives.dense(*inputs, out=out)
        return position[:, 0], derivatives, rotation

    def poses(self, values: np.ndarray, samples: ChainSamples, frames: ChainFrames) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (3, 3, N) and positions (3, N) of the tool's frame in the measurement frame."""
        rotation, position = self._poses.dense(*samples, *frames, values)
        return rotation, position[:, 0]

    def pose_derivatives(
        self, values: np.ndarray, samples: ChainSamples, frames: ChainFrames
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rotations and positions as ``poses``, and their derivatives.

        Returns:
            Rotations (3, 3, N); positions (3, N); derivatives by the unknowns, transposed (p, 6, N): translation of the
            tool's origin, then small rotation w with ``dR = skew(w) R``, both in measurement axes.
        """
        inputs = (*samples, *frames, values)
        rotation, position, derivatives = self._pose_derivatives.dense(*inputs)
        return rotation, position[:, 0], derivatives

    @cached_property
    def _points(self) -> BatchFunction:
        return self._graph.compiled("points", [self._graph.marker], at_point=True)

    @cached_property
    def _point_derivatives(self) -> BatchFunction:
        graph = self._graph
        by_values = ca.jacobian(graph.marker, graph.symbols.values).T
        return graph.compiled("point_derivatives", [graph.marker, by_values, graph.link.rotation], at_point=True)

    @cached_property
    def _poses(self) -> BatchFunction:
        return self._graph.compiled("poses", [self._graph.tool.rotation, self._graph.tool.translation])

    @cached_property
    def _pose_derivatives(self) -> BatchFunction:
        tool = self._graph.tool
        derivatives = _pose_derivatives(tool, self._graph.symbols.values)
        return self._graph.compiled("pose_derivatives", [tool.rotation, tool.translation, derivatives])

    @cached_property
    def _graph(self) -> _Graph:
        nodes = sum(len(nodes) for _, nodes in _nodes(self.robot, self.setup))
        symbols = chain_symbols(self.robot, nodes, self.names)
        base = unknown_frame("base", symbols.base, symbols)
        link = base.then(ChainGraph(self.robot, self.setup, symbols).link_pose())
        tool = link.then(unknown_frame("tool", symbols.tool, symbols))
        return _Graph(symbols, link, link.translation + ca.mtimes(link.rotation, symbols.point), tool)


@dataclass(frozen=True)
class _Graph:
    """Symbols, the measured link's pose, a point of it and the tool's pose, all in the measurement frame."""

    symbols: ChainSymbols
    link: Transform
    marker: ca.SX
    tool: Transform

    def compiled(self, name: str, outputs: list[ca.SX], *, at_point: bool = False) -> BatchFunction:
        """Return outputs as a function of samples, of a point of the measured link if they depend on it, and values."""
        symbols = self.symbols
        inputs = [symbols.q, symbols.wrench, symbols.load_point, symbols.node_weights]
        inputs += [symbols.point] if at_point else []
        inputs += [symbols.base, symbols.tool, symbols.values]
        return compile_batch(ca.Function(name, inputs, ca.cse([ca.sparsify(output) for output in outputs])))


def _pose_derivatives(pose: Transform, values: ca.SX) -> ca.SX:
    """Return derivatives of a pose (p, 6): of its position, and of its rotation as ``w = sum_c R_c x dR_c / 2``."""
    columns = [pose.rotation[:, column] for column in range(3)]
    seeds = []
    for axis in range(3):
        unit = ca.SX(ca.DM.eye(3))[:, axis]
        seeds.append(ca.vertcat(*(ca.cross(unit, column) / 2 for column in columns)))
    stacked = ca.vertcat(*columns)
    turned = ca.jtimes(ca.densify(stacked), values, ca.densify(ca.horzcat(*seeds)), True)
    return ca.horzcat(ca.jacobian(pose.translation, values).T, turned)


def node_weights(robot: Robot, setup: CalibrationSetup, q: np.ndarray) -> np.ndarray:
    """Return the share (nodes, N) that each node has in its joint's compliance at joint positions q (na, N).

    The nearest node counts alone, or the two neighbours count linearly; beyond the outermost nodes these hold.
    """
    matrix, offset = robot.coupling()
    shares = [np.zeros((0, q.shape[1]))]
    for row, nodes in _nodes(robot, setup):
        shares.append(_shares(matrix[row] @ q + offset[row], np.array(nodes), setup.elastic.between))
    return np.concatenate(shares)


def _nodes(robot: Robot, setup: CalibrationSetup) -> list[tuple[int, tuple[float, ...]]]:
    """Return row and nodes of each joint whose compliance has nodes, along the chain."""
    chain = moving_chain(robot, setup.link)
    springs = [(body.number - 1, spring) for body in chain for spring in joint_springs(robot, body, setup.elastic)]
    return [(row, spring.nodes) for row, spring in springs if spring.nodes]


def _shares(position: np.ndarray, nodes: np.ndarray, between: Between) -> np.ndarray:
    one_each = np.eye(len(nodes))
    if between == "nearest":
        return one_each[:, np.abs(position - nodes[:, None]).argmin(axis=0)]
    order = np.argsort(nodes)
    return np.stack([np.interp(position, nodes[order], share[order]) for share in one_each])
