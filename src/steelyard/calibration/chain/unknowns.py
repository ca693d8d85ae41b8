"""The unknowns of a calibration: errors of frames, compliances and weights, each with its name and meaning.

Order: base, joints, tool, markers, compliances, weights. Errors of a joint's frame are called joint offset, link
length, twist, parallelism.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...configuration import vector
from ...errors import CalibrationError, nearest_match
from ...robot import Body, ElementaryMotion, Placement, Robot, transform_from_placement
from ...robot.placement import Vector3, X, Y, Z
from ..measurement.setup import CalibrationSetup, ElasticSetup, moving_chain
from ..records import Unknown

# Directions and lengths below this, relative to 1 or in metres, are zero as files mean it.
_NONE = 1e-9


def error_name(robot: Robot, body: Body, motion: ElementaryMotion) -> str:
    """Return the meaning of an elementary error of a body's joint.

    About the joint's own axis it is the joint offset. Along another direction it is the length of the link before where
    there is one, else a shift of the axis. A turn about the common normal of this axis and the one before is the twist;
    the other tilt is the parallelism of two nominally parallel axes.
    """
    name, letter = body.joint.name, motion.name.rstrip("0123456789")[-1]
    if motion.name.startswith("offset"):
        return f"offset of {name} {'about' if motion.kind == 'rotate' else 'along'} its own axis"
    direction, own = np.array(motion.axis), np.array(body.joint.axis)
    length = _lever(body) @ direction
    if motion.kind == "translate":
        along = "its own axis" if abs(direction @ own) > 1 - _NONE else letter
        if abs(length) > _NONE:
            return f"length of the link before {name} along {along} (nominally {abs(length):.6g} m)"
        return f"shift of {name} along {along}"
    if abs(direction @ own) > 1 - _NONE:
        return f"turn of the slide of {name} about its own axis"
    return _tilt_name(robot, body, direction, letter)


def _tilt_name(robot: Robot, body: Body, direction: np.ndarray, letter: str) -> str:
    own, lever = np.array(body.joint.axis), _lever(body)
    before = _axis_before(robot, body)
    normal = np.cross(before, own)
    parallel = np.linalg.norm(normal) < _NONE
    if parallel:
        normal = lever - (lever @ own) * own
    size = np.linalg.norm(normal)
    # Of the two tilts the one nearer to the common normal is the twist; the first wins where they are alike.
    if size > _NONE and abs(direction @ normal) > np.sqrt(0.5) * size - _NONE:
        return f"twist of the axis of {body.joint.name} about {letter}"
    if parallel and body.parent:
        leader = robot.bodies[body.parent - 1].joint.name
        return f"parallelism of the axes of {leader} and {body.joint.name}, about {letter}"
    return f"tilt of the axis of {body.joint.name} about {letter}"


def _lever(body: Body) -> np.ndarray:
    """Return the nominal step from the frame before to the body's frame, in the body's frame [m]."""
    rotation, translation = transform_from_placement(body.placement)
    return rotation.T @ translation


def _axis_before(robot: Robot, body: Body) -> np.ndarray:
    """Return the axis of the joint before (z of the base for the first), in the body's frame."""
    rotation, _ = transform_from_placement(body.placement)
    axis = robot.bodies[body.parent - 1].joint.axis if body.parent else (0.0, 0.0, 1.0)
    return rotation.T @ np.array(axis)


PRINCIPAL: dict[str, Vector3] = {"x": X, "y": Y, "z": Z}
FIRST_MOMENTS_AND_MASS = ("MX", "MY", "MZ", "M")

# An axis within this of a frame's axis is that axis: a few roundings, as files mean it.
_SAME_DIRECTION = 1e-12


@dataclass(frozen=True)
class Spring:
    """A virtual spring of a joint (P3.1): it gives way by compliance times the load it bears.

    Attributes:
        names: Name of the compliance; several where it has values at nodes of the joint's position (P3.5).
        motion: Axis about which it turns or along which it slides, in the body's frame.
        meanings: What a person calls each compliance.
        nodes: Joint positions [rad or m] of the nodes; none where the compliance is the same everywhere.
    """

    names: tuple[str, ...]
    motion: ElementaryMotion
    meanings: tuple[str, ...]
    nodes: tuple[float, ...] = ()


