"""Robots from tables written by hand: modified DH rows (or URDF-like placements) in a TOML file.

One ``[[joint]]`` per joint, from the base outwards. SI units; a key that ends in ``_deg`` is in degrees. Example::

    [robot]
    name = "two_link"
    gravity = [0, 0, -9.81]            # default

    [[joint]]                          # modified DH row: Rot(x, alpha) Trans(x, d) Rot(z, theta) Trans(z, r)
    alpha_deg = 0                      # all four of alpha, d, theta, r must be there
    d = 0
    theta_deg = 0                      # a revolute joint's position is added to theta, a prismatic one's to r
    r = 0.3
    lower_deg = -170
    upper_deg = 170
    inertia = [0.1, 0, 0, 0.1, 0, 0.02, 0, 0, 0.3, 4]    # XX XY XZ YY YZ ZZ MX MY MZ M about the frame's origin

    [[joint]]                          # or a URDF-like placement: xyz, rpy, axis
    xyz = [0.4, 0, 0]
    rpy_deg = [-90, 0, 0]
    axis = [0, 0, 1]

    [values]                           # other parameters known beforehand: one number, or a list, one for each
    Ia2 = 0.3                          # moving joint in depth-first order
    Fvm = [1.5, 0.8]

The same rows fit on one line each, at the top of the file::

    joint = [
      {alpha_deg = 0, d = 0, theta_deg = 0, r = 0.3},
      {alpha_deg = -90, d = 0.4, theta_deg = 0, r = 0},
    ]

Further keys. ``[robot]``: ``source`` (text), ``payload_link``, ``floor`` (height of the floor the arm stands on, from
the base frame's origin against gravity [m]), ``springs`` (joint names), ``torque``, ``measured``, ``effects`` (defaults
of a model). ``[[joint]]``: ``name`` (default ``joint_<n>``), ``type`` (default ``revolute``; or ``continuous``,
``prismatic``, ``fixed``), ``parent`` (default: the link before), ``link`` (default ``link_<n>``), ``gamma``, ``b`` (DH
branches), ``velocity``, ``effort``, ``acceleration``, ``jerk``, ``mimic = {leader, multiplier, offset}``,
``gear_ratio``, ``rotor_inertia``, and instead of ``inertia``: ``mass``, ``centre``, ``inertia_at_centre`` (XX XY XZ YY
YZ ZZ). ``[payloads]``: ten numbers by name. ``[[gear_coupling]]``: ``motor``, ``also_turns_with``, ``ratio``. An
unknown key is an error.

One ``[[joint]]`` of a robot table: its placement, limits and inertia.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import RobotError, nearest_match
from ..files import parsed_toml
from .checks import JOINT_KINDS, checked_limits, checked_mass, checked_word, finite_number, finite_numbers, inertia_note
from .files import PathOrBytes, content_of, located, place_of
from .inertia import inertia_from_parameters, parameters_from_centre
from .parts import Defaults, GearCoupling, Joint, Limits, Link, Mimic
from .placement import Placement, RightAngles, Vector3, Z, mdh_placement, origin_placement, radians_from_degrees
from .structure import assembled_robot
from .tree import STANDARD_GRAVITY, Robot

ANGLES = ("alpha", "theta", "gamma")
DH_COLUMNS = ("alpha", "d", "theta", "r", "gamma", "b")
DH_NEEDED = ("alpha", "d", "theta", "r")
ORIGIN_KEYS = ("xyz", "rpy", "rpy_deg", "axis")
LIMIT_KEYS = ("lower", "upper", "velocity", "effort", "acceleration", "jerk")
LIMITS_IN_DEGREES = ("lower", "upper", "velocity", "acceleration", "jerk")
INERTIA_KEYS = ("inertia", "mass", "centre", "inertia_at_centre")
MIMIC_KEYS = ("leader", "multiplier", "offset")
DRIVE_KEYS = ("gear_ratio", "rotor_inertia")
JOINT_KEYS = (
    *("name", "type", "parent", "link", "mimic"),
    *DH_COLUMNS,
    *(f"{angle}_deg" for angle in ANGLES),
    *ORIGIN_KEYS,
    *LIMIT_KEYS,
    *(f"{limit}_deg" for limit in LIMITS_IN_DEGREES),
    *DRIVE_KEYS,
    *INERTIA_KEYS,
)


def joint_from_row(row: Mapping[str, Any], number: int, before: str, notes: list[str]) -> tuple[Joint, Link]:
    """Return joint and child link of the ``number``-th row; ``before`` is the link the row before ends in."""
    name = text_in(row, "name", f"joint {number}", default=f"joint_{number}")
    what = f"joint '{name}'"
    check_keys(row, JOINT_KEYS, what)
    word = checked_word(row.get("type", "revolute"), JOINT_KINDS, f"{what}: type")
    parent = text_in(row, "parent", what, default=before)
    link = Link(text_in(row, "link", what, default=f"link_{number}"), _inertia(row, what))
    placement, axis = _placement(row, word, what)
    if word == "fixed":
        _refuse(row, (*LIMIT_KEYS, *(f"{key}_deg" for key in LIMITS_IN_DEGREES), *DRIVE_KEYS, "mimic"), what, "fixed")
        return Joint(name, "fixed", parent, link.name, placement, axis), link
    limits, limit_notes = _limits(row, name, word)
    notes.extend(limit_notes)
    drive = {key: finite_number(row[key], f"{what}: {key}") for key in DRIVE_KEYS if key in row}
    if drive.get("gear_ratio") == 0 or drive.get("rotor_inertia", 0.0) < 0:
        raise RobotError(f"{what}: gear_ratio must not be 0, rotor_inertia not negative; got {drive}")
    mimic = _mimic(row["mimic"], what) if "mimic" in row else None
    return Joint(name, JOINT_KINDS[word], parent, link.name, placement, axis, limits, mimic, **drive), link


def check_keys(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Refuse the first key that is not allowed, with its nearest match."""
    words = list(allowed)
    for key in table:
        if key not in words:
            raise RobotError(f"{where}: unknown key '{key}'; allowed: {', '.join(words)}{nearest_match(key, words)}")


