"""Values that no arm can have, against inertia matrices and friction computed by other means."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from from_benchmarks import benchmark_module
from oracles import pinocchio_model
from steelyard.estimate import weighted
from steelyard.identification import fit_arm
from steelyard.judge import combined, evaluate, impossible_values, plausibility
from steelyard.judge.plausibility import inertia_columns
from steelyard.model import build_model
from steelyard.observe import equations_of
from steelyard.robot import load_robot

planted = benchmark_module("planted_faults")

# The motors of the TX40's last joints are coupled: their friction may drive one joint while it brakes both.
ARMS = ["scara_2r", *(pytest.param(arm, marks=pytest.mark.large) for arm in ("ur10e", "staubli_tx40"))]


@cache
def fitted(arm):
    found = fit_arm(load_robot(arm), list(planted.logs_of(arm, 0)[:2]))
    errors = combined([evaluate(source, found.fit.estimate) for source in found.sources])
    return found, errors


def reversed_torque(found, joints):
    """Return factors with the torques of some joints reversed, and their weighted least squares."""
    factors = []
    for factor in found.fit.observations.factors:
        triangle = factor.triangle.copy()
        triangle[:, -1] *= -1 if factor.joint in joints else 1
        factors.append(replace(factor, triangle=triangle))
    observations = replace(found.fit.observations, factors=tuple(factors))
    return observations, weighted(observations, found.fit.estimate.columns)


@pytest.mark.parametrize("arm", ARMS)
def test_a_clean_log_has_no_impossible_value_and_the_size_of_its_file(arm):
    found, errors = fitted(arm)
    judged = plausibility(found.equations, found.fit.estimate, found.fit.observations, errors, errors)
    assert judged.impossible == ()
    assert judged.scale == pytest.approx(1.0, abs=0.05)
    assert judged.effort is not None
    assert judged.effort[1] < 1


@pytest.mark.parametrize("arm", ARMS)
def test_a_reversed_torque_makes_its_own_friction_drive(arm):
    found, errors = fitted(arm)
    joint = found.equations.joints[-1]
    observations, estimate = reversed_torque(found, {joint})
    impossible = impossible_values(found.equations, estimate, observations, errors.extent)
    assert f"friction of {joint} (motor)" in {one.what for one in impossible}
    assert impossible[0].joint == joint
    assert all(one.value < -4 * one.sigma for one in impossible)


def test_the_inertia_matrix_of_base_parameters_is_pinocchio_s():
    robot = load_robot("franka_panda")
    model = pinocchio_model(robot)
    pin = pytest.importorskip("pinocchio")
    data = model.createData()
    equations = equations_of(build_model(robot))
    names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    standard = {f"{n}{b.number}": v for b in robot.bodies for n, v in zip(names, b.inertia or (), strict=True)}
    values = equations.base_values(standard)
    q = np.random.default_rng(1).uniform(-1, 1, (7, 5))
    columns, _ = inertia_columns(equations, q)
    matrices = columns @ np.array([values[name] for name in equations.names])
    for matrix, posture in zip(matrices, q.T, strict=True):
        expected = pin.crba(model, data, posture)
        np.testing.assert_allclose(matrix, np.triu(expected) + np.triu(expected, 1).T, atol=1e-9)
