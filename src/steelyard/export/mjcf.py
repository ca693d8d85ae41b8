"""MJCF of an identified arm: its own file with only inertial and joint entries changed, or a fresh one.

``<inertial>`` and the joint's ``armature``, ``damping`` and ``frictionloss`` are changed where they stand, in included
files too; what did not change keeps its bytes. ``diaginertia`` stays diagonal, about the principal axes nearest to
those of before. A body whose inertia came from its geometry gets an ``<inertial>`` if it changed. What an actuator or a
following joint adds to a joint's drive inertia and friction stays with them. ``<option gravity>`` is changed where the
arm was identified under another gravity. What MJCF cannot say stands in a comment at the top, and in the notes of the
file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.transform import Rotation

from ..errors import ExportError, RobotError
from ..robot import Link, Robot, XmlDocument, XmlElement, moved_parameters
from ..robot.drives import COULOMB, VISCOUS, JointValues, joint_values
from ..robot.files import LARGEST_FILE, content_of, parse_xml_safely
from ..robot.mjcf import MjcfReading
from ..robot.mjcf_files import MJCF_ROOT, CompiledMjcf, MjcfSource, compiled_mjcf, import_mujoco, mjcf_source
from ..robot.new_mjcf import full_inertia, mass_centre_inertia, new_mjcf, new_mjcf_notes
from ..robot.placement import RightAngles, Vector3
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
from .verify import compare, file_torques, mismatches, mujoco_torques, not_loaded, random_states

_HELD = (*VISCOUS, *COULOMB, "Ia")
_OF_JOINTS = ("damping", "friction", "armature")
_ATTRIBUTES = {"armature": "dof_armature", "damping": "dof_damping", "friction": "dof_frictionloss"}
"""Fields of a compiled model by fields of ``JointValues``."""
_TOLERANCES = (1e-5, 0.0)
"""Angles this near to a right one are taken as exact when MJCF is read, or literally [rad]."""
_ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
_FILES_OF_ASSETS = ("mesh", "texture", "hfield", "skin")


@dataclass(frozen=True, eq=False)
class MjcfEdit:
    """An edited or new MJCF file.

    Attributes:
        source: The file, and those it includes.
        robot: The arm that it describes.
        tolerance: Angles this near to a right one are read as exact [rad], as they were for the arm.
        links: Links whose inertia changed.
        joints: Joints whose armature, damping or frictionloss changed.
        notes: What a reader of the file should know of the edit.
    """

    source: MjcfSource
    robot: Robot
    tolerance: float
    links: tuple[str, ...]
    joints: tuple[str, ...]
    notes: tuple[str, ...] = ()


def mjcf_files(
    arm: IdentifiedArm, *, path: str | Path | None = None, force: bool = False, new_file: bool = False
) -> tuple[ExportedFile, ...]:
    """Return the MJCF of an identified arm, loaded again and compared with the arm; the main file comes first.

    The others are the files that it includes, under the names by which it does.

    Args:
        arm: The arm.
        path: The MJCF file that the robot was read from; by default the file that it was loaded from. A robot that was
            read from something else gets a fresh file.
        force: Whether to return a file although a link is impossible, a value negative, or torques differ.
        new_file: Whether to return a new file where the robot's own could be edited.

    Raises:
        ExportError: If the arm cannot be written, or if something speaks against the file and it is not forced.
    """
    robot = robot_to_write(arm)
    refuse_unknown_inertias(robot)
    has_file = not new_file or Path(robot.file).is_file()
    own = mjcf_source(path) if path is not None else _own_source(robot) if has_file else None
    source, notes = None if new_file else own, _notes(arm, robot)
    notes += new_mjcf_notes(robot, own) if source is None else [*_gravity_notes(source, robot), *_asset_notes(source)]
    comment = "\n".join([*arm.comment, *notes])
    if source is None:
        edit = _fresh(robot, arm.model.robot, comment, force)
    else:
        edit = edited_mjcf(source, robot, comment, force=force)
    comparisons, problems = verify_mjcf(edit)
    forced = forced_notes(problems, force)
    notes += [*edit.notes, *forced]
    content = with_forced(edit.source.content, [comment, *edit.notes], forced)
    name = f"{safe_stem(robot.name)}.xml"
    if name in edit.source.included:
        name = f"{safe_stem(robot.name)}_identified.xml"
    others = (ExportedFile(name, content) for name, content in edit.source.included.items())
    return (ExportedFile(name, content, tuple(notes), comparisons), *others)


def edited_mjcf(source: MjcfSource, robot: Robot, comment: str = "", *, force: bool = False) -> MjcfEdit:
    """Return an MJCF file with the inertias, drive inertias and friction of a robot; all else stays byte for byte.

    Args:
        source: The file that the robot was read from, and those it includes.
        robot: The robot with other parameters (``Robot.with_parameters``).
        comment: Put at the top of the main file, if anything changed.
        force: Whether to write impossible links and negative values.

    Raises:
        ExportError: If the file is not that of the robot, or a value has no place in it.
    """
    compiled = compiled_mjcf(source)
    original, tolerance = _as_read(compiled, robot)
    document = _Document(source, compiled)
    links, values = changed_links(robot, original), _changed_joints(robot, original)
    notes = forced_notes(physical_problems(robot, links, values, _OF_JOINTS), force)
    for link in links:
        document.set_inertia(link)
    document.set_gravity(robot.gravity)
    before = joint_values(original)
    for name, new in values.items():
        document.set_joint(name, new, before[name])
    text = "\n".join([comment, *notes]) if comment else ""
    return MjcfEdit(document.edited(text), robot, tolerance, tuple(link.name for link in links), tuple(values), notes)


def verify_mjcf(edit: MjcfEdit) -> tuple[tuple[TorqueComparison, ...], list[FileProblem]]:
    """Return comparisons of a written file with its arm, and what speaks against the file.

    Steelyard reads it as it read the arm; MuJoCo's torques are compared with those of the file as Steelyard reads it
    literally, since MuJoCo takes no angle as a right one that is not.
    """
    robot, states = edit.robot, random_states(edit.robot)
    try:
        import_mujoco("", RobotError)
    except RobotError:
        return (
            TorqueComparison("mujoco", 0, math.nan, "", "is not installed: the file has not been loaded again"),
        ), []
    try:
        compiled = compiled_mjcf(edit.source)
        read, literal = (_locked_like(_read(compiled, tolerance), robot) for tolerance in (edit.tolerance, 0.0))
    except RobotError as error:
        comparison, problem = not_loaded(error)
        return (comparison,), [problem]
    wanted = file_torques(literal, states, armature=True)
    own = compare(
        "steelyard", robot, file_torques(robot, states, armature=True), file_torques(read, states, armature=True)
    )
    found = mujoco_torques(compiled.model, literal, states, gravity=None)
    theirs = compare(f"mujoco {compiled.mujoco.__version__}", robot, wanted, found)
    return (own, theirs), [*mismatches(own), *mismatches(theirs)]


def _fresh(robot: Robot, original: Robot, comment: str, force: bool) -> MjcfEdit:
    links, joints = changed_links(robot, original), _changed_joints(robot, original)
    possible = [link for link in links if not _carries_fixed_links(robot, link)]
    notes = forced_notes(physical_problems(robot, possible, joints, _OF_JOINTS), force)
    source = MjcfSource(new_mjcf(robot, "\n".join([comment, *notes])), None, {}, robot.name)
    return MjcfEdit(source, robot, 0.0, tuple(link.name for link in possible), tuple(joints), notes)


def _carries_fixed_links(robot: Robot, link: Link) -> bool:
    """Return whether others are fixed to a link: a fresh file then gives the moving link the inertia of them all."""
    number = robot.frames[link.name].body
    return sum(frame.body == number for frame in robot.frames.values()) > 1


def _own_source(robot: Robot) -> MjcfSource | None:
    """Return the MJCF file that a robot was loaded from; None if it was loaded from something else."""
    if Path(robot.file).suffix.lower() in ("", ".toml"):
        return None
    root = parse_xml_safely(content_of(robot.file, LARGEST_FILE)).getroot()
    return mjcf_source(robot.file) if root.tag.rpartition("}")[2] == MJCF_ROOT else None


def _gravity_notes(source: MjcfSource, robot: Robot) -> list[str]:
    """Return a note if the arm was identified under another gravity than that of its file."""
    before = _read(compiled_mjcf(source), 0.0).gravity
    if before == robot.gravity:
        return []
    new, old = (" ".join(map(repr, gravity)) for gravity in (robot.gravity, before))
    return [f"gravity is that of the run, {new} m/s^2; the robot's file had {old} m/s^2"]


def _notes(arm: IdentifiedArm, robot: Robot) -> list[str]:
    notes = ["damping is viscous, frictionloss Coulomb friction, each of motor side and link side together"]
    if arm.model.measured == "joint":
        notes.append("identified from joint torques: friction and inertia of the drives are not in the file")
    cannot = (f"not in the file: {line}" for line in unsaid(robot, _HELD, robot.gravity))
    return [*notes, *locked_notes(robot), *cannot]


def _asset_notes(source: MjcfSource) -> list[str]:
    files = [element for element in source.elements(*_FILES_OF_ASSETS) if element.get("file")]
    beside = "meshes and textures are named relative to the folder of the original file: put this file there"
    return [beside] if files else []


def _read(compiled: CompiledMjcf, tolerance: float) -> Robot:
    return MjcfReading(compiled, RightAngles(tolerance)).robot("")


def _locked_like(read: Robot, robot: Robot) -> Robot:
    """Return a robot that was read, with the joints locked that are locked in another one."""
    known = {joint.name for joint in read.joints if joint.kind != "fixed" and joint.locked_at is None}
    locked = {joint.name: joint.locked_at for joint in robot.joints if joint.locked_at is not None}
    return read.with_locked({name: position for name, position in locked.items() if name in known})


def _as_read(compiled: CompiledMjcf, robot: Robot) -> tuple[Robot, float]:
    """Return the robot as its file gives it, and the tolerance of angles that it was read with."""
    difference = ""
    for tolerance in _TOLERANCES:
        read = _locked_like(_read(compiled, tolerance), robot)
        difference = difference or geometric_difference(read, robot)
        if not geometric_difference(read, robot):
            return read, tolerance
    raise ExportError(
        f"the MJCF is not the file that robot '{robot.name}' was read from ({difference}); give that file"
    )


def _changed_joints(robot: Robot, original: Robot) -> dict[str, JointValues]:
    before = joint_values(original)
    return {name: new for name, new in joint_values(robot).items() if new != before.get(name)}


class _Document:
    """An MJCF file and those it includes, whose bodies and joints can be given other values.

    Bodies are numbered as MuJoCo numbers them, a body before those inside it, in the order of the file.
    """

    def __init__(self, source: MjcfSource, compiled: CompiledMjcf) -> None:
        self._source, self._compiled = source, compiled
        self._main = XmlDocument(source.content)
        self._included = {name: XmlDocument(content) for name, content in source.included.items()}
        self._check_names()
        reading = MjcfReading(compiled, RightAngles(0.0))
        reading.robot("")
        self._number_of = {name: number for number, (name, _) in enumerate(reading.link_of)}
        self._origins = [origin for _, origin in reading.link_of]
        self._drive_values = reading.drive_values
        worlds = [element for element in self._inside(self._main.root) if element.tag == "worldbody"]
        self._bodies = [None, *(body for world in worlds for body in self._all_bodies(world))]
        if len(self._bodies) != compiled.model.nbody:
            raise ExportError(
                "the bodies of the MJCF cannot be found again in the file; write them out, without macros"
            )

    def _check_names(self) -> None:
        for name in self._included:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
                raise ExportError(
                    f"the included file '{name}' stands outside the folder of the MJCF; put it into the folder"
                )

    def _inside(self, element: XmlElement) -> Iterator[XmlElement]:
        """Iterate over what stands in an element: of included files what is in them, of frames too."""
        for child in element.children:
            if child.tag == "include":
                yield from self._inside(self._included[child.attributes["file"]].root)
            elif child.tag == "frame":
                yield from self._inside(child)
            else:
                yield child

    def _all_bodies(self, element: XmlElement) -> Iterator[XmlElement]:
        for child in self._inside(element):
            if child.tag == "body":
                yield child
                yield from self._all_bodies(child)

    def edited(self, comment: str) -> MjcfSource:
        """Return the files with all changes; the comment is put at the top of the main one if there are any."""
        documents = (self._main, *self._included.values())
        changed = any(document.root.is_changed for document in documents)
        included = {name: document.edited() for name, document in self._included.items()}
        return replace(self._source, content=self._main.edited(comment if changed else ""), included=included)

    def set_inertia(self, link: Link) -> None:
        """Give the body of a link its inertia.

        Raises:
            ExportError: If the link is no body, or MuJoCo takes inertias from geometry alone.
        """
        body = self._bodies[self._number_of.get(link.name, 0)]
        if body is None:
            raise ExportError(
                f"link '{link.name}' stands between two joints of one body, where MJCF has no inertia, and the arm has "
                f"{(link.inertia or (0.0,))[-1]:.3g} kg there: the file cannot be edited; write a new MJCF with "
                "--new-file or a URDF with --urdf, or give each joint a body of its own and identify again"
            )
        self._check_compiler()
        number = self._number_of[link.name]
        in_body = moved_parameters(np.array(link.inertia), np.eye(3), self._origins[number])
        mass, centre, inertia = mass_centre_inertia(in_body, f"link '{link.name}'")
        size = np.abs(inertia).max()
        present = next((child for child in self._inside(body) if child.tag == "inertial"), None)
        element = present or body.add("inertial")
        element.set_numbers("pos", *centre, tolerance=ROUNDING * math.sqrt(size / abs(mass)) if mass else 0.0)
        element.set_numbers("mass", mass, tolerance=ROUNDING * abs(mass))
        if "diaginertia" in element.attributes:
            self._set_diagonal(element, number, inertia)
        else:
            element.set_numbers("fullinertia", *full_inertia(inertia), tolerance=ROUNDING * size)

    def set_gravity(self, gravity: Vector3) -> None:
        """Give the file another gravity, and switch it on; nothing changes if it has this one."""
        if _read(self._compiled, 0.0).gravity == gravity:
            return
        root = self._main.root
        options = [element for element in self._inside(root) if element.tag == "option"]
        for option in [one for one in options if "gravity" in one.attributes] or options[:1] or [root.add("option")]:
            option.set_numbers("gravity", *gravity)
        for flag in (flag for option in options for flag in self._inside(option) if flag.tag == "flag"):
            if flag.attributes.get("gravity") == "disable":
                flag.set("gravity", "enable")

    def _check_compiler(self) -> None:
        for element in self._inside(self._main.root):
            total = element.numbers("settotalmass") or (-1.0,)
            if element.tag == "compiler" and (element.attributes.get("inertiafromgeom") == "true" or total[0] > 0):
                raise ExportError(
                    "the MJCF's <compiler> computes masses by itself (inertiafromgeom='true' or settotalmass); delete "
                    "that attribute"
                )

    def _set_diagonal(self, element: XmlElement, number: int, inertia: np.ndarray) -> None:
        """Write principal inertias; the orientation stays if they are still principal there."""
        quaternion = self._compiled.model.body_iquat[number]
        before = Rotation.from_quat(quaternion, scalar_first=True).as_matrix()
        turned, size = before.T @ inertia @ before, np.abs(inertia).max()
        if np.abs(turned - np.diag(np.diag(turned))).max() > ROUNDING * size:
            turned, axes = _principal(turned)
            for name in _ORIENTATIONS[1:]:
                element.remove(name)
            element.set_numbers("quat", *Rotation.from_matrix(before @ axes).as_quat(scalar_first=True, canonical=True))
        element.set_numbers("diaginertia", *np.diag(turned), tolerance=ROUNDING * size)

    def set_joint(self, name: str, new: JointValues, before: JointValues) -> None:
        """Give a joint its armature, damping and frictionloss, less what actuators and following joints add.

        Raises:
            ExportError: If these add more than the new value.
        """
        model = self._compiled.model
        joint = next(k for k in range(model.njnt) if self._compiled.name("joint", k) == name)
        number = int(model.jnt_bodyid[joint])
        body = self._bodies[number]
        joints = [child for child in self._inside(body) if child.tag == "joint"] if body else []
        element = joints[joint - int(model.body_jntadr[number])]
        for what, field in _ATTRIBUTES.items():
            wanted, total = getattr(new, what), getattr(before, what)
            if wanted == total:
                continue
            own = float(getattr(model, field)[int(model.jnt_dofadr[joint])])
            value = wanted if own == total else wanted - (total - own)
            if value < 0 <= wanted:
                raise ExportError(
                    f"joint '{name}': {what} is {wanted:.4g}, but actuators or joints that follow it add "
                    f"{total - own:.4g} in the file; delete it there"
                )
            attribute = "frictionloss" if what == "friction" else what
            element.set_numbers(attribute, value, *(element.numbers(attribute) or ())[1:])


def _principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal inertia and its axes (3, 3), right-handed, in the order and direction nearest to x, y, z."""
    moments, vectors = np.linalg.eigh(inertia)
    rows, columns = linear_sum_assignment(-np.abs(vectors))
    order = columns[np.argsort(rows)]
    axes = vectors[:, order] * np.sign(np.diag(vectors[:, order]))
    if np.linalg.det(axes) < 0:
        axes[:, 2] = -axes[:, 2]
    return np.diag(moments[order]), axes
