"""No limit of a random design is broken at any of many instants, by code nobody here wrote."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from exactness import ARMS, Case, Witness, random_cases
from steelyard.motion import fourier

LARGEST_VIOLATION = 1e-9


@pytest.fixture(scope="module")
def first_case(tmp_path_factory):
    """A function from an arm's name to the first of its random designs, each made once."""
    return cache(lambda name: random_cases(name, 1, tmp_path_factory.mktemp(name))[0][0])


def worst_of(cases: list[Case], instants: int) -> float:
    """Return the largest excess over any limit of any design."""
    worst = -np.inf
    for case in cases:
        assert case.certificate.holds
        worst = max(worst, *Witness(case).violations(case.trajectory, instants).values())
    return worst


@pytest.mark.large
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "scara_2r" else pytest.mark.large) for name in ARMS]
)
def test_random_designs_keep_every_limit(name, first_case):
    worst = worst_of([first_case(name)], 20_000)
    assert worst <= LARGEST_VIOLATION
    # Limits are not only kept: the motion goes up to some of them.
    assert worst > -1e-2


@pytest.mark.large
@pytest.mark.parametrize("name", ARMS)
def test_many_random_designs_keep_every_limit(name, tmp_path):
    count = 50 if name == "scara_2r" else 5  # a design of a large arm takes a minute
    cases, refused = random_cases(name, count, tmp_path)
    assert worst_of(cases, 100_000) <= LARGEST_VIOLATION
    assert len(refused) < count / 2, refused


@pytest.mark.large
def test_the_witness_sees_what_is_broken(first_case):
    """A motion many times as large, and three times as fast, breaks limits of every kind by more than rounding."""
    case = first_case("scara_2r")
    motion = case.trajectory
    larger = fourier(motion.q0, 12 * motion.sin, 12 * motion.cos, motion.period / 3, motion.joints)  # type: ignore[attr-defined]
    found = Witness(case).violations(larger, 2000)
    assert all(found[what] > 0.01 for what in ("lower", "upper", "velocity", "acceleration", "torque"))
    certificate = {finding.name: finding.violation for finding in case.certifier(larger).findings}
    for rule in case.limits.rules:
        assert (found[rule.name] > 1e-6) == (certificate[rule.name] > 1e-6)
