"""What an arm is: an immutable tree of links and joints, and the moving bodies it amounts to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from ..errors import RobotError, nearest_match
from .inertia import moved_parameters
from .placement import Motion, Placement, Vector3, Z, transform_from_placement

JointKind = Literal["revolute", "prismatic", "fixed"]
STANDARD_GRAVITY: Vector3 = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Limits:
    """What a joint may do; infinite where the file says nothing. Units rad or m, s, N m or N."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    acceleration: float = math.inf
    jerk: float = math.inf


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = multiplier * q_leader + offset``."""

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint of the tree, between a parent link and a child link.

    Attributes:
        name: Name in the robot's file.
        kind: ``revolute`` (continuous joints are revolute without position limits), ``prismatic``, ``fixed``.
        parent: Name of the parent link.
        child: Name of the child link; its frame is the joint's frame.
        placement: Child frame in the parent frame at q = 0.
        axis: Unit vector of the joint axis in the child frame.
        limits: Limits of motion and effort.
        mimic: The joint it follows, if any.
        gear_ratio: Motor turns per joint turn (signed), if known.
        rotor_inertia: Inertia of the rotor on the motor side [kg m^2], if known.
        locked_at: Position at which the joint is held; None if it moves.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    placement: Placement
    axis: Vector3 = Z
    limits: Limits = Limits()
    mimic: Mimic | None = None
    gear_ratio: float | None = None
    rotor_inertia: float | None = None
    locked_at: float | None = None

    @property
    def moves(self) -> bool:
        """True unless the joint is fixed or locked."""
        return self.kind != "fixed" and self.locked_at is None

    def motion(self, value: float) -> Motion:
        """Return the motion of the joint at position ``value``."""
        return Motion("translate" if self.kind == "prismatic" else "rotate", self.axis, value, "q")

    @property
    def rest_placement(self) -> Placement:
        """The child frame in the parent frame at q = 0, or where the joint is locked."""
        if self.locked_at is None:
            return self.placement
        return (*self.placement, self.motion(self.locked_at))


@dataclass(frozen=True)
class Link:
    """A link and, where known, its ten inertial parameters about its own frame's origin."""

    name: str
    inertia: tuple[float, ...] | None = None


@dataclass(frozen=True)
class GearCoupling:
    """Motor ``motor`` turns with its own joint and also with joint ``also_turns_with``.

    On the joint side ``q_motor = q_own + ratio * q_other``: the TX40 wrist has motor 6, joint 5, ratio 1.
    """

    motor: str
    also_turns_with: str
    ratio: float = 1.0


@dataclass(frozen=True)
class Defaults:
    """What a model of this arm contains unless the user says otherwise.

    Attributes:
        torque: Torque kind the arm measures: ``motor_current``, ``motor_torque``, ``joint_torque`` ...
        measured: Which torques a model equates: ``motor``, ``joint``, ``both`` or ``difference``.
        effects: Names of the model terms.
    """

    torque: str = "motor_torque"
    measured: str = "motor"
    effects: tuple[str, ...] = ("inertia", "Ia", "Fvm", "Fcm", "offm")


@dataclass(frozen=True)
class Body:
    """A moving link with everything rigidly fixed to it.

    Attributes:
        number: 1, 2, ... in depth-first order of the file; the number in parameter names.
        joint: The joint that moves it.
        link: The moving link's name; its frame is the body's frame.
        parent: Number of the parent body, 0 for the base.
        placement: Body frame in the parent body's frame at q = 0 (fixed joints in between included).
        inertia: Ten parameters of the body with its fixed links (10,), or None if any is unknown.
    """

    number: int
    joint: Joint
    link: str
    parent: int
    placement: Placement
    inertia: tuple[float, ...] | None


@dataclass(frozen=True)
class Frame:
    """A named frame: the body that carries it (0 = base) and where it sits in that body's frame."""

    name: str
    body: int
    placement: Placement


def _no_values() -> Mapping[str, float]:
    return MappingProxyType({})


