"""Noise on positions, against a dense Fisher matrix written out with numeric slopes, and against Monte Carlo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import least_squares

from arms import arm
from steelyard.errors import DesignError
from steelyard.excitation.cramer_rao import NoisyPositions, cramer_rao_information, fitted_basis
from steelyard.excitation.criteria import criterion
from steelyard.excitation.family import FourierFamily, MotionFamily, ViaPointFamily
from steelyard.excitation.information import Information, Unknowns, unknowns
from steelyard.excitation.objective import by_criterion
from steelyard.excitation.problem import Problem
from steelyard.excitation.rows import Motion
from steelyard.model import Model, build_model
from steelyard.motion import motion_limits, quintic_profile
from steelyard.robot import INERTIAL_NAMES

COUNT = 31
RATE = 20.0
SIGMA_Q = 2e-2
STENCIL = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
"""Weights of the central difference of fourth order."""

CASES = {
    "fourier": ("kuka_ir361", "none", "motor"),
    "paired": ("kuka_ir361", "paired", "motor"),
    "loaded": ("scara_2r", "loaded", "motor"),
    "both": ("scara_2r", "none", "both"),
    "points": ("scara_2r", "none", "motor"),
}


def joints_of(model: Model) -> tuple[str, ...]:
    return tuple(body.joint.name for body in model.robot.actuated)


def values_of(model: Model) -> Mapping[str, float]:
    """Return values of every parameter: the robot's own inertias, random friction and payload."""
    rng = np.random.default_rng(5)
    values = {name: float(rng.uniform(0.2, 2.0)) for name in model.names}
    for body in model.robot.bodies:
        assert body.inertia is not None
        values.update({f"{symbol}{body.number}": x for symbol, x in zip(INERTIAL_NAMES, body.inertia, strict=True)})
    return values


@cache
def case(name: str) -> tuple[Unknowns, Mapping[str, float], MotionFamily]:
    robot, payload, measured = CASES[name]
    sides = ("inertia", "Fvm", "Fcm", "Fcl") if measured == "both" else ("inertia", "Fvm", "Fcm")
    model = build_model(arm(robot), sides, measured, payload, sign_width=0.1)
    chosen = unknowns(model, np.linspace(0.5, 2.0, len(model.rows)), RATE)
    joints = joints_of(model)
    family = ViaPointFamily(joints, 4, 1.5, quintic_profile(), "quintic") if name == "points" else None
    return chosen, values_of(model), family or FourierFamily(joints, 3, 6.0, 2)


@cache
def noisy(name: str) -> NoisyPositions:
    chosen, values, family = case(name)
    return NoisyPositions(chosen, values, family, deviations_of(chosen))


def deviations_of(chosen: Unknowns, size: float = SIGMA_Q) -> np.ndarray:
    return size * np.linspace(1.0, 1.5, len(joints_of(chosen.model)))


def coefficients_of(family: MotionFamily, seed: int = 1) -> np.ndarray:
    count = len(family.joints)
    return family.random(np.zeros(count), np.full(count, 1.2), np.random.default_rng(seed))


def motion_of(family: MotionFamily, coefficients: np.ndarray) -> Motion:
    q, qd, qdd, _ = (coefficients @ basis for basis in family.basis(family.grid(COUNT)))
    return q, qd, qdd


def regressors(model: Model, motion: Motion, loaded: bool) -> np.ndarray:
    """Return W (E, p, N), one instant after the other."""
    function = model.regressor if loaded else model.unloaded_regressor
    return np.stack([function(*columns).full() for columns in zip(*(x.T for x in motion), strict=True)], axis=2)


def slopes(model: Model, chi: np.ndarray, motion: Motion, loaded: bool) -> np.ndarray:
    """Return dtau/d(q, qd, qdd) (3, n, E, N) by differences, friction's Coulomb part held: left out of chi."""
    smooth = chi * [not parameter.symbol.startswith("Fc") for parameter in model.parameters]
    step, result = 1e-3, []
    for order in range(3):
        for joint in range(len(motion[0])):
            total = 0.0
            for times, weight in STENCIL.items():
                moved = [x.copy() for x in motion]
                moved[order][joint] += times * step
                torque = np.einsum("epn,p->en", regressors(model, (moved[0], moved[1], moved[2]), loaded), smooth)
                total = total + weight / step * torque
            result.append(total)
    return np.array(result).reshape(3, len(motion[0]), len(model.rows), -1)


