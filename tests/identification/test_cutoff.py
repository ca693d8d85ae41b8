"""The cut-off of the positions is the one with which torques are predicted best: noise of the positions lowers it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.identification import Settings, identify
from steelyard.identification.cutoff import STEP, with_cutoff
from steelyard.model import build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation, equations_of, resolve_preparation
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate

ROBOT = load_robot("scara_2r")


def recorded(noise=0.0, seed=0):
    """Return a recording whose positions have white noise [rad]."""
    rng = np.random.default_rng(seed)
    sin, cos = rng.uniform(-1, 1, (2, 2, 6)) / np.arange(1, 7)
    motion = fourier([0.0, 0.5], sin, cos, 20.0, ["joint_1", "joint_2"])
    experiment = Experiment(record_rate=200, plant="ideal", motor_noise=Noise("white", (0.5, 0.05)), saturate=False)
    clean = recording_of(simulate(ROBOT, motion, experiment, [seed]))
    return replace(clean, q=clean.q + noise * rng.standard_normal(clean.q.shape))


def chosen(recording, settings=None):
    settings = settings or Settings()
    equations = equations_of(build_model(ROBOT))
    resolved = resolve_preparation(settings.preparation, [recording])
    return resolved, *with_cutoff(equations, [("one", recording)], resolved, settings)


def test_clean_positions_keep_the_cutoff_that_the_motion_proposes():
    before, after, settings = chosen(recorded())
    assert after is before
    assert settings == Settings()


def test_noisy_positions_lower_it():
    before, after, settings = chosen(recorded(3e-3))
    assert before.cutoff is not None
    assert after.cutoff is not None
    steps = np.log(before.cutoff / after.cutoff) / np.log(STEP)
    assert steps >= 0.99
    assert steps == pytest.approx(round(steps))
    assert "better than" in after.reasons[0]
    # What is compared with what was measured stays the same band.
    assert settings.evaluation_cutoff == before.cutoff
    assert settings.preparation.cutoff == after.cutoff


def test_a_given_cutoff_stays():
    given = Settings(preparation=Preparation(cutoff=6.0))
    before, after, settings = chosen(recorded(3e-3), given)
    assert after is before
    assert settings is given


def test_it_predicts_other_motion_better():
    training, unseen = recorded(3e-3), recorded(seed=1)
    errors = {}
    for select in (True, False):
        settings = Settings(select=select, method="wls", bias_repeats=0, evaluation_cutoff=10.0)
        found = identify(ROBOT, [training], [unseen], settings)
        errors[select] = found.unseen_error.relative_percent
    assert errors[True] < 0.95 * errors[False], errors
