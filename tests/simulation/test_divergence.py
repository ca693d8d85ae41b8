"""Runs that are lost: named, and no matter to the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import SimulationError
from steelyard.motion import quintic
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, Simulator, simulate, simulate_together
from steelyard.simulation.compiled_plant import departures

ROBOT = load_robot("scara_2r")
PATH = quintic([[0, 0.4, -0.3, 0.1], [0, 2.0, -1.5, 1.0]], 1.0, ["joint_1", "joint_2"])
# At a slow integrator so strong a disturbance makes some seeds' velocities grow beyond all numbers, and some not.
STRONG = Experiment(
    control_rate=500.0, plant_rate=2000.0, record_rate=100.0, disturbance=Noise("band_limited", (6e4, 2.4e3), 20.0)
)
SEEDS = range(8)


def test_seeds_that_diverge_are_named_and_the_others_run_as_if_alone():
    run = simulate(ROBOT, PATH, STRONG, SEEDS, keep_going=True)
    assert run.lost
    assert run.seeds
    assert sorted([*run.seeds, *run.lost]) == list(SEEDS)
    assert np.isfinite(run.q).all()
    assert np.isfinite(run.joint_torque).all()
    for place, seed in enumerate(run.seeds):
        alone = simulate(ROBOT, PATH, STRONG, [seed])
        assert alone.lost == {}
        np.testing.assert_array_equal(alone.q[0], run.q[place])
        np.testing.assert_array_equal(alone.motor_torque[0], run.motor_torque[place])


def test_why_a_seed_was_lost_is_the_same_alone_and_in_any_company(monkeypatch):
    together = simulate(ROBOT, PATH, STRONG, SEEDS, keep_going=True).lost
    monkeypatch.setattr("steelyard.simulation.compiled_plant._SEEDS_TOGETHER", 3)
    assert simulate(ROBOT, PATH, STRONG, SEEDS, threads=2, keep_going=True).lost == together
    for seed, why in together.items():
        alone = simulate(ROBOT, PATH, STRONG, [seed], keep_going=True)
        assert alone.lost == {seed: why}
        assert alone.q.shape == (0, 2, 300)
        with pytest.raises(SimulationError) as caught:
            simulate(ROBOT, PATH, STRONG, [seed])
        assert str(caught.value) == f"the simulation of seed {seed} {why}"
        assert "\n" not in why


def test_a_run_that_diverges_beside_others_is_named():
    lost = next(iter(simulate(ROBOT, PATH, STRONG, SEEDS, keep_going=True).lost))
    beside = [Simulator(ROBOT, PATH, one) for one in (replace(STRONG, disturbance=None), STRONG)]
    with pytest.raises(SimulationError, match=f"the simulation of seed {lost} diverged"):
        simulate_together(beside, [lost + 1, lost])


def test_mujoco_does_not_begin_anew_unseen(tmp_path, monkeypatch, capfd):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    mild, wild = (
        Experiment(plant="mujoco", control_rate=500.0, record_rate=100.0, disturbance=Noise("white", std))
        for std in ((0.5, 0.02), (5e6, 2e5))
    )
    short = quintic([[0, 0.2], [0, 0.5]], 0.2, ["joint_1", "joint_2"])
    assert simulate(ROBOT, short, mild, [0, 1], keep_going=True).lost == {}
    lost = simulate(ROBOT, short, wild, [0, 1], keep_going=True).lost
    assert sorted(lost) == [0, 1]
    with pytest.raises(SimulationError, match=r"the simulation of seed 1 diverged before 0\.\d\d s; lower the gains"):
        simulate(ROBOT, short, wild, [1])
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []


def test_departures_are_counted_in_widths_of_the_motion():
    reference = np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    runs = np.stack([reference, reference + np.array([[0.0], [0.5]]), reference - [[0.0, 6.0, 0.0], [0.0, 0.0, 1.0]]])
    np.testing.assert_allclose(departures(runs, reference), [0.0, 0.5, 2.0])
