"""From the tree of a file to what moves: bodies in depth-first order, frames, and joints that follow others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..errors import RobotError
from .inertia import moved_parameters
from .parts import Body, Frame, Joint, Link
from .placement import Placement, transform_from_placement


def leaders(joint: Joint, joints: Mapping[str, Joint]) -> Iterator[tuple[Joint, float, float]]:
    """Yield a joint and those it follows, each with gain and shift: ``q_joint = gain * q_leader + shift``."""
    gain, shift, seen = 1.0, 0.0, set()
    while True:
        if joint.name in seen:
            raise RobotError(f"joint '{joint.name}' mimics itself in a circle; break the circle in the robot file")
        seen.add(joint.name)
        yield joint, gain, shift
        if joint.mimic is None:
            return
        shift += gain * joint.mimic.offset
        gain *= joint.mimic.multiplier
        joint = joints[joint.mimic.leader]


def held_position(joint: Joint, joints: Mapping[str, Joint], positions: Mapping[str, float]) -> float | None:
    """Return where a joint is held, by itself or by a joint it follows; None if it moves."""
    for leader, gain, shift in leaders(joint, joints):
        held = positions.get(leader.name, leader.locked_at)
        if held is not None:
            return gain * float(held) + shift
    return None


def bodies_and_frames(
    root: str, joints: Sequence[Joint], links: Sequence[Link]
) -> tuple[tuple[Body, ...], dict[str, Frame]]:
    """Walk the tree depth first in file order; merge what is fixed into what moves."""
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    inertia_of = {link.name: link.inertia for link in links}
    frames = {root: Frame(root, 0, ())}
    moving: list[tuple[Joint, int, Placement]] = []
    stack = list(reversed(children.get(root, [])))
    while stack:
        joint = stack.pop()
        carrier = frames[joint.parent]
        placement = carrier.placement + joint.rest_placement
        if joint.moves:
            moving.append((joint, carrier.body, placement))
            frames[joint.child] = Frame(joint.child, len(moving), ())
        else:
            frames[joint.child] = Frame(joint.child, carrier.body, placement)
        stack.extend(reversed(children.get(joint.child, [])))
    bodies = tuple(
        Body(number, joint, joint.child, parent, placement, _merged_inertia(number, frames, inertia_of))
        for number, (joint, parent, placement) in enumerate(moving, start=1)
    )
    return bodies, frames


def _merged_inertia(
    number: int, frames: Mapping[str, Frame], inertia_of: Mapping[str, tuple[float, ...] | None]
) -> tuple[float, ...] | None:
    """Return the ten parameters of a body with its fixed links; None if the moving link's are unknown.

    A fixed link without an inertial element is massless, as every reader of such files takes it.
    """
    total = np.zeros(10)
    for frame in frames.values():
        if frame.body != number:
            continue
        inertia = inertia_of[frame.name]
        if inertia is None:
            if not frame.placement:
                return None
            continue
        rotation, translation = transform_from_placement(frame.placement)
        total = total + moved_parameters(np.array(inertia), rotation, translation)
    return tuple(float(value) for value in total)
