"""Small calibration problems with known truth: a linear one, a planar arm, a spatial arm, a camera."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.calibration.measurement.measurements import Measurements
from steelyard.calibration.records import Linearised, MeasurementEquations, Unknown

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A problem whose derivatives come from a complex step; ``predict`` (p,) -> (all equations,)."""

    parameters: Sequence[Unknown]
    equations: MeasurementEquations
    start: np.ndarray
    predict: Predict
    chosen: np.ndarray

    def at(self, values: np.ndarray) -> Linearised:
        columns = []
        for column in range(len(values)):
            moved = values.astype(complex)
            moved[column] += 1e-30j
            columns.append(np.imag(self.predict(moved)[self.chosen]) / 1e-30)
        return Linearised(self.residual(values), np.column_stack(columns))

    def residual(self, values: np.ndarray) -> np.ndarray:
        return self.equations.measured - np.real(self.predict(values)[self.chosen])

    def taken(self, chosen: np.ndarray) -> SmallProblem:
        return SmallProblem(
            self.parameters, self.equations.taken(chosen), self.start, self.predict, self.chosen[chosen]
        )


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """A problem that is linear: ``measured = B x`` and noise."""

    parameters: Sequence[Unknown]
    equations: MeasurementEquations
    start: np.ndarray
    matrix: np.ndarray

    def at(self, values: np.ndarray) -> Linearised:
        return Linearised(self.residual(values), self.matrix)

    def residual(self, values: np.ndarray) -> np.ndarray:
        return self.equations.measured - self.matrix @ values

    def taken(self, chosen: np.ndarray) -> LinearProblem:
        return LinearProblem(self.parameters, self.equations.taken(chosen), self.start, self.matrix[chosen])


def joined(positions: Measurements, poses: Measurements) -> Measurements:
    """Rows of marker positions and of tool poses of the same configurations in one record."""
    names = ("pose", "marker", "other", "load", "value", "rotation", "repeat")
    rows = {name: np.concatenate([getattr(positions, name), getattr(poses, name)]) for name in names}
    return replace(positions, q=np.hstack([positions.q, poses.q]), kind=positions.kind + poses.kind, **rows)


def laid_out(
    measured: np.ndarray, poses: int, markers: int, repeats: int, coordinates: Sequence[int]
) -> MeasurementEquations:
    """Equations in the order pose, marker, repeat, coordinate."""
    shape = (poses, markers, repeats, len(coordinates))
    pose, marker, _, place = (index.ravel() for index in np.indices(shape))
    return MeasurementEquations(
        measured, pose, marker, np.array(coordinates)[place], np.arange(len(pose)) // len(coordinates),
        tuple(f"pose_{k + 1}" for k in range(poses)), tuple(f"m{k + 1}" for k in range(markers)),
    )  # fmt: skip


def joint_parameter(name: str, nominal: float = 0.0, unit: str = "rad") -> Unknown:
    return Unknown(name, "joint", unit, nominal, name)


def linear_problem(
    noise: np.ndarray, poses: int = 15, markers: int = 3, repeats: int = 2, unknowns: int = 4, seed: int = 0
) -> tuple[LinearProblem, np.ndarray]:
    """P3's form, B X = dp, with noise (poses * markers * repeats * 3,); returns the truth too.

    Markers of a configuration see nearly the same derivatives, as on a real tool, and repeats see the same.
    """
    random = np.random.default_rng(seed)
    blocks = random.standard_normal((poses, 1, 1, 3, unknowns))
    blocks = blocks + 0.3 * random.standard_normal((poses, markers, 1, 3, unknowns))
    matrix = np.broadcast_to(blocks, (poses, markers, repeats, 3, unknowns)).reshape(-1, unknowns)
    truth = 1e-3 * random.standard_normal(unknowns)
    parameters = [joint_parameter(f"offset{k + 1}") for k in range(unknowns)]
    equations = laid_out(matrix @ truth + noise, poses, markers, repeats, (0, 1, 2))
    return LinearProblem(parameters, equations, np.zeros(unknowns), matrix), truth


def noise_like(kind: str, sigma: float, poses: int, markers: int, repeats: int, seed: int) -> np.ndarray:
    """Noise of equal size, of sizes by configuration and direction, or mostly shared within a configuration."""
    random = np.random.default_rng(seed)
    shape = (poses, markers * repeats, 3)
    noise = random.standard_normal(shape)
    if kind == "unequal":
        sizes = np.exp(np.random.default_rng(99).uniform(np.log(0.3), np.log(3.0), (poses, 1, 3)))
        noise = noise * sizes
    if kind == "shared":
        noise = 0.5 * noise + np.sqrt(0.75) * random.standard_normal((poses, 1, 3))
    return sigma * noise.ravel()


PLANAR = (
    Unknown("base_x", "base", "m", 0.0, "base along x"),
    Unknown("base_y", "base", "m", 0.0, "base along y"),
    Unknown("base_rz", "base", "rad", 0.0, "base about z"),
    Unknown("x[m1]", "marker", "m", 0.1, "marker along x"),
    Unknown("y[m1]", "marker", "m", 0.0, "marker along y"),
    joint_parameter("offset1"),
    joint_parameter("offset2"),
    joint_parameter("x2", unit="m"),
    joint_parameter("z2", unit="m"),
)


