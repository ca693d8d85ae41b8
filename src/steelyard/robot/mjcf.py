"""Robots from MJCF files, compiled by MuJoCo: defaults, includes, units, orders of angles and inertias are its own.

A body's link frame is the MJCF body frame, moved to the joint where that stands elsewhere. ``armature`` becomes
``Ia<n>``, ``damping`` and ``frictionloss`` become ``Fvm<n>`` and ``Fcm<n>``; those of an actuator are added times its
gear squared, and those of a joint that follows another are carried over to the joint it follows. Meshes are opened only
where MuJoCo computes an inertia from them.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ..configuration import located, vector
from ..errors import RobotError
from .checks import assembled_robot, checked_limits
from .drives import values_on_leaders
from .files import PathOrBytes, place_of
from .inertia import parameters_from_centre
from .mjcf_files import CompiledMjcf, MjcfSource, compiled_mjcf, mjcf_source
from .parts import BoxShape, CapsuleShape, CylinderShape, Joint, Link, Mimic, Shape, SphereShape
from .placement import RightAngles, placement_from_transform, transform_from_placement
from .tree import Robot


def read_mjcf(path_or_bytes: PathOrBytes, *, right_angle_tolerance: float = 1e-5) -> Robot:
    """Return the robot that an MJCF file describes, as MuJoCo compiles it (extra ``mujoco``).

    Args:
        path_or_bytes: Name of the file, or its content as bytes (no includes then).
        right_angle_tolerance: Angles this near to a multiple of 90 degrees are taken as exact [rad]; 0 reads literally.

    Example:
        >>> mjcf = b'<mujoco model="pendulum"><worldbody><body name="rod"><joint name="pivot" axis="0 1 0"/>'
        >>> mjcf += b'<geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.5"/></body></worldbody></mujoco>'
        >>> steelyard.read_mjcf(mjcf).joints[0].axis
        (0.0, 1.0, 0.0)
    """
    with located(place_of(path_or_bytes), RobotError):
        source = mjcf_source(path_or_bytes)
        stem = "robot" if isinstance(path_or_bytes, bytes) else Path(path_or_bytes).stem
        robot = robot_from_mjcf(source, right_angle_tolerance)
        return replace(robot, name=source.model or stem, source=place_of(path_or_bytes))


def robot_from_mjcf(source: MjcfSource, right_angle_tolerance: float) -> Robot:
    """Return the robot of an MJCF file and those it includes, named as its model."""
    return MjcfReading(compiled_mjcf(source), RightAngles(right_angle_tolerance)).robot(source.model or "robot")


class MjcfReading:
    """Builds links and joints from a compiled model, body by body.

    Attributes:
        link_of: Of each body: its link's name, and the origin of the link's frame in the body's (3,).
    """

    def __init__(self, compiled: CompiledMjcf, angles: RightAngles) -> None:
        self._compiled, self._model, self._angles = compiled, compiled.model, angles
        self._links: dict[str, Link] = {}
        self._joints: dict[str, Joint] = {}
        self._notes: list[str] = []
        self.link_of: list[tuple[str, np.ndarray]] = []
        self._names = [compiled.name("joint", joint) for joint in range(self._model.njnt)]
        self._mimics: dict[int, Mimic] = {}
        self._held: dict[str, float] = {}
        self._read_equalities()

    def robot(self, name: str) -> Robot:
        """Return the robot of that name."""
        for body in range(self._model.nbody):
            self._add_body(body)
        self._add_sites()
        robot = assembled_robot(
            name,
            list(self._links.values()),
            list(self._joints.values()),
            [*self._angles.notes(), *self._notes, *_ignored(self._compiled, self._names), *self._compiled.notes],
            gravity=self._gravity(),
        )
        robot = robot.with_locked(self._held)
        floor = self._floor(robot)
        return replace(robot, values=MappingProxyType(self._values(robot)), floor=floor)

    def _gravity(self) -> tuple[float, float, float]:
        option = self._model.opt
        if option.disableflags & self._compiled.mujoco.mjtDisableBit.mjDSBL_GRAVITY:
            return (0.0, 0.0, 0.0)
        return vector(option.gravity.tolist())

    def _add_body(self, body: int) -> None:
        model = self._model
        name = self._compiled.name("body", body)
        if body == 0:
            self.link_of.append((name, np.zeros(3)))
            self._links[name] = Link(name, None, self._shapes(0, np.zeros(3), name))
            return
        parent, origin = self.link_of[model.body_parentid[body]]
        rotation, shift = _rotation(model.body_quat[body]), model.body_pos[body] - origin
        joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        at = np.zeros(3)
        for joint in joints:
            if self._joint_kind(joint) not in ("hinge", "slide"):
                raise RobotError(
                    f"body '{name}' has a {self._joint_kind(joint)} joint; allowed: hinge and slide (fixed-base arms "
                    "only); delete the joint to fix the body to its parent, or give a file that holds the arm alone"
                )
            link = name if joint == joints[-1] else _unique(f"{name}_{self._names[joint]}", self._links)
            new = self._anchor(joint, at)
            self._add_joint(joint, parent, link, rotation, shift + rotation @ (new - at))
            self._links[link] = Link(link, (0.0,) * 10)
            parent, at, rotation, shift = link, new, np.eye(3), np.zeros(3)
        inertia, shapes = self._inertia(body, at), self._shapes(body, at, name)
        self.link_of.append((name, at))
        self._links[name] = Link(name, inertia if joints or inertia[9] else None, shapes)
        if not joints:
            self._add_fixed(f"{name}_fixed", parent, name, rotation, shift)
        elif at.any():
            frame = _unique(f"{name}_frame", self._links)
            self._links[frame] = Link(frame)
            self._add_fixed(f"{frame}_fixed", name, frame, np.eye(3), -at)
            self._notes.append(
                f"body '{name}': its joint stands off the body's origin; link '{name}' has its frame at the joint, "
                f"link '{frame}' at the body's origin"
            )

    def _anchor(self, joint: int, before: np.ndarray) -> np.ndarray:
        """Return where a joint's frame stands in its body (3,): a sliding joint's line may stand anywhere."""
        return np.array(self._model.jnt_pos[joint]) if self._joint_kind(joint) == "hinge" else before

    def _joint_kind(self, joint: int) -> str:
        return self._compiled.kind("Joint", self._model.jnt_type[joint])

    def _add_joint(self, number: int, parent: str, link: str, rotation: np.ndarray, shift: np.ndarray) -> None:
        model, name = self._model, self._names[number]
        what = f"joint '{name}'"
        axis = self._angles.direction(vector(model.jnt_axis[number].tolist()), what)
        limits, notes = checked_limits(name, self._limits(number))
        self._notes.extend(notes)
        mimic = self._mimics.get(number)
        kind = "revolute" if self._joint_kind(number) == "hinge" else "prismatic"
        joint = Joint(name, kind, parent, link, (), axis, limits, mimic, self._gear_ratio(number))
        # At q = ref the body stands where the file puts it.
        turn, move = transform_from_placement((joint.motion(-float(model.qpos0[model.jnt_qposadr[number]])),))
        placement = placement_from_transform(rotation @ turn, shift + rotation @ move, self._angles, what)
        self._joints[name] = replace(joint, placement=placement)

    def _add_fixed(self, name: str, parent: str, link: str, rotation: np.ndarray, shift: np.ndarray) -> None:
        name = _unique(name, {*self._joints, *self._names})
        placement = placement_from_transform(rotation, shift, self._angles, f"link '{link}'")
        self._joints[name] = Joint(name, "fixed", parent, link, placement)

    def _add_sites(self) -> None:
        """Add named sites as fixed links without mass: tools and flanges are usually marked by one."""
        model, taken = self._model, {self._compiled.name("body", body) for body in range(self._model.nbody)}
        for site in range(model.nsite):
            name = self._compiled.name("site", site)
            if not name or name in taken or name in self._links:
                continue
            parent, origin = self.link_of[model.site_bodyid[site]]
            self._links[name] = Link(name)
            rotation = _rotation(model.site_quat[site])
            self._add_fixed(f"{name}_fixed", parent, name, rotation, model.site_pos[site] - origin)

    def _inertia(self, body: int, at: np.ndarray) -> tuple[float, ...]:
        model, axes = self._model, _rotation(self._model.body_iquat[body])
        at_centre = axes @ np.diag(model.body_inertia[body]) @ axes.T
        ten = parameters_from_centre(float(model.body_mass[body]), model.body_ipos[body] - at, at_centre)
        return tuple(float(value) for value in ten)

    def _limits(self, joint: int) -> dict[str, float]:
        model = self._model
        given: dict[str, float] = {}
        if model.jnt_limited[joint]:
            given["lower"], given["upper"] = (float(value) for value in model.jnt_range[joint])
        efforts = [self._actuator_effort(actuator) for actuator in self._actuators(joint)]
        bounds = [sum(efforts)] if efforts else []
        if model.jnt_actfrclimited[joint]:
            bounds.append(_both_ways(model.jnt_actfrcrange[joint]))
        if bounds and min(bounds) < math.inf:
            given["effort"] = min(bounds)
        return given

    def _actuators(self, joint: int) -> list[int]:
        """Return the actuators that act on a joint."""
        kinds, ends = self._model.actuator_trntype, self._model.actuator_trnid
        on_joint = [k for k, kind in enumerate(kinds) if self._compiled.kind("Trn", kind) == "joint"]
        return [k for k in on_joint if ends[k, 0] == joint]

    def _actuator_effort(self, actuator: int) -> float:
        """Return the largest torque on the joint that both directions allow; infinite if nothing bounds it."""
        model, bound = self._model, math.inf
        if model.actuator_forcelimited[actuator]:
            bound = _both_ways(model.actuator_forcerange[actuator])
        if self._is_motor(actuator) and model.actuator_ctrllimited[actuator]:
            gain = abs(float(model.actuator_gainprm[actuator, 0]))
            bound = min(bound, gain * _both_ways(model.actuator_ctrlrange[actuator]))
        return abs(float(model.actuator_gear[actuator, 0])) * bound

    def _is_motor(self, actuator: int) -> bool:
        """Return whether the actuator's force is proportional to its command."""
        model, kind = self._model, self._compiled.kind
        kinds = (
            kind("Gain", model.actuator_gaintype[actuator]),
            kind("Bias", model.actuator_biastype[actuator]),
            kind("Dyn", model.actuator_dyntype[actuator]),
        )
        return kinds == ("fixed", "none", "none")

    def _gear_ratio(self, joint: int) -> float | None:
        """Return the gear of a joint's only actuator; None where it says nothing.

        1 is the default, and a gear on a motor with commands from -1 to 1 is the scale of the torque.
        """
        actuators, model = self._actuators(joint), self._model
        if len(actuators) != 1:
            return None
        (only,) = actuators
        gear = float(model.actuator_gear[only, 0])
        limited = model.actuator_ctrllimited[only] and np.abs(model.actuator_ctrlrange[only]).max() <= 1
        scale = self._is_motor(only) and limited
        return None if gear in (0.0, 1.0) or scale else gear

    def _read_equalities(self) -> None:
        """Read what active equalities of joints mean: a mimic, or a position that the joint is held at."""
        model = self._model
        for equality in np.flatnonzero(model.eq_active0):
            kind = self._compiled.kind("Eq", model.eq_type[equality])
            if kind != "joint":
                raise RobotError(
                    f"an equality of kind '{kind}' is active; allowed: 'joint' with a linear polycoef (closed chains "
                    "are out of scope); delete it, or set active='false'"
                )
            follower, leader = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
            name, coefficients = self._names[follower], [float(value) for value in model.eq_data[equality, :5]]
            twice = follower in self._mimics or name in self._held
            if twice or (leader >= 0 and any(coefficients[2:])):
                fault = "is constrained twice" if twice else f"follows polycoef {coefficients}"
                raise RobotError(f"joint '{name}' {fault}; allowed: one equality a joint, with polycoef 'a b 0 0 0'")
            shift, gain = coefficients[0] + self._reference(follower), coefficients[1]
            if leader < 0 or gain == 0:
                self._held[name] = shift
            else:
                offset = shift - gain * self._reference(leader)
                self._mimics[follower] = Mimic(self._names[leader], gain, offset)

    def _reference(self, joint: int) -> float:
        """Return the position of a joint at which bodies stand where the file puts them."""
        return float(self._model.qpos0[self._model.jnt_qposadr[joint]])

    def _values(self, robot: Robot) -> dict[str, float]:
        """Return Ia, Fvm and Fcm of the actuated joints: with those of their actuators and of joints that follow."""
        row_of = {name: row for row, name in enumerate(self._names)}
        values = {
            f"{family}{body.number}": value
            for body in robot.bodies
            for family, value in self.drive_values(row_of[body.joint.name]).items()
            if value
        }
        return values_on_leaders(robot, values)

    def drive_values(self, joint: int) -> dict[str, float]:
        """Return Ia, Fvm and Fcm of one joint with its actuators."""
        model, dof = self._model, self._model.jnt_dofadr[joint]
        values = {
            "Ia": float(model.dof_armature[dof]),
            "Fvm": float(model.dof_damping[dof]),
            "Fcm": float(model.dof_frictionloss[dof]),
        }
        for actuator in self._actuators(joint):
            for family, field in (("Ia", "actuator_armature"), ("Fvm", "actuator_damping")):
                if hasattr(model, field):  # MuJoCo 3.2 to 3.4 have none
                    gear = float(model.actuator_gear[actuator, 0])
                    values[family] += float(getattr(model, field)[actuator]) * gear**2
        return values

    def _shapes(self, body: int, at: np.ndarray, link: str) -> tuple[Shape, ...]:
        """Return the shapes of the geometries that can touch others; those left out are said in a note."""
        model, left_out, shapes = self._model, [], []
        for geom in range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body]):
            if not (model.geom_contype[geom] or model.geom_conaffinity[geom]):
                continue
            kind = self._compiled.kind("Geom", model.geom_type[geom])
            shape = self._shape(geom, kind, at)
            if shape is not None:
                shapes.append(shape)
            elif not (body == 0 and kind == "plane"):
                left_out.append(kind)
        if left_out:
            self._notes.append(f"link '{link}': collision shapes left out ({', '.join(left_out)})")
        return tuple(shapes)

    def _shape(self, geom: int, kind: str, at: np.ndarray) -> Shape | None:
        model, mesh = self._model, self._compiled.meshes.get(geom)
        rotation, shift = _rotation(model.geom_quat[geom]), model.geom_pos[geom] - at
        if mesh is not None and kind == "mesh":
            # MuJoCo moved the vertices to the mesh's centre of mass and principal axes.
            number = model.geom_dataid[geom]
            rotation = rotation @ _rotation(model.mesh_quat[number]).T
            shift = shift - rotation @ model.mesh_pos[number]
        placement = placement_from_transform(rotation, shift, RightAngles(0.0), "a geometry")
        radius, half, third = (float(size) for size in model.geom_size[geom])
        if mesh is not None:
            return replace(mesh, placement=placement)
        if kind == "sphere":
            return SphereShape(placement, radius)
        if kind in ("capsule", "cylinder"):
            return (CapsuleShape if kind == "capsule" else CylinderShape)(placement, radius, 2 * half)
        if kind == "box":
            return BoxShape(placement, (2 * radius, 2 * half, 2 * third))
        return None

    def _floor(self, robot: Robot) -> float | None:
        """Return the height of the highest horizontal plane of the world."""
        model, up = self._model, robot.up
        if up is None:
            return None
        kinds = [self._compiled.kind("Geom", model.geom_type[geom]) for geom in range(model.body_geomnum[0])]
        planes = [geom for geom, kind in enumerate(kinds) if kind == "plane"]
        level = [geom for geom in planes if _rotation(model.geom_quat[geom])[:, 2] @ up > 1 - 1e-6]
        return max((float(model.geom_pos[geom] @ up) for geom in level), default=None)


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation (3, 3) of a quaternion w x y z.

    Raises:
        RobotError: If it has no length.
    """
    length = float(np.linalg.norm(quaternion))
    if not length > 0:
        raise RobotError(
            "an orientation has a quaternion (quat) of length 0; give w x y z of a rotation, such as 1 0 0 0"
        )
    w, x, y, z = np.asarray(quaternion, float) / length
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _both_ways(bounds: np.ndarray) -> float:
    """Return the largest size that a bounded quantity may have in both directions, or in its only one."""
    lower, upper = float(bounds[0]), float(bounds[1])
    return min(-lower, upper) if lower < 0 < upper else max(abs(lower), abs(upper))


def _unique(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _ignored(compiled: CompiledMjcf, joints: list[str]) -> list[str]:
    """Return notes on forces of the file that no effect of a model stands for."""
    model = compiled.model
    bodies = [compiled.name("body", int(k)) for k in np.flatnonzero(model.body_gravcomp)]
    springs = [joints[k] for k in np.flatnonzero(model.jnt_stiffness)]
    curved = [
        joints[model.dof_jntid[k]] for k in np.flatnonzero(np.any(getattr(model, "dof_dampingpoly", 0.0), axis=-1))
    ]
    notes = [
        f"springs of {', '.join(springs)} (stiffness) are not read" if springs else "",
        f"gravity compensation of {', '.join(bodies)} (gravcomp) is not read" if bodies else "",
        f"nonlinear damping of {', '.join(curved)} is read as its linear part" if curved else "",
        "drag of the medium (density, viscosity) is not read" if model.opt.density or model.opt.viscosity else "",
    ]
    tendons = sum(np.any(getattr(model, f"tendon_{key}")) for key in ("stiffness", "damping", "frictionloss"))
    return [note for note in [*notes, "forces of tendons are not read" if tendons else ""] if note]
