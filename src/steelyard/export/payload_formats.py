"""Payloads as the controllers of robots take them: Universal Robots, Franka, KUKA, and ROS 2 parameters.

What each format means, and where its maker says so:

- Universal Robots, ``set_target_payload(m, cog, inertia)``: mass [kg], centre of gravity from the tool mount [m], and
  ``[Ixx, Iyy, Izz, Ixy, Ixz, Iyz]`` [kg m^2] with origin in the centre of gravity and axes of the tool flange; a zero
  matrix is used if the inertia is left out; components of at most 133 kg m^2 (script manual, ``set_target_payload``).
- Franka, ``franka_msgs/srv/SetLoad`` and ``franka::Robot::setLoad``: mass [kg], centre of mass from the flange [m],
  inertia [kg m^2] as a column-major 3 x 3 matrix; ``franka::RobotState::I_load`` is with respect to the centre of mass,
  and libfranka's ``combineInertiaTensor`` moves it to the flange by Steiner's theorem. ``endeffector-config.json`` of
  the end-effector settings: ``mass``, ``centerOfMass``, column-major ``inertia`` and ``transformation`` (flange to end
  effector) (Franka, end effector commissioning).
- KUKA, ``LOAD_DATA``: mass M [kg], centre of mass X, Y, Z in the flange frame [mm], orientation A, B, C of the
  principal axes of inertia [deg] (about Z, then the new Y, then the new X), moments JX, JY, JZ about these axes
  [kg m^2], origin in the centre of mass (KUKA, load centre of gravity and mass moments of inertia). KRL's REAL has 32
  bits.
- ROS 2: a parameter file; no standard, the names are those of ``geometry_msgs/Inertia`` written out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..errors import ExportError, nearest_match
from ..identification import PayloadBody
from ..model.terms.payload import payload_link
from ..robot import Robot, is_consistent, parameters_from_centre, pseudo_inertia
from ..text import for_terminal
from .identified import ExportedFile
from .payload_frames import carrier_transform, locked_joint_notes, payload_frame

LARGEST_UR_INERTIA = 133.0
"""Largest component of the inertia that a UR controller takes [kg m^2]."""

_SAME_MOMENT = 1e-9
"""Principal moments that differ by less, relative to the largest, are one: any axes in their plane are principal."""


@dataclass(frozen=True)
class _Load:
    """What a writer needs: numbers in the frame of the controller, and lines for the file's head."""

    mass: float
    centre: np.ndarray  # (3,) [m]
    inertia: np.ndarray | None  # (3, 3) about the centre [kg m^2]
    body: PayloadBody
    frame: str
    head: tuple[str, ...]
    tool: int


@dataclass(frozen=True)
class PayloadFormat:
    """A format of payloads.

    Attributes:
        name: Its name on the command line.
        summary: A few words for tables and messages.
        file: Name of the file; ``{robot}`` is replaced by that of the robot.
        frames: Names of the link that is the controller's flange in robot files, the likeliest first; a prefix such as
            ``left_`` may stand before them.
        needs_inertia: Whether the controller needs the inertia.
        write: Writes the file.
    """

    name: str
    summary: str
    file: str
    frames: tuple[str, ...]
    needs_inertia: bool
    write: Callable[[_Load], str]