def text_in(table: Mapping[str, Any], key: str, where: str, *, default: str | None = None) -> str:
    """Return the non-empty text under a key."""
    text = table.get(key, default)
    if text is None:
        raise RobotError(f"{where}: '{key}' is missing; add {key} = \"...\"")
    if not isinstance(text, str) or not text:
        raise RobotError(f"{where}: {key} is {text!r}; a text is expected")
    return text


def _placement(row: Mapping[str, Any], word: str, what: str) -> tuple[Placement, Vector3]:
    """Return placement and axis from the DH row or from xyz, rpy and axis, whichever is there."""
    given_dh = [key for key in row if key.removesuffix("_deg") in DH_COLUMNS]
    given_origin = [key for key in row if key in ORIGIN_KEYS]
    if given_dh and given_origin:
        raise RobotError(f"{what}: mixes DH columns ({given_dh[0]}) and {given_origin[0]}; use one of the two")
    if given_dh:
        return _dh_placement(row, what), Z
    if not given_origin:
        raise RobotError(f"{what}: no placement; give a DH row ({', '.join(DH_NEEDED)}) or xyz, rpy and axis")
    if word != "fixed" and "axis" not in row:
        raise RobotError(f"{what}: 'axis' is missing; a {word} joint placed by xyz needs one, such as axis = [0, 0, 1]")
    x, y, z = finite_numbers(row.get("xyz", (0, 0, 0)), 3, f"{what}: xyz")
    roll, pitch, yaw = _roll_pitch_yaw(row, what)
    axis = finite_numbers(row.get("axis", Z), 3, f"{what}: axis")
    unit = RightAngles(0.0).direction((axis[0], axis[1], axis[2]), what)
    return origin_placement((x, y, z), (roll, pitch, yaw)), unit


