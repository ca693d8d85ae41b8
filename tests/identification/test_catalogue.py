"""Every arm of the catalogue that can be simulated is identified from the torques it measures."""

from __future__ import annotations

import numpy as np
import pytest

from simulated_experiments import short_log
from steelyard.identification import Settings, fit_arm, identify
from steelyard.judge import estimate_delays
from steelyard.robot import catalogue_names, load_robot, read_catalogue

ARMS = [name for name in catalogue_names() if "inertias" in read_catalogue(name).carries]


LONG = ("franka_panda", "kuka_lwr4", "staubli_tx40", "ur10e")
"""Arms that are left to ``make test-all``."""


@pytest.mark.parametrize("name", [pytest.param(arm, marks=pytest.mark.large if arm in LONG else ()) for arm in ARMS])
def test_the_arm_is_found_from_its_own_torques(name):
    (first, training), (_, unseen) = short_log(name, 1), short_log(name, 2)
    robot = load_robot(name)
    # The plant may have more than the defaults look for: the spring and offsets of kuka_ir361.
    settings = Settings(effects=first.effects, bias_repeats=0)
    result = identify(robot, [training], [unseen], settings)
    assert result.unseen_error.relative_percent < 3.0
    model, base, estimate = result.equations.model, result.equations.base, result.estimate
    assert model.measured == robot.defaults.measured
    true = base.regrouping @ np.array([first.truth[parameter] for parameter in model.names])
    by_column = dict(zip((one.column for one in base.base), true, strict=True))
    error = np.abs(estimate.values - [by_column[column] for column in estimate.columns])
    # In units of torque: what each parameter's error does to the fit, against the torques themselves.
    influence = error * result.fit.raw.scale / np.linalg.norm(result.fit.raw.triangle[:, -1])
    assert influence.max() < 0.03
    # A command that is held for a millisecond biases the viscous friction of the direct-driven SCARA.
    assert np.mean(error <= 3 * estimate.half_width()) > 0.85


@pytest.mark.large
@pytest.mark.parametrize("name", ARMS)
def test_a_clean_simulation_has_no_delay(name):
    """Torques of the simulated arm were early by half a control period."""
    run, recording = short_log(name, 1)
    found = fit_arm(load_robot(name), [recording], Settings(effects=run.effects))
    delays = estimate_delays(found.sources, found.fit.estimate, found.fit.whitening)
    assert not delays.has_common