def export_payload(
    body: PayloadBody,
    robot: Robot,
    form: str,
    *,
    frame: str | None = None,
    inertia: bool = True,
    tool: int = 1,
    run: str = "",
    cautions: Sequence[str] = (),
) -> ExportedFile:
    """Return a payload as a file for a controller.

    Args:
        body: The payload, in the frame of the link that carries it (``Robot.payload_link``, or the last moving link).
        robot: The arm, with the joints locked that were held (``PayloadFound.robot``).
        form: Name of the format, one of ``PAYLOAD_FORMATS``.
        frame: Link in whose frame the numbers are written: the controller's flange. None: the link that has a name the
            controller's flange has in robot files; if there is none, the link that carries the payload.
        inertia: Whether the inertia is written; False where it is too uncertain and the controller can do without.
        tool: Number of the tool, for KUKA.
        run: Identifier of the run, for the head of the file.
        cautions: What speaks against the payload, for the head of the file.

    Raises:
        ExportError: If the format is unknown, the link does not carry the payload, mass or centre are not known, no
            body can have these values, or the inertia is not known and the controller needs it.
    """
    known = PAYLOAD_FORMATS.get(form)
    if known is None:
        allowed = ", ".join(PAYLOAD_FORMATS)
        raise ExportError(f"payload format '{form}'; allowed: {allowed}{nearest_match(form, PAYLOAD_FORMATS)}")
    carrier = payload_link(robot)
    chosen, frame_note = payload_frame(robot, carrier, known.frames, frame)
    moved = body.in_frame(*carrier_transform(robot, carrier, chosen))
    centre = _checked_centre(moved)
    matrix, notes = _checked_inertia(moved, centre, known, wanted=inertia)
    notes = [*frame_note, *locked_joint_notes(robot, chosen), *notes, *_limits(known, matrix, tool), _ADDED]
    head = (f"Payload of robot '{robot.name}', identified by Steelyard{f' (run {run})' if run else ''}.",)
    head += (*cautions, f"In the frame of link '{chosen}'. {_sigmas(moved, matrix is not None)}", *notes)
    lines = tuple(for_terminal(line) for line in head)
    load = _Load(moved.mass[0], centre, matrix, moved, chosen, lines, tool)
    name = known.file.format(robot=re.sub(r"[^A-Za-z0-9._-]", "_", robot.name).strip(".") or "robot")
    return ExportedFile(name, known.write(load).encode("utf-8"), tuple(notes))


_ADDED = (
    "The payload is what the loaded recordings carry beyond the arm as it was identified: a tool that was mounted in "
    "both is not part of it."
)


def _checked_centre(body: PayloadBody) -> np.ndarray:
    mass, sigma = body.mass
    if not mass > 0:
        raise ExportError(f"the payload's mass is {mass:.3g} +- {sigma:.2g} kg: no body; check the recordings")
    if body.centre is None or not np.isfinite(body.centre).all():
        raise ExportError(
            "the payload's centre of mass is not known in all directions; record motion in which gravity pulls on it "
            "from several sides"
        )
    return body.centre


def _checked_inertia(
    body: PayloadBody, centre: np.ndarray, form: PayloadFormat, *, wanted: bool
) -> tuple[np.ndarray | None, list[str]]:
    """Return the inertia about the centre (3, 3), None if it is left out, with a note."""
    without = f", or write it without inertia (formats {_WITHOUT_INERTIA})"
    known = body.inertia_at_centre is not None and bool(np.isfinite(body.inertia_at_centre).all())
    if not (wanted and known):
        reason = "is not known" if wanted else "is left out, as chosen"
        if form.needs_inertia:
            raise ExportError(
                f"the payload's inertia {reason}, and format '{form.name}' needs it; record faster motion of the last "
                f"joints{without}"
            )
        return None, [f"The inertia {reason}: only mass and centre are written."]
    assert body.inertia_at_centre is not None
    xx, xy, xz, yy, yz, zz = body.inertia_at_centre
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    parameters = parameters_from_centre(body.mass[0], centre, matrix)
    if not is_consistent(parameters):
        about_centre = pseudo_inertia(parameters_from_centre(body.mass[0], np.zeros(3), matrix))
        smallest = np.linalg.eigvalsh(about_centre[:3, :3])[0]
        raise ExportError(
            f"no body can have the payload's inertia (smallest second moment about its centre {smallest:.3g} kg m^2, "
            f"a body has none below 0); record faster motion of the last joints{without}"
        )
    return matrix, []


