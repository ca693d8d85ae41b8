"""Robots from tables written by hand: modified or standard DH rows (or URDF-like placements) in a TOML file.

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

With ``convention = "standard"`` in ``[robot]``, DH rows are standard (distal) ones with columns ``a``, ``alpha``, ``d``
and ``theta``: ``Rot(z, theta) Trans(z, d) Trans(x, a) Rot(x, alpha)``. The link's frame, in which inertias are given
and to which the next row refers, is then the one at the far end of the link. The moving link has its frame at the
joint: where they differ it is called ``<link>_joint``, and ``<link>`` is a fixed link without mass at the far end.

Further keys. ``[robot]``: ``source`` (text), ``inertia_source`` (``cad``, ``vendor``, ``identified`` or ``unknown``:
where inertias come from), ``payload_link``, ``floor`` (height of the floor the arm stands on, from
the base frame's origin against gravity [m]), ``springs`` (joint names), ``torque``, ``measured``, ``effects`` (defaults
of a model). ``[[joint]]``: ``name`` (default ``joint_<n>``), ``type`` (default ``revolute``; or ``continuous``,
``prismatic``, ``fixed``), ``parent`` (default: the link before), ``link`` (default ``link_<n>``), ``gamma``, ``b`` (DH
branches), ``velocity``, ``effort``, ``acceleration``, ``jerk``, ``mimic = {leader, multiplier, offset}``,
``gear_ratio``, ``rotor_inertia``, and instead of ``inertia``: ``mass``, ``centre``, ``inertia_at_centre`` (XX XY XZ YY
YZ ZZ). ``[payloads]``: ten numbers by name. ``[[gear_coupling]]``: ``motor``, ``also_turns_with``, ``ratio``.
``[[balancer]]``: see :mod:`.balancers`. ``[friction]``: ``dahl`` (six lengths [rad or m]), ``stribeck`` (four
velocities [rad/s or m/s]), ``temperature`` [deg C], ``ripple`` (up to four orders), ``ripple_of`` (``motor`` or
``joint``). An unknown key is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..configuration import ROOT, Section, checked, choice, located, names, number, numbers, record_from, text, vector
from ..effects import FrictionConstants, value_symbols
from ..errors import RobotError, nearest_match
from ..files import decoded, parsed_toml
from .balancers import read_balancers
from .checks import JOINT_KINDS, assembled_robot, checked_limits
from .drives import FRICTION_KINDS, values_on_leaders
from .files import PathOrBytes, content_of, place_of
from .inertia import checked_mass, inertia_from_parameters, inertia_note, moved_parameters, parameters_from_centre
from .parts import Defaults, GearCoupling, Joint, Limits, Link, Mimic
from .placement import (
    Placement,
    RightAngles,
    Vector3,
    Z,
    mdh_placement,
    origin_placement,
    radians_from_degrees,
    standard_dh_placements,
    transform_from_placement,
)
from .tree import INERTIA_SOURCES, STANDARD_GRAVITY, Robot

NUMBER = number()
UNIQUE_NAMES = names(twice=False)
RECORD_KINDS = {
    **dict.fromkeys(("leader", "motor", "also_turns_with"), text),
    **dict.fromkeys(("multiplier", "offset", "ratio"), NUMBER),
}
"""Kinds of the fields of a mimic and of a gear coupling."""
ORIGIN: Vector3 = (0.0, 0.0, 0.0)
ANGLES = ("alpha", "theta", "gamma")
DH_COLUMNS = ("alpha", "d", "theta", "r", "gamma", "b")
DH_NEEDED = ("alpha", "d", "theta", "r")
STANDARD_COLUMNS = ("a", "alpha", "d", "theta")
CONVENTIONS = {"modified": DH_COLUMNS, "standard": STANDARD_COLUMNS}
"""Columns of a DH row by the convention."""
ORIGIN_KEYS = ("xyz", "rpy", "rpy_deg", "axis")
LIMIT_KEYS = ("lower", "upper", "velocity", "effort", "acceleration", "jerk")
LIMITS_IN_DEGREES = ("lower", "upper", "velocity", "acceleration", "jerk")
INERTIA_KEYS = ("inertia", "mass", "centre", "inertia_at_centre")
DRIVE_KEYS = ("gear_ratio", "rotor_inertia")
JOINT_KEYS = (
    *("name", "type", "parent", "link", "mimic"),
    *DH_COLUMNS,
    "a",
    *(f"{angle}_deg" for angle in ANGLES),
    *ORIGIN_KEYS,
    *LIMIT_KEYS,
    *(f"{limit}_deg" for limit in LIMITS_IN_DEGREES),
    *DRIVE_KEYS,
    *INERTIA_KEYS,
)


def joint_from_row(
    row: Section, place: int, before: str, notes: list[str], convention: str = "modified"
) -> tuple[list[Joint], list[Link]]:
    """Return joints and child links of the ``place``-th row, the last link being the one that the row names.

    There are two of each for a standard DH row whose link frame is not at the joint; else one.

    Args:
        row: The row.
        place: Its number, from 1.
        before: The link that the row before ends in.
        notes: Receives what is odd about the limits.
        convention: Of DH rows: ``modified`` or ``standard``.
    """
    name = row.get("name", text, f"joint_{place}")
    row = row.renamed(f"joint '{name}'")
    row.check_keys(JOINT_KEYS)
    kind = row.get("type", choice(*JOINT_KINDS), "revolute")
    parent = row.get("parent", text, before)
    link = Link(row.get("link", text, f"link_{place}"), _inertia(row))
    placement, axis, end = _placement(row, kind, convention)
    if kind == "fixed":
        _refuse(row, (*LIMIT_KEYS, *(f"{key}_deg" for key in LIMITS_IN_DEGREES), *DRIVE_KEYS, "mimic"), kind)
        return [Joint(name, "fixed", parent, link.name, placement + end, axis)], [link]
    limits, limit_notes = _limits(row, name, kind)
    notes.extend(limit_notes)
    drive = {key: row.get(key, NUMBER) for key in DRIVE_KEYS if key in row}
    if drive.get("gear_ratio") == 0 or drive.get("rotor_inertia", 0.0) < 0:
        raise row.failure(f"gear_ratio must not be 0, rotor_inertia not negative; got {drive}")
    mimic = record_from(Mimic, row.section("mimic"), RECORD_KINDS) if "mimic" in row else None
    joint = Joint(name, JOINT_KINDS[kind], parent, link.name, placement, axis, limits, mimic, **drive)
    return _split(joint, link, end) if any(motion.value for motion in end) else ([joint], [link])


def _split(joint: Joint, link: Link, end: Placement) -> tuple[list[Joint], list[Link]]:
    """Return the moving link at the joint, which carries the inertia, and the fixed one at the link's far end."""
    inertia = link.inertia
    if inertia is not None:
        moved = moved_parameters(np.array(inertia), *transform_from_placement(end))
        inertia = tuple(float(value) for value in moved)
    moving = Link(f"{link.name}_joint", inertia)
    fixed = Joint(f"{joint.name}_end", "fixed", moving.name, link.name, end)
    return [replace(joint, child=moving.name), fixed], [moving, Link(link.name)]


