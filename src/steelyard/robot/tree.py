"""An arm: an immutable tree of links and joints under gravity, its moving bodies (depth first) and its frames."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from ..effects import FrictionConstants
from ..errors import RobotError, nearest_match
from ..plain_data import plain
from ..text import short_repr
from .balancers import Balancer
from .inertia import INERTIAL_NAMES, moved_parameters
from .parts import Body, Defaults, Frame, GearCoupling, Joint, Link
from .placement import Placement, Vector3, transform_from_placement


def leaders(joint: Joint, joints: Mapping[str, Joint]) -> Iterator[tuple[Joint, float, float]]:
    """Yield a joint and those it follows, each with gain and shift: ``q_joint = gain * q_leader + shift``."""
    gain, shift, visited = 1.0, 0.0, set()
    while True:
        if joint.name in visited:
            raise RobotError(f"joint '{joint.name}' mimics itself in a circle; break the circle in the robot file")
        visited.add(joint.name)
        yield joint, gain, shift
        if joint.mimic is None:
            return
        shift += gain * joint.mimic.offset
        gain *= joint.mimic.multiplier
        joint = joints[joint.mimic.leader]


def held_position(joint: Joint, joints: Mapping[str, Joint], positions: Mapping[str, float]) -> float | None:
    """Return where a joint is held, by itself or by a joint it follows; None if it moves."""
    for leader, gain, shift in leaders(joint, joints):
        held = positions.get(leader.name, leader.locked_at)
        if held is not None:
            return gain * float(held) + shift
    return None


def bodies_and_frames(
    root: str, joints: Sequence[Joint], links: Sequence[Link]
) -> tuple[tuple[Body, ...], dict[str, Frame]]:
    """Walk the tree depth first in file order; merge what is fixed into what moves."""
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    inertia_of = {link.name: link.inertia for link in links}
    frames = {root: Frame(root, 0, ())}
    moving: list[tuple[Joint, int, Placement]] = []
    stack = list(reversed(children.get(root, [])))
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
        Body(number, joint, joint.child, parent, placement, _merged_inertia(joint.child, frames, inertia_of))
        for number, (joint, parent, placement) in enumerate(moving, start=1)
    )
    return bodies, frames


Inertias = Mapping[str, tuple[float, ...] | None]


def _merged_inertia(link: str, frames: Mapping[str, Frame], inertia_of: Inertias) -> tuple[float, ...] | None:
    """Return the ten parameters of a moving link with its fixed links; None if its own are unknown."""
    own = inertia_of[link]
    return None if own is None else tuple(sum(_fixed_inertias(link, frames, inertia_of), np.array(own)).tolist())


def _fixed_inertias(link: str, frames: Mapping[str, Frame], inertia_of: Inertias) -> Iterator[np.ndarray]:
    """Yield the ten parameters (10,) of each link that is fixed to a moving one, in the latter's frame.

    A fixed link without an inertial element is massless, as every reader of such files takes it.
    """
    for frame in frames.values():
        inertia = inertia_of[frame.name]
        if frame.body == frames[link].body and frame.name != link and inertia is not None:
            yield moved_parameters(np.array(inertia), *transform_from_placement(frame.placement))


def renumbered(values: Mapping[str, float], numbers: Mapping[int, int | None]) -> dict[str, float]:
    """Return values by parameter name after moving joints changed their numbers.

    Args:
        values: Values by name: a symbol, the number of a moving joint and, for compliances, a node or an axis
            (``Fvm2``, ``k2_1``, ``k21``, ``k2x``).
        numbers: New number by old one; None for a joint that no longer moves, whose values are dropped.
    """
    found: dict[str, float] = {}
    for name, value in values.items():
        symbol, digits, rest = re.fullmatch(r"(?s)(.*?)([0-9]*)((?:_[0-9]+|[a-z])?)", name).groups()  # type: ignore[union-attr]
        if digits and int(digits) not in numbers:  # a joint of one digit and a node, as in k21
            digits, rest = digits[:1], digits[1:] + rest
        if not digits or int(digits) not in numbers:
            found[name] = value
        elif numbers[int(digits)] is not None:
            found[f"{symbol}{numbers[int(digits)]}{rest}"] = value
    return found


STANDARD_GRAVITY: Vector3 = (0.0, 0.0, -9.81)
EARTH_GRAVITY = (9.7, 9.9)
"""Sizes of gravity that a mounting may have [m/s^2]: on the Earth's surface it is 9.76 to 9.84."""
SAME_SIZE = 1e-3
"""Relative difference of gravities that have one size, written with four digits."""
SAME_DIRECTION = 1 - 5e-7
"""Cosine of 1e-3 rad: directions of gravity that differ by less are those of one mounting."""