def dense_bound(name: str, motion: Motion, basis: np.ndarray) -> np.ndarray:
    """Return the bound of the unknowns' covariance: the inverse of the whole Fisher matrix, every row written out."""
    chosen, values, _ = case(name)
    model, sigma_q = chosen.model, deviations_of(chosen)
    chi = np.array([values[parameter] for parameter in model.names])
    columns = [model.names.index(column) for column in chosen.columns]
    size, joints, terms = len(columns), len(sigma_q), basis.shape[1]
    fisher = np.zeros((size + len(chosen.loads) * joints * terms,) * 2)
    for run, loaded in enumerate(chosen.loads):
        start = size + run * joints * terms
        W, slope = regressors(model, motion, loaded), slopes(model, chi, motion, loaded)
        for instant in range(motion[0].shape[1]):
            for equation, sigma in enumerate(chosen.deviations):
                row = np.zeros(len(fisher))
                row[:size] = W[equation, columns, instant]
                by_motion = np.einsum("kj,km->jm", slope[:, :, equation, instant], basis[:, :, instant])
                row[start : start + joints * terms] = by_motion.ravel()
                fisher += np.outer(row, row) / sigma**2
            for joint in range(joints):
                row = np.zeros(len(fisher))
                row[start + joint * terms : start + (joint + 1) * terms] = basis[0, :, instant]
                fisher += np.outer(row, row) / sigma_q[joint] ** 2
    return np.linalg.inv(fisher)[:size, :size]


def told_basis(family: MotionFamily) -> np.ndarray:
    """Return the fitted basis written out: mean, sines, cosines; for via points what moving one of them does."""
    time = family.grid(COUNT)
    if isinstance(family, FourierFamily):
        x = 2 * np.pi / family.period * np.arange(1, family.harmonics + 1)[:, None]
        sin, cos, one = np.sin(x * time), np.cos(x * time), np.ones((1, COUNT))
        q = np.vstack([one, sin, cos])
        return np.array(
            [q, np.vstack([0 * one, x * cos, -x * sin]), np.vstack([0 * one, -(x**2) * sin, -(x**2) * cos])]
        )
    rows = []
    for point in range(family.size):
        alone = np.zeros((len(family.joints), family.size))
        alone[0, point] = 1.0
        there = family.trajectory(alone).at(time)
        rows.append([there.q[0], there.qd[0], there.qdd[0]])
    return np.array(rows).transpose(1, 0, 2)


def problem_of(name: str, information: NoisyPositions, wanted: str = "d") -> Problem:
    chosen, _, family = case(name)
    limits = motion_limits(family.joints, lower=-2.0, upper=2.0, velocity=3.0, acceleration=5.0)
    objective = by_criterion(criterion(wanted), chosen)
    return Problem(family, information, objective, (), None, limits, COUNT)  # type: ignore[arg-type]  # same methods


@pytest.mark.parametrize("name", CASES)
def test_positions_almost_exact_give_the_information_of_exact_positions(name: str):
    chosen, values, family = case(name)
    motion = motion_of(family, coefficients_of(family))
    information = Information(chosen)
    noisy_positions = NoisyPositions(chosen, values, family, deviations_of(chosen, 1e-9))
    exact = information.matrix(information.sampled(motion), "noise", 500.0)
    almost = noisy_positions.matrix(noisy_positions.sampled(motion), "noise", 500.0)
    size = np.sqrt(np.diag(exact))
    assert np.abs((almost - exact) / np.outer(size, size)).max() < 1e-9


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_the_inverse_of_the_whole_fisher_matrix(name: str):
    chosen, _, family = case(name)
    motion = motion_of(family, coefficients_of(family))
    information = noisy(name).sampled(motion)
    bound = np.linalg.inv(noisy(name).matrix(information, "noise", float(COUNT)))
    expected = dense_bound(name, motion, told_basis(family))
    size = np.sqrt(np.diag(expected))
    exact = Information(chosen)
    without = np.linalg.inv(exact.matrix(exact.sampled(motion), "noise", float(COUNT)))
    assert np.abs((bound - expected) / np.outer(size, size)).max() < 1e-9
    assert (np.diag(expected) / np.diag(without)).max() > 1.05  # noise on positions counts here


