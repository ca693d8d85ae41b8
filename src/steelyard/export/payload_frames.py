"""The frame in which a payload is written: that of the controller's flange, as robot files name it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..errors import ExportError
from ..robot import Joint, Robot, transform_from_placement
from .identified import locked_positions


def payload_frame(robot: Robot, carrier: str, names: tuple[str, ...], wanted: str | None) -> tuple[str, list[str]]:
    """Return the link in whose frame the numbers are written, and a note if it may not be the controller's flange.

    Args:
        robot: The arm, with the joints locked that were held.
        carrier: The link that carries the payload.
        names: Names of the controller's flange in robot files, the likeliest first.
        wanted: The link to take; None: by its name.

    Raises:
        ExportError: If the wanted link moves against the carrier.
    """
    body = robot.frame(carrier).body
    if wanted is not None:
        if robot.frame(wanted).body != body:
            raise ExportError(
                f"link '{wanted}' moves against link '{carrier}', which carries the payload; name a link that is fixed "
                "to it, such as the flange"
            )
        return wanted, []
    fixed = [name for name, one in robot.frames.items() if one.body == body]
    for name in names:
        for link in fixed:
            if not re.fullmatch(rf"(.*[_/])?{name}", link):
                continue
            if name != "flange":
                return link, []
            if _points_out(robot, link):
                return link, [f"Link '{link}' is taken for the controller's flange by its name: check its x axis."]
    if not names:
        return carrier, []
    return carrier, [
        f"{_no_frame(robot, carrier, names)}: the numbers are in the frame of link '{carrier}'. Check that it is the "
        "controller's flange frame, or name the flange's link with --payload-frame."
    ]


def _no_frame(robot: Robot, carrier: str, names: tuple[str, ...]) -> str:
    """Return why no link is taken for the controller's flange."""
    body, pattern = robot.frame(carrier).body, rf"(.*[_/])?({'|'.join(names)})"
    named = {name: one.body for name, one in robot.frames.items() if re.fullmatch(pattern, name)}
    if not named:
        return f"No link of the robot is called {' or '.join(names)}"
    for name, carried_by in named.items():
        if carried_by == body:
            return f"z of link '{name}' does not point along the last axis, as that of the controller's flange does"
    return f"Link '{next(iter(named))}' is not fixed to link '{carrier}', which carries the payload"


def _points_out(robot: Robot, link: str) -> bool:
    """Return whether z of a link's frame is the axis of its joint: in ROS-Industrial's ``flange`` it is x.

    The joint may be locked: the flange is that of the whole arm.
    """
    joint = next(one for one in _joints_above(robot, link) if one.kind != "fixed")
    rotation, _ = carrier_transform(robot, link, joint.child)
    return abs(float(rotation[:, 2] @ np.array(joint.axis))) > 1 - 1e-6


def _joints_above(robot: Robot, link: str) -> Iterator[Joint]:
    """Yield the joints from a link to the root."""
    above = {joint.child: joint for joint in robot.joints}
    while link in above:
        yield above[link]
        link = above[link].parent


def locked_joint_notes(robot: Robot, chosen: str) -> list[str]:
    """Return a note if joints were locked: what hangs on the chosen link behind them moves against it elsewhere."""
    held = locked_positions(robot)
    if not held:
        return []
    text = f"Identified with locked joints: {', '.join(f'{name} at {at!r}' for name, at in held.items())}."
    above, body = {joint.name for joint in _joints_above(robot, chosen)}, robot.frame(chosen).body
    behind = [name for name in held if name not in above and robot.frame(robot.joint(name).child).body == body]
    if behind:
        there = "it" if len(behind) == 1 else "them"
        text += f" If the payload is mounted behind {', '.join(behind)}, the numbers are valid with {there} there only."
    return [text]


def carrier_transform(robot: Robot, carrier: str, chosen: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation and translation of the carrier's frame in the chosen one; both are fixed to one moving link."""
    (turn, shift), (own_turn, own_shift) = (
        transform_from_placement(robot.frame(link).placement) for link in (carrier, chosen)
    )
    return own_turn.T @ turn, own_turn.T @ (shift - own_shift)
