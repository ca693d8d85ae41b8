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
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from ...configuration import (
    Section,
    choice,
    flag,
    in_radians,
    names,
    number,
    numbers,
    record_from,
    text,
    toml_file,
    vector,
)
from ...errors import CalibrationError, nearest_match
from ...excitation.limits.space_limits import last_link
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

ORIGIN: Vector3 = (0.0, 0.0, 0.0)
NUMBER = number()
POSITIVE = number(above=0)
TRACKER = {"station": vector, "distance": POSITIVE, "distance_per_metre": number(least=0), "angle": POSITIVE}
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
    with toml_file(Path(path), "a set-up", CalibrationError) as file:
        return _setup(file, robot)


def setup_from_document(document: Mapping[str, Any], robot: Robot) -> CalibrationSetup:
    """Return the set-up that the tables of a document describe, see the module's text."""
    return _setup(Section(document, "", CalibrationError), robot)


def _setup(file: Section, robot: Robot) -> CalibrationSetup:
    file.check_keys(TABLES)
    measurement = file.section("measurement")
    measurement.check_keys(MEASUREMENT_KEYS)
    link = measurement.get("link", choice(*robot.frames), last_link(robot))
    if not moving_chain(robot, link):
        raise measurement.failure(f"link '{link}' does not move with any joint; name a link of the arm")
    markers, loads = (file.section(key).named_sections() for key in ("markers", "loads"))
    measurement.refuse_both("sigma", "tracker")
    geometry = file.section("geometry")
    geometry.check_keys(("joints",))
    return CalibrationSetup(
        link=link,
        base=_frame(file.section("base"), ()),
        tool=_frame(file.section("tool"), ("columns",)),
        markers=tuple(_marker(table, name, robot, link) for name, table in markers.items()),
        loads=tuple(_load(table, name, robot, link) for name, table in loads.items()),
        elastic=_elastic(file.section("elastic"), robot, link),
        geometry=geometry.get("joints", _joints(robot.bodies, "all", "none"), "all"),
        joint_map=_joint_map(file.section("joints"), robot),
        sigma=measurement.optional("sigma", _sigma),
        tracker=record_from(TrackerNoise, measurement.section("tracker"), TRACKER)
        if "tracker" in measurement
        else None,
        angles=cast(Angles, measurement.get("angles", choice("commanded", "measured"), "commanded")),
        columns=_columns(file, measurement, markers, loads),
        sigma_rotation=measurement.optional("sigma_rotation", POSITIVE),
    )


def _sigma(value: Any) -> tuple[float, ...]:
    """One number above 0 for x, y and z, or three [m]."""
    return vector(value, POSITIVE) if isinstance(value, list) else (POSITIVE(value),) * 3


def _frame(table: Section, more: Iterable[str]) -> FrameSetup:
    """Return the frame of ``[base]`` or ``[tool]``."""
    table.check_keys(("xyz", "rpy", "rpy_deg", "known", *more))
    xyz, rpy = table.optional("xyz", vector), table.angles("rpy", vector)
    known = table.get("known", flag, False)
    if known and (xyz is None or rpy is None):
        missing = "xyz" if xyz is None else "rpy"
        raise table.failure(f"known = true, but {missing} is missing; add {missing} = [...] or drop known")
    return FrameSetup(xyz, rpy, known)


def _marker(table: Section, name: str, robot: Robot, link: str) -> MarkerSetup:
    """Return the marker of ``[markers.NAME]``."""
    table.check_keys(("position", "known", "columns"))
    position = _point(table, "position", robot, link) if "position" in table else None
    known = table.get("known", flag, False)
    if known and position is None:
        raise table.failure("known = true, but no position is given; add position = [...] or drop known")
    return MarkerSetup(name, position, known)


def _load(table: Section, name: str, robot: Robot, link: str) -> Load:
    """Return the load of ``[loads.NAME]``: a mass, or a force and a moment, with the point where it acts."""
    table.check_keys(("mass", "force", "moment", "torque", "point"))
    moment = table.optional("moment", vector) or table.optional("torque", vector) or ORIGIN
    table.refuse_both("mass", "force")
    if not {"mass", "force", "moment", "torque"} & set(table.table):
        raise table.failure("nothing pulls; add mass = ... [kg], or force = [x, y, z] [N]")
    force = table.get("force", vector, ORIGIN)
    if "mass" in table:
        mass = table.get("mass", POSITIVE)
        x, y, z = robot.gravity
        force = (mass * x, mass * y, mass * z)
    if "point" not in table:
        raise table.failure(
            f"the load has no point of application; add point = [x, y, z] [m] in the frame of link '{link}'"
        )
    return Load(name, force, moment, _point(table, "point", robot, link))