@pytest.mark.parametrize("wanted", ["d", "condition_weighted"])
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_central_differences(name: str, wanted: str):
    problem = problem_of(name, noisy(name), wanted)
    z = problem.variables_of(coefficients_of(problem.family))
    multipliers = problem.no_multipliers(1.0)
    _, gradient = problem.lagrangian(z, multipliers, 4.0)
    rng = np.random.default_rng(2)
    for _ in range(4):
        way = rng.standard_normal(len(z))
        step = 1e-4
        slope = sum(
            weight / step * problem.lagrangian(z + times * step * way, multipliers, 4.0)[0]
            for times, weight in STENCIL.items()
        )
        assert abs(slope - gradient @ way) < 1e-7 * np.linalg.norm(gradient) * np.linalg.norm(way)


def test_the_gradient_is_that_of_the_dense_fisher_matrix():
    chosen, _, family = case("loaded")
    coefficients, way = coefficients_of(family), coefficients_of(family, 7)
    motion = motion_of(family, coefficients)
    information = noisy("loaded")
    sampled = information.sampled(motion)
    matrix = information.matrix(sampled, "noise", float(COUNT))
    back = information.pull_back(motion, sampled, {"noise": np.linalg.inv(matrix)}, float(COUNT))
    gradient = sum(by @ basis.T for by, basis in zip(back, family.basis(family.grid(COUNT)), strict=False))
    basis, step = told_basis(family), 1e-3
    slope = -sum(
        weight
        / step
        * np.linalg.slogdet(dense_bound("loaded", motion_of(family, coefficients + times * step * way), basis))[1]
        for times, weight in STENCIL.items()
    )
    assert (gradient * way).sum() == pytest.approx(slope, rel=1e-6)
    assert len(chosen.columns) == len(matrix)


def test_more_noise_on_positions_never_makes_an_unknown_more_certain():
    chosen, values, family = case("loaded")
    motion = motion_of(family, coefficients_of(family))
    bounds = []
    for size in (1e-4, 1e-3, 1e-2, 1e-1):
        information = NoisyPositions(chosen, values, family, deviations_of(chosen, size))
        bounds.append(np.linalg.inv(information.matrix(information.sampled(motion), "noise", 100.0)))
    for less, more in pairwise(bounds):
        assert np.linalg.eigvalsh(more - less)[0] > -1e-9 * np.linalg.eigvalsh(more)[-1]
    assert np.diag(bounds[-1]).min() > 0
    assert (np.diag(bounds[-1]) > 1.2 * np.diag(bounds[0])).any()


def test_the_width_of_the_smooth_sign_makes_no_torque_steep():
    bounds = []
    for width in (0.0, 1e-6):
        model = build_model(arm("scara_2r"), sign_width=width)
        chosen = unknowns(model, np.array([0.5, 0.1]), RATE)
        family = FourierFamily(joints_of(model), 3, 6.0)
        motion = motion_of(family, coefficients_of(family))
        basis = fitted_basis(family, family.grid(COUNT))
        bounds.append(cramer_rao_information(chosen, values_of(model), motion, basis, np.full(2, SIGMA_Q)))
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-9, atol=1e-9 * np.abs(bounds[0]).max())


def test_samples_count_as_many_times_as_the_instants_stand_for():
    chosen, values, family = case("points")
    motion = motion_of(family, coefficients_of(family))
    basis, sigma_q = fitted_basis(family, family.grid(COUNT)), deviations_of(chosen)
    once = cramer_rao_information(chosen, values, motion, basis, sigma_q)
    sampled = noisy("points").sampled(motion)
    np.testing.assert_allclose(noisy("points").matrix(sampled, "noise", 7.0 * COUNT), 7 * once, rtol=1e-12)


