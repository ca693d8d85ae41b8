"""Chains of any length, to see how cost grows."""

from __future__ import annotations

import math

from steelyard.robot import Joint, Link, Robot, mdh_placement


def chain(joints: int) -> Robot:
    """Return a chain of revolute joints whose axes alternate by 90 degrees."""
    links, between = [Link("base")], []
    for k in range(1, joints + 1):
        alpha = 0.0 if k == 1 else math.pi / 2 * (-1) ** k
        placement = mdh_placement(alpha, 0.1, 0.0, 0.2)
        between.append(Joint(f"joint_{k}", "revolute", links[-1].name, f"link_{k}", placement))
        links.append(Link(f"link_{k}"))
    return Robot(f"chain_{joints}", tuple(links), tuple(between), "base")
