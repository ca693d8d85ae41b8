"""A new MJCF file of a robot that was read from something else: a URDF, a table, the catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from scipy.spatial.transform import Rotation

from ..configuration import located
from ..errors import ExportError, RobotError
from .drives import JointValues, joint_values
from .inertia import centre_from_parameters, is_consistent
from .mjcf_files import WORLD, MjcfSource
from .parts import BoxShape, CylinderShape, Joint, MeshShape, Mimic, Shape, SphereShape
from .placement import Placement, transform_from_placement
from .tree import Robot
from .xml_edit import XmlDocument, XmlElement

UNLIMITED = 1e9
"""Stands for the end of a range that is not known, where the other end is."""
_SMALLEST_SHARE = 1e-14
"""Least second moment of a body along any axis, relative to their sum: MuJoCo refuses flat bodies by a rounding."""
_SMALLEST_MOMENT = 1e-14
"""Least second moment of a body along any axis [kg m^2]: MuJoCo refuses moving bodies without inertia."""
_SMALLEST_MASS = 1e-14
"""Least mass of a body [kg]: MuJoCo refuses moving bodies without mass."""
_NOTHING = JointValues(0.0, 0.0, 0.0)
OPTION: Mapping[str, object] = MappingProxyType({"integrator": "implicitfast"})
"""Attributes of ``<option>`` besides gravity."""


def new_mjcf(
    robot: Robot, comment: str = "", *, option: Mapping[str, object] = OPTION, flags: Mapping[str, str] | None = None
) -> bytes:
    """Return an MJCF file of a robot: bodies with inertias and primitive shapes, joints, mimics and motors.

    Args:
        robot: The robot; locked joints become fixed.
        comment: Put at the top.
        option: Attributes of ``<option>`` besides gravity.
        flags: Attributes of its ``<flag>``, such as ``contact="disable"``.

    Raises:
        ExportError: If MuJoCo cannot have such a link.
    """
    document = XmlDocument(b'<?xml version="1.0" encoding="utf-8"?>\n<mujoco/>\n')
    root = document.root
    root.set("model", robot.name)
    _add(root, "compiler", angle="radian", autolimits="true")
    options = _add(root, "option", gravity=robot.gravity, **option)
    if flags:
        _add(options, "flag", **flags)
    if any(link.shapes for link in robot.links):
        _add(root.add("default"), "geom", mass=0.0, group="3")
    world = root.add("worldbody")
    _Bodies(robot).add(world if robot.root == WORLD else _add(world, "body", name=robot.root), robot.root)
    moving = [body.joint for body in robot.bodies]
    followers = [(joint, joint.mimic) for joint in moving if joint.mimic is not None]
    if followers:
        equality = root.add("equality")
        for joint, mimic in followers:
            _add_mimic(equality, joint, mimic)
    actuator = root.add("actuator")
    for joint in moving:
        if joint.mimic is None:  # the torque of the others is that of their leader
            effort = joint.limits.effort
            motor = _add(actuator, "motor", name=joint.name, joint=joint.name)
            if math.isfinite(effort):
                motor.set_numbers("ctrlrange", -effort, effort)
    return document.edited(comment)


def new_mjcf_notes(robot: Robot, own: MjcfSource | None = None) -> list[str]:
    """Return what a reader of a fresh file should know.

    Args:
        robot: The robot.
        own: The MJCF file that the robot was read from, if there is one.
    """
    notes = ["new file: it holds the links, joints, limits and primitive collision shapes that Steelyard knows"]
    if any(isinstance(shape, MeshShape) for link in robot.links for shape in link.shapes):
        notes.append("meshes are left out")
    if any(body.joint.mimic is not None for body in robot.bodies):
        notes.append("mimicking joints are equality constraints, which MuJoCo fulfils approximately")
    if any(math.isfinite(body.joint.limits.velocity) for body in robot.bodies):
        notes.append("velocity limits have no place in MJCF")
    kinds = {str(one.tag) for group in own.elements("actuator") for one in group.iterchildren("*")} if own else set()
    if kinds:
        listed = ", ".join(sorted(kinds))
        notes.append(f"actuators of the robot's own file ({listed}) are replaced by plain motors, one a joint")
    for number, links in _summed_links(robot).items():
        moving = robot.bodies[number - 1].link
        fixed = [f"{name} {inertia[9]:.4g} kg" for name, inertia in links.items() if name != moving and inertia[9]]
        if fixed:
            notes.append(f"link '{moving}' holds the inertia of the links fixed to it ({', '.join(fixed)}) too")
    raised = _raised_links(robot)
    if raised:
        notes.append(
            f"MuJoCo refuses moving bodies without mass or extent: raised to {_SMALLEST_MASS:g} kg and "
            f"{_SMALLEST_MOMENT:g} kg m^2 are those of {', '.join(raised)}"
        )
    return notes


def _summed_links(robot: Robot) -> dict[int, dict[str, np.ndarray]]:
    """Return the inertias of links by moving body, where not each of them is a body that can exist.

    So it is after fixed links, as the robot's file has them, were taken off an estimate of all together.
    """
    found: dict[int, dict[str, np.ndarray]] = {}
    for link in robot.links:
        number = robot.frames[link.name].body
        if number and link.inertia is not None:
            found.setdefault(number, {})[link.name] = np.array(link.inertia)
    return {
        number: own
        for number, own in found.items()
        if not all(is_consistent(inertia) and inertia[9] > 0 for inertia in own.values())
    }


def _inertias(robot: Robot) -> dict[str, np.ndarray]:
    """Return the inertias to write by link: its own, or on the moving link that of all fixed to it."""
    summed, moving = _summed_links(robot), {body.link for body in robot.bodies}
    own = {link.name: link.inertia for link in robot.links if robot.frames[link.name].body not in summed}
    own |= {body.link: body.inertia for body in robot.bodies if body.number in summed}
    return {
        name: np.array(inertia)
        for name, inertia in own.items()
        if inertia is not None and (name in moving or any(inertia))
    }


def _raised_links(robot: Robot) -> list[str]:
    """Return the moving links that get a mass or second moment that they do not have."""
    moving, found = {body.link for body in robot.bodies}, []
    for name, inertia in _inertias(robot).items():
        if name in moving:
            (mass, _, own), (written_mass, _, written) = (
                centre_from_parameters(inertia),
                mass_centre_inertia(inertia, f"link '{name}'"),
            )
            if mass != written_mass or not np.array_equal(own, written):
                found.append(name)
    return found


def mass_centre_inertia(parameters: np.ndarray, what: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre (3,) and inertia about it (3, 3) as MuJoCo accepts them, of a body that can exist.

    MuJoCo refuses second moments below zero by a rounding and moving bodies without mass or inertia: moments below
    1e-14 of their sum, or of 1 kg m^2, are raised to it, and so is a mass below 1e-14 kg, which no torque shows.

    Raises:
        RobotError: If a first moment has no mass.
    """
    with located(what, RobotError):
        mass, centre, inertia = centre_from_parameters(parameters)
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    least = max(_SMALLEST_SHARE * np.abs(moments).sum(), _SMALLEST_MOMENT)
    too_small = (moments < least) & (moments > -1e-9 * np.abs(moments).sum() - least)
    if too_small.any():
        raised = np.where(too_small, least, moments)
        second = axes @ np.diag(raised) @ axes.T
        inertia = np.trace(second) * np.eye(3) - second
    return _SMALLEST_MASS if 0 <= mass < _SMALLEST_MASS else mass, centre, inertia


