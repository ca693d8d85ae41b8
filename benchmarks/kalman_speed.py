"""The extended Kalman filter: a 7-joint arm with 84 parameters against Pinocchio and numpy, and P1's 2-joint arm.

The peers take Pinocchio's derivatives of the articulated body method and its regressor, and the same square-root
information filter as ours: once with one dense QR of the whole array (textbook), once with the structure used as ours
uses it. All three give the same numbers; how well is printed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
from scipy.linalg import solve_triangular

from benchmarks.regressor import pinocchio_model
from benchmarks.timing import ratio, round_robin
from steelyard.estimate.kalman.dynamics import arm_graph
from steelyard.estimate.kalman.lapack_engine import CompiledArm, LapackEngine
from steelyard.estimate.kalman.loop_engine import LoopEngine
from steelyard.estimate.kalman.state import Shape, new_vector, restart
from steelyard.model import build_model
from steelyard.robot import INERTIAL_NAMES, Robot, load_robot

RATE, STEPS, WIDTH = 1000.0, 200, 0.05
SPREAD, TORQUE_NOISE, POSITION_NOISE = 0.05, 0.3, 1e-5
# Pinocchio's order of the ten parameters of a body, in ours.
ORDER = [INERTIAL_NAMES.index(name) for name in ("M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ")]


@dataclass(frozen=True)
class Case:
    """An arm on the move: start, torque and position of every step."""

    robot: Robot
    values: np.ndarray
    x: np.ndarray
    torque: np.ndarray
    position: np.ndarray

    @property
    def deviations(self) -> np.ndarray:
        """Deviations of the start (84,)."""
        return SPREAD * (np.abs(self.values) + 0.01)


def moving_arm() -> Case:
    """Return sines of all seven joints with the torques they need, friction included, and some noise."""
    robot = load_robot("kuka_lwr4")
    rng = np.random.default_rng(0)
    inertias = np.concatenate([np.array(body.inertia) for body in robot.bodies])
    values = np.concatenate([inertias, np.full(7, 3.0), np.full(7, 4.0)])
    t = np.arange(STEPS + 1) / RATE
    speed, phase = rng.uniform(2, 6, (7, 1)), rng.uniform(0, 6, (7, 1))
    q, qd = 0.5 * np.sin(speed * t + phase), 0.5 * speed * np.cos(speed * t + phase)
    qdd = -(speed**2) * q
    model = pinocchio_model(robot)
    data = model.createData()
    torque = np.empty((STEPS, 7))
    for k in range(STEPS):
        Y = pin.computeJointTorqueRegressor(model, data, q[:, k], qd[:, k], qdd[:, k]).reshape(7, 7, 10)
        rigid = np.einsum("ijk,jk->i", Y, inertias.reshape(7, 10)[:, ORDER])
        torque[k] = rigid + values[70:77] * qd[:, k] + values[77:] * np.tanh(qd[:, k] / WIDTH)
    torque += TORQUE_NOISE * rng.standard_normal(torque.shape)
    position = (q[:, 1:] + POSITION_NOISE * rng.standard_normal((7, STEPS))).T
    return Case(robot, values, np.concatenate([qd[:, 0], q[:, 0]]), torque, position)


class Ours:
    """Our filter with LAPACK."""

    def __init__(self, case: Case) -> None:
        model = build_model(case.robot, ["inertia", "Fvm", "Fcm"], measured="motor")
        start = time.perf_counter()
        graph = arm_graph(model, model.names, range(84), loaded=False, held=False)
        self.shape = Shape(joints=7, free=84, parameters=84, observed=7, noises=7)
        self.engine = LapackEngine(CompiledArm(graph, "rk4"), self.shape, tuple(range(84)), measured=False)
        self.compile_seconds = time.perf_counter() - start
        self.vector = new_vector(self.shape, case.values, np.diag(case.deviations**2))
        restart(self.shape, self.vector, case.x, np.full(14, 1e-3))
        self.given = np.concatenate([case.torque, case.position], axis=1)[:, :, None]
        noise = [
            case.values,
            np.full(7, TORQUE_NOISE),
            np.full(7, POSITION_NOISE),
            [14.07, 1 / RATE, WIDTH],
            np.zeros(14),
        ]
        self.fixed = np.concatenate(noise)[:, None]

    def run(self) -> np.ndarray:
        """Return state and parameters after all steps (98,)."""
        vectors, _ = self.engine.advance(self.vector[:, None], self.given, self.fixed, 1, 10**9)
        return vectors[:98, 0]


class WithPinocchio:
    """Pinocchio's derivatives, Runge-Kutta, and a square-root information filter in numpy."""

    def __init__(self, case: Case, *, structured: bool) -> None:
        self.case, self.structured = case, structured
        self.model = pinocchio_model(case.robot)
        self.data = self.model.createData()

    def run(self) -> np.ndarray:
        """Return state and parameters after all steps (98,)."""
        case = self.case
        x, p = case.x.copy(), case.values.copy()
        R_xx, R_xp = np.eye(14) * 1e3, np.zeros((14, 84))
        R_pp = np.diag(1 / case.deviations)
        for torque, position in zip(case.torque, case.position, strict=True):
            x, D = self._predicted(x, p, torque)
            back = np.linalg.solve(D[:, :14].T, R_xx.T).T
            entering, cross = -TORQUE_NOISE * back @ D[:, 14:21], R_xp - back @ D[:, 21:]
            innovation = (position - x[7:]) / POSITION_NOISE
            update = self._structured if self.structured else self._dense
            R_xx, R_xp, R_pp, dx, dp = update(entering, back, cross, R_pp, innovation)
            x, p = x + dx, p + dp
        return np.concatenate([x, p])

    def _predicted(self, x: np.ndarray, p: np.ndarray, torque: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for body, ten in enumerate(p[:70].reshape(7, 10)[:, ORDER]):
            self.model.inertias[body + 1] = pin.Inertia.FromDynamicParameters(ten)
        h, start = 1 / RATE, np.eye(14, 105)
        slope, slope_by = np.zeros(14), np.zeros((14, 105))
        total, total_by = np.zeros(14), np.zeros((14, 105))
        for fraction, weight in ((0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1, 1 / 6)):
            at, at_by = x + fraction * h * slope, start + fraction * h * slope_by
            a, A = self._acceleration(at[7:], at[:7], torque, p)
            bent = A[:, :14] @ at_by
            bent[:, 14:] += A[:, 14:]
            slope, slope_by = np.concatenate([a, at[:7]]), np.concatenate([bent, at_by[:7]])
            total += weight * slope
            total_by += weight * slope_by
        return x + h * total, start + h * total_by

    def _acceleration(
        self, q: np.ndarray, qd: np.ndarray, torque: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return qdd and its derivatives by qd, q, torque and parameters (7, 105)."""
        direction = np.tanh(qd / WIDTH)
        applied = torque - p[70:77] * qd - p[77:] * direction
        by_q, by_qd, by_torque = pin.computeABADerivatives(self.model, self.data, q, qd, applied)
        a = self.data.ddq.copy()
        drag = p[70:77] + p[77:] * (1 - direction**2) / WIDTH
        A = np.empty((7, 105))
        A[:, :7] = by_qd - by_torque * drag
        A[:, 7:14], A[:, 14:21] = by_q, by_torque
        Y = pin.computeJointTorqueRegressor(self.model, self.data, q, qd, a)
        A[:, 21:91] = (-by_torque @ Y).reshape(7, 7, 10)[:, :, BACK].reshape(7, 70)
        A[:, 91:98], A[:, 98:] = -by_torque * qd, -by_torque * direction
        return a, A

    @staticmethod
    def _dense(
        entering: np.ndarray, back: np.ndarray, cross: np.ndarray, R_pp: np.ndarray, innovation: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """One QR of the whole array."""
        stack = np.zeros((112, 106))
        stack[:7, :7] = np.eye(7)
        stack[7:21, :7], stack[7:21, 7:21], stack[7:21, 21:105] = entering, back, cross
        stack[21:105, 21:105] = R_pp
        stack[105:, 14:21], stack[105:, 105] = np.eye(7) / POSITION_NOISE, innovation
        R = np.asarray(np.linalg.qr(stack, mode="r"))
        d = solve_triangular(R[7:105, 7:105], R[7:105, 105])
        return R[7:21, 7:21], R[7:21, 21:105], R[21:105, 21:105], d[:14], d[14:]

    @staticmethod
    def _structured(
        entering: np.ndarray, back: np.ndarray, cross: np.ndarray, R_pp: np.ndarray, innovation: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """A QR of the state's rows, then one that merges what is left over into the parameters' triangle."""
        stack = np.zeros((28, 106))
        stack[:7, :7] = np.eye(7)
        stack[7:21, :7], stack[7:21, 7:21], stack[7:21, 21:105] = entering, back, cross
        stack[21:, 14:21], stack[21:, 105] = np.eye(7) / POSITION_NOISE, innovation
        R = np.asarray(np.linalg.qr(stack, mode="r"))
        lower = np.zeros((91, 85))
        lower[:84, :84], lower[84:] = R_pp, R[21:, 21:]
        merged = np.asarray(np.linalg.qr(lower, mode="r"))
        dp = solve_triangular(merged[:84, :84], merged[:84, 84])
        dx = solve_triangular(R[7:21, 7:21], R[7:21, 105] - R[7:21, 21:105] @ dp)
        return R[7:21, 7:21], R[7:21, 21:105], merged[:84, :84], dx, dp


BACK = np.argsort(ORDER)


def run() -> None:
    """Print times and ratios of the 7-joint filter, then the time of P1's filter."""
    case = moving_arm()
    ours = Ours(case)
    peers = {name: WithPinocchio(case, structured=name == "structured") for name in ("textbook", "structured")}
    found = ours.run()
    print("7-joint EKF with 84 parameters, RK4, positions observed, one thread, CPU time")
    for name, peer in peers.items():
        worst = np.abs(peer.run() - found).max()
        print(f"  largest difference to Pinocchio and numpy, {name}: {worst:.1e} after {STEPS} steps")
    times = round_robin({"ours": ours.run, **{name: peer.run for name, peer in peers.items()}}, rounds=5)
    for name, timing in times.items():
        print(f"  {name:10s} {1e6 * timing.median / STEPS:6.0f} us a step")
    print(f"  graph and compilation once: {ours.compile_seconds:.1f} s; a minute at 1 kHz: "
          f"{60_000 * times['ours'].median / STEPS:.0f} s")  # fmt: skip
    for name in peers:
        print(f"  times faster than Pinocchio and numpy, {name}: {ratio(times[name], times['ours'])}  (wanted: 2)")
    _print_scara()


def _print_scara(samples: int = 3000) -> None:
    """Print the time of P1's filter over 30 s at 100 Hz."""
    model = build_model(load_robot("scara_2r"))
    names = ["ZZ1", "Fvm1", "Fcm1", "ZZ2", "MX2", "MY2", "Fvm2", "Fcm2"]
    start = time.perf_counter()
    shape = Shape(joints=2, free=8, parameters=8, observed=2, noises=4)
    graph = arm_graph(model, names, range(8), loaded=False, held=False)
    engines = {name: LoopEngine(graph, shape, name, tuple(range(8)), measured=False) for name in ("euler", "rk4")}
    compiled = time.perf_counter() - start
    values = np.array([3.42, 0.07, 0.58, 0.064, 0.26, 0.0, 0.015, 0.156])
    vector = new_vector(shape, values, 1e-3 * np.eye(8))
    restart(shape, vector, np.zeros(4), np.ones(4))
    t = np.arange(samples) / 100
    given = np.column_stack([8 * np.sin(3 * t), np.sin(5 * t), np.zeros((samples, 2))])[:, :, None]
    fixed = np.concatenate([values, np.full(4, 0.01), [0.01, 0.1, 5.99, 0.01, 1e-3], np.zeros(4)])[:, None]
    times = round_robin(
        {name: lambda engine=engine: engine.advance(vector[:, None], given, fixed, 0, 2)
         for name, engine in engines.items()}, clock=time.perf_counter
    )  # fmt: skip
    for name, timing in times.items():
        print(f"P1's 2-joint EKF, {samples} samples, {name}: {timing.median:.3f} s wall  (wanted: 0.3)")
    print(f"  graphs and compilation of both, once: {compiled:.2f} s")