def _limits(form: PayloadFormat, inertia: np.ndarray | None, tool: int) -> list[str]:
    if form.name == "ur" and inertia is not None and np.abs(inertia).max() > LARGEST_UR_INERTIA:
        return [f"The controller takes no inertia above {LARGEST_UR_INERTIA:g} kg m^2; this one has more."]
    if form.name == "kuka" and tool < 1:
        raise ExportError(f"tool number {tool}; allowed are whole numbers from 1 on")
    if form.name == "franka":
        return ["SetLoad is the load beyond the end effector that is configured in Desk; call it while the arm stands."]
    if form.name == "franka_desk":
        return [
            "The transformation is the identity: give the tool centre point in the end-effector settings. An archive "
            "for newer versions also needs id, name and color."
        ]
    return []


def _sigmas(body: PayloadBody, with_inertia: bool) -> str:
    assert body.centre_sigma is not None
    shown = f"One sigma: mass {body.mass[1]:.2g} kg, centre {_plain(1e3 * body.centre_sigma)} mm"
    if with_inertia and body.inertia_at_centre_sigma is not None:
        shown += f", inertia XX XY XZ YY YZ ZZ {_plain(body.inertia_at_centre_sigma)} kg m^2"
    return f"{shown}."


def _plain(values: Sequence[float] | np.ndarray) -> str:
    return " ".join(f"{value:.2g}" for value in values)


def number_text(value: float, kind: type[np.floating] = np.float64) -> str:
    """Return a number with nine digits, a decimal point and no exponent; the shortest text if it has 32 bits only."""
    if kind is np.float32:
        return np.format_float_positional(np.float32(value) + np.float32(0), unique=True, trim="0")
    return np.format_float_positional(float(f"{value:.9g}") + 0.0, unique=True, trim="0")


