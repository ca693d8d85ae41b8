"""How an identified arm differs from the file it was read from, and what speaks against writing it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..errors import ExportError
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
from ..robot.drives import joint_values
from .identified import FileProblem

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