def directions(body: Body) -> dict[str, Vector3]:
    """Return three perpendicular directions of the body's frame by letter; one of them is the joint's axis.

    They are x, y and z where the joint's axis is one of these (with its sign), else u, v and w with w the joint's axis.
    """
    axis = np.array(body.joint.axis)
    largest = int(np.argmax(np.abs(axis)))
    if np.abs(np.delete(axis, largest)).max() <= _SAME_DIRECTION:
        return {**PRINCIPAL, "xyz"[largest]: body.joint.axis}
    across = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    u = across / np.linalg.norm(across)
    return {"u": vector(u.tolist()), "v": vector(np.cross(axis, u).tolist()), "w": body.joint.axis}


def error_motions(body: Body) -> Placement:
    """Return the six elementary errors of a joint's frame, ``Trans(x, y, z) Rot_x Rot_y Rot_z``, values 0.

    What turns about (or slides along) the joint's own axis is ``offset``: it adds to the joint's position.
    """
    own = ("translate" if body.joint.kind == "prismatic" else "rotate", body.joint.axis)
    kinds: tuple[tuple[Literal["translate", "rotate"], str], ...] = (("translate", ""), ("rotate", "r"))
    return tuple(
        ElementaryMotion(kind, axis, 0.0, f"{'offset' if (kind, axis) == own else prefix + letter}{body.number}")
        for kind, prefix in kinds
        for letter, axis in directions(body).items()
    )


def joint_springs(robot: Robot, body: Body, elastic: ElasticSetup) -> tuple[Spring, ...]:
    """Return the springs of a joint: about its own axis, then about the two others, as the set-up declares."""
    name, springs = body.joint.name, []
    if name in (*elastic.joints, *elastic.known):
        springs.append(_own_spring(robot, body, elastic.nodes.get(name, ())))
    if name in elastic.lateral:
        springs += [
            Spring(
                (f"k{body.number}{letter}",),
                ElementaryMotion("rotate", axis, 0.0, letter),
                (f"lateral compliance of {name} about {letter} of its frame",),
            )
            for letter, axis in directions(body).items()
            if axis != body.joint.axis
        ]
    return tuple(springs)


def with_known_springs(robot: Robot, setup: CalibrationSetup) -> CalibrationSetup:
    """Return the set-up with the springs that the robot's file knows and the set-up does not name.

    Where nothing loads the arm, neither applied loads nor weights, springs do nothing and none is added.
    """
    if not _is_loaded(setup):
        return setup
    bodies = [body for body in moving_chain(robot, setup.link) if robot.values.get(f"k{body.number}")]
    known = tuple(body.joint.name for body in bodies if body.joint.name not in setup.elastic.joints)
    return replace(setup, elastic=replace(setup.elastic, known=known))


def _is_loaded(setup: CalibrationSetup) -> bool:
    return bool(setup.loads) or setup.elastic.own_weight != "none"


def springs_at_nodes_left_out(robot: Robot, setup: CalibrationSetup) -> tuple[str, ...]:
    """Return the joints of the chain whose compliances the file gives at nodes that the set-up does not place."""
    at_nodes = robot.values.keys() - {f"k{body.number}" for body in robot.bodies}
    named = (*setup.elastic.joints, *setup.elastic.known)
    return tuple(
        body.joint.name
        for body in (moving_chain(robot, setup.link) if _is_loaded(setup) else ())
        if body.joint.name not in named and any(re.fullmatch(rf"k{body.number}_?[1-9]", name) for name in at_nodes)
    )


def _own_spring(robot: Robot, body: Body, nodes: tuple[float, ...]) -> Spring:
    number, slides = body.number, body.joint.kind == "prismatic"
    meaning = f"compliance of {body.joint.name} {'along' if slides else 'about'} its own axis"
    if not nodes:
        return Spring((f"k{number}",), body.joint.motion(0.0), (meaning,))
    # Two numbers side by side, as P3 writes them, as long as both have one digit.
    between = "_" if len(robot.bodies) > 9 or len(nodes) > 9 else ""
    names = tuple(f"k{number}{between}{node}" for node in range(1, len(nodes) + 1))
    meanings = tuple(f"{meaning} at {node:.6g} {'m' if slides else 'rad'}" for node in nodes)
    return Spring(names, body.joint.motion(0.0), meanings, tuple(nodes))


def bodies_with_weight(robot: Robot, setup: CalibrationSetup) -> tuple[Body, ...]:
    """Return the bodies whose own weight loads a spring: those behind a springy joint, on the chain or beside it."""
    if setup.elastic.own_weight == "none":
        return ()
    chain = moving_chain(robot, setup.link)
    loading = {body.number for body in chain if joint_springs(robot, body, setup.elastic)}
    for body in robot.bodies:  # a parent comes before its children
        if body.parent in loading:
            loading.add(body.number)
    return tuple(robot.bodies[number - 1] for number in sorted(loading))


