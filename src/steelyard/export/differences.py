"""An identified arm and its robot file: what the file is to hold and cannot say, what changes, what forbids writing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..effects import EFFECTS
from ..errors import ExportError
from ..model import build_model
from ..model.terms.term import Parameter
from ..robot import (
    Joint,
    Link,
    Robot,
    XmlDocument,
    centre_from_parameters,
    is_consistent,
    parameters_from_centre,
    pseudo_inertia,
)
from ..robot.drives import BY_DIRECTION, COULOMB, DAHL, VISCOUS, joint_values
from ..robot.placement import Vector3
from ..robot.tree import STANDARD_GRAVITY
from .identified import FileProblem, IdentifiedArm

_FRICTION_KINDS = (VISCOUS, (*COULOMB, *(symbol for pair in BY_DIRECTION for symbol in pair)))


NEGLIGIBLE = 1e-7
"""Values below this share of the arm's largest in their unit are numerical noise: they are not listed."""


def robot_to_write(arm: IdentifiedArm) -> Robot:
    """Return the arm's robot without a priori friction that identified friction stands for, and without noise.

    A file's damping counts as motor-side friction when it is read; if the model has viscous friction on the link side
    only, the sum of both would count it twice. Coulomb friction likewise.
    """
    of_model = {symbol for effect in arm.model.effects for symbol in EFFECTS[effect].symbols}
    replaced = {symbol for kind in _FRICTION_KINDS if of_model.intersection(kind) for symbol in kind} - of_model
    numbers = [body.number for body in arm.robot.actuated]
    dropped = {f"{symbol}{number}" for symbol in replaced for number in numbers}
    values = {name: value for name, value in arm.robot.values.items() if name not in dropped}
    return without_noise(replace(arm.robot, values=values), arm.model.robot)


def unsaid(
    robot: Robot, held: tuple[str, ...] = (*VISCOUS, *COULOMB), gravity: Vector3 = STANDARD_GRAVITY
) -> list[str]:
    """Return, with numbers and units, what the file of a robot cannot say.

    Args:
        robot: The arm.
        held: Symbols of the parameters that the format holds.
        gravity: Gravity as readers of the file take it [m/s^2].
    """
    lines: dict[tuple[str, str], list[str]] = {}
    known, parameters = robot.parameters, list(_parameters(robot))
    largest: dict[str, float] = {}
    for one in parameters:
        largest[one.unit] = max(largest.get(one.unit, 0.0), abs(known.get(one.name, 0.0)))
    for parameter in (one for one in parameters if one.effect != "inertia"):
        value = robot.values.get(parameter.name, 0.0)
        if abs(value) > NEGLIGIBLE * largest[parameter.unit] and parameter.symbol not in held:
            values = lines.setdefault((parameter.effect, parameter.symbol), [])
            values.append(f"{parameter.joint} {value!r} {parameter.unit}")
    listed = [
        f"{EFFECTS[effect].summary} ({symbol}{_MEANINGS.get(symbol, '')}): {', '.join(values)}"
        for (effect, symbol), values in lines.items()
    ]
    couplings = [f"motor of {c.motor} turns with {c.also_turns_with} by {c.ratio!r}" for c in robot.gear_couplings]
    return [*listed, *([f"gear coupling: {', '.join(couplings)}"] if couplings else []), *_gravity(robot, gravity)]


_MEANINGS = {
    **dict.fromkeys(("Fcpm", "Fcpl"), ", forward; friction holds the mean of both directions"),
    **dict.fromkeys(("Fcnm", "Fcnl"), ", backward"),
    **dict.fromkeys(DAHL, ", turns over a length after reversals; friction holds it as Coulomb friction"),
    "Ia": ", 'armature' of simulators",
    "Ss": ", torque Ss sin(q)",
    "Sc": ", torque Sc cos(q)",
    "Sb": ", factor of the torque that the robot file gives by position",
}


def _parameters(robot: Robot) -> Iterator[Parameter]:
    """Iterate over the parameters of all effects of which the arm has a value."""
    families = {name.rstrip("0123456789") for name in robot.values}
    known = build_model(robot, ["inertia"]).motion
    for name, effect in EFFECTS.items():
        has_values = name == "inertia" or families.intersection(effect.symbols)
        if has_values and not (effect.needs_inertias and known.inertias is None):
            yield from effect.term(robot, known).parameters


def _gravity(robot: Robot, gravity: Vector3) -> list[str]:
    if robot.gravity == gravity:
        return []
    own, taken = (" ".join(map(repr, one)) for one in (robot.gravity, gravity))
    return [f"gravity in the base frame: {own} m/s^2, set it where the file is loaded (programs take {taken})"]


ROUNDING = 1e-13
"""Parameters that differ by less, relative to their kind, are the same: fixed links were added and taken off again."""


NOISE = 1e-8
"""Centres and inertias that differ by less, relative to the link's size, are the same: a solver's stopping rule."""


def without_noise(robot: Robot, original: Robot) -> Robot:
    """Return the robot with masses, centres and inertias of the original where they differ by noise only."""
    before = {link.name: link.inertia for link in original.links}
    links = tuple(replace(link, inertia=_denoised(link.inertia, before.get(link.name))) for link in robot.links)
    return replace(robot, links=links)


