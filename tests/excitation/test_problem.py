"""The whole objective's gradient by the coefficients equals complex steps of the independent physics to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

from arms import arm
from independent import log_determinant
from steelyard.excitation.constraints import ConstraintBlock, joint_block, torque_block
from steelyard.excitation.criteria import criterion
from steelyard.excitation.family import FourierFamily
from steelyard.excitation.information import Information, unknowns
from steelyard.excitation.objective import by_criterion
from steelyard.excitation.problem import Problem
from steelyard.excitation.rows import KnownTorques
from steelyard.model import build_model
from steelyard.motion import motion_limits
from written_out import fourier_motion, information, rows_at

STEP = 1e-30
CASES = {
    "scara_2r": (("inertia", "Fvm", "Fcm"), "none", 24),
    "kuka_ir361": (("inertia", "Ia", "Fvm", "Fcm"), "paired", 14),
    "ur10e": (("inertia", "Ia", "Fvm", "Fcm", "offm"), "none", 16),
    "staubli_tx40": (("inertia", "Ia", "Fvm", "Fcm", "coupling"), "none", 16),
}


def problem_of(name: str, wanted: str = "d", time_scale: float = 1.0, *, limited: bool = False) -> Problem:
    """Return a problem on a small grid; where it is limited, with limits so tight that many are broken."""
    effects, payload, grid = CASES[name]
    robot = arm(name)
    model = build_model(robot, effects, "motor", payload, sign_width=0.3)
    joints = tuple(body.joint.name for body in robot.actuated)
    sizes = np.linspace(0.5, 2.0, len(joints))
    chosen = unknowns(model, sizes, 50.0, values=dict.fromkeys(model.names, 1.3))
    limits = motion_limits(joints, lower=-1.0, upper=0.9, velocity=1.2, acceleration=2.5, jerk=9.0)
    blocks: list[ConstraintBlock] = [joint_block(limits)] if limited else []
    if limited:
        known = KnownTorques(model, np.linspace(0.1, 1.0, len(model.names)))
        block = torque_block(known.function(payload != "none", 0.3), 3.0 * sizes, joints, "")
        assert block is not None
        blocks.append(block)
    return Problem(
        FourierFamily(joints, 3, 4.0, 2), Information(chosen), by_criterion(criterion(wanted), chosen), tuple(blocks),
        None, limits, grid, (1.0, time_scale),
    )  # fmt: skip


def point_of(problem: Problem, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    count = len(problem.limits.joints)
    coefficients = problem.family.random(np.full(count, 0.1), np.full(count, 1.5), rng)
    return problem.variables_of(coefficients, 1.2 if problem.is_duration_free else 1.0)


def along(problem: Problem, z: np.ndarray, way: np.ndarray) -> tuple[list[np.ndarray], complex]:
    """Return the motion on the grid and the time scale, moved by a complex step along a way of the variables."""
    family = problem.family
    assert isinstance(family, FourierFamily)
    (here, time_scale), (there, _) = problem.coefficients(z), problem.coefficients(z + way)
    scaled = time_scale * np.exp(1j * STEP * way[-1]) if problem.is_duration_free else 1.0
    moved = here + 1j * STEP * (there - here)
    return fourier_motion(family, moved, scaled, family.grid(problem.grid)), scaled


def log_value(problem: Problem, motion: list[np.ndarray], time_scale: complex, wanted: str) -> complex:
    """Return the criterion at sharpness 2 by determinants, inverses and squares of the independent information."""
    chosen = problem.information.unknowns
    weights = np.ones(len(chosen.deviations)) if wanted == "condition" else 1 / chosen.deviations**2
    samples = chosen.rate * problem.family.duration * time_scale
    M = information(chosen.model, chosen.columns, (motion[0], motion[1], motion[2]), weights)
    M = M * samples / problem.grid
    scale = np.sqrt(np.diag(M).real)
    if wanted == "d":
        return -(log_determinant(M / np.outer(scale, scale)) + 2 * np.log(scale).sum()) / len(M)
    if wanted == "worst_sigma":
        sizes = chosen.values
        inverse = np.linalg.inv(M / np.outer(scale, scale)) / np.outer(scale * sizes, scale * sizes)
        return np.log(np.diag(inverse).sum()) / 2
    inverse = np.linalg.inv(M)
    return 0.25 * (np.log((M * M.T).sum()) + np.log((inverse * inverse.T).sum()))


def slope(problem: Problem, z: np.ndarray, way: np.ndarray, wanted: str) -> tuple[float, float]:
    value = log_value(problem, *along(problem, z, way), wanted)
    return value.real, value.imag / STEP


def assert_slopes(problem: Problem, wanted: str, ways: np.ndarray, tolerance: float = 1e-9) -> None:
    z = point_of(problem)
    value, gradient = problem.lagrangian(z, problem.no_multipliers(1.0), 2.0)
    for way in ways:
        theirs, steepness = slope(problem, z, way, wanted)
        assert value == pytest.approx(theirs, rel=1e-9, abs=1e-9)
        assert gradient @ way == pytest.approx(steepness, abs=tolerance * float(np.linalg.norm(gradient)))


@pytest.mark.parametrize("wanted", ["d", "condition", pytest.param("worst_sigma", marks=pytest.mark.large)])
def test_every_slope_of_a_small_arm_is_that_of_complex_steps(wanted):
    problem = problem_of("scara_2r", wanted)
    assert_slopes(problem, wanted, np.eye(problem.variables))


@pytest.mark.large
@pytest.mark.parametrize("name", [name for name in CASES if name != "scara_2r"])
def test_slopes_of_larger_arms_are_those_of_complex_steps(name):
    problem = problem_of(name)
    ways = np.random.default_rng(2).normal(size=(2, problem.variables))
    assert_slopes(problem, "d", ways / np.linalg.norm(ways, axis=1, keepdims=True))


@pytest.mark.parametrize("wanted", ["d", "condition"])
def test_a_free_duration_has_its_slope_too(wanted):
    problem = problem_of("scara_2r", wanted, time_scale=2.0)
    assert problem.variables == 2 * 5 + 1
    assert [bound[-1] for bound in problem.bounds()] == pytest.approx([0.0, np.log(2.0)])
    assert not any(np.isfinite(bound[:-1]).any() for bound in problem.bounds())
    assert_slopes(problem, wanted, np.eye(problem.variables)[[0, 4, -1]])


@pytest.mark.large
def test_the_augmented_lagrangian_with_torques_and_a_free_duration():
    problem = problem_of("scara_2r", "d", time_scale=2.0, limited=True)
    z, rng = point_of(problem, 4), np.random.default_rng(3)
    empty = problem.no_multipliers(7.0, [rng.uniform(0, 0.05, len(block.names)) for block in problem.blocks])
    given = [np.abs(rng.normal(size=rows.shape)) * (rng.random(rows.shape) < 0.5) for rows in empty.values]
    multipliers = type(empty)(tuple(given), empty.penalty, empty.margins)
    value, gradient = problem.lagrangian(z, multipliers, 2.0, 0.7)

    def written_out(way: np.ndarray) -> complex:
        motion, time_scale = along(problem, z, way)
        total = 0.7 * log_value(problem, motion, time_scale, "d")
        for weights, margin, rows in zip(given, empty.margins, constraints(problem, motion), strict=True):
            pushed = weights + 7.0 * (rows + margin[:, None])
            total = total + ((pushed * (pushed.real > 0)) ** 2 - weights**2).sum() / 14.0
        return total

    for way in np.eye(problem.variables)[[0, 3, problem.variables // 2, problem.variables - 1]]:
        theirs = written_out(way)
        assert value == pytest.approx(theirs.real, rel=1e-10)
        assert gradient @ way == pytest.approx(theirs.imag / STEP, abs=1e-9 * float(np.linalg.norm(gradient)))


def constraints(problem: Problem, motion: list[np.ndarray]) -> list[np.ndarray]:
    """Return the constraints of a limited problem, block by block, written out for complex motions."""
    limits = problem.limits
    half = (limits.upper - limits.lower)[:, None] / 2
    rows = [(limits.lower[:, None] - motion[0]) / half, (motion[0] - limits.upper[:, None]) / half]
    for order, what in enumerate(("velocity", "acceleration", "jerk"), start=1):
        limit = getattr(limits, what)[:, None]
        rows += [motion[order] / limit - 1, -motion[order] / limit - 1]
    rows = [np.concatenate(rows)]
    model = problem.information.unknowns.model
    W = rows_at(model, model.names, (motion[0], motion[1], motion[2]), loaded=model.payload != "none")
    torque = np.einsum("epn,p->en", W, np.linspace(0.1, 1.0, len(model.names)))
    limit = 3.0 * np.linspace(0.5, 2.0, len(limits.joints))[:, None]
    return [*rows, np.where(torque.real > 0, torque, -torque) / limit - 1]


def test_constraints_alone_can_be_what_counts():
    problem = problem_of("scara_2r", limited=True)
    z = point_of(problem)
    value, _ = problem.lagrangian(z, problem.no_multipliers(4.0), 1.0, 0.0)
    broken = sum((np.maximum(rows, 0.0) ** 2).sum() for rows in problem.constraints(z))
    assert broken > 0
    assert value == pytest.approx(2.0 * broken)


def test_variables_and_coefficients_are_two_ways_to_say_the_same():
    problem = problem_of("ur10e", time_scale=3.0)
    rng = np.random.default_rng(5)
    coefficients = problem.family.random(np.zeros(6), np.ones(6), rng)
    back, time_scale = problem.coefficients(problem.variables_of(coefficients, 1.7))
    np.testing.assert_allclose(back, coefficients, atol=1e-12)
    assert time_scale == pytest.approx(1.7)
    q, qd, qdd, qddd = problem.samples(problem.variables_of(coefficients, 1.7))
    there = problem.trajectory(problem.variables_of(coefficients, 1.7)).at(1.7 * problem.family.grid(problem.grid))
    for got, wanted in ((q, there.q), (qd, there.qd), (qdd, there.qdd), (qddd, there.qddd)):
        np.testing.assert_allclose(got, wanted, atol=1e-10 * np.abs(wanted).max())


def test_unit_steps_of_all_variables_use_as_much_of_the_limits():
    problem = problem_of("scara_2r")
    basis, limits = problem.family.basis(problem.family.grid(problem.grid)), problem.limits
    still, _ = problem.coefficients(np.zeros(problem.variables))
    for variable in range(problem.variables):
        moved = problem.coefficients(np.eye(problem.variables)[variable])[0] - still
        row = int(np.abs(moved).sum(axis=1).argmax())
        sizes = [
            (limits.upper - limits.lower)[row] / 2,
            limits.velocity[row],
            limits.acceleration[row],
            limits.jerk[row],
        ]
        used = sum(((moved[row] @ part / size) ** 2).mean() for part, size in zip(basis, sizes, strict=True))
        assert used == pytest.approx(1.0)
