"""One ``[[joint]]`` of a robot table: its placement, limits and inertia."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import RobotError, nearest_match
from .angles import RightAngles, radians_from_degrees
from .checks import JOINT_KINDS, checked_limits, checked_mass, checked_word, finite_number, finite_numbers
from .inertia import inertia_from_parameters, parameters_from_centre
from .parts import Joint, Limits, Link, Mimic
from .placement import Placement, Vector3, Z, mdh_placement, origin_placement

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
