"""Set-ups from TOML files.

Every key is optional, an unknown key is an error; SI units unless said otherwise::

    [measurement]
    position = "mm"                      # unit of measured positions: "m" (default), "mm", "um", "in"
    angle = "deg"                        # unit of joints that turn and of roll, pitch, yaw: "rad" (default), "deg"
    slide = "mm"                         # unit of joints that slide; default: that of positions
    link = "flange"                      # the measured link; default: the payload's link, or the end of the arm
    angles = "measured"                  # joint positions are "commanded" (default) or "measured" by encoders
    sigma = [10e-6, 10e-6, 20e-6]        # noise of the instrument [m] in x, y, z, or one number
    sigma_rotation = 1e-4                # noise of measured orientations about each axis [rad]; beside sigma or tracker
    tracker = {station = [0, 0, 0], distance = 10e-6, distance_per_metre = 0.5e-6, angle = 5e-6}    # instead of sigma
    load = "heavy"                       # load of rows that name none
    kind = "difference"                  # rows that do not say it: "position", "pose", "distance", "difference"
    names = ["x", "y", "z", "q1"]        # column names of a file without a header; default c1, c2, ...
    columns = {pose = "config", x = "X [mm]"}   # columns that have another name than their role

    [joints]                             # default: each joint has a column of its own name
    joint_1 = "A1"
    joint_3 = {J3 = 1, J2 = 1}           # coupled axes: joint_3 = J3 + J2
    joint_4 = {J4 = -1, constant_deg = 90}      # or constant, in SI units
    joint_5 = 0.0                        # a joint that stands still

    [base]                               # robot base in the measurement frame; default: unknown
    xyz = [1.2, 0, 0.5]
    rpy_deg = [0, 0, 90]                 # or rpy [rad]
    known = true                         # default false: the numbers are where a search starts

    [tool]                               # tool in the measured link's frame, where orientation is measured
    xyz = [0, 0, 0.1]
    columns = ["x", "y", "z", "qw", "qx", "qy", "qz"]    # of a wide file; or roll, pitch, yaw; or a matrix by rows

    [markers.nose]
    position = [0.1, 0, 0.02]            # in the measured link's frame, or the name of a link fixed to the same body
    known = true                         # default false
    columns = ["x1", "y1", "z1"]         # of a wide file, several markers in one row; "" for one that is not measured

    [loads.heavy]
    mass = 265                           # [kg], or force [N] and moment [N m] in robot base axes
    point = [0.15, 0, -0.4]              # where it acts, in the measured link's frame, or the name of a link

    [elastic]
    joints = ["joint_2", "joint_3"]      # springs about joint axes; "all"; default none
    lateral = ["joint_2"]                # springs about the other two axes
    nodes_deg = {joint_2 = [-140, -100, -57, -25, 0]}    # compliance by position of the joint; or nodes [rad or m]
    between = "linear"                   # or "nearest" (default)
    own_weight = "model"                 # weight of links: "none" (default), "model" or "unknown"

    [geometry]
    joints = "none"                      # joints with unknown placement errors: "all" (default), "none" or a list

The parts of a set-up from their tables: frames, markers, loads, springs, noise of a tracker.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from ...errors import CalibrationError, DesignError, nearest_match
from ...excitation.limits.checked_tables import Table, check_keys, table_in, text_in, word_in
from ...excitation.limits.space_limits import last_link
from ...files import toml_document
from ...robot import AnyRobot, Robot, load_robot, transform_from_placement
from ...robot.placement import Vector3
from .setup import (
    KINDS,
    LENGTHS,
    TURNS,
    Angles,
    Between,
    CalibrationSetup,
    Columns,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
    OwnWeight,
    TrackerNoise,
    moving_chain,
)
from .setup_values import checked_numbers, columns_in, finite_in, names_in, vector_under, yes_or_no

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


TABLES = ("measurement", "joints", "base", "tool", "markers", "loads", "elastic", "geometry")
MEASUREMENT_KEYS = (
    "position", "angle", "slide", "link", "angles", "sigma", "sigma_rotation", "tracker", "load", "kind", "names",
    "columns",
)  # fmt: skip
ROLES = (
    "pose", "marker", "repeat", "load", "kind", "x", "y", "z", "qw", "qx", "qy", "qz", "roll", "pitch", "yaw",
    "distance", "to",
)  # fmt: skip
"""What a column of a long file can be besides the position of a joint."""


def read_setup(path: str | os.PathLike[str], robot: AnyRobot) -> CalibrationSetup:
    """Return the set-up of a TOML file for a robot."""
    robot = load_robot(robot)
    try:
        document = toml_document(Path(path), "a set-up", CalibrationError)
        return setup_from_document(document, robot)
    except CalibrationError as error:
        raise CalibrationError(f"set-up '{path}': {error}") from error


def setup_from_document(document: Table, robot: Robot) -> CalibrationSetup:
    """Return the set-up that the tables of a document describe, see the module's text."""
    try:
        check_keys(document, TABLES, "the set-up")
        return _setup(document, robot)
    except DesignError as error:
        # The checks of keys and kinds are those of limits files; what is wrong here is a set-up.
        raise CalibrationError(str(error)) from error