Coordinates = Literal["joint", "motor"]
InertiaSource = Literal["cad", "vendor", "identified", "unknown"]
INERTIA_SOURCES: tuple[InertiaSource, ...] = get_args(InertiaSource)


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
        coordinates: What q means in every equation: positions of the actuated joints, or of their motors.
        springs: Joints with a spring, ``tau += Ss sin(q) + Sc cos(q)``.
        balancers: Known torques beside the joints; their scales are the values ``Sb``, 1 unless given.
        friction: Constants of friction that is not linear in them: lengths of Dahl elements, Stribeck velocity.
        values: Values known beforehand of parameters other than link inertias, by parameter name.
        payloads: Known payloads: ten parameters in the frame of the link that carries them.
        payload_link: Link a payload is fixed to; None for the last moving link.
        floor: Height of the floor it stands on, against gravity from the base frame's origin [m]; None if unknown.
        defaults: Default torque kind and effects.
        source: Where the description came from.
        inertia_source: Where its inertias came from: a CAD model (``cad``), the manufacturer (``vendor``), an
            identification from recordings (``identified``), or ``unknown``. The first two are a prior by default.
        notes: Things a reader should know: angles taken as right angles, odd inertias.
        file: Catalogue name or path that ``load_robot`` read it from; empty if it comes from elsewhere.

    Example:
        >>> robot = steelyard.load_robot("scara_2r")
        >>> robot.gravity, [body.joint.name for body in robot.actuated]
        ((0.0, 0.0, -9.81), ['joint_1', 'joint_2'])
    """

    __repr__ = short_repr

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    root: str
    gravity: Vector3 = STANDARD_GRAVITY
    gear_couplings: tuple[GearCoupling, ...] = ()
    coordinates: Coordinates = "joint"
    springs: tuple[str, ...] = ()
    balancers: tuple[Balancer, ...] = ()
    friction: FrictionConstants = field(default_factory=FrictionConstants)
    values: Mapping[str, float] = field(default_factory=dict)
    payloads: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    payload_link: str | None = None
    floor: float | None = None
    defaults: Defaults = field(default_factory=Defaults)
    source: str = ""
    inertia_source: InertiaSource = "unknown"
    notes: tuple[str, ...] = ()
    file: str = field(default="", compare=False)
    bodies: tuple[Body, ...] = field(init=False, repr=False, compare=False)
    frames: Mapping[str, Frame] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bodies, frames = bodies_and_frames(self.root, self.joints, self.links)
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "frames", MappingProxyType(frames))
        number_of = {body.joint.name: body.number for body in bodies}
        scales = {f"Sb{number_of[one.joint]}": 1.0 for one in self.balancers if one.joint in number_of}
        if scales.keys() - self.values.keys():
            object.__setattr__(self, "values", MappingProxyType(scales | dict(self.values)))

    def with_gravity(self, gravity: Vector3) -> Robot:
        """Return the same arm under another gravity vector (base frame) [m/s^2].

        An arm mounted another way, where gravity has another direction, no longer stands on the same floor.
        """
        turned = replace(self, gravity=gravity)
        same = self.up is not None and turned.up is not None and float(self.up @ turned.up) > SAME_DIRECTION
        return turned if same else replace(turned, floor=None)

    def tilted(self, across: Mapping[str, float]) -> Robot:
        """Return the same arm on a tilted base: under gravity of the same size in another direction.

        Args:
            across: What is added to the components across the axis that gravity is nearest to, ``gx``, ``gy`` or ``gz``
                [m/s^2]; other names are ignored.
        """
        size, main = float(np.linalg.norm(self.gravity)), int(np.argmax(np.abs(self.gravity)))
        turned = np.array([part + across.get(f"g{axis}", 0.0) for part, axis in zip(self.gravity, "xyz", strict=True)])
        turned[main] = 0.0
        turned[main] = np.copysign(np.sqrt(max(size**2 - turned @ turned, 0.0)), self.gravity[main])
        x, y, z = (turned * size / max(float(np.linalg.norm(turned)), 1e-300)).tolist()
        return self if np.array_equal(turned, self.gravity) else self.with_gravity((x, y, z))

    def mounted(self, gravity: Vector3) -> Robot:
        """Return the same arm under the gravity of its mounting (base frame) [m/s^2], as a user states it.

        Identified masses scale with one over the size of gravity, so a size that is a slip is refused.

        Raises:
            RobotError: If its size is none of the Earth's, of the arm's own gravity, or zero.
        """
        size, own = math.hypot(*gravity), math.hypot(*self.gravity)
        lowest, highest = EARTH_GRAVITY
        if lowest <= size <= highest or size == 0 or math.isclose(size, own, rel_tol=SAME_SIZE):
            return self.with_gravity(gravity)
        wanted = 9.81 if own == 0 or lowest <= own <= highest else own
        also = "" if wanted == 9.81 else f", {own:.4g} as in robot '{self.name}',"
        given, right = (",".join(f"{scale * part:.4g}" for part in gravity) for scale in (1.0, wanted / size))
        raise RobotError(
            f"gravity {given} has size {size:.4g} m/s^2; allowed are {lowest} to {highest}{also} and 0 (torques "
            f"without gravity), as masses scale with it; the same direction at {wanted:.4g} is {right}"
        )

    def with_locked(self, positions: Mapping[str, float]) -> Robot:
        """Return the same arm with joints held at given positions; they no longer count as moving.

        Joints that follow a held one are held where it puts them; springs, balancers and couplings of held joints are
        gone, and so are their values. Values of the others get the numbers that their joints have now.
        """
        for name, position in positions.items():
            if self.joint(name).kind == "fixed" or not math.isfinite(position):
                raise RobotError(f"cannot lock joint '{name}' at {position}; name a moving joint and a finite position")
        by_name = {joint.name: joint for joint in self.joints}
        joints = tuple(replace(joint, locked_at=held_position(joint, by_name, positions)) for joint in self.joints)
        moving = {joint.name for joint in joints if joint.moves}
        couplings = tuple(c for c in self.gear_couplings if {c.motor, c.also_turns_with} <= moving)
        springs = tuple(name for name in self.springs if name in moving)
        balancers = tuple(one for one in self.balancers if one.joint in moving)
        locked = replace(self, joints=joints, gear_couplings=couplings, springs=springs, balancers=balancers)
        now = {body.joint.name: body.number for body in locked.bodies}
        numbers = {body.number: now.get(body.joint.name) for body in self.bodies}
        return replace(locked, values=renumbered(self.values, numbers))

    @property
    def parameters(self) -> dict[str, float]:
        """Values known beforehand by the names of a model: of links (fixed ones included), drives and friction."""
        inertial = {
            f"{symbol}{body.number}": value
            for body in self.bodies
            if body.inertia is not None
            for symbol, value in zip(INERTIAL_NAMES, body.inertia, strict=True)
        }
        return inertial | dict(self.values)

    def with_parameters(self, parameters: Mapping[str, float]) -> Robot:
        """Return the same arm with other values of parameters, by the names of a model; those not named stay.

        Inertial parameters are those of a moving link and of all that is fixed to it: what changes goes onto the moving
        link, and fixed links stay as they are.

        Raises:
            RobotError: If some of the ten parameters of a link are missing.
        """
        others = dict(parameters)
        inertia_of = {link.name: link.inertia for link in self.links}
        known = self.parameters
        for body in self.bodies:
            names = [f"{symbol}{body.number}" for symbol in INERTIAL_NAMES]
            given = {name: others.pop(name) for name in names if name in others}
            if not given:
                continue
            missing = [name for name in names if name not in given and name not in known]
            if missing:
                raise RobotError(
                    f"link '{body.link}': {', '.join(missing)} neither given nor known; give all ten parameters"
                )
            whole = np.array([given.get(name, known.get(name, 0.0)) for name in names])
            inertia_of[body.link] = tuple((whole - self.fixed_inertia(body.link)).tolist())
        links = tuple(replace(link, inertia=inertia_of[link.name]) for link in self.links)
        return replace(self, links=links, values={**self.values, **others})

    def fixed_inertia(self, link: str) -> np.ndarray:
        """Return the ten parameters (10,) of all that is fixed to a moving link, in its frame, without the link."""
        inertia_of = {one.name: one.inertia for one in self.links}
        return sum(_fixed_inertias(link, self.frames, inertia_of), np.zeros(10))

    def in_motor_coordinates(self) -> Robot:
        """Return the same arm with motor positions (joint side) as coordinates: coupled motors become independent."""
        return replace(self, coordinates="motor")

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
    def up(self) -> np.ndarray | None:
        """Unit vector (3,) against gravity, in the base frame; None without gravity."""
        strength = float(np.linalg.norm(self.gravity))
        return -np.array(self.gravity) / strength if strength > 0 else None

    @property
    def is_upright(self) -> bool:
        """Whether gravity points along -z of the base frame."""
        return self.up is not None and float(self.up[2]) > SAME_DIRECTION

    @property
    def actuated(self) -> tuple[Body, ...]:
        """Bodies whose joints move on their own, in order: the rows of every equation."""
        return tuple(body for body in self.bodies if body.joint.mimic is None)

    @property
    def balancers_to_json(self) -> list[dict[str, Any]]:
        """The balancers as plain data: joint, scale and law."""
        number_of = {body.joint.name: body.number for body in self.bodies}
        return [
            {"joint": one.joint, "scale": self.values[f"Sb{number_of[one.joint]}"], "law": plain(one.law)}
            for one in self.balancers
        ]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the actuated joints, in order."""
        return tuple(body.joint.name for body in self.actuated)

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
        return tuple(part for part, present in known.items() if present)

    def motor_coupling(self) -> np.ndarray:
        """Return C (na, na) with ``q_motor = C q`` on the joint side: the identity but for coupled motors."""
        row_of = {body.joint.name: row for row, body in enumerate(self.actuated)}
        matrix = np.eye(len(row_of))
        for coupling in self.gear_couplings:
            matrix[row_of[coupling.motor], row_of[coupling.also_turns_with]] = coupling.ratio
        return matrix

    def friction_coordinates(self) -> np.ndarray:
        """Return K (na + nc, na) with ``K q`` the coordinates that friction acts along.

        These are the positions of the actuated joints, then ``q_j + c q_i`` of every motor that turns with two joints.
        """
        names = self.joint_names
        rows = np.eye(len(names))
        motors = [
            rows[names.index(c.motor)] + c.ratio * rows[names.index(c.also_turns_with)] for c in self.gear_couplings
        ]
        return np.vstack([rows, *motors])

    def coupling(self) -> tuple[np.ndarray, np.ndarray]:
        """Return G (n, na) and q0 (n,) with ``q = G qa + q0`` from the coordinates to all moving joints.

        The coordinates are the actuated joints' positions, or their motors' (``in_motor_coordinates``).
        """
        by_name = {joint.name: joint for joint in self.joints}
        actuated = self.joint_names
        matrix, offset = np.zeros((len(self.bodies), len(actuated))), np.zeros(len(self.bodies))
        for row, body in enumerate(self.bodies):
            leader, gain, shift = list(leaders(body.joint, by_name))[-1]
            matrix[row, actuated.index(leader.name)] = gain
            offset[row] = shift
        return (matrix @ np.linalg.inv(self.motor_coupling()) if self.coordinates == "motor" else matrix), offset