def _no_payloads() -> Mapping[str, tuple[float, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Robot:
    """An arm: a tree of links, gravity, and what is known of it beforehand.

    Attributes:
        name: Name of the arm.
        links: Links in file order.
        joints: Joints in file order.
        root: Name of the link that stands on the ground.
        gravity: Acceleration of gravity in the base frame [m/s^2].
        gear_couplings: Motors that turn with more than one joint.
        springs: Joints with a spring, ``tau += Ss sin(q) + Sc cos(q)``.
        values: Values known beforehand of parameters other than link inertias, by parameter name.
        payloads: Known payloads: ten parameters in the frame of the link that carries them.
        payload_link: Link a payload is fixed to; None for the last moving link.
        defaults: Default torque kind and effects.
        source: Where the description came from.
        notes: Things a reader should know: angles taken as right angles, odd inertias.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    root: str
    gravity: Vector3 = STANDARD_GRAVITY
    gear_couplings: tuple[GearCoupling, ...] = ()
    springs: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=_no_values)
    payloads: Mapping[str, tuple[float, ...]] = field(default_factory=_no_payloads)
    payload_link: str | None = None
    defaults: Defaults = Defaults()
    source: str = ""
    notes: tuple[str, ...] = ()
    bodies: tuple[Body, ...] = field(init=False, repr=False, compare=False)
    frames: Mapping[str, Frame] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bodies, frames = _bodies_and_frames(self)
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "frames", MappingProxyType(frames))

    def with_gravity(self, gravity: Vector3) -> Robot:
        """Return the same arm under another gravity vector (base frame) [m/s^2]."""
        return replace(self, gravity=gravity)

    def with_locked(self, positions: Mapping[str, float]) -> Robot:
        """Return the same arm with joints held at given positions; they no longer count as moving.

        Joints that follow a held one are held where it puts them.
        """
        for name, position in positions.items():
            if self.joint(name).kind == "fixed" or not math.isfinite(position):
                raise RobotError(f"cannot lock joint '{name}' at {position}; name a moving joint and a finite position")
        held = {joint.name: _held_position(self, joint, positions) for joint in self.joints}
        joints = tuple(replace(joint, locked_at=held[joint.name]) for joint in self.joints)
        return replace(self, joints=joints)

    def joint(self, name: str) -> Joint:
        """Return the joint of that name."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        names = [joint.name for joint in self.joints]
        raise RobotError(
            f"robot '{self.name}' has no joint '{name}'; joints: {', '.join(names)}{nearest_match(name, names)}"
        )

    def frame(self, name: str) -> Frame:
        """Return the frame of the link of that name."""
        if name in self.frames:
            return self.frames[name]
        names = list(self.frames)
        raise RobotError(
            f"robot '{self.name}' has no link '{name}'; links: {', '.join(names)}{nearest_match(name, names)}"
        )

    @property
    def actuated(self) -> tuple[Body, ...]:
        """Bodies whose joints move on their own, in order: the rows of every equation."""
        return tuple(body for body in self.bodies if body.joint.mimic is None)

    @property
    def carries(self) -> tuple[str, ...]:
        """What the description is good for: an arm known only by its geometry cannot be simulated."""
        known = {
            "geometry": True,
            "limits": any(math.isfinite(body.joint.limits.velocity) for body in self.bodies),
            "inertias": all(body.inertia is not None for body in self.bodies),
            "drives": any(name.startswith("Ia") for name in self.values),
            "friction": any(name.startswith(("Fv", "Fc")) for name in self.values),
            "compliances": any(name.startswith("k") for name in self.values),
            "payloads": bool(self.payloads),
        }
        return tuple(word for word, present in known.items() if present)

    def coupling(self) -> tuple[np.ndarray, np.ndarray]:
        """Return G (n, na) and q0 (n,) with ``q = G qa + q0`` from actuated to all moving joints."""
        actuated = [body.joint.name for body in self.actuated]
        matrix, offset = np.zeros((len(self.bodies), len(actuated))), np.zeros(len(self.bodies))
        for row, body in enumerate(self.bodies):
            name, gain, shift = _follow_mimic(self, body.joint)
            matrix[row, actuated.index(name)] = gain
            offset[row] = shift
        return matrix, offset


def _follow_mimic(robot: Robot, joint: Joint) -> tuple[str, float, float]:
    """Return the joint at the end of a chain of mimics, with the gain and offset that lead there."""
    gain, shift, seen = 1.0, 0.0, set()
    while joint.mimic is not None:
        if joint.name in seen:
            raise RobotError(f"joint '{joint.name}' mimics itself in a circle; break the circle in the robot file")
        seen.add(joint.name)
        shift += gain * joint.mimic.offset
        gain *= joint.mimic.multiplier
        joint = robot.joint(joint.mimic.leader)
    return joint.name, gain, shift


def _held_position(robot: Robot, joint: Joint, positions: Mapping[str, float]) -> float | None:
    """Return where a joint is held, by itself or by the joint it follows; None if it moves."""
    gain, shift, seen = 1.0, 0.0, set()
    while joint.name not in seen:
        held = positions.get(joint.name, joint.locked_at)
        if held is not None:
            return gain * float(held) + shift
        if joint.mimic is None:
            return None
        seen.add(joint.name)
        shift += gain * joint.mimic.offset
        gain *= joint.mimic.multiplier
        joint = robot.joint(joint.mimic.leader)
    return None


def _bodies_and_frames(robot: Robot) -> tuple[tuple[Body, ...], dict[str, Frame]]:
    """Walk the tree depth first in file order; merge what is fixed into what moves."""
    children: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint)
    inertia_of = {link.name: link.inertia for link in robot.links}
    frames = {robot.root: Frame(robot.root, 0, ())}
    moving: list[tuple[Joint, int, Placement]] = []
    stack = list(reversed(children.get(robot.root, [])))
    while stack:
        joint = stack.pop()
        carrier = frames[joint.parent]
        placement = carrier.placement + joint.rest_placement
        if joint.moves:
            moving.append((joint, carrier.body, placement))
            frames[joint.child] = Frame(joint.child, len(moving), ())
        else:
            frames[joint.child] = Frame(joint.child, carrier.body, placement)
        stack.extend(reversed(children.get(joint.child, [])))
    bodies = tuple(
        Body(number, joint, joint.child, parent, placement, _merged_inertia(number, frames, inertia_of))
        for number, (joint, parent, placement) in enumerate(moving, start=1)
    )
    return bodies, frames


def _merged_inertia(
    number: int, frames: Mapping[str, Frame], inertia_of: Mapping[str, tuple[float, ...] | None]
) -> tuple[float, ...] | None:
    """Return the ten parameters of a body with its fixed links; None if the moving link's are unknown.

    A fixed link without an inertial element is massless, as every reader of such files takes it.
    """
    total = np.zeros(10)
    for frame in frames.values():
        if frame.body != number:
            continue
        inertia = inertia_of[frame.name]
        if inertia is None:
            if not frame.placement:
                return None
            continue
        rotation, translation = transform_from_placement(frame.placement)
        total = total + moved_parameters(np.array(inertia), rotation, translation)
    return tuple(float(value) for value in total)