def _point(table: Section, key: str, robot: Robot, link: str) -> Vector3:
    """Return three numbers as they are, or where the origin of a named link is in the measured link's frame [m]."""
    given = table.table[key]
    if not isinstance(given, str):
        return table.get(key, vector)
    body = robot.frame(link).body
    fixed = [name for name, frame in robot.frames.items() if frame.body == body]
    if given not in fixed:
        raise table.failure(
            f"{key} is link '{given}'; allowed: three numbers, or a link fixed to '{link}': {', '.join(fixed)}"
            f"{nearest_match(given, fixed)}"
        )
    rotation, origin = transform_from_placement(robot.frame(link).placement)
    there = transform_from_placement(robot.frame(given).placement)[1]
    return vector((rotation.T @ (there - origin)).tolist())


def _elastic(table: Section, robot: Robot, link: str) -> ElasticSetup:
    """Return the springs of ``[elastic]``."""
    table.check_keys(("joints", "lateral", "nodes", "nodes_deg", "between", "own_weight"))
    chain = tuple(body.joint.name for body in moving_chain(robot, link))
    given = (table.get(key, _joints(robot.bodies, "all"), ()) for key in ("joints", "lateral"))
    joints, lateral = (chain if chosen == "all" else chosen for chosen in given)
    nodes = {**_nodes(table.section("nodes"), joints), **_nodes(table.section("nodes_deg"), joints, in_radians)}
    return ElasticSetup(
        joints, lateral, MappingProxyType(nodes),
        cast(Between, table.get("between", choice("nearest", "linear"), "nearest")),
        cast(OwnWeight, table.get("own_weight", choice("none", "model", "unknown"), "none")),
    )  # fmt: skip


def _nodes(table: Section, joints: Iterable[str], unit: Callable[..., Any] = lambda kind: kind) -> dict[str, Any]:
    table.check_keys(joints)
    return {joint: table.get(joint, unit(_different)) for joint in table.table}


def _different(value: Any) -> tuple[float, ...]:
    """Positions that differ."""
    positions = numbers()(value)
    if len(positions) < 2 or len(set(positions)) != len(positions):
        raise ValueError("two or more different positions")
    return positions


def _joints(bodies: Iterable[Any], *others: str) -> Callable[[Any], Any]:
    """Return the kind of a list of names of moving joints, or of another text."""
    known = [body.joint.name for body in bodies]

    def convert(value: Any) -> Any:
        if isinstance(value, str) and value in others:
            return value
        if not isinstance(value, list):
            raise ValueError(f"{', '.join(others)}, or a list of joint names, of {', '.join(known)}")
        for name in value:
            if name not in known:
                raise ValueError(f"a list of {', '.join(known)}; '{name}' is none{nearest_match(str(name), known)}")
        return tuple(value)

    return convert


def _columns(
    file: Section, measurement: Section, markers: Mapping[str, Section], loads: Mapping[str, Section]
) -> Columns:
    position = measurement.get("position", choice(*LENGTHS), "m")
    load = measurement.get("load", text, "")
    if load and load not in loads:
        raise measurement.failure(
            f"load is {load!r}; loads of the set-up: {', '.join(loads) or 'none, add [loads.NAME]'}"
            f"{nearest_match(str(load), loads)}"
        )
    renamed = measurement.section("columns").values(dict.fromkeys(ROLES, text))
    return Columns(
        position=position,
        angle=measurement.get("angle", choice(*TURNS), "rad"),
        slide=measurement.get("slide", choice(*LENGTHS), position),
        markers=MappingProxyType(
            {name: _wide_columns(table, 3) for name, table in markers.items() if "columns" in table}
        ),
        tool=_wide_columns(file.section("tool"), 6, 7, 12),
        names=measurement.get("names", names(), ()),
        renamed=MappingProxyType(renamed),
        load=load,
        kind=measurement.optional("kind", choice(*KINDS)) or "",
    )


def _wide_columns(table: Section, *counts: int) -> tuple[str, ...]:
    """Return the names of columns under ``columns``: as many as one of the counts, or none."""
    found = table.get("columns", names(), ())
    if "columns" in table and len(found) not in counts:
        raise table.failure(f"columns has {len(found)} names; allowed: {' or '.join(map(str, counts))}")
    return found


def _joint_map(table: Section, robot: Robot) -> Mapping[str, Mapping[str, float]]:
    table.check_keys([body.joint.name for body in robot.actuated])
    return MappingProxyType({name: MappingProxyType(_joint_terms(table, name)) for name in table.table})


def _joint_terms(table: Section, name: str) -> dict[str, float]:
    """Return the factors by column, a constant under an empty name."""
    given = table.table[name]
    if isinstance(given, str) and given:
        return {given: 1.0}
    if not isinstance(given, dict):
        return {"": table.get(name, NUMBER)}
    terms = table.section(name)
    factors = {column: terms.get(column, NUMBER) for column in given if column not in ("constant", "constant_deg", "")}
    constant = terms.angles("constant", NUMBER)
    return {**factors, "": terms.get("", NUMBER, 0.0) if constant is None else constant}
