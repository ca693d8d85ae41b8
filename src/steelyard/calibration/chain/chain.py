"""The measured chain as compiled functions over rows of measurements: positions, poses and their exact derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ...kernel import BatchFunction, compile_batch
from ...physics import Transform
from ...robot import Robot
from ..measurement.setup import Between, CalibrationSetup, moving_chain
from .chain_graph import ChainGraph, ChainSymbols, chain_symbols, unknown_frame
from .unknowns import joint_springs

NO_FRAME = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
"""Rotation (9) and translation (3) of a frame that is where its parent is."""
NO_FRAME.setflags(write=False)


@dataclass(frozen=True, eq=False)
class ChainSamples:
    """Where the arm stood and what pulled at it, N samples.

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

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs that differ from sample to sample, in the order of the compiled functions."""
        return self.q, self.wrench, self.load_point, self.node_weights


@dataclass(frozen=True, eq=False)
class ChainFrames:
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
        (position,) = self._points(*samples.arrays, point, frames.base, frames.tool, values)
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
        inputs = (*samples.arrays, point, frames.base, frames.tool, values)
        position, derivatives, rotation = self._point_derivatives.dense(*inputs, out=out)
        return position[:, 0], derivatives, rotation

    def poses(self, values: np.ndarray, samples: ChainSamples, frames: ChainFrames) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (3, 3, N) and positions (3, N) of the tool's frame in the measurement frame."""
        rotation, position = self._poses.dense(*samples.arrays, frames.base, frames.tool, values)
        return rotation, position[:, 0]

    def pose_derivatives(
        self, values: np.ndarray, samples: ChainSamples, frames: ChainFrames
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rotations and positions as ``poses``, and their derivatives.

        Returns:
            Rotations (3, 3, N); positions (3, N); derivatives by the unknowns, transposed (p, 6, N): translation of the
            tool's origin, then small rotation w with ``dR = skew(w) R``, both in measurement axes.
        """
        inputs = (*samples.arrays, frames.base, frames.tool, values)
        rotation, position, derivatives = self._pose_derivatives.dense(*inputs)
        return rotation, position[:, 0], derivatives

    @cached_property
    def _points(self) -> BatchFunction:
        graph = self._graph
        return _compiled("points", graph, (graph.symbols.point,), [graph.marker])

    @cached_property
    def _point_derivatives(self) -> BatchFunction:
        graph = self._graph
        by_values = ca.jacobian(graph.marker, graph.symbols.values).T
        outputs = [graph.marker, by_values, graph.link.rotation]
        return _compiled("point_derivatives", graph, (graph.symbols.point,), outputs)

    @cached_property
    def _poses(self) -> BatchFunction:
        graph = self._graph
        return _compiled("poses", graph, (), [graph.tool.rotation, graph.tool.translation])

    @cached_property
    def _pose_derivatives(self) -> BatchFunction:
        graph = self._graph
        derivatives = _pose_derivatives(graph.tool, graph.symbols.values)
        return _compiled("pose_derivatives", graph, (), [graph.tool.rotation, graph.tool.translation, derivatives])

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


def _compiled(name: str, graph: _Graph, more: tuple[ca.SX, ...], outputs: list[ca.SX]) -> BatchFunction:
    symbols = graph.symbols
    inputs = [symbols.q, symbols.wrench, symbols.load_point, symbols.node_weights, *more]
    shared = [symbols.base, symbols.tool, symbols.values]
    return compile_batch(ca.Function(name, [*inputs, *shared], ca.cse([ca.sparsify(output) for output in outputs])))


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