def _numbers(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(number_text(float(value)) for value in values)


def _commented(lines: Sequence[str], mark: str) -> str:
    return "".join(f"{mark} {line}\n" for line in lines)


def _ur_script(load: _Load) -> str:
    arguments = f"{number_text(load.mass)}, [{_numbers(load.centre)}]"
    if load.inertia is not None:
        order = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
        arguments += f", [{_numbers([load.inertia[place] for place in order])}]"
    return f"{_commented(load.head, '#')}set_target_payload({arguments})\n"


def _column_major(load: _Load) -> np.ndarray:
    assert load.inertia is not None
    return load.inertia.ravel(order="F")


def _franka_call(load: _Load) -> str:
    mass, centre, inertia = number_text(load.mass), _numbers(load.centre), _numbers(_column_major(load))
    return (
        f"#!/bin/sh\n{_commented(load.head, '#')}"
        f"# libfranka: robot.setLoad({mass}, {{{{{centre}}}}}, {{{{{inertia}}}}});\n"
        "# The service's name depends on the version: ros2 service list | grep set_load\n"
        'ros2 service call "${1:-/service_server/set_load}" franka_msgs/srv/SetLoad '
        f"'{{mass: {mass}, center_of_mass: [{centre}], load_inertia: [{inertia}]}}'\n"
    )


def _franka_desk(load: _Load) -> str:
    content = {
        "mass": float(number_text(load.mass)),
        "centerOfMass": [float(number_text(value)) for value in load.centre],
        "transformation": np.eye(4).ravel(order="F").tolist(),
        "inertia": [float(number_text(value)) for value in _column_major(load)],
    }
    return json.dumps(content) + "\n"


def principal_axes(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal moments (3,) and a rotation (3, 3) whose columns are their axes.

    Of all right-handed choices, that which turns the frame least: the first moment is that about the axis nearest to x.
    Where moments are equal, their axes are those nearest to the frame's.

    Args:
        inertia: Symmetric (3, 3).
    """
    moments, axes = np.linalg.eigh(inertia)
    same = np.abs(moments[:, None] - moments[None]) <= _SAME_MOMENT * np.abs(moments).max()
    best, rotation = -np.inf, np.eye(3)
    order = (0, 1, 2)
    for candidate in permutations(range(3)):
        turned = axes[:, candidate].copy()
        for group in {tuple(np.flatnonzero(row)) for row in same[np.ix_(candidate, candidate)]}:
            columns = list(group)
            # The orthogonal matrix that brings these axes nearest to the frame's, within the space they span.
            left, _, right = np.linalg.svd(turned[:, columns].T @ np.eye(3)[:, columns])
            turned[:, columns] = turned[:, columns] @ left @ right
        if np.linalg.det(turned) < 0:
            worst = int(np.argmin(np.diag(turned)))
            turned[:, worst] *= -1
        if np.trace(turned) > best + 1e-9:
            best, rotation, order = float(np.trace(turned)), turned, candidate
    return moments[list(order)], rotation


def kuka_angles(rotation: np.ndarray) -> tuple[float, float, float]:
    """Return A, B, C [deg] with ``R = Rz(A) Ry(B) Rx(C)``; C is 0 where B is a right angle."""
    level = float(np.hypot(rotation[0, 0], rotation[1, 0]))
    b = np.arctan2(-rotation[2, 0], level)
    if level < 1e-9:
        a, c = np.arctan2(-rotation[0, 1], rotation[1, 1]), 0.0
    else:
        a = np.arctan2(rotation[1, 0], rotation[0, 0])
        c = np.arctan2(rotation[2, 1], rotation[2, 2])
    return float(np.degrees(a)), float(np.degrees(b)), float(np.degrees(c))


def _kuka_data(load: _Load) -> str:
    assert load.inertia is not None
    moments, rotation = principal_axes(load.inertia)
    place = zip("XYZABC", [*(1e3 * load.centre), *kuka_angles(rotation)], strict=True)
    values = [("M", load.mass), *place, *zip(("JX", "JY", "JZ"), moments, strict=True)]
    text = {name: number_text(float(value), np.float32) for name, value in values}
    centre = ",".join(f"{name} {text[name]}" for name in "XYZABC")
    inertia = ",".join(f"{name} {text[f'J{name}']}" for name in "XYZ")
    return (
        f"{_commented(load.head, ';')}; {' '.join(f'{name}={shown}' for name, shown in text.items())}\n"
        f"LOAD_DATA[{load.tool}]={{M {text['M']},CM {{{centre}}},J {{{inertia}}}}}\n"
    )


def _ros_parameters(load: _Load) -> str:
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    body, upper = load.body, np.triu_indices(3)
    assert body.centre_sigma is not None
    lines = [
        f"frame_id: {json.dumps(load.frame)}",
        f"mass: {number_text(load.mass)}",
        f"mass_sigma: {number_text(body.mass[1])}",
        f"center_of_mass: [{_numbers(load.centre)}]",
        f"center_of_mass_sigma: [{_numbers(body.centre_sigma)}]",
    ]
    if load.inertia is not None and body.inertia_at_centre_sigma is not None:
        for key, values in (("inertia", load.inertia[upper]), ("inertia_sigma", body.inertia_at_centre_sigma)):
            lines += [f"{key}:", *(f"  {name}: {number_text(v)}" for name, v in zip(names, values, strict=True))]
    return f"{_commented(load.head, '#')}/**:\n  ros__parameters:\n    payload:\n" + "".join(
        f"      {line}\n" for line in lines
    )


PAYLOAD_FORMATS: dict[str, PayloadFormat] = {
    one.name: one
    for one in (
        PayloadFormat(
            "ur", "URScript, set_target_payload", "{robot}_payload.script", ("tool0", "flange"), False, _ur_script
        ),
        PayloadFormat(
            "franka", "ROS 2 service SetLoad and libfranka's setLoad", "{robot}_set_load.sh", ("link8", "flange"), True,
            _franka_call,
        ),
        PayloadFormat(
            "franka_desk", "end-effector settings of Desk (JSON)", "endeffector-config.json", ("link8", "flange"), True,
            _franka_desk,
        ),
        PayloadFormat(
            "kuka", "LOAD_DATA on principal axes (KRL)", "{robot}_payload_kuka.txt", ("tool0", "flange"), True,
            _kuka_data,
        ),
        PayloadFormat("ros2", "ROS 2 parameter file (YAML)", "{robot}_payload.yaml", (), False, _ros_parameters),
    )
}  # fmt: skip
"""By name."""

_WITHOUT_INERTIA = ", ".join(name for name, one in PAYLOAD_FORMATS.items() if not one.needs_inertia)
