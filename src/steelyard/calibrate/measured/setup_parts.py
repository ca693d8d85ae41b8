"""The parts of a set-up from their tables: frames, markers, loads, springs, noise of a tracker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

from ...design.limits.checked_tables import Table, check_keys, table_in, word_in
from ...errors import CalibrationError, nearest_match
from ...robot import Robot, transform_from_placement
from ...robot.placement import Vector3
from .setup import Between, ElasticSetup, FrameSetup, Load, MarkerSetup, OwnWeight, TrackerNoise, moving_chain
from .setup_values import checked_numbers, finite_in, vector_under, yes_or_no

ORIGIN: Vector3 = (0.0, 0.0, 0.0)


def frame_setup(table: Table, name: str) -> FrameSetup:
    """Return the frame of ``[base]`` or ``[tool]``."""
    where = f"[{name}]"
    check_keys(table, ("xyz", "rpy", "rpy_deg", "known", *(("columns",) if name == "tool" else ())), where)
    xyz, rpy = vector_under(table, "xyz", where), vector_under(table, "rpy", where)
    known = yes_or_no(table, "known", where)
    if known and (xyz is None or rpy is None):
        missing = "xyz" if xyz is None else "rpy"
        raise CalibrationError(f"{where}: known = true, but {missing} is missing; add {missing} = [...] or drop known")
    return FrameSetup(xyz, rpy, known)


def marker_setup(table: Table, name: str, robot: Robot, link: str) -> MarkerSetup:
    """Return the marker of ``[markers.NAME]``."""
    where = f"[markers.{name}]"
    check_keys(table, ("position", "known", "columns"), where)
    position = point_in_link(table["position"], robot, link, f"{where}: position") if "position" in table else None
    known = yes_or_no(table, "known", where)
    if known and position is None:
        raise CalibrationError(f"{where}: known = true, but no position is given; add position = [...] or drop known")
    return MarkerSetup(name, position, known)


def load_setup(table: Table, name: str, robot: Robot, link: str) -> Load:
    """Return the load of ``[loads.NAME]``: a mass, or a force and a moment, with the point where it acts."""
    where = f"[loads.{name}]"
    check_keys(table, ("mass", "force", "moment", "torque", "point"), where)
    moment = vector_under(table, "moment", where) or vector_under(table, "torque", where) or ORIGIN
    if "mass" in table and "force" in table:
        raise CalibrationError(f"{where}: both mass and force are given; keep one")
    if not {"mass", "force", "moment", "torque"} & set(table):
        raise CalibrationError(f"{where}: nothing pulls; add mass = ... [kg], or force = [x, y, z] [N]")
    force = vector_under(table, "force", where) or ORIGIN
    if "mass" in table:
        mass = finite_in(table, "mass", where)
        if not mass > 0:
            raise CalibrationError(f"{where}: mass is {mass:g} kg; allowed is above 0")
        x, y, z = robot.gravity
        force = (mass * x, mass * y, mass * z)
    if "point" not in table:
        raise CalibrationError(
            f"{where}: the load has no point of application; add point = [x, y, z] [m] in the frame of link '{link}'"
        )
    return Load(name, force, moment, point_in_link(table["point"], robot, link, f"{where}: point"))


def point_in_link(given: Any, robot: Robot, link: str, what: str) -> Vector3:
    """Return three numbers as they are, or where the origin of a named link is in the measured link's frame [m]."""
    if not isinstance(given, str):
        x, y, z = checked_numbers(given, what, 3)
        return x, y, z
    body = robot.frame(link).body
    fixed = [name for name, frame in robot.frames.items() if frame.body == body]
    if given not in fixed:
        raise CalibrationError(
            f"{what} is link '{given}'; allowed are three numbers, or a link fixed to '{link}': {', '.join(fixed)}"
            f"{nearest_match(given, fixed)}"
        )
    rotation, origin = transform_from_placement(robot.frame(link).placement)
    there = transform_from_placement(robot.frame(given).placement)[1]
    x, y, z = (float(value) for value in rotation.T @ (there - origin))
    return x, y, z


def elastic_setup(table: Table, robot: Robot, link: str) -> ElasticSetup:
    """Return the springs of ``[elastic]``."""
    where = "[elastic]"
    check_keys(table, ("joints", "lateral", "nodes", "nodes_deg", "between", "own_weight"), where)
    chain = [robot.bodies[number - 1].joint.name for number in moving_chain(robot, link)]
    joints, lateral = (
        tuple(chain) if table.get(key) == "all" else named_joints(table.get(key, []), robot, f"{where}: {key}")
        for key in ("joints", "lateral")
    )
    nodes = {**_nodes(table, "nodes", joints, 1.0), **_nodes(table, "nodes_deg", joints, math.pi / 180)}
    return ElasticSetup(
        joints, lateral, MappingProxyType(nodes),
        cast(Between, word_in(table, "between", ("nearest", "linear"), where, "nearest")),
        cast(OwnWeight, word_in(table, "own_weight", ("none", "model", "unknown"), where, "none")),
    )  # fmt: skip


def _nodes(table: Table, key: str, joints: Iterable[str], unit: float) -> Mapping[str, tuple[float, ...]]:
    given, where = table_in(table, key), f"[elastic]: {key}"
    check_keys(given, list(joints), where)
    found = {}
    for joint, values in given.items():
        numbers = checked_numbers(values, f"{where} of {joint}")
        if len(numbers) < 2 or len(set(numbers)) != len(numbers):
            raise CalibrationError(f"{where} of {joint} is {values!r}; two or more different positions are expected")
        found[joint] = tuple(number * unit for number in numbers)
    return found


def named_joints(given: Any, robot: Robot, what: str) -> tuple[str, ...]:
    """Return the names of moving joints in a list."""
    names = [body.joint.name for body in robot.bodies]
    if not isinstance(given, list):
        raise CalibrationError(f"{what} is {given!r}; a list of joint names is expected, of {', '.join(names)}")
    for name in given:
        if name not in names:
            raise CalibrationError(
                f"{what} names {name!r}; moving joints: {', '.join(names)}{nearest_match(str(name), names)}"
            )
    return tuple(given)


def tracker_noise(measurement: Table) -> TrackerNoise | None:
    """Return the noise model of ``tracker`` in ``[measurement]``, if there is one."""
    if "tracker" not in measurement:
        return None
    table, where = table_in(measurement, "tracker"), "[measurement]: tracker"
    check_keys(table, ("station", "distance", "distance_per_metre", "angle"), where)
    noise = TrackerNoise(
        vector_under(table, "station", where) or ORIGIN,
        finite_in(table, "distance", where),
        finite_in(table, "distance_per_metre", where, 0.0),
        finite_in(table, "angle", where),
    )
    if noise.distance <= 0 or noise.angle <= 0 or noise.distance_per_metre < 0:
        raise CalibrationError(
            f"{where} is {dict(table)!r}; distance and angle must be above 0, distance_per_metre 0 or more"
        )
    return noise
