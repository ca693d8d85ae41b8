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
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..errors import RobotError, nearest_match
from ..files import parsed_toml
from .checks import checked_mass, checked_word, finite_number, finite_numbers, inertia_note
from .files import PathOrBytes, content_of, located, place_of
from .parts import Defaults, GearCoupling, Joint, Link
from .structure import assembled_robot
from .table_joint import check_keys, joint_from_row, text_in
from .tree import STANDARD_GRAVITY, Robot

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