def _dh_placement(row: Mapping[str, Any], what: str) -> Placement:
    columns: dict[str, float] = {}
    for column in DH_COLUMNS:
        value = _number(row, column, what, degrees=column in ANGLES)
        if value is not None:
            columns[column] = value
        elif column in DH_NEEDED:
            also = f" (or {column}_deg)" if column in ANGLES else ""
            needed = ", ".join(DH_NEEDED)
            raise RobotError(
                f"{what}: the DH row has no column '{column}'{also}; it needs {needed}, add it (0 if none)"
            )
    return mdh_placement(**columns)


def _number(row: Mapping[str, Any], key: str, what: str, *, degrees: bool) -> float | None:
    """Return a number given as ``key``, or in degrees as ``key_deg``; None if neither is there."""
    in_degrees = f"{key}_deg"
    if key in row and in_degrees in row:
        raise RobotError(f"{what}: both {key} and {in_degrees} are given; keep one")
    if degrees and in_degrees in row:
        return radians_from_degrees(finite_number(row[in_degrees], f"{what}: {in_degrees}"))
    return finite_number(row[key], f"{what}: {key}") if key in row else None


def _roll_pitch_yaw(row: Mapping[str, Any], what: str) -> tuple[float, ...]:
    if "rpy" in row and "rpy_deg" in row:
        raise RobotError(f"{what}: both rpy and rpy_deg are given; keep one")
    if "rpy_deg" in row:
        return tuple(radians_from_degrees(angle) for angle in finite_numbers(row["rpy_deg"], 3, f"{what}: rpy_deg"))
    return finite_numbers(row.get("rpy", (0, 0, 0)), 3, f"{what}: rpy")


def _limits(row: Mapping[str, Any], name: str, word: str) -> tuple[Limits, list[str]]:
    what = f"joint '{name}'"
    if word == "continuous":
        _refuse(row, ("lower", "upper", "lower_deg", "upper_deg"), what, word)
    if word == "prismatic":
        _refuse(row, (f"{key}_deg" for key in LIMITS_IN_DEGREES), what, word)
    found = {key: _number(row, key, f"{what}: limit", degrees=key in LIMITS_IN_DEGREES) for key in LIMIT_KEYS}
    return checked_limits(name, {key: value for key, value in found.items() if value is not None})


def _refuse(row: Mapping[str, Any], keys: Iterable[str], what: str, word: str) -> None:
    for key in keys:
        if key in row:
            raise RobotError(f"{what}: '{key}' makes no sense for a {word} joint; delete it or change the type")


def _mimic(given: object, what: str) -> Mimic:
    if not isinstance(given, dict):
        raise RobotError(f'{what}: mimic is {given!r}; allowed is {{leader = "...", multiplier = 1, offset = 0}}')
    check_keys(given, MIMIC_KEYS, f"{what}: mimic")
    multiplier = finite_number(given.get("multiplier", 1.0), f"{what}: mimic multiplier")
    offset = finite_number(given.get("offset", 0.0), f"{what}: mimic offset")
    return Mimic(text_in(given, "leader", f"{what}: mimic"), multiplier, offset)


def _inertia(row: Mapping[str, Any], what: str) -> tuple[float, ...] | None:
    """Return the ten parameters, given directly or by mass, centre and inertia about the centre."""
    given = [key for key in INERTIA_KEYS if key in row]
    if not given:
        return None
    if given == ["inertia"]:
        ten = finite_numbers(row["inertia"], 10, f"{what}: inertia")
        checked_mass(ten[9], f"{what}: mass")
        return ten
    missing = [key for key in INERTIA_KEYS[1:] if key not in row]
    if "inertia" in row or missing:
        raise RobotError(
            f"{what}: inertia is given by {', '.join(given)}; "
            "allowed: inertia alone, or mass, centre and inertia_at_centre"
        )
    mass = checked_mass(finite_number(row["mass"], f"{what}: mass"), f"{what}: mass")
    centre = np.array(finite_numbers(row["centre"], 3, f"{what}: centre"))
    six = finite_numbers(row["inertia_at_centre"], 6, f"{what}: inertia_at_centre")
    at_centre = inertia_from_parameters(np.array([*six, 0.0, 0.0, 0.0, mass]))[0]
    return tuple(float(value) for value in parameters_from_centre(mass, centre, at_centre))


