"""Random designs, and whether their limits hold at many instants by code nobody here wrote.

Motions are evaluated from their numbers by numpy and scipy, torques and places are Pinocchio's, distances between
capsules those of its collision library; friction and regions are a line of numpy each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import BPoly
from scipy.spatial.transform import Rotation

from oracles import NO_PINOCCHIO, centre_and_inertia, pinocchio_model
from steelyard.errors import DesignError
from steelyard.excitation import (
    Box,
    Capsule,
    CapsulePair,
    Certificate,
    Certifier,
    Cylinder,
    DesignLimits,
    DesignSettings,
    HalfSpace,
    PointRule,
    Region,
    Sphere,
    assembled,
    design_limits,
    known_of,
)
from steelyard.excitation.search import search
from steelyard.model import build_model
from steelyard.motion import FourierSeries, PiecewisePolynomial, QuinticMoves, Trajectory
from steelyard.robot import Robot, load_robot, transform_from_placement
from steelyard.workers import Shared, open_workers

ARMS = ("scara_2r", "ur10e", "kuka_lwr4", "staubli_tx40")


@dataclass(frozen=True, eq=False)
class Case:
    """A random design.

    Attributes:
        robot: The arm.
        limits: Random limits.
        carries: The payload of a paired design; None for one without.
        trajectory: The best motion that was found.
        certificate: What is claimed of it.
        certifier: What claimed it.
    """

    robot: Robot
    limits: DesignLimits
    carries: str | None
    trajectory: Trajectory
    certificate: Certificate
    certifier: Certifier


def random_case(name: str, seed: int, folder: Path) -> Case:
    """Return a design of an arm within random limits.

    Raises:
        DesignError: If the limits that were drawn leave no motion.
    """
    robot, rng = load_robot(name), np.random.default_rng(seed)
    file = folder / f"{name}_{seed}.toml"
    file.write_text(random_limits(robot, rng), encoding="utf-8")
    limits = design_limits(robot, file)
    carries = "P5" if name == "kuka_lwr4" and seed % 2 else None
    settings = DesignSettings(
        harmonics=int(rng.integers(3, 5)), duration=float(rng.uniform(8, 20)),
        motion="quintic" if seed % 4 == 3 else "fourier", criterion=str(rng.choice(["d", "condition_weighted"])),
    )  # fmt: skip
    model = build_model(robot, payload="none" if carries is None else "paired")
    ready = assembled(model, limits, settings, known_of(model, limits, carries)[0])
    with open_workers() as workers:
        found = search(Shared(lambda: ready), workers, starts=1, seed=seed)
    return Case(robot, limits, carries, found.problem.trajectory(found.best.z), found.best.certificate, ready.certifier)


def random_cases(name: str, count: int, folder: Path) -> tuple[list[Case], list[str]]:
    """Return so many designs of an arm, and why those in between were refused."""
    made: list[Case] = []
    refused: list[str] = []
    for seed in range(4 * count):
        try:
            made.append(random_case(name, seed, folder))
        except DesignError as error:
            refused.append(f"{name} {seed}: {error}")
        if len(made) == count:
            return made, refused
    raise AssertionError(f"only {len(made)} of {count} designs: {refused}")


def random_limits(robot: Robot, rng: np.random.Generator) -> str:
    """Return a limits file: scaled limits of joints, a region for the last link, capsules, and an obstacle."""
    joints = {
        "velocity_scale": rng.uniform(0.3, 1.0), "acceleration_scale": rng.uniform(0.3, 1.0),
        "torque_scale": rng.uniform(0.6, 1.0), "position_margin": rng.uniform(0.0, 0.1),
    }  # fmt: skip
    if rng.random() < 0.5:
        joints["jerk"] = rng.uniform(40.0, 200.0)
    reach = sum(float(np.linalg.norm(end)) for _, end in link_ends(robot))
    side = 'torque_side = "joint"\n' if robot.name == "kuka_lwr4" and rng.random() < 0.3 else ""
    return side + "".join(
        [
            table("joints", joints), "[self_collision]\n", pairs({"margin": rng.uniform(0.0, 0.02)}),
            *(table("[space]", random_region(reach, rng) | {"margin": rng.uniform(0, 0.02)}) for _ in range(2)),
            *(
                table("[capsule]", {"link": link, "start": [0, 0, 0], "end": end, "radius": rng.uniform(0.02, 0.05)})
                for link, end in link_ends(robot)
            ),
            table("[obstacle]", random_obstacle(reach, rng)),
        ]
    )  # fmt: skip


def link_ends(robot: Robot) -> list[tuple[str, np.ndarray]]:
    """Return for each moving link where the next one begins, in its frame; the last is as long as a hand."""
    ends = {body.number: np.array([0.0, 0.0, 0.1]) for body in robot.bodies}
    for body in robot.bodies:
        if body.parent:
            ends[body.parent] = transform_from_placement(body.placement)[1]
    return [(body.link, ends[body.number]) for body in robot.bodies]


def random_region(reach: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return a rule that leaves most of what an arm can reach to it."""
    kind = str(rng.choice(["half_space", "sphere", "cylinder", "box"]))
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    point = {"kind": kind, "point": rng.uniform(-0.1, 0.1, 3)}
    if kind == "half_space":
        return point | {"normal": direction, "offset": -reach * rng.uniform(0.2, 0.6)}
    if kind == "sphere":
        return point | {
            "centre": reach * 0.6 * direction, "radius": reach * rng.uniform(0.05, 0.25), "keep": "out",
        }  # fmt: skip
    if kind == "cylinder":
        return point | {
            "centre": reach * 0.5 * direction, "axis": rng.normal(size=3), "radius": reach * rng.uniform(0.05, 0.2),
            "keep": "out",
        } | ({"upper": reach * 0.2} if rng.random() < 0.5 else {})  # fmt: skip
    sides = reach * rng.uniform(0.5, 1.2, (2, 3))
    return point | {"lower": -sides[0], "upper": sides[1], "keep": "in"}


