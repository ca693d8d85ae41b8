"""Which capsules of an arm must keep apart: all but neighbours, and but those that cannot."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...errors import DesignError
from ...robot import Robot
from ..limits.joint_limits import position_ranges
from .capsules import Capsule, CapsulePair, in_base_frame
from .places import ArmPlaces, random_postures

POSTURES = 2000
SEED = 5

# Bodies whose capsules overlap in more than this part of all postures are fitted too fat, or built touching.
ALWAYS = 0.95


def self_collision_pairs(
    robot: Robot,
    capsules: Sequence[Capsule],
    *,
    ranges: tuple[np.ndarray, np.ndarray] | None = None,
    margin: float = 0.01,
    ignore: Iterable[tuple[str, str]] = (),
) -> tuple[tuple[CapsulePair, ...], tuple[str, ...]]:
    """Return a rule for each pair of capsules on different bodies, and what to say of those left out.

    Neighbours (bodies with one joint between them) touch by design and are not paired. Pairs that overlap in 95 % of
    2000 random postures, or in the posture in the middle of all ranges, are left out and named: a motion
    that starts from there could not keep them apart.

    Args:
        robot: The arm.
        capsules: Capsules on its links; several on one link are allowed.
        ranges: Lower and upper positions (n,); by default the description's, one turn where it gives none.
        margin: Distance kept besides [m].
        ignore: Pairs of link names that are not looked at.

    Raises:
        DesignError: If a capsule's link does not exist, or a pair to ignore names none that carries a capsule.
    """
    ignored = {frozenset(pair) for pair in ignore}
    _check_ignored(ignored, {capsule.link for capsule in capsules})
    pairs = [
        CapsulePair(f"{names[0]} - {names[1]}", *_moving_first(robot, first, second), margin)
        for names, first, second in _candidates(robot, capsules)
        if frozenset((str(first.link), str(second.link))) not in ignored
    ]
    if not pairs:
        return (), ()
    postures = random_postures(*(ranges or position_ranges(robot)), POSTURES, SEED)
    arm = ArmPlaces(robot, (point for pair in pairs for point in pair.points))
    places = arm.at(postures)
    kept: list[CapsulePair] = []
    left_out: list[str] = []
    for pair in pairs:
        overlaps = pair.clearance(arm.of(pair, places))[0] < 0
        if overlaps[0] or overlaps.mean() > ALWAYS:
            left_out.append(f"{pair.name} ({100 * overlaps.mean():.0f} %)")
        else:
            kept.append(pair)
    return tuple(kept), _note(left_out)


def _note(left_out: list[str]) -> tuple[str, ...]:
    if not left_out:
        return ()
    return (
        f"links whose capsules overlap in the middle posture or nearly all (share of postures): {', '.join(left_out)}; "
        "give slimmer ones by [[capsule]] in a limits file",
    )


def _candidates(robot: Robot, capsules: Sequence[Capsule]) -> Iterator[tuple[tuple[str, str], Capsule, Capsule]]:
    """Yield pairs of capsules on different bodies that are not neighbours, with their names."""
    body_of = [robot.frame(str(capsule.link)).body for capsule in capsules]
    parent_of = {body.number: body.parent for body in robot.bodies}
    names = capsule_names(capsules)
    for a, b in itertools.combinations(range(len(capsules)), 2):
        one, other = body_of[a], body_of[b]
        if one != other and parent_of.get(one) != other and parent_of.get(other) != one:
            yield (names[a], names[b]), capsules[a], capsules[b]


def capsule_names(capsules: Sequence[Capsule]) -> list[str]:
    """Return the link's name for each capsule, numbered where a link has several."""
    count, seen, names = Counter(capsule.link for capsule in capsules), Counter(), []
    for capsule in capsules:
        seen[capsule.link] += 1
        names.append(f"{capsule.link} {seen[capsule.link]}" if count[capsule.link] > 1 else str(capsule.link))
    return names


def _moving_first(robot: Robot, first: Capsule, second: Capsule) -> tuple[Capsule, Capsule]:
    """Return the pair with what stands still second and in the base frame: it then has no points to follow."""
    first, second = in_base_frame(first, robot), in_base_frame(second, robot)
    return (second, first) if first.link is None else (first, second)


def _check_ignored(ignored: set[frozenset[str]], links: set[str | None]) -> None:
    unknown = sorted(set().union(*ignored) - {link for link in links if link}) if ignored else []
    if unknown:
        raise DesignError(
            f"[self_collision]: ignore names link '{unknown[0]}', which carries no capsule; "
            f"links that do: {', '.join(sorted(link for link in links if link))}"
        )