LARGEST_TABLE = 1_000_000

TOP_KEYS = ("robot", "joint", "values", "payloads", "gear_coupling")
ROBOT_KEYS = ("name", "gravity", "source", "payload_link", "floor", "springs", "torque", "measured", "effects")
COUPLING_KEYS = ("motor", "also_turns_with", "ratio")
TORQUE_KINDS = ("motor_current", "motor_torque", "joint_torque", "motor_pwm", "wrench")
MEASURED_KINDS = ("motor", "joint", "both", "difference")

# Families of parameters a table can know beforehand; the number of the moving joint follows. k: compliance.
VALUE_FAMILIES = (
    *("Ia", "Fvm", "Fcm", "offm", "Fvl", "Fcl", "offl"),
    *("Ss", "Sc", "Iac", "Fvc", "Fcc", "k", "drive_gain"),
)


def read_table(path_or_bytes: PathOrBytes) -> Robot:
    """Return the robot that a TOML table describes; the module's text explains the format."""
    return robot_from_table(path_or_bytes, place_of(path_or_bytes))


def robot_from_table(path_or_bytes: PathOrBytes, where: str) -> Robot:
    """Return the robot of a TOML table, calling its source ``where`` in messages."""
    with located(where):
        document = _document(content_of(path_or_bytes, LARGEST_TABLE))
        check_keys(document, TOP_KEYS, "the file")
        return _robot(document, where)