def _placement(row: Section, kind: str, convention: str) -> tuple[Placement, Vector3, Placement]:
    """Return placement and axis of the joint, and the link's frame in the joint's, from whatever the row gives."""
    columns = {column for names in CONVENTIONS.values() for column in names}
    given_dh = [key for key in row.table if key.removesuffix("_deg") in columns]
    given_origin = [key for key in row.table if key in ORIGIN_KEYS]
    if given_dh and given_origin:
        raise row.failure(f"mixes DH columns ({given_dh[0]}) and {given_origin[0]}; use one of the two")
    if given_dh:
        dh = _dh_columns(row, given_dh, convention)
        placement, end = standard_dh_placements(**dh) if convention == "standard" else (mdh_placement(**dh), ())
        return placement, Z, end
    if not given_origin:
        needed = ", ".join(_needed(convention))
        raise row.failure(f"no placement; give a DH row ({needed}) or xyz, rpy and axis")
    if kind != "fixed" and "axis" not in row:
        raise row.failure(f"'axis' is missing; a {kind} joint placed by xyz needs one, such as axis = [0, 0, 1]")
    xyz = row.get("xyz", vector, ORIGIN)
    rpy = row.angles("rpy", vector, radians_from_degrees) or ORIGIN
    return origin_placement(xyz, rpy), RightAngles(0.0).direction(row.get("axis", vector, Z), row.where), ()


def _needed(convention: str) -> tuple[str, ...]:
    return DH_NEEDED if convention == "modified" else STANDARD_COLUMNS


def _dh_columns(row: Section, given: Sequence[str], convention: str) -> dict[str, float]:
    needed = ", ".join(_needed(convention))
    foreign = [key for key in given if key.removesuffix("_deg") not in CONVENTIONS[convention]]
    if foreign:
        other = next(name for name in CONVENTIONS if name != convention)
        raise row.failure(
            f"column '{foreign[0]}' belongs to {other} DH, the file's convention is '{convention}' ({needed}); rename "
            f'it, or set convention = "{other}" in [robot]'
        )
    columns: dict[str, float] = {}
    for column in CONVENTIONS[convention]:
        value = _number(row, column, degrees=column in ANGLES)
        if value is not None:
            columns[column] = value
        elif column in _needed(convention):
            also = f" (or {column}_deg)" if column in ANGLES else ""
            raise row.failure(f"the DH row has no column '{column}'{also}; it needs {needed}, add it (0 if none)")
    return columns


