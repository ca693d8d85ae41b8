"""Starts that are off by a stated part."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.identification import Settings
from steelyard.study.configuration import has_start, with_start

NAMES, UNITS = ("ZZ1", "ZZ2", "MX1", "Fvm1"), ("kg m^2", "kg m^2", "kg m", "N m s/rad")
TRUE = np.array([3.0, 0.1, 0.0, 0.5])


def started(start, seed=0, method="ekf"):
    return with_start(Settings(method=method), start, seed, NAMES, TRUE, UNITS)


def test_methods_with_a_start_are_known():
    assert [method for method in ("wls", "gls", "ols", "rls", "ekf", "ml", "iv") if has_start(method)] == [
        "rls", "ekf", "iv",
    ]  # fmt: skip


def test_a_start_off_by_nothing_is_the_truth():
    prior = started(0.0).prior
    np.testing.assert_array_equal([prior[name][0] for name in NAMES], TRUE)
    assert all(deviation > 0 for _, deviation in prior.values())


@pytest.mark.large
def test_the_start_is_off_by_the_part_asked_for_and_the_same_for_a_seed():
    parts = np.array(
        [[started(0.2, seed).prior[name][0] / true - 1 for name, true in zip(NAMES, TRUE, strict=True) if true]
         for seed in range(400)]
    )  # fmt: skip
    np.testing.assert_allclose(parts.std(axis=0), 0.2, rtol=0.12)
    assert started(0.2, 3).prior == started(0.2, 3).prior
    assert started(0.2, 3).prior != started(0.2, 4).prior


def test_without_a_start_the_settings_stay():
    settings = Settings(method="ekf")
    assert with_start(settings, None, 0, NAMES, TRUE, UNITS) is settings


def test_recursive_least_squares_begins_with_the_prior():
    assert started(0.1, method="rls").of_method.start == "prior"
    assert not started(0.1, method="ekf").options


def test_where_the_prior_is_only_a_start_it_holds_nothing():
    assert started(0.1, method="iv").prior["ZZ1"][1] == pytest.approx(3000.0)
    assert started(0.1, method="ekf").prior["ZZ1"][1] == pytest.approx(3.0)