def _document(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RobotError(f"not a text file in utf-8 ({error.reason}); save the table as utf-8") from error
    return parsed_toml(text, RobotError)


def _robot(document: Mapping[str, Any], where: str) -> Robot:
    head = _table(document, "robot")
    check_keys(head, ROBOT_KEYS, "[robot]")
    notes: list[str] = []
    joints, links = _joints_and_links(_tables(document, "joint"), notes)
    payloads = _payloads(_table(document, "payloads"), notes)
    robot = assembled_robot(
        text_in(head, "name", "[robot]"),
        links,
        joints,
        notes,
        gravity=finite_numbers(head.get("gravity", STANDARD_GRAVITY), 3, "[robot]: gravity"),
        payloads=MappingProxyType(payloads),
        payload_link=text_in(head, "payload_link", "[robot]") if "payload_link" in head else None,
        floor=finite_number(head["floor"], "[robot]: floor") if "floor" in head else None,
        springs=_words(head, "springs"),
        gear_couplings=tuple(_coupling(row) for row in _tables(document, "gear_coupling")),
        defaults=_defaults(head),
        source=text_in(head, "source", "[robot]") if "source" in head else where,
        values=MappingProxyType(_values(_table(document, "values"), sum(joint.moves for joint in joints))),
    )
    _check_references(robot)
    return robot


def _joints_and_links(rows: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[list[Joint], list[Link]]:
    """Return joints and links in file order; the parent of the first joint is the base."""
    if not rows:
        raise RobotError("there is no joint; add a [[joint]] for each joint of the arm")
    joints, links, before = [], [], "base"
    for number, row in enumerate(rows, start=1):
        joint, link = joint_from_row(row, number, before, notes)
        joints.append(joint)
        links.append(link)
        before = joint.child
    if joints[0].parent not in {link.name for link in links}:
        links.insert(0, Link(joints[0].parent))
    return joints, links


def _defaults(head: Mapping[str, Any]) -> Defaults:
    usual = Defaults()
    return Defaults(
        checked_word(head.get("torque", usual.torque), TORQUE_KINDS, "[robot]: torque"),
        checked_word(head.get("measured", usual.measured), MEASURED_KINDS, "[robot]: measured"),
        _words(head, "effects") or usual.effects,
    )


def _coupling(row: Mapping[str, Any]) -> GearCoupling:
    check_keys(row, COUPLING_KEYS, "[[gear_coupling]]")
    motor, other = (text_in(row, key, "[[gear_coupling]]") for key in ("motor", "also_turns_with"))
    return GearCoupling(motor, other, finite_number(row.get("ratio", 1.0), "[[gear_coupling]]: ratio"))


def _payloads(section: Mapping[str, Any], notes: list[str]) -> dict[str, tuple[float, ...]]:
    payloads = {name: finite_numbers(given, 10, f"payload '{name}'") for name, given in section.items()}
    for name, inertia in payloads.items():
        checked_mass(inertia[9], f"payload '{name}': mass")
        note = inertia_note(f"payload '{name}'", inertia)
        notes.extend([note] if note else [])
    return payloads


def _values(section: Mapping[str, Any], moving: int) -> dict[str, float]:
    """Return the values by parameter name; a list under a family's name gives one to each moving joint."""
    values: dict[str, float] = {}
    for key, given in section.items():
        if isinstance(given, list):
            checked_word(key, VALUE_FAMILIES, "[values]: name of a list")
            numbers = finite_numbers(given, moving, f"[values]: {key}")
            new = {f"{key}{number}": value for number, value in enumerate(numbers, start=1)}
        else:
            new = {_checked_parameter(key, moving): finite_number(given, f"[values]: {key}")}
        twice = sorted(values.keys() & new.keys())
        if twice:
            raise RobotError(f"[values]: {twice[0]} is given twice, in a list and by itself; keep one")
        values |= new
    return values


def _checked_parameter(name: str, moving: int) -> str:
    match = re.fullmatch(r"([A-Za-z_]+)([1-9][0-9]{0,3})", name)
    family, number = (match[1], int(match[2])) if match else (name, 0)
    if family not in VALUE_FAMILIES or not match:
        families = ", ".join(VALUE_FAMILIES)
        raise RobotError(
            f"[values]: unknown parameter '{name}'; allowed are {families}, each followed by the number of a moving "
            f"joint{nearest_match(family, VALUE_FAMILIES)}"
        )
    if family != "k" and number > moving:
        raise RobotError(f"[values]: {name} is of moving joint {number}; the arm has joints 1 to {moving}")
    return name


def _check_references(robot: Robot) -> None:
    """Refuse springs, couplings and payload links that name nothing."""
    if robot.payload_link is not None:
        robot.frame(robot.payload_link)
    if robot.floor is not None and robot.up is None:
        raise RobotError(f"[robot]: floor is {robot.floor:g}, but gravity is zero: no direction is up; leave floor out")
    actuated = [body.joint.name for body in robot.actuated]
    for coupling in robot.gear_couplings:
        checked_word(coupling.motor, actuated, "[[gear_coupling]]: motor")
        checked_word(coupling.also_turns_with, actuated, "[[gear_coupling]]: also_turns_with")
        if coupling.motor == coupling.also_turns_with:
            raise RobotError(f"[[gear_coupling]]: motor '{coupling.motor}' is coupled to its own joint; name another")
    for name in robot.springs:
        checked_word(name, actuated, "[robot]: springs")


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise RobotError(f"'{key}' is {table!r}; a table [{key}] is expected")
    return table


def _tables(document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    tables = document.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RobotError(f"'{key}' is no list of tables; write [[{key}]], with double brackets, for each")
    return tables


def _words(head: Mapping[str, Any], key: str) -> tuple[str, ...]:
    words = head.get(key, [])
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise RobotError(f"[robot]: {key} is {words!r}; a list of names is expected")
    if len(set(words)) < len(words):
        raise RobotError(f"[robot]: {key} names something twice: {', '.join(words)}; keep one of each")
    return tuple(words)
