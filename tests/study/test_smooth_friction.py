"""Samples at which the simulated friction is smooth are not for methods whose model has a sign."""

from __future__ import annotations

import numpy as np

from steelyard.study import SimulatedExperiments, StudySettings, montecarlo
from study.studies import WHITE, scara

WIDE = {**WHITE, "sign_width": 0.05}
FREE = {"cutoff": 20.0, "decimation": 5}
"""P1's filter; standstill is left open."""


def test_samples_slower_than_four_widths_are_left_out_and_a_note_says_so():
    shop = SimulatedExperiments(scara(WIDE, FREE))
    standstill = np.asarray(shop.preparation.standstill)
    assert standstill.min() == 0.2
    (note,) = (
        text for text in montecarlo(scara(WIDE, FREE), StudySettings(("wls",), seeds=2)).notes if "smooth" in text
    )
    assert "smooth over 0.05 rad/s: samples slower than 4 times that are left out" in note


def test_a_narrow_sign_leaves_the_choice_to_the_data():
    shop = SimulatedExperiments(scara(WHITE, FREE))
    assert shop.preparation is shop.settings.preparation
    assert not [
        text for text in montecarlo(scara(WHITE, FREE), StudySettings(("wls",), seeds=2)).notes if "smooth" in text
    ]


def test_a_standstill_that_was_chosen_stays():
    assert SimulatedExperiments(scara(WIDE, {**FREE, "standstill": 0.01})).preparation.standstill == 0.01


def test_friction_is_biased_by_its_smooth_sign_unless_slow_samples_are_left_out():
    def largest(identify):
        study_result = montecarlo(scara(WIDE, identify), StudySettings(("wls",), seeds=6))
        return max(abs(one.bias_in_sigmas) for one in study_result.verdicts[0].parameters if one.name.startswith("Fc"))

    assert largest(FREE) < 0.2 * largest({**FREE, "standstill": 0.0})
