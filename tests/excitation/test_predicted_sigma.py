"""Predicted sigmas of a design are those of identified experiments with its motion, over 300 seeds of the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.estimate import generalised, weighted
from steelyard.excitation import Design, DesignSettings, design_limits
from steelyard.excitation import design as design_experiment
from steelyard.observe import Preparation, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, SimulatedRun, recording_of, simulate

SEEDS = 300

MONTE_CARLO = 1 / np.sqrt(2 * (SEEDS - 1))
"""Relative standard deviation of a standard deviation over the seeds: 4 %."""


def experiment(name: str, settings: DesignSettings, **options) -> tuple[Design, SimulatedRun]:
    """Return a design and its motion on the closed-loop arm: the same motion for every seed, other noise."""
    robot = load_robot(name)
    limits = design_limits(robot)
    noise = tuple(0.02 * limits.torque)
    design = design_experiment(robot, replace(settings, noise=noise), torque="motor", limits=limits, **options)
    simulated = Experiment(record_rate=design.settings.rate, saturate=False, motor_noise=Noise("white", noise))
    run = simulate(robot, design.trajectory, simulated, [0])
    parts = ("q", "qd", "qdd", "motor_torque", "joint_torque")
    every = {part: np.broadcast_to(getattr(run, part), (SEEDS, *getattr(run, part).shape[1:])) for part in parts}
    return design, replace(run, seeds=tuple(range(SEEDS)), **every)


def ratios(design: Design, run: SimulatedRun) -> np.ndarray:
    """Return the spread of each parameter over the seeds in units of the predicted sigma.

    Each seed's recording is prepared and estimated as ``steelyard identify`` does if nothing is chosen.
    """
    equations = equations_of(design.model)
    assert design.figures.names == equations.base.names
    found = []
    for index in range(SEEDS):
        recording = recording_of(run, index)
        sources = [row_source(recording, equations, resolve_preparation(Preparation(), [recording]), "recording")]
        estimate = generalised(sources, weighted(reduce_rows(sources), equations.names)).estimate
        assert estimate.columns == equations.names
        found.append(estimate.values)
    return np.std(found, axis=0, ddof=1) / design.figures.sigma


@pytest.mark.large
@pytest.mark.parametrize("name", ["scara_2r", "ur10e"])
def test_the_spread_over_seeds_is_what_was_promised(name):
    ratio = ratios(*experiment(name, DesignSettings(starts=1)))
    assert np.abs(ratio - 1).max() < 0.1 + MONTE_CARLO
    assert abs(ratio.mean() - 1) < 0.05


@pytest.mark.large
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (DesignSettings(starts=1, motion="quintic"), {}),
        (DesignSettings(starts=1, motion="trapezoidal"), {}),
        (DesignSettings(starts=1, duration=5.0, harmonics=2), {}),
        (DesignSettings(starts=1, duration=8.0, harmonics=3), {"start": [1.0, -1.0]}),
        (DesignSettings(starts=1, duration=8.0, harmonics=3, rate=1000.0), {}),
    ],
    ids=["quintic", "trapezoidal", "short", "with a way in and out", "1 kHz"],
)
def test_other_motions_have_their_predicted_sigmas_too(settings, options):
    ratio = ratios(*experiment("scara_2r", settings, **options))
    assert np.abs(ratio - 1).max() < 0.1 + MONTE_CARLO
    assert abs(ratio.mean() - 1) < 0.05
