"""Sigmas that a design promises are those of simulated experiments with its motion, over 300 seeds of the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.design import Design, DesignSettings, design_experiment, design_limits
from steelyard.estimate import generalised, weighted
from steelyard.model import build_model
from steelyard.observe import Preparation, equations_of, reduce_rows, row_source, settle
from steelyard.robot import load_robot
from steelyard.simulate import Experiment, Noise, SimulatedRun, recording_of, simulate

SEEDS = 300
UNFILTERED = Preparation(mode="none", decimation=1, standstill=0.0, trim=0)
"""Positions without noise need no filter: every sample tells what it knows."""

MONTE_CARLO = 1 / np.sqrt(2 * (SEEDS - 1))
"""Relative standard deviation of a standard deviation over the seeds: 4 %."""


def experiment(name: str) -> tuple[Design, SimulatedRun]:
    """Return a design and its motion on the closed-loop arm: the same motion for every seed, other noise."""
    robot = load_robot(name)
    limits = design_limits(robot)
    noise = tuple(0.02 * limits.torque)
    design = design_experiment(robot, DesignSettings(starts=1, noise=noise), torque="motor", limits=limits)
    rehearsal = Experiment(record_rate=design.settings.rate, saturate=False, motor_noise=Noise("white", noise))
    run = simulate(robot, design.trajectory, rehearsal, [0])
    parts = ("q", "qd", "qdd", "motor_torque", "joint_torque")
    every = {part: np.broadcast_to(getattr(run, part), (SEEDS, *getattr(run, part).shape[1:])) for part in parts}
    return design, replace(run, seeds=tuple(range(SEEDS)), **every)


def ratios(design: Design, run: SimulatedRun, preparation: Preparation, *, gls: bool = False) -> np.ndarray:
    """Return the spread of each parameter over the seeds in units of what was promised."""
    equations = equations_of(build_model(run.robot, measured="motor"))
    columns = tuple(parameter.kept for parameter in equations.base.base)
    found = []
    for index in range(SEEDS):
        recording = recording_of(run, index)
        sources = [row_source(recording, equations, settle(preparation, [recording]), "recording")]
        estimate = weighted(reduce_rows(sources), equations.names)
        if gls:
            estimate = generalised(sources, estimate).estimate
        assert estimate.columns == columns
        found.append(estimate.values)
    assert design.figures.names == equations.base.names
    return np.std(found, axis=0, ddof=1) / design.figures.sigma


@pytest.mark.parametrize("name", ["scara_2r", pytest.param("ur10e", marks=pytest.mark.large)])
def test_the_spread_over_seeds_is_what_was_promised(name):
    ratio = ratios(*experiment(name), UNFILTERED)
    assert np.abs(ratio - 1).max() < 0.1 + MONTE_CARLO
    assert abs(ratio.mean() - 1) < 0.05


@pytest.mark.large
def test_filtering_costs_friction_a_little_and_inertias_nothing():
    """The rows that tell Coulomb from viscous friction lie about reversals, where identification looks away."""
    design, run = experiment("scara_2r")
    ratio = dict(zip(design.figures.names, ratios(design, run, Preparation(), gls=True), strict=True))
    friction = [value for name, value in ratio.items() if name.startswith("F")]
    inertia = [value for name, value in ratio.items() if not name.startswith("F")]
    assert np.abs(np.array(inertia) - 1).max() < 0.1 + MONTE_CARLO
    assert min(friction) > 0.95
    assert max(friction) < 1.35