def scara_torques(theta: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """Return P1's closed form with offsets instead of Coulomb friction, theta by name below; link 0.5 m long."""
    (_, q2), (v1, v2), (a1, a2) = motion
    zz1, zz2, mx2, my2, fv1, fv2, off1, off2 = theta
    lmx2, lmy2, c2, s2 = 0.5 * mx2, 0.5 * my2, np.cos(q2), np.sin(q2)
    turning = v2 * (2 * v1 + v2)
    tau1 = a1 * zz1 + v1 * fv1 + (a1 + a2) * zz2 + off1
    tau1 = tau1 + ((2 * a1 + a2) * c2 - turning * s2) * lmx2 - ((2 * a1 + a2) * s2 + turning * c2) * lmy2
    tau2 = (a1 + a2) * zz2 + (a1 * c2 + v1**2 * s2) * lmx2 + (v1**2 * c2 - a1 * s2) * lmy2 + v2 * fv2 + off2
    return np.array([tau1, tau2])


@pytest.mark.large
def test_maximum_likelihood_reaches_the_bound():
    runs, sigma, sigma_q = 300, np.array([0.1, 0.02]), np.array([4e-3, 4e-3])
    model = build_model(arm("scara_2r"), ("inertia", "Fvm", "offm"))
    values = {"ZZ1": 2.42, "M2": 4.0, "ZZ2": 0.064, "MX2": 0.262, "MY2": 0.05, "Fvm1": 0.7, "Fvm2": 0.1}
    chosen = unknowns(model, sigma, RATE, values=values)
    names = ("ZZ1", "ZZ2", "MX2", "MY2", "Fvm1", "Fvm2", "offm1", "offm2")
    order = [chosen.columns.index(name) for name in names]
    family = FourierFamily(joints_of(model), 2, 3.0)
    basis = told_basis(family)
    motion = motion_of(family, coefficients_of(family, 4))
    information = cramer_rao_information(chosen, values, motion, basis, sigma_q)[np.ix_(order, order)]
    delta = np.linalg.lstsq(basis[0].T, motion[0].T, rcond=None)[0].T
    truth = np.concatenate([chosen.values[order], delta.ravel()])

    def predicted(unknown: np.ndarray) -> np.ndarray:
        moved = np.einsum("jm,kmn->kjn", unknown[8:].reshape(2, -1), basis)
        parts = [scara_torques(unknown[:8], moved) / sigma[:, None], moved[0] / sigma_q[:, None]]
        return np.concatenate(parts).ravel()

    rng, errors, clean = np.random.default_rng(11), [], predicted(truth)
    for _ in range(runs):
        measured = clean + rng.standard_normal(len(clean))
        found = least_squares(lambda unknown, y=measured: predicted(unknown) - y, truth, x_scale="jac", method="lm")
        errors.append(found.x[:8] - truth[:8])
    bound = np.linalg.inv(information)
    ratios = np.mean(np.square(errors), axis=0) / np.diag(bound)
    assert (ratios > stats.chi2.ppf(5e-5, runs) / runs).all()
    assert (ratios < stats.chi2.ppf(1 - 5e-5, runs) / runs).all()
    together = np.einsum("ri,ij,rj->r", errors, information, errors).sum()
    assert together < stats.chi2.ppf(0.9995, 8 * runs)
    assert together > stats.chi2.ppf(0.0005, 8 * runs)
    exact = Information(chosen)
    without = np.linalg.inv(exact.matrix(exact.sampled(motion), "noise", float(COUNT)))[order, order]
    assert (np.diag(bound) / without).max() > 1.5  # the bound of exact positions would be missed


def test_rows_as_they_are_cannot_be_compared_with_positions():
    _, _, family = case("points")
    motion = motion_of(family, coefficients_of(family))
    sampled = noisy("points").sampled(motion)
    with pytest.raises(DesignError, match="choose condition_weighted"):
        noisy("points").matrix(sampled, "none", 100.0)
    with pytest.raises(DesignError, match="choose condition_weighted"):
        noisy("points").pull_back(motion, sampled, {"none": np.eye(len(sampled.information))}, 100.0)


def test_a_free_duration_is_refused():
    chosen, values, family = case("points")
    with pytest.raises(DesignError, match=r"free duration, 0\.5 to 2 .* fix the duration"):
        NoisyPositions(chosen, values, family, deviations_of(chosen), (0.5, 2.0))


@pytest.mark.parametrize("bad", [np.array([1e-3]), np.array([1e-3, 0.0]), np.array([1e-3, np.nan])])
def test_noise_of_positions_has_to_be_there_for_every_joint(bad: np.ndarray):
    chosen, values, family = case("points")
    with pytest.raises(DesignError, match=r"noise of positions: .* each of the 2 joints"):
        NoisyPositions(chosen, values, family, bad)


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "no parameter of the model is known"), ({"ZZZ1": 1.0}, "'ZZ1'"), ({"ZZ1": np.nan}, "'ZZ1' is nan")],
)
def test_values_of_the_parameters_are_needed(values: dict[str, float], message: str):
    chosen, _, family = case("points")
    with pytest.raises(DesignError, match=message):
        NoisyPositions(chosen, values, family, deviations_of(chosen))


def test_too_few_instants_for_the_coefficients_are_refused():
    _, _, family = case("points")
    motion = motion_of(family, coefficients_of(family))
    few = motion[0][:, :3], motion[1][:, :3], motion[2][:, :3]
    with pytest.raises(DesignError, match=r"the 4 coefficients .* not identifiable from 3 instants"):
        noisy("points").sampled(few)