def _number(row: Section, key: str, *, degrees: bool) -> float | None:
    """Return a number given as ``key``, or in degrees as ``key_deg``; None if neither is there."""
    return row.angles(key, NUMBER, radians_from_degrees) if degrees else row.optional(key, NUMBER)


def _limits(row: Section, name: str, kind: str) -> tuple[Limits, list[str]]:
    if kind == "continuous":
        _refuse(row, ("lower", "upper", "lower_deg", "upper_deg"), kind)
    if kind == "prismatic":
        _refuse(row, (f"{key}_deg" for key in LIMITS_IN_DEGREES), kind)
    found = {key: _number(row, key, degrees=key in LIMITS_IN_DEGREES) for key in LIMIT_KEYS}
    return checked_limits(name, {key: value for key, value in found.items() if value is not None})


def _refuse(row: Section, keys: Iterable[str], kind: str) -> None:
    for key in keys:
        if key in row:
            raise row.failure(f"'{key}' makes no sense for a {kind} joint; delete it or change the type")


def _inertia(row: Section) -> tuple[float, ...] | None:
    """Return the ten parameters, given directly or by mass, centre and inertia about the centre."""
    given = [key for key in INERTIA_KEYS if key in row]
    if not given:
        return None
    if given == ["inertia"]:
        ten = row.get("inertia", numbers(10))
        checked_mass(ten[9], f"{row.where}: mass")
        return ten
    missing = [key for key in INERTIA_KEYS[1:] if key not in row]
    if "inertia" in row or missing:
        raise row.failure(
            f"inertia is given by {', '.join(given)}; allowed: inertia alone, or mass, centre and inertia_at_centre"
        )
    mass = checked_mass(row.get("mass", NUMBER), f"{row.where}: mass")
    six = row.get("inertia_at_centre", numbers(6))
    at_centre = inertia_from_parameters(np.array([*six, 0.0, 0.0, 0.0, mass]))[0]
    return tuple(float(value) for value in parameters_from_centre(mass, np.array(row.get("centre", vector)), at_centre))


LARGEST_TABLE = 1_000_000

TOP_KEYS = ("robot", "joint", "values", "payloads", "gear_coupling", "balancer", "friction")
ROBOT_KEYS = (
    *("name", "convention", "gravity", "source", "inertia_source", "payload_link", "floor", "springs"),
    *("torque", "measured", "effects"),
)
TORQUE_KINDS = ("motor_current", "motor_torque", "joint_torque", "motor_pwm", "wrench")
MEASURED_KINDS = ("motor", "joint", "both", "difference")


def _value_families() -> tuple[str, ...]:
    """Return the symbols of which ``[values]`` may hold; the number of the moving joint follows. k: compliance."""
    return (*value_symbols(), "k", "drive_gain")


def read_table(path_or_bytes: PathOrBytes) -> Robot:
    """Return the robot that a TOML table describes; the module's text explains the format.

    Example:
        >>> robot = steelyard.read_table(b'''
        ... robot = {name = "one_joint"}
        ... joint = [{alpha = 0, d = 0, theta = 0, r = 0.3}]
        ... ''')
        >>> [joint.name for joint in robot.joints]
        ['joint_1']
    """
    return robot_from_table(path_or_bytes, place_of(path_or_bytes))


def robot_from_table(path_or_bytes: PathOrBytes, where: str) -> Robot:
    """Return the robot of a TOML table, calling its source ``where`` in messages."""
    with located(where, RobotError):
        content = decoded(content_of(path_or_bytes, LARGEST_TABLE), RobotError)
        file = Section(parsed_toml(content, RobotError), ROOT, RobotError)
        file.check_keys(TOP_KEYS)
        return _robot(file, where)


