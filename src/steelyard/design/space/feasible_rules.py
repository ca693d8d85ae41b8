"""Rules that no posture keeps, found before a search wastes its time on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from ...errors import DesignError
from ...robot import Robot
from .places import ArmPlaces, random_postures
from .rules import SpaceRule

REMEDY = "move the obstacle or the region, or lower its margin"
POSTURES = 2000
SEED = 6

# From so many of the best random postures a rule is pursued uphill before it is called impossible.
PURSUED = 5


def check_rules_can_be_kept(
    robot: Robot, rules: Sequence[SpaceRule], lower: np.ndarray, upper: np.ndarray, remedy: str = REMEDY
) -> None:
    """Refuse a rule that none of 2000 random postures keeps, and none that a climb from the best of them reaches.

    Args:
        robot: The arm.
        rules: The rules, each looked at by itself.
        lower: Smallest positions (n,).
        upper: Largest positions (n,).
        remedy: What to do about a rule that cannot be kept.

    Raises:
        DesignError: It names the rule and by how much the best posture found breaks it.
    """
    if not rules:
        return
    arm = ArmPlaces(robot, (point for rule in rules for point in rule.points))
    postures = random_postures(lower, upper, POSTURES, SEED)
    places = arm.at(postures)
    for rule in rules:
        clearances = rule.clearance(arm.of(rule, places))[0]
        if clearances.max() >= 0:
            continue
        best = postures[:, np.argsort(clearances)[::-1][:PURSUED]].T
        reached = max(_climbed(arm, rule, start, lower, upper) for start in best)
        if reached < 0:
            raise DesignError(
                f"rule '{rule.name}' cannot be kept: it is broken by at least {-reached:.3g} m in every posture within "
                f"the joints' ranges that was tried; {remedy}"
            )


def _climbed(arm: ArmPlaces, rule: SpaceRule, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the largest clearance met on the way uphill from a posture (n,)."""
    met = [-np.inf]

    def downhill(q: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = arm.clearance_and_gradient(rule, q)
        met.append(value)
        return -value, -gradient

    bounds = list(zip(lower, upper, strict=True))
    minimize(downhill, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
    return max(met)