def random_obstacle(reach: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return something that stands beside an arm."""
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    place, kind = reach * rng.uniform(0.6, 0.9) * direction, str(rng.choice(["sphere", "capsule", "half_space"]))
    if kind == "half_space":
        return {"kind": kind, "normal": -direction, "offset": -reach * rng.uniform(0.5, 0.8)}
    if kind == "sphere":
        return {"kind": kind, "centre": place, "radius": reach * rng.uniform(0.05, 0.15), "margin": 0.01}
    return {"kind": kind, "start": place, "end": place + 0.3 * rng.normal(size=3), "radius": 0.1 * reach}


def table(name: str, entries: dict[str, Any]) -> str:
    return f"[{name}]\n" + pairs(entries)


def pairs(entries: dict[str, Any]) -> str:
    """Return lines of TOML."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in entries.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    numbers = np.asarray(value, dtype=float)
    return repr(numbers.tolist())


def motion_at(trajectory: Trajectory, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return positions to jerks (n, N) from the numbers that make a motion."""
    if isinstance(trajectory, FourierSeries):
        orders = np.arange(1, trajectory.sin.shape[1] + 1) * (2 * np.pi / trajectory.period)
        phase = orders[:, None] * time
        parts = []
        for order in range(4):
            # The k-th derivative of a sine or cosine is itself a quarter of a turn further.
            turned = phase + order * np.pi / 2
            power = orders**order
            parts.append((trajectory.sin * power) @ np.sin(turned) + (trajectory.cos * power) @ np.cos(turned))
        parts[0] += trajectory.q0[:, None]
        return parts[0], parts[1], parts[2], parts[3]
    assert isinstance(trajectory, PiecewisePolynomial)
    moves = trajectory.moves
    assert isinstance(moves, QuinticMoves)
    instants = np.concatenate([[0.0], np.cumsum(moves.durations)])
    rows = [
        BPoly.from_derivatives(instants, [[place, 0.0, 0.0] for place in row])  # type: ignore[arg-type]
        for row in moves.points
    ]
    q, qd, qdd, qddd = (np.array([row(time, order) for row in rows]) for order in range(4))
    return q, qd, qdd, qddd


class Witness:
    """Judges motions by Pinocchio and coal."""

    def __init__(self, case: Case) -> None:
        self._pin: Any = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
        self._coal: Any = pytest.importorskip("coal", reason=NO_PINOCCHIO)
        self._case = case
        self.model = pinocchio_model(case.robot)
        self._loaded = pinocchio_model(case.robot)
        if case.carries is not None:
            frame = case.robot.frame(str(case.robot.payload_link))
            mass, centre, inertia = centre_and_inertia(np.array(case.robot.payloads[case.carries]))
            self._loaded.appendBodyToJoint(
                frame.body, self._pin.Inertia(mass, centre, inertia), self._placement(str(case.robot.payload_link))
            )
        self._points = [rule for rule in case.limits.rules if isinstance(rule, PointRule)]
        self._frames = [self._add_frame(rule, number) for number, rule in enumerate(self._points)]
        self._pairs = [rule for rule in case.limits.rules if isinstance(rule, CapsulePair)]
        self._geometry = self._pin.GeometryModel()
        for number, pair in enumerate(self._pairs):
            first, second = (self._add_capsule(one, f"{number} {k}") for k, one in enumerate((pair.first, pair.second)))
            self._geometry.addCollisionPair(self._pin.CollisionPair(first, second))

    def _placement(self, link: str) -> Any:
        return self._pin.SE3(*transform_from_placement(self._case.robot.frame(link).placement))

    def _add_frame(self, rule: PointRule, number: int) -> int:
        link = rule.point.link
        place = self._placement(link) * self._pin.SE3(np.eye(3), np.array(rule.point.offset, dtype=float))
        joint = self._case.robot.frame(link).body
        kind = self._pin.FrameType.OP_FRAME
        return self.model.addFrame(self._pin.Frame(f"point {number}", joint, place, kind))

    def _add_capsule(self, capsule: Capsule, name: str) -> int:
        start, end = np.array(capsule.start, dtype=float), np.array(capsule.end, dtype=float)
        length = float(np.linalg.norm(end - start))
        turn = (
            np.eye(3) if length == 0 else Rotation.align_vectors([(end - start) / length], [[0, 0, 1]])[0].as_matrix()
        )
        place = self._pin.SE3(turn, (start + end) / 2)
        joint = 0
        if capsule.link is not None:
            joint, place = self._case.robot.frame(capsule.link).body, self._placement(capsule.link) * place
        shape = self._coal.Sphere(capsule.radius) if length == 0 else self._coal.Capsule(capsule.radius, length)
        return self._geometry.addGeometryObject(self._pin.GeometryObject(name, joint, place, shape))

    def violations(self, trajectory: Trajectory, count: int) -> dict[str, float]:
        """Return the largest excess over every limit at so many instants; below 0 where it is kept."""
        motion = motion_at(trajectory, np.linspace(0.0, trajectory.duration, count))
        return self._joint_violations(motion) | self._torque_violations(motion) | self._space_violations(motion[0])

    def _joint_violations(self, motion: tuple[np.ndarray, ...]) -> dict[str, float]:
        limits = self._case.limits.motion
        found = {"lower": (limits.lower[:, None] - motion[0]).max(), "upper": (motion[0] - limits.upper[:, None]).max()}
        for order, what in enumerate(("velocity", "acceleration", "jerk"), start=1):
            found[what] = (np.abs(motion[order]) - getattr(limits, what)[:, None]).max()
        return {what: float(value) for what, value in found.items()}

    def _torque_violations(self, motion: tuple[np.ndarray, ...]) -> dict[str, float]:
        found = {}
        friction = friction_of(self._case.robot, self._case.limits.torque_side, motion)
        models = {"torque": self.model} | ({} if self._case.carries is None else {"loaded torque": self._loaded})
        for name, model in models.items():
            data = model.createData()
            columns = zip(*(part.T for part in motion[:3]), strict=True)
            rigid = np.array([self._pin.rnea(model, data, *column).copy() for column in columns]).T
            found[name] = float((np.abs(rigid + friction) - self._case.limits.torque[:, None]).max())
        return found

    def _space_violations(self, postures: np.ndarray) -> dict[str, float]:
        pin, data, geometry = self._pin, self.model.createData(), self._geometry.createData()
        places = np.empty((len(self._points), 3, postures.shape[1]))
        distances = np.empty((len(self._pairs), postures.shape[1]))
        for column, q in enumerate(postures.T):
            pin.framesForwardKinematics(self.model, data, q)
            for row, frame in enumerate(self._frames):
                places[row, :, column] = data.oMf[frame].translation
            pin.updateGeometryPlacements(self.model, data, self._geometry, geometry)
            pin.computeDistances(self._geometry, geometry)
            for row in range(len(self._pairs)):
                distances[row, column] = geometry.distanceResults[row].min_distance
        found = {}
        for rule, place in zip(self._points, places, strict=True):
            inside = depth_in(rule.region, place)
            found[rule.name] = float((rule.margin + (inside if rule.keep == "keep_out" else -inside)).max())
        for rule, distance in zip(self._pairs, distances, strict=True):
            found[rule.name] = float((rule.margin - distance).max())
        return found


def depth_in(region: Region, place: np.ndarray) -> np.ndarray:
    """Return how deep points (3, N) lie inside a region, from its nearest face; below 0 outside."""
    if isinstance(region, HalfSpace):
        normal = np.array(region.normal)
        return normal @ place / np.linalg.norm(normal) - region.offset
    if isinstance(region, Sphere):
        return region.radius - np.linalg.norm(place - np.array(region.centre)[:, None], axis=0)
    if isinstance(region, Box):
        faces = [np.array(region.upper)[:, None] - place, place - np.array(region.lower)[:, None]]
        return np.concatenate(faces).min(axis=0)
    assert isinstance(region, Cylinder)
    axis = np.array(region.axis) / np.linalg.norm(region.axis)
    offset = place - np.array(region.centre)[:, None]
    across = np.linalg.norm(np.cross(axis, offset, axis=0), axis=0)
    along = axis @ offset
    return np.min([region.radius - across, region.upper - along, along - region.lower], axis=0)


def friction_of(robot: Robot, side: str, motion: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return all torques (n, N) but the rigid ones, with the robot's own numbers; at an exact reversal no Coulomb."""
    _, qd, qdd = motion[:3]

    def each(symbol: str) -> np.ndarray:
        return np.array([robot.values.get(f"{symbol}{body.number}", 0.0) for body in robot.actuated])[:, None]

    torque = each("Fvl") * qd + each("Fcl") * np.sign(qd) + each("offl")
    if side == "joint":
        return torque
    torque = torque + each("Ia") * qdd + each("Fvm") * qd + each("Fcm") * np.sign(qd) + each("offm")
    row_of = {body.joint.name: row for row, body in enumerate(robot.actuated)}
    for coupling in robot.gear_couplings:
        own, other, ratio = row_of[coupling.motor], row_of[coupling.also_turns_with], coupling.ratio
        number = robot.actuated[own].number
        inertia, viscous, coulomb = (robot.values[f"{symbol}{number}"] for symbol in ("Iac", "Fvc", "Fcc"))
        turning = coulomb * np.sign(qd[own] + ratio * qd[other])
        torque[own] += ratio * (inertia * qdd[other] + viscous * qd[other]) + turning
        torque[other] += ratio * (inertia * qdd[own] + viscous * qd[own] + turning)
    return torque