def _robot(file: Section, where: str) -> Robot:
    head = file.section("robot")
    head.check_keys(ROBOT_KEYS)
    notes: list[str] = []
    convention = head.get("convention", choice(*CONVENTIONS), "modified")
    joints, links = _joints_and_links(file.sections("joint"), notes, convention)
    payloads = _payloads(file.section("payloads"), notes)
    balancers = read_balancers(file.sections("balancer"), joints, notes)
    robot = assembled_robot(
        head.get("name", text),
        links,
        joints,
        notes,
        gravity=head.get("gravity", vector, STANDARD_GRAVITY),
        payloads=MappingProxyType(payloads),
        payload_link=head.optional("payload_link", text) or _far_end(links),
        floor=head.optional("floor", NUMBER),
        springs=head.get("springs", UNIQUE_NAMES, ()),
        gear_couplings=tuple(record_from(GearCoupling, row, RECORD_KINDS) for row in file.sections("gear_coupling")),
        balancers=tuple(balancers),
        friction=record_from(FrictionConstants, file.section("friction"), FRICTION_KINDS),
        defaults=_defaults(head),
        source=head.get("source", text, where),
        inertia_source=head.get("inertia_source", choice(*INERTIA_SOURCES), "unknown"),
        values=MappingProxyType(_values(file.section("values"), sum(joint.moves for joint in joints))),
    )
    _check_references(robot, file)
    number_of = {body.joint.name: body.number for body in robot.bodies}
    scales = {f"Sb{number_of[one.joint]}": scale for one, scale in balancers.items()}
    return replace(robot, values=MappingProxyType(values_on_leaders(robot, robot.values) | scales))


def _joints_and_links(rows: Sequence[Section], notes: list[str], convention: str) -> tuple[list[Joint], list[Link]]:
    """Return joints and links in file order; the parent of the first joint is the base."""
    if not rows:
        raise RobotError("there is no joint; add a [[joint]] for each joint of the arm")
    joints, links, before = [], [], "base"
    for place, row in enumerate(rows, start=1):
        new_joints, new_links = joint_from_row(row, place, before, notes, convention)
        joints.extend(new_joints)
        links.extend(new_links)
        before = new_links[-1].name
    if joints[0].parent not in {link.name for link in links}:
        links.insert(0, Link(joints[0].parent))
    return joints, links


def _far_end(links: Sequence[Link]) -> str | None:
    """Return the last link's name if it is the far end of a standard DH link: payloads are given in that frame."""
    names = [link.name for link in links]
    return names[-1] if len(names) > 1 and names[-2] == f"{names[-1]}_joint" else None


def _defaults(head: Section) -> Defaults:
    usual = Defaults()
    springs = ("spring",) if head.get("springs", UNIQUE_NAMES, ()) else ()
    return Defaults(
        head.get("torque", choice(*TORQUE_KINDS), usual.torque),
        head.get("measured", choice(*MEASURED_KINDS), usual.measured),
        head.get("effects", UNIQUE_NAMES, ()) or (*usual.effects, *springs),
    )


def _payloads(section: Section, notes: list[str]) -> dict[str, tuple[float, ...]]:
    payloads = {name: section.get(name, numbers(10)) for name in section.table}
    for name, inertia in payloads.items():
        checked_mass(inertia[9], f"payload '{name}': mass")
        note = inertia_note(f"payload '{name}'", inertia)
        notes.extend([note] if note else [])
    return payloads


def _values(section: Section, moving: int) -> dict[str, float]:
    """Return the values by parameter name; a list under a family's name gives one to each moving joint."""
    values: dict[str, float] = {}
    for key, given in section.table.items():
        if isinstance(given, list):
            checked(key, choice(*_value_families()), "[values]: name of a list", RobotError)
            new = {f"{key}{place}": value for place, value in enumerate(section.get(key, numbers(moving)), start=1)}
        else:
            new = {_checked_parameter(key, moving): section.get(key, NUMBER)}
        twice = sorted(values.keys() & new.keys())
        if twice:
            raise section.failure(f"{twice[0]} is given twice, in a list and by itself; keep one")
        values |= new
    return values


def _checked_parameter(name: str, moving: int) -> str:
    match = re.fullmatch(r"([A-Za-z_0-9]*[A-Za-z_])([1-9][0-9]{0,3})", name)
    family, joint = (match[1], int(match[2])) if match else (name, 0)
    families = _value_families()
    if family not in families or not match:
        raise RobotError(
            f"[values]: unknown parameter '{name}'; allowed are {', '.join(families)}, each followed by the number of "
            f"a moving joint{nearest_match(family, families)}"
        )
    if family != "k" and joint > moving:
        raise RobotError(f"[values]: {name} is of moving joint {joint}; the arm has joints 1 to {moving}")
    return name


def _check_references(robot: Robot, file: Section) -> None:
    """Refuse springs, couplings and payload links that name nothing."""
    if robot.payload_link is not None:
        robot.frame(robot.payload_link)
    if robot.floor is not None and robot.up is None:
        raise RobotError(f"[robot]: floor is {robot.floor:g}, but gravity is zero: no direction is up; leave floor out")
    actuated = choice(*robot.joint_names)
    for row in file.sections("gear_coupling"):
        motor, other = row.get("motor", actuated), row.get("also_turns_with", actuated)
        if motor == other:
            raise row.failure(f"motor '{motor}' is coupled to its own joint; name another")
    for name in robot.springs:
        checked(name, actuated, "[robot]: springs", RobotError)
