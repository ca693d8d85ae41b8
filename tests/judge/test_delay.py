"""Late torques are found, with the bias that they bring; torques in time are left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from simulated_experiments import lwr4, scara
from steelyard.estimate import weighted
from steelyard.judge import delay, estimate_delays
from steelyard.model import build_model
from steelyard.observe import Preparation, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.recording import Recording
from steelyard.robot import load_robot


def late(recording: Recording, delay: float, joints: slice = slice(None)) -> Recording:
    """Return the recording with torques that come later by ``delay`` [s], of some joints or of all."""
    at = np.maximum(recording.time - delay, recording.time[0])
    torques = []
    for channel in recording.torques:
        values = channel.values.copy()
        values[joints] = CubicSpline(recording.time, values[joints], axis=1)(at)
        torques.append(replace(channel, values=values))
    return replace(recording, torques=tuple(torques), sources=())


def delays_of(robot: str, recordings: list[Recording], **preparation):
    equations = equations_of(build_model(load_robot(robot)))
    resolved = resolve_preparation(Preparation(**preparation), recordings)
    sources = [row_source(r, equations, resolved, f"{k}") for k, r in enumerate(recordings)]
    estimate = weighted(reduce_rows(sources), equations.names)
    return estimate, estimate_delays(sources, estimate, None)


@pytest.mark.parametrize("delay", [-0.02, 0.01])
def test_a_delay_is_found_with_its_sign_and_size(delay):
    _, found = delays_of("scara_2r", [late(scara(1), delay), late(scara(2), delay)], cutoff=20.0, decimation=4)
    assert found.has_common
    assert found.common[0] == pytest.approx(delay, abs=3 * found.common[1])
    assert found.common[1] < 0.0005
    assert found.common[1] < min(found.sigma) * 1.01


def test_the_bias_it_brings_is_that_of_the_estimate():
    in_time, _ = delays_of("scara_2r", [scara(1), scara(2)], cutoff=20.0, decimation=4)
    delayed, found = delays_of("scara_2r", [late(scara(1), 0.01), late(scara(2), 0.01)], cutoff=20.0, decimation=4)
    shift = delayed.values - in_time.values
    for name in ("Fvm1", "Fvm2"):
        place = delayed.columns.index(name)
        assert abs(shift[place]) > 5 * delayed.sigma[place]
        assert found.bias[place] == pytest.approx(shift[place], rel=0.35)


def test_torques_in_time_are_left_alone():
    _, found = delays_of("kuka_lwr4", [lwr4(1), lwr4(5)], cutoff=8.0, decimation=20)
    assert not found.has_common
    assert len(found.significant) <= 1
    assert len(found.equations) == len(found.delay) == 14


def test_an_unseen_delay_of_one_sigma_moves_parameters_by_their_exposure():
    estimate, found = delays_of("scara_2r", [scara(1), scara(2)], cutoff=20.0, decimation=4)
    assert not found.has_common
    delay = found.common[1]
    moved, _ = delays_of("scara_2r", [late(scara(1), delay), late(scara(2), delay)], cutoff=20.0, decimation=4)
    shift = np.abs(moved.values - estimate.values) / estimate.sigma
    assert np.argmax(shift) == np.argmax(found.exposure)
    assert found.exposure == pytest.approx(shift, rel=0.2, abs=0.05)


def test_a_first_step_within_chance_is_not_followed(monkeypatch):
    solved = []
    system = delay.DelayTrial.system
    monkeypatch.setattr(delay.DelayTrial, "system", lambda trial: solved.append(trial.delays) or system(trial))
    rng = np.random.default_rng(0)
    noisy = [
        replace(
            log, torques=tuple(replace(c, values=c.values + 20 * rng.normal(size=c.values.shape)) for c in log.torques)
        )
        for log in (scara(1), scara(2))
    ]
    _, found = delays_of("scara_2r", noisy, cutoff=20.0, decimation=4)
    assert not found.has_common
    assert [bool(one.any()) for one in solved] == [False, False]
    solved.clear()
    delays_of("scara_2r", [late(scara(1), 0.01), late(scara(2), 0.01)], cutoff=20.0, decimation=4)
    assert solved[-1].any()


@pytest.mark.parametrize(("joint", "delay"), [(0, -0.01), (1, 0.02), (1, 0.04)])
def test_one_late_torque_is_no_common_delay(joint, delay):
    logs = [late(scara(seed), delay, slice(joint, joint + 1)) for seed in (3, 4)]
    _, found = delays_of("scara_2r", logs, cutoff=20.0, decimation=4)
    assert not found.has_common
    assert found.significant == found.certain == (joint,)
    assert found.delay[joint] == pytest.approx(delay, abs=3 * float(found.sigma[joint]))
    assert found.bias.any()


def test_one_torque_beyond_the_longest_delay_is_found_too():
    logs = [late(scara(seed), 0.15, slice(1, 2)) for seed in (3, 4)]
    _, found = delays_of("scara_2r", logs, cutoff=20.0, decimation=4)
    assert not found.has_common
    assert 1 in found.certain
    assert found.delay[1] == delay.LARGEST_DELAY


def test_a_delay_that_makes_torques_no_likelier_is_none(monkeypatch):
    """What a model lacks looked like torques 30 ms early on a real UR10e, and like 12 ms late on a tilted arm."""
    logs = [late(scara(seed), 0.02, slice(1, 2)) for seed in (3, 4)]
    monkeypatch.setattr(delay.DelayTrial, "log_likelihood", lambda trial, other: np.zeros(len(trial.rows)))
    _, found = delays_of("scara_2r", logs, cutoff=20.0, decimation=4)
    assert not found.has_common
    assert not found.significant
    assert np.isinf(found.sigma[1])
    assert not found.bias.any()
