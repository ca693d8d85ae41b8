"""URDF of an identified arm: its own file with only inertial and dynamics entries changed, or a fresh one.

Inertias go onto moving links; links fixed to them stay as they are. An ``<inertial>`` keeps its orientation (rpy), so
that its numbers can be compared with those of before. ``damping`` is viscous and ``friction`` Coulomb friction, each
the sum of motor side and link side. What did not change keeps its bytes. What a URDF cannot say stands in a comment at
the top, and in the notes of the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..configuration import located
from ..errors import ExportError, RobotError
from ..robot import (
    Link,
    Robot,
    XmlDocument,
    XmlElement,
    centre_from_parameters,
    origin_placement,
    read_urdf,
    roll_pitch_yaw,
    set_origin,
    transform_from_placement,
)
from ..robot.drives import JointValues, joint_values
from ..robot.files import LARGEST_FILE, content_of, parse_xml_safely
from ..robot.placement import RightAngles
from ..robot.tree import leaders
from ..robot.urdf import INERTIA_ATTRIBUTES, own_friction
from ..robot.xml_edit import Origin
from .differences import (
    ROUNDING,
    changed_links,
    forced_notes,
    geometric_difference,
    physical_problems,
    robot_to_write,
    unsaid,
    with_forced,
)
from .identified import (
    ExportedFile,
    FileProblem,
    IdentifiedArm,
    TorqueComparison,
    locked_notes,
    refuse_unknown_inertias,
    safe_stem,
)
from .new_urdf import NEW_URDF_NOTES, new_urdf
from .verify import (
    LARGEST_DIFFERENCE,
    compare,
    compare_programs,
    file_torques,
    mismatches,
    not_loaded,
    random_states,
)

_READERS_TOLERANCE = 1e-5
"""Angles this near to a right one are taken as exact when a URDF is read [rad]."""


@dataclass(frozen=True)
class UrdfEdit:
    """An edited URDF.

    Attributes:
        content: The file.
        robot: The arm that it describes.
        links: Links whose inertia changed.
        joints: Joints whose damping, friction or origin changed.
        tolerance: Angles this near to a right one are read as exact [rad], as they were for the arm.
        notes: What a reader of the file should know of the edit.
    """

    content: bytes
    robot: Robot
    links: tuple[str, ...]
    joints: tuple[str, ...]
    tolerance: float
    notes: tuple[str, ...] = ()


def urdf_file(
    arm: IdentifiedArm,
    *,
    content: bytes | None = None,
    origins: Mapping[str, Origin] | None = None,
    force: bool = False,
    new_file: bool = False,
) -> ExportedFile:
    """Return the URDF of an identified arm, loaded again and compared with the arm.

    Args:
        arm: The arm.
        content: The URDF that the robot was read from; by default the file that it was loaded from. A robot that was
            read from something else gets a fresh file.
        origins: Calibrated origins by joint.
        force: Whether to return a file that speaks against itself: impossible links, negative friction, other torques.
        new_file: Whether to return a new file where the robot's own could be edited.

    Raises:
        ExportError: If the arm cannot be written, or if something speaks against the file and it is not forced.
    """
    robot = robot_to_write(arm)
    refuse_unknown_inertias(robot)
    content = None if new_file else _own_file(robot) if content is None else content
    notes = [*_friction_notes(arm), *locked_notes(robot), *(f"not in the file: {line}" for line in unsaid(robot))]
    comment = "\n".join([*arm.comment, *notes])
    if content is None:
        notes += NEW_URDF_NOTES
        links, joints = changed_links(robot, arm.model.robot), _changed_joints(robot, arm.model.robot)
        forced = forced_notes(physical_problems(robot, links, joints), force)
        placed = _placed(robot, origins or {})
        comment = "\n".join([comment, *NEW_URDF_NOTES])
        fresh = new_urdf(placed, "\n".join([comment, *forced]))
        edit = UrdfEdit(fresh, placed, tuple(link.name for link in links), tuple(joints), 0.0, forced)
    else:
        edit = edited_urdf(content, robot, origins, comment, force=force)
    comparisons, mismatched, read_notes = verify_urdf(edit, original=content)
    forced = forced_notes(mismatched, force)
    notes += [*edit.notes, *read_notes, *forced]
    written = with_forced(edit.content, [comment, *edit.notes], forced)
    return ExportedFile(f"{safe_stem(robot.name)}.urdf", written, tuple(notes), comparisons)


def edited_urdf(
    content: bytes,
    robot: Robot,
    origins: Mapping[str, Origin] | None = None,
    comment: str = "",
    *,
    force: bool = False,
) -> UrdfEdit:
    """Return a URDF with the inertias and friction of a robot; what did not change stays byte for byte.

    Args:
        content: The file that the robot was read from.
        robot: The robot with other parameters (``Robot.with_parameters``).
        origins: New origins by joint. Joints whose angles were taken as right ones are then written as such.
        comment: Put at the top, if anything changed.
        force: Whether to write links that no body can be, and negative friction.

    Raises:
        ExportError: If the file is not that of the robot, or if a link or joint is impossible and it is not forced.
        RobotError: If the file cannot be edited, or a link has a first moment without a mass.
    """
    original, tolerance = _as_read(content, robot)
    document = XmlDocument(content)
    elements = {
        kind: {element.attributes.get("name"): element for element in document.root.elements(kind)}
        for kind in ("link", "joint")
    }
    links, values = changed_links(robot, original), _changed_joints(robot, original)
    forced = forced_notes(physical_problems(robot, links, values), force)
    for link in links:
        _set_inertial(elements["link"][link.name], link, tolerance)
    notes = (*_set_friction(content, robot, original, values, elements["joint"]), *forced)
    if origins:
        origins = {**_exact_origins(content, robot), **origins}
        robot, tolerance = _placed(robot, origins), 0.0
        for name, origin in origins.items():
            set_origin(elements["joint"][robot.joint(name).name], origin)
    joints = tuple(joint.name for joint in robot.joints if joint.name in {*values, *(origins or ())})
    done = document.edited("\n".join([comment, *notes]) if comment and document.root.is_changed else "")
    return UrdfEdit(done, robot, tuple(link.name for link in links), joints, tolerance, notes)


def verify_urdf(
    edit: UrdfEdit, original: bytes | None = None
) -> tuple[tuple[TorqueComparison, ...], tuple[FileProblem, ...], tuple[str, ...]]:
    """Return comparisons of a written file with its arm, what speaks against the file, and notes on how it is read.

    Args:
        edit: The file and the arm that it should describe.
        original: The file before it was edited, if there was one.
    """
    robot, states, notes = edit.robot, random_states(edit.robot), []
    try:
        literal, usual = (_read_like(edit.content, robot, tolerance) for tolerance in (0.0, _READERS_TOLERANCE))
    except RobotError as error:
        comparison, problem = not_loaded(error)
        return (comparison,), (problem,), ()
    torques = usual_torques = file_torques(literal, states)
    if literal.joints != usual.joints or literal.links != usual.links:
        usual_torques = file_torques(usual, states)
        difference = compare("", robot, torques, usual_torques)
        if difference.largest > LARGEST_DIFFERENCE:
            notes.append(
                f"the file has angles within {_READERS_TOLERANCE:g} rad of a right angle, which Steelyard reads as "
                "exact (unless right_angle_tolerance is 0) and other programs literally: torques of joint "
                f"'{difference.joint}' differ by {difference.largest:.2g} of its largest"
            )
    own = compare("steelyard", robot, file_torques(robot, states), usual_torques if edit.tolerance else torques)
    others, problems = compare_programs(edit.content, robot, torques, states, original)
    return (own, *others), (*mismatches(own), *problems), tuple(notes)


def _own_file(robot: Robot) -> bytes | None:
    """Return the URDF that a robot was loaded from; None if it was loaded from something else."""
    if Path(robot.file).suffix.lower() in ("", ".toml"):
        return None
    with located(robot.file, RobotError):
        content = content_of(robot.file, LARGEST_FILE)
    return content if parse_xml_safely(content).getroot().tag.rpartition("}")[2] == "robot" else None


def _read_like(content: bytes, robot: Robot, tolerance: float) -> Robot:
    """Return the robot of a file, mounted as another one, with the same joints locked if it has them."""
    read = read_urdf(content, right_angle_tolerance=tolerance).with_gravity(robot.gravity)
    known = {joint.name for joint in read.joints if joint.kind != "fixed"}
    locked = {joint.name: joint.locked_at for joint in robot.joints if joint.locked_at is not None}
    return read.with_locked({name: position for name, position in locked.items() if name in known})


def _as_read(content: bytes, robot: Robot) -> tuple[Robot, float]:
    """Return the robot as its file gives it, and the tolerance of angles that it was read with."""
    found = {tolerance: _read_like(content, robot, tolerance) for tolerance in (_READERS_TOLERANCE, 0.0)}
    differences = {tolerance: geometric_difference(read, robot) for tolerance, read in found.items()}
    fitting = {tolerance: read for tolerance, read in found.items() if not differences[tolerance]}
    if not fitting:
        raise ExportError(
            f"the URDF is not the file that robot '{robot.name}' was read from ({differences[_READERS_TOLERANCE]}); "
            "give that file"
        )
    tolerance = min(fitting, key=lambda tolerance: len(changed_links(robot, fitting[tolerance])))
    return fitting[tolerance], tolerance


def _changed_joints(robot: Robot, original: Robot) -> dict[str, JointValues]:
    before = joint_values(original)
    return {name: new for name, new in joint_values(robot).items() if new[:2] != before[name][:2]}


def _set_inertial(element: XmlElement, link: Link, tolerance: float) -> None:
    """Write mass, centre and inertia about the centre; the orientation of an existing ``<inertial>`` stays."""
    with located(f"link '{link.name}'", RobotError):
        mass, centre, about_centre = centre_from_parameters(np.array(link.inertia))
    inertial = element.child_or_new("inertial")
    origin = inertial.child("origin")
    angles = (origin.numbers("rpy") if origin else None) or (0.0, 0.0, 0.0)
    # Near right angles are taken as exact when the file is read: they are written so, for all readers to agree.
    roll, pitch, yaw = (RightAngles(tolerance).angle(angle, "") for angle in angles)
    rotation, _ = transform_from_placement(origin_placement((0.0, 0.0, 0.0), (roll, pitch, yaw)))
    in_frame = (rotation.T @ about_centre @ rotation)[np.triu_indices(3)]
    size = np.abs(np.array(link.inertia)[:6]).max()
    if origin or centre.any():
        origin = inertial.child_or_new("origin")
        if "xyz" in origin.attributes or centre.any():
            origin.set_numbers("xyz", *centre, tolerance=ROUNDING * math.sqrt(size / abs(mass)) if mass else 0.0)
        if (roll, pitch, yaw) != tuple(angles):
            origin.set_numbers("rpy", roll, pitch, yaw)
    inertial.child_or_new("mass").set_numbers("value", mass, tolerance=ROUNDING * abs(mass))
    tag = inertial.child_or_new("inertia")
    for name, value in zip(INERTIA_ATTRIBUTES, in_frame, strict=True):
        tag.set_numbers(name, value, tolerance=ROUNDING * size)


def _set_friction(
    content: bytes,
    robot: Robot,
    original: Robot,
    values: Mapping[str, JointValues],
    elements: Mapping[str | None, XmlElement],
) -> tuple[str, ...]:
    """Give joints their damping and friction, less what joints that follow them add; return notes on these.

    Followers keep their own values, which the identified ones of their leader contain. Where they add more than the
    leader has, theirs become 0.
    """
    before, own, notes = joint_values(original), own_friction(parse_xml_safely(content).getroot(), robot), []
    by_name = {joint.name: joint for joint in robot.joints}
    for name, new in values.items():
        mine = [body.joint.name for body in robot.bodies if list(leaders(body.joint, by_name))[-1][0].name == name]
        followers, written = [joint for joint in mine if joint != name], []
        for column, what in enumerate(("damping", "friction")):
            added = 0.0 if not followers else before[name][column] - own[name][column]
            if added > new[column] >= 0:
                held = ", ".join(f"{one} {own[one][column]!r}" for one in followers if own[one][column])
                notes.append(
                    f"{what} of joints that follow '{name}' is contained in its own and set to 0 (was: {held})"
                )
                for one in followers:
                    own[one] = (0.0, own[one][1]) if column == 0 else (own[one][0], 0.0)
                    _set_dynamics(elements[one], *own[one])
                added = 0.0
            written.append(new[column] - added)
        _set_dynamics(elements[name], *written)
    return tuple(notes)


def _set_dynamics(joint: XmlElement, damping: float, friction: float) -> None:
    dynamics = joint.child_or_new("dynamics")
    for name, value in (("damping", damping), ("friction", friction)):
        if value or name in dynamics.attributes:
            dynamics.set_numbers(name, value)


def _placed(robot: Robot, origins: Mapping[str, Origin]) -> Robot:
    """Return the robot with joints placed elsewhere."""
    joints = tuple(
        replace(joint, placement=origin_placement(*origins[joint.name])) if joint.name in origins else joint
        for joint in robot.joints
    )
    return replace(robot, joints=joints)


def _exact_origins(content: bytes, robot: Robot) -> dict[str, Origin]:
    """Return the origins of joints that were read with angles taken as right ones."""
    literal = read_urdf(content, right_angle_tolerance=0)
    origins: dict[str, Origin] = {}
    for joint in robot.joints:
        if joint.placement != literal.joint(joint.name).placement:
            rotation, (x, y, z) = transform_from_placement(joint.placement)
            origins[joint.name] = ((float(x), float(y), float(z)), roll_pitch_yaw(rotation))
    return origins


def _friction_notes(arm: IdentifiedArm) -> list[str]:
    notes = ["damping is viscous friction, friction Coulomb friction, each of motor side and link side together"]
    if arm.model.measured == "joint":
        notes.append("identified from joint torques: friction and inertia of the drives are not in the file")
    return notes