def planar_problem(truth: np.ndarray, sigma: float = 0.0, poses: int = 20, seed: int = 0) -> SmallProblem:
    """A 2R arm (0.5 m upper arm) seen from above, with one marker; ``z2`` moves nothing that is measured."""
    random = np.random.default_rng(seed)
    q = random.uniform(-2, 2, (2, poses))

    def predict(x: np.ndarray) -> np.ndarray:
        first = x[2] + x[5] + q[0]
        second = first + x[6] + q[1]
        along = x[0] + (0.5 + x[7]) * np.cos(first) + x[3] * np.cos(second) - x[4] * np.sin(second)
        across = x[1] + (0.5 + x[7]) * np.sin(first) + x[3] * np.sin(second) + x[4] * np.cos(second)
        return np.stack([along, across], axis=1).ravel()

    measured = np.real(predict(truth)) + sigma * random.standard_normal(2 * poses)
    start = np.array([parameter.nominal for parameter in PLANAR])
    return SmallProblem(PLANAR, laid_out(measured, poses, 1, 1, (0, 1)), start, predict, np.arange(2 * poses))


def camera_problem(truth: np.ndarray, sigma: float = 0.0, points: int = 40, seed: int = 0) -> SmallProblem:
    """A camera (position, heading, focal length) sees known points: two image coordinates each, far from linear."""
    random = np.random.default_rng(seed)
    where = random.uniform(-1, 1, (points, 3)) + np.array([0, 0, 4.0])
    names = ("base_x", "base_y", "base_z", "base_rz")
    parameters = [Unknown(name, "base", "rad" if "r" in name else "m", 0.0, name) for name in names]
    parameters.append(Unknown("tool_z", "tool", "m", 0.03, "focal length"))

    def predict(x: np.ndarray) -> np.ndarray:
        c, s = np.cos(x[3]), np.sin(x[3])
        shifted = where - x[:3]
        turned = np.stack([c * shifted[:, 0] + s * shifted[:, 1], c * shifted[:, 1] - s * shifted[:, 0]], axis=1)
        return (x[4] * turned / shifted[:, 2:]).ravel()

    measured = np.real(predict(truth)) + sigma * random.standard_normal(2 * points)
    start = np.array([parameter.nominal for parameter in parameters])
    return SmallProblem(parameters, laid_out(measured, points, 1, 1, (0, 1)), start, predict, np.arange(2 * points))


def rotations(axis: int, angle: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3) about a coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    result = np.zeros((*np.shape(angle), 3, 3), dtype=np.asarray(c).dtype)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    result[..., axis, axis] = 1.0
    result[..., i, i], result[..., j, j] = c, c
    result[..., i, j], result[..., j, i] = -s, s
    return result


LINKS = ((0, 0, 0.675), (0.35, 0, 0), (1.15, 0, 0), (1.2, 0, -0.041), (0, 0, 0), (0, 0, 0))
AXES = (2, 1, 1, 0, 1, 0)
MARKERS = ((0.3, 0.2, -0.1), (0.3, -0.15, 0.05), (0.4, 0.0, 0.25))


def spatial_parameters(markers: int = 3) -> list[Unknown]:
    """Base, markers, and all six errors of every joint of a 6R arm."""
    found = [Unknown(f"base_{c}", "base", "m", 0.0, c) for c in "xyz"]
    found += [Unknown(f"base_r{c}", "base", "rad", 0.0, c) for c in "xyz"]
    for marker in range(markers):
        found += [Unknown(f"{c}[m{marker + 1}]", "marker", "m", MARKERS[marker][k], c) for k, c in enumerate("xyz")]
    for body, axis in enumerate(AXES):
        found += [joint_parameter(f"{c}{body + 1}", unit="m") for c in "xyz"]
        own = "xyz"[axis]
        found += [joint_parameter(f"offset{body + 1}" if c == own else f"r{c}{body + 1}") for c in "xyz"]
    return found


def spatial_points(x: np.ndarray, q: np.ndarray, signs: Sequence[float] = (1.0,) * 6, markers: int = 3) -> np.ndarray:
    """Markers of a KUKA-like arm (poses, markers, 3) at errors x and joints q (6, poses)."""
    frame = rotations(0, x[3]) @ rotations(1, x[4]) @ rotations(2, x[5])
    turn, place = np.broadcast_to(frame, (q.shape[1], 3, 3)), np.broadcast_to(x[:3], (q.shape[1], 3))
    for body, (link, axis) in enumerate(zip(LINKS, AXES, strict=True)):
        error = x[6 + 3 * markers + 6 * body :][:6]
        place = place + turn @ (np.array(link) + error[:3])
        turn = turn @ (rotations(0, error[3]) @ rotations(1, error[4]) @ rotations(2, error[5]))
        turn = turn @ rotations(axis, signs[body] * q[body])
    return place[:, None] + np.einsum("pij,mj->pmi", turn, x[6 : 6 + 3 * markers].reshape(markers, 3))


def spatial_problem(measured: np.ndarray, q: np.ndarray, start: np.ndarray | None = None) -> SmallProblem:
    """The spatial arm with measured markers (poses, markers, 3) at joints q (6, poses)."""
    parameters = spatial_parameters()
    begin = np.array([parameter.nominal for parameter in parameters]) if start is None else start
    count = measured.size
    return SmallProblem(
        parameters, laid_out(measured.ravel(), q.shape[1], 3, 1, (0, 1, 2)), begin,
        lambda x: spatial_points(x, q).ravel(), np.arange(count),
    )  # fmt: skip


def spatial_truth(seed: int = 0) -> np.ndarray:
    """Errors of about 1 mm and 2 mrad in every joint, a base 0.1 m and 0.1 rad away, markers 5 mm away."""
    random = np.random.default_rng(seed)
    sizes = {"base": 0.1, "marker": 5e-3, "joint": 1e-3}
    parameters = spatial_parameters()
    return np.array([p.nominal + sizes[p.group] * random.standard_normal() for p in parameters])