class _Bodies:
    """Adds the links of a robot as bodies."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._values = robot, joint_values(robot)
        self._links = {link.name: link for link in robot.links}
        self._joints: dict[str, list[Joint]] = {}
        for joint in robot.joints:
            self._joints.setdefault(joint.parent, []).append(joint)
        self._inertias = _inertias(robot)

    def add(self, element: XmlElement, link: str, moved_by: Joint | None = None) -> None:
        """Add inertia, joint and shapes of a link to its body, and the bodies that hang on it."""
        if element.tag == "body" and link in self._inertias:
            self._add_inertial(element, link)
        if moved_by is not None and moved_by.moves:
            _add_joint(element, moved_by, self._values.get(moved_by.name, _NOTHING))
        for shape in self._links[link].shapes:
            _add_geom(element, shape)
        for joint in self._joints.get(link, []):
            if joint.child == WORLD:
                raise ExportError(f"a link is named '{WORLD}', which MuJoCo calls its fixed frame; rename the link")
            body = _add(element, "body", name=joint.child)
            _place(body, joint.rest_placement)
            self.add(body, joint.child, joint)

    def _add_inertial(self, element: XmlElement, link: str) -> None:
        mass, centre, inertia = mass_centre_inertia(self._inertias[link], f"link '{link}'")
        _add(element, "inertial", pos=centre, mass=mass, fullinertia=full_inertia(inertia))


def full_inertia(inertia: np.ndarray) -> np.ndarray:
    """Return the six numbers of ``fullinertia`` in MuJoCo's order: xx yy zz xy xz yz."""
    return inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _add(parent: XmlElement, tag: str, **attributes: object) -> XmlElement:
    """Add an element; numbers are written with all digits that distinguish them."""
    element = parent.add(tag)
    for name, value in attributes.items():
        if isinstance(value, str):
            element.set(name, value)
        else:
            element.set_numbers(name, *np.atleast_1d(value))  # type: ignore[arg-type]
    return element


def _place(element: XmlElement, placement: Placement) -> None:
    rotation, translation = transform_from_placement(placement)
    if translation.any():
        element.set_numbers("pos", *translation)
    if not np.array_equal(rotation, np.eye(3)):
        element.set_numbers("quat", *Rotation.from_matrix(rotation).as_quat(scalar_first=True, canonical=True))


def _add_joint(body: XmlElement, joint: Joint, values: JointValues) -> None:
    kind = "slide" if joint.kind == "prismatic" else "hinge"
    element = _add(body, "joint", name=joint.name, type=kind, axis=joint.axis)
    lower, upper = joint.limits.lower, joint.limits.upper
    if math.isfinite(lower) or math.isfinite(upper):
        element.set_numbers("range", max(lower, -UNLIMITED), min(upper, UNLIMITED))
    for name, value in zip(("armature", "damping", "frictionloss"), _attributes(values), strict=True):
        if value:
            element.set_numbers(name, value)


def _attributes(values: JointValues) -> tuple[float, float, float]:
    """Return ``armature``, ``damping`` and ``frictionloss`` of a joint."""
    return values.armature, values.damping, values.friction


def _add_mimic(equality: XmlElement, joint: Joint, mimic: Mimic) -> None:
    coefficients = (mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0)
    _add(equality, "joint", joint1=joint.name, joint2=mimic.leader, polycoef=coefficients)


def _add_geom(body: XmlElement, shape: Shape) -> None:
    if isinstance(shape, MeshShape):
        return
    if isinstance(shape, SphereShape):
        geom = _add(body, "geom", type="sphere", size=shape.radius)
    elif isinstance(shape, BoxShape):
        geom = _add(body, "geom", type="box", size=np.array(shape.size) / 2)
    else:
        kind = "cylinder" if isinstance(shape, CylinderShape) else "capsule"
        geom = _add(body, "geom", type=kind, size=(shape.radius, shape.length / 2))
    _place(geom, shape.placement)