def _denoised(new: tuple[float, ...] | None, old: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Return ten parameters with mass, centre and inertia about the centre of others where they differ by noise."""
    if new is None or old is None or not (new[9] > 0 and old[9] > 0):
        return new
    found, known = (centre_from_parameters(np.array(one)) for one in (new, old))
    size = float(np.abs(found[2]).max())
    scales = (found[0], math.sqrt(size / found[0]), size)
    same = [
        (one != other) & (np.abs(one - other) <= NOISE * scale)
        for one, other, scale in zip(found, known, scales, strict=True)
    ]
    if not any(map(np.any, same)):
        return new
    mass, centre, inertia = (
        np.where(is_noise, other, one) for one, other, is_noise in zip(found, known, same, strict=True)
    )
    cleaned = parameters_from_centre(float(mass), centre, inertia)
    return tuple(cleaned.tolist()) if is_consistent(cleaned) else new


def geometric_difference(read: Robot, robot: Robot) -> str:
    """Return the first thing in which two robots differ, apart from parameters and limits; empty if there is none."""
    for kind, there, here in (("link", read.links, robot.links), ("joint", read.joints, robot.joints)):
        odd = {one.name for one in there} ^ {one.name for one in here}
        if odd:
            return f"{kind} '{min(odd)}' is in one of them only"
    for joint in robot.joints:
        if _geometry(joint) != _geometry(read.joint(joint.name)):
            return f"joint '{joint.name}' differs"
    return ""


def _geometry(joint: Joint) -> tuple[object, ...]:
    return joint.kind, joint.parent, joint.child, joint.placement, joint.axis, joint.mimic


def changed_links(robot: Robot, original: Robot) -> list[Link]:
    """Return the links whose inertia is another than that of the original, by more than rounding."""
    before = {link.name: link for link in original.links}
    return [link for link in robot.links if link.name in before and not _is_same(link, before[link.name], robot)]


def _is_same(new: Link, old: Link, robot: Robot) -> bool:
    """Return whether a link has the inertia that it had, up to the rounding of adding and subtracting fixed links."""
    if new.inertia is None or old.inertia is None:
        return new.inertia is None
    number = robot.frames[new.name].body
    carried = robot.bodies[number - 1].inertia if number else None
    sizes = np.abs([new.inertia, old.inertia, carried or new.inertia])
    inertia, mass = sizes[:, :6].max(), sizes[:, 9].max()
    scale = np.repeat([inertia, max(sizes[:, 6:9].max(), math.sqrt(inertia * mass)), mass], [6, 3, 1])
    return bool(np.all(np.abs(np.subtract(new.inertia, old.inertia)) <= ROUNDING * scale))


def forced_notes(problems: Sequence[FileProblem], force: bool) -> tuple[str, ...]:
    """Return notes on the problems of a file that is forced; otherwise raise an ``ExportError`` with the first."""
    if problems and not force:
        raise ExportError(f"{problems[0].text}; {problems[0].remedy}, or write the file with --force")
    return tuple(problem.note for problem in problems)


def with_forced(content: bytes, comment: Sequence[str], forced: Sequence[str]) -> bytes:
    """Return an XML file whose comment also says why it was forced after it had been loaded again.

    Args:
        content: The file.
        comment: Lines of its comment, which is replaced.
        forced: Notes on what speaks against the file; without any it stays as it is.
    """
    return XmlDocument(content).edited("\n".join([*comment, *forced])) if forced else content


def physical_problems(
    robot: Robot, links: Iterable[Link], joints: Iterable[str], held: Sequence[str] = ("damping", "friction")
) -> list[FileProblem]:
    """Return which of these links no body can be, and which of these joints have negative values.

    Args:
        robot: The arm.
        links: Links to check.
        joints: Joints to check.
        held: Fields of ``JointValues`` that the format holds.
    """
    problems = []
    for link in links:
        if link.inertia is None or is_consistent(np.array(link.inertia)):
            continue
        smallest = np.linalg.eigvalsh(pseudo_inertia(np.array(link.inertia)))[0]
        number = robot.frames[link.name].body
        others = [one for one in robot.links if one.inertia is not None and one.name != link.name]
        fixed = {one.name: one.inertia[9] for one in others if one.inertia and robot.frames[one.name].body == number}
        text = (
            f"link '{link.name}': its inertia is not physically possible (smallest eigenvalue of the pseudo-inertia "
            f"{smallest:.3g}, a real body has none below 0)"
        )
        remedy = "identify a physically consistent arm"
        if fixed:
            whole = link.inertia[9] + sum(fixed.values())
            listed = ", ".join(f"{mass:.3g} kg on '{name}'" for name, mass in fixed.items())
            text += f"; identified are {whole:.3g} kg with links fixed to it, of which the robot's file puts {listed}"
            remedy = (
                f"correct the inertia of {', '.join(map(repr, fixed))} in that file and identify again, write a new "
                "MJCF (--mjcf --new-file), where the moving link holds that of all"
            )
        problems.append(FileProblem(text, remedy))
    values = joint_values(robot)
    for name in joints:
        for what in held:
            value = getattr(values[name], what) if name in values else 0.0
            if value < 0:
                text = f"joint '{name}': {what} is {value:.3g}, and simulators need 0 or more"
                problems.append(FileProblem(text, "identify a physically consistent arm"))
    return problems