def unknown_parameters(
    robot: Robot, setup: CalibrationSetup, *, orientation: bool = False, markers: np.ndarray | None = None
) -> tuple[Unknown, ...]:
    """Return the unknowns of a robot and a set-up.

    Args:
        robot: The arm.
        setup: What is known, and what may bend.
        orientation: Whether orientations are measured: only then a tool frame has unknowns.
        markers: Nominal positions of the markers (M, 3) [m]; those of the set-up, or zero, by default.

    Raises:
        CalibrationError: If the set-up names a joint that does not move the measured link.
    """
    chain = moving_chain(robot, setup.link)
    wrong = _chosen(chain, setup)
    return (
        *(() if setup.base.known else _frame_parameters("base", "robot base in the measurement frame")),
        *(parameter for body in wrong for parameter in _joint_parameters(robot, body)),
        *(
            _frame_parameters("tool", f"tool in the frame of {setup.link}")
            if orientation and not setup.tool.known
            else ()
        ),
        *_marker_parameters(setup, markers),
        *(parameter for body in chain for parameter in _compliance_parameters(robot, body, setup.elastic)),
        *_weight_parameters(robot, setup),
    )


def _chosen(chain: Sequence[Body], setup: CalibrationSetup) -> list[Body]:
    """Return the bodies whose joints have errors; check every joint that the set-up names."""
    names = [body.joint.name for body in chain]
    named = setup.geometry if isinstance(setup.geometry, tuple) else ()
    elastic = setup.elastic
    for name in (*named, *elastic.joints, *elastic.lateral, *elastic.nodes):
        if name not in names:
            raise CalibrationError(
                f"joint '{name}' does not move the measured link '{setup.link}'; joints that do: "
                f"{', '.join(names) or 'none'}{nearest_match(name, names)}"
            )
    return [body for body in chain if setup.geometry == "all" or body.joint.name in named]


def _frame_parameters(frame: Literal["base", "tool"], what: str) -> Iterable[Unknown]:
    for letter in "xyz":
        yield Unknown(f"{frame}_{letter}", frame, "m", 0.0, f"shift along {letter} of the {what}")
    for letter in "xyz":
        yield Unknown(f"{frame}_r{letter}", frame, "rad", 0.0, f"turn about {letter} of the {what}")


def _joint_parameters(robot: Robot, body: Body) -> Iterable[Unknown]:
    for motion in error_motions(body):
        unit = "m" if motion.kind == "translate" else "rad"
        yield Unknown(motion.name, "joint", unit, 0.0, error_name(robot, body, motion))


def _marker_parameters(setup: CalibrationSetup, markers: np.ndarray | None) -> Iterable[Unknown]:
    for row, marker in enumerate(setup.markers):
        if marker.known:
            continue
        nominal = (marker.position or (0.0, 0.0, 0.0)) if markers is None else markers[row]
        for letter, value in zip("xyz", nominal, strict=True):
            meaning = f"position of {marker.name} along {letter} of the frame of {setup.link}"
            yield Unknown(f"{letter}[{marker.name}]", "marker", "m", float(value), meaning)


def _compliance_parameters(robot: Robot, body: Body, elastic: ElasticSetup) -> Iterable[Unknown]:
    for spring in joint_springs(robot, body, elastic):
        unit = "m/N" if spring.motion.kind == "translate" else "rad/(N m)"
        known = body.joint.name in elastic.known and spring.names == (f"k{body.number}",)
        for name, meaning in zip(spring.names, spring.meanings, strict=True):
            yield Unknown(name, "compliance", unit, float(robot.values.get(name, 0.0)), meaning, known)


def _weight_parameters(robot: Robot, setup: CalibrationSetup) -> Iterable[Unknown]:
    if setup.elastic.own_weight != "unknown":
        return
    for body in bodies_with_weight(robot, setup):
        values = (0.0,) * 4 if body.inertia is None else body.inertia[6:10]
        for label, value in zip(FIRST_MOMENTS_AND_MASS, values, strict=True):
            meaning, unit = f"mass of {body.link}", "kg"
            if label != "M":
                meaning, unit = f"first moment of {body.link} along {label[1:].lower()}", "kg m"
            yield Unknown(f"{label}{body.number}", "weight", unit, float(value), meaning)