def _setup(document: Table, robot: Robot) -> CalibrationSetup:
    measurement = table_in(document, "measurement")
    where = "[measurement]"
    check_keys(measurement, MEASUREMENT_KEYS, where)
    link = text_in(measurement, "link", where, last_link(robot))
    if link not in robot.frames:
        raise CalibrationError(
            f"{where}: link '{link}' is no link of '{robot.name}'; links: {', '.join(robot.frames)}"
            f"{nearest_match(link, robot.frames)}"
        )
    if not moving_chain(robot, link):
        raise CalibrationError(f"{where}: link '{link}' does not move with any joint; name a link of the arm")
    loads = tuple(load_setup(table, name, robot, link) for name, table in _named_tables(document, "loads"))
    if "sigma" in measurement and "tracker" in measurement:
        raise CalibrationError(f"{where}: both sigma and tracker are given; keep one")
    geometry = table_in(document, "geometry")
    check_keys(geometry, ("joints",), "[geometry]")
    return CalibrationSetup(
        link=link,
        base=frame_setup(table_in(document, "base"), "base"),
        tool=frame_setup(table_in(document, "tool"), "tool"),
        markers=tuple(marker_setup(table, name, robot, link) for name, table in _named_tables(document, "markers")),
        loads=loads,
        elastic=elastic_setup(table_in(document, "elastic"), robot, link),
        geometry=_geometry(geometry, robot),
        joint_map=_joint_map(table_in(document, "joints"), robot),
        sigma=_sigma(measurement),
        tracker=tracker_noise(measurement),
        angles=cast(Angles, word_in(measurement, "angles", ("commanded", "measured"), where, "commanded")),
        columns=_columns(document, measurement, [load.name for load in loads]),
        sigma_rotation=_sigma_rotation(measurement),
    )


def _named_tables(document: Table, key: str) -> list[tuple[str, Table]]:
    tables = table_in(document, key)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise CalibrationError(f"[{key}]: '{name}' is {table!r}; a table is expected, write [{key}.{name}]")
    return list(tables.items())


def _columns(document: Table, measurement: Table, loads: list[str]) -> Columns:
    where = "[measurement]"
    position = word_in(measurement, "position", LENGTHS, where, "m")
    load = measurement.get("load", "")
    if load and load not in loads:
        raise CalibrationError(
            f"{where}: load is {load!r}; loads of the set-up: {', '.join(loads) or 'none, add [loads.NAME]'}"
            f"{nearest_match(str(load), loads)}"
        )
    renamed = table_in(measurement, "columns")
    check_keys(renamed, ROLES, f"{where}: columns")
    markers = {
        name: columns_in(table, f"[markers.{name}]", (3,))
        for name, table in _named_tables(document, "markers")
        if "columns" in table
    }
    return Columns(
        position=position,
        angle=word_in(measurement, "angle", TURNS, where, "rad"),
        slide=word_in(measurement, "slide", LENGTHS, where, position),
        markers=MappingProxyType(markers),
        tool=columns_in(table_in(document, "tool"), "[tool]", (6, 7, 12)),
        names=names_in(measurement, "names", where),
        renamed=MappingProxyType({role: text_in(renamed, role, f"{where}: columns") for role in renamed}),
        load=load,
        kind=word_in(measurement, "kind", KINDS, where) if "kind" in measurement else "",
    )


def _sigma(measurement: Table) -> tuple[float, ...] | None:
    if "sigma" not in measurement:
        return None
    given = measurement["sigma"]
    sigma = checked_numbers(given if isinstance(given, list) else [given] * 3, "[measurement]: sigma", 3)
    if not min(sigma) > 0:
        raise CalibrationError(f"[measurement]: sigma is {given!r}; allowed is above 0, in metres")
    return sigma


def _sigma_rotation(measurement: Table) -> float | None:
    if "sigma_rotation" not in measurement:
        return None
    sigma = finite_in(measurement, "sigma_rotation", "[measurement]")
    if not sigma > 0:
        raise CalibrationError(f"[measurement]: sigma_rotation is {sigma:g}; allowed is above 0, in radians")
    return sigma


def _geometry(table: Table, robot: Robot) -> Any:
    given = table.get("joints", "all")
    return given if given in ("all", "none") else named_joints(given, robot, "[geometry]: joints")


def _joint_map(table: Table, robot: Robot) -> Mapping[str, Mapping[str, float]]:
    names = [body.joint.name for body in robot.actuated]
    check_keys(table, names, "[joints]")
    return MappingProxyType({name: MappingProxyType(_joint_terms(given, name)) for name, given in table.items()})


def _joint_terms(given: Any, name: str) -> dict[str, float]:
    """Return the factors by column, a constant under an empty name."""
    where = f"[joints]: {name}"
    if isinstance(given, str) and given:
        return {given: 1.0}
    if not isinstance(given, dict):
        return {"": checked_numbers([given], where, 1)[0]}
    if "constant" in given and "constant_deg" in given:
        raise CalibrationError(f"{where} has both constant and constant_deg; keep one")
    terms = {
        column: finite_in(given, column, where) for column in given if column not in ("constant", "constant_deg", "")
    }
    constant = given.get("", given.get("constant", 0.0))
    if "constant_deg" in given:
        constant = math.radians(finite_in(given, "constant_deg", where))
    return {**terms, "": checked_numbers([constant], where, 1)[0]}
