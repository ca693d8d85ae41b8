"""Parts of an arm: joints, links with their collision shapes, and the moving bodies that they form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .placement import ElementaryMotion, Placement, Vector3, Z


@dataclass(frozen=True)
class SphereShape:
    """A ball about the origin of its placement.

    Attributes:
        placement: Frame of the shape in the link's frame.
        radius: [m].

    Example:
        >>> from steelyard.robot import SphereShape, origin_placement
        >>> SphereShape(origin_placement((0, 0, 0.1), (0, 0, 0)), radius=0.05).radius
        0.05
    """

    placement: Placement
    radius: float


@dataclass(frozen=True)
class CylinderShape:
    """A cylinder along z, its middle at the origin of its placement.

    Attributes:
        placement: Frame of the shape in the link's frame.
        radius: [m].
        length: From one flat end to the other [m].

    Example:
        >>> from steelyard.robot import CylinderShape, origin_placement
        >>> CylinderShape(origin_placement((0, 0, 0.1), (0, 0, 0)), radius=0.05, length=0.4).radius
        0.05
    """

    placement: Placement
    radius: float
    length: float


@dataclass(frozen=True)
class CapsuleShape:
    """A cylinder along z with a half ball on each end, its middle at the origin of its placement.

    Attributes:
        placement: Frame of the shape in the link's frame.
        radius: [m].
        length: Of the cylinder, without the half balls [m].

    Example:
        >>> from steelyard.robot import CapsuleShape, origin_placement
        >>> CapsuleShape(origin_placement((0, 0, 0.1), (0, 0, 0)), radius=0.05, length=0.4).length
        0.4
    """

    placement: Placement
    radius: float
    length: float


@dataclass(frozen=True)
class BoxShape:
    """A box along the axes of its placement, its middle at the origin.

    Attributes:
        placement: Frame of the shape in the link's frame.
        size: Lengths along x, y and z [m].

    Example:
        >>> from steelyard.robot import BoxShape, origin_placement
        >>> BoxShape(origin_placement((0, 0, 0.1), (0, 0, 0)), (0.2, 0.2, 0.4)).size
        (0.2, 0.2, 0.4)
    """

    placement: Placement
    size: Vector3


@dataclass(frozen=True)
class MeshShape:
    """A surface in a file of its own.

    Attributes:
        placement: Frame of the shape in the link's frame.
        name: The file's name as the description writes it.
        path: Where the file was found; None if it was not.
        scale: Factors on the vertices' x, y and z; a negative one mirrors.

    Example:
        >>> from steelyard.robot import MeshShape, origin_placement
        >>> MeshShape(origin_placement((0, 0, 0), (0, 0, 0)), "package://arm/hand.stl", None).scale
        (1.0, 1.0, 1.0)
    """

    placement: Placement
    name: str
    path: Path | None
    scale: Vector3 = (1.0, 1.0, 1.0)


Shape = SphereShape | CylinderShape | CapsuleShape | BoxShape | MeshShape


def found_mesh(name: str, folder: Path | None) -> Path | None:
    """Return the file that a mesh's name means, or None if there is none.

    ``package://NAME/rest`` is looked up beside the package's folder: in the first folder above the description that
    holds ``NAME/rest``. Other names are absolute (``file://`` in front or not) or relative to the description's folder.

    Args:
        name: The name as the description writes it.
        folder: Folder of the description; None if it came without a file.
    """
    kind, separator, rest = name.partition("://")
    if not separator:
        candidates = [Path(name)] if folder is None else [folder / name]
    elif kind == "file":
        candidates = [Path(rest)]
    elif kind == "package" and folder is not None:
        candidates = [parent / rest.lstrip("/") for parent in (folder, *folder.parents)]
    else:
        candidates = []
    return next((path for path in candidates if (folder is not None or path.is_absolute()) and _is_file(path)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or one that no file can have
        return False


JointKind = Literal["revolute", "prismatic", "fixed"]


@dataclass(frozen=True)
class Limits:
    """What a joint may do; infinite where the file says nothing. Units rad or m, s, N m or N.

    Example:
        >>> from steelyard.robot import Limits
        >>> Limits(lower=-1.5, upper=1.5).velocity
        inf
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    acceleration: float = math.inf
    jerk: float = math.inf


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = multiplier * q_leader + offset``.

    Example:
        >>> from steelyard.robot import Mimic
        >>> Mimic("left_finger", multiplier=-1.0).offset
        0.0
    """

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

    Example:
        >>> joint = steelyard.load_robot("scara_2r").actuated[1].joint
        >>> joint.kind, joint.axis
        ('revolute', (0.0, 0.0, 1.0))
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

    def motion(self, value: float) -> ElementaryMotion:
        """Return the motion of the joint at position ``value``."""
        return ElementaryMotion("translate" if self.kind == "prismatic" else "rotate", self.axis, value, "q")

    @property
    def rest_placement(self) -> Placement:
        """The child frame in the parent frame at q = 0, or where the joint is locked."""
        if self.locked_at is None:
            return self.placement
        return (*self.placement, self.motion(self.locked_at))


@dataclass(frozen=True)
class Link:
    """A link and, where known, its ten inertial parameters about its own frame's origin and its collision shapes.

    Example:
        >>> from steelyard.robot import Link
        >>> Link("hand", inertia=None).shapes
        ()
    """

    name: str
    inertia: tuple[float, ...] | None = None
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class GearCoupling:
    """Motor ``motor`` turns with its own joint and also with joint ``also_turns_with``.

    On the joint side ``q_motor = q_own + ratio * q_other``: the TX40 wrist has motor 6, joint 5, ratio 1.

    Example:
        >>> steelyard.load_robot("staubli_tx40").gear_couplings[0]
        GearCoupling(motor='joint_6', also_turns_with='joint_5', ratio=1.0)
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

    Example:
        >>> steelyard.load_robot("kuka_lwr4").defaults.measured
        'both'
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

    Example:
        >>> body = steelyard.load_robot("scara_2r").bodies[1]
        >>> body.number, body.link, body.parent
        (2, 'link_2', 1)
    """

    number: int
    joint: Joint
    link: str
    parent: int
    placement: Placement
    inertia: tuple[float, ...] | None


@dataclass(frozen=True)
class Frame:
    """A named frame: the body that carries it (0 = base) and where it sits in that body's frame.

    Example:
        >>> robot = steelyard.load_robot("kuka_kr270")
        >>> robot.frame("marker_1").body
        6
    """

    name: str
    body: int
    placement: Placement
