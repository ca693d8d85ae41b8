"""Identifiability: rank, preferred names, reasons."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.small_problems import PLANAR, joint_parameter, planar_problem, spatial_problem, spatial_truth
from steelyard.calibration.fit.identifiable import identifiability, preference
from steelyard.calibration.records import Unknown
from steelyard.errors import CalibrationError

TRUTH = np.array([0.3, -0.2, 0.4, 0.13, 0.02, 0.0, 0.0, 0.01, 0.0])


def planar():
    problem = planar_problem(TRUTH)
    return identifiability(problem.parameters, problem.at(problem.start).jacobian)


def spatial():
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (6, 20))
    problem = spatial_problem(np.zeros((20, 3, 3)), q)
    return problem, identifiability(problem.parameters, problem.at(problem.start).jacobian)


def test_the_base_is_selected_and_the_first_offset_is_reported_to_act_alike():
    found = planar()
    assert found.names == ("base_x", "base_y", "base_rz", "x[m1]", "y[m1]", "x2")
    reasons = {item.name: item for item in found.invisible}
    assert reasons["offset1"].why == "is indistinguishable from base_rz: offset1 acts as 1 base_rz"
    assert dict(reasons["offset2"].combination) == pytest.approx({"y[m1]": 0.1})
    assert reasons["z2"].why == "has no effect on any measured number"


def test_the_rank_of_a_spatial_arm_is_that_of_numpy():
    problem, found = spatial()
    jacobian = problem.at(problem.start).jacobian
    assert len(found.names) == np.linalg.matrix_rank(jacobian / np.linalg.norm(jacobian, axis=0).clip(1e-9)) == 33
    assert len(found.names) + len(found.invisible) == len(problem.parameters)
    assert found.gap[0] < 1e-12 < 0.01 < found.gap[1]
    assert {"offset1", "z2", "offset6", "ry6"} <= {item.name for item in found.invisible}
    assert {"offset2", "offset3", "offset4", "offset5", "x3", "x4"} <= set(found.names)


def test_the_regrouping_gives_what_dropped_deviations_do_to_kept_ones():
    problem, found = spatial()
    jacobian = problem.at(problem.start).jacobian
    deviation = 1e-3 * np.random.default_rng(0).standard_normal(len(problem.parameters))
    np.testing.assert_allclose(
        jacobian[:, found.columns] @ (found.regrouping @ deviation), jacobian @ deviation, atol=1e-15
    )


def test_a_column_of_rounding_errors_is_no_unknown():
    problem = planar_problem(TRUTH)
    jacobian = problem.at(problem.start).jacobian.copy()
    jacobian[:, 8] = 1e-14 * np.random.default_rng(0).standard_normal(len(jacobian))
    assert "z2" not in identifiability(PLANAR, jacobian).names


def test_a_compliance_is_judged_by_what_a_plausible_one_does():
    parameters = [joint_parameter("offset1"), Unknown("k2", "compliance", "rad/(N m)", 0.0, "spring")]
    torque = 1e3 * np.random.default_rng(0).standard_normal(12)
    jacobian = np.column_stack([np.ones(12), torque])
    assert identifiability(parameters, jacobian).names == ("offset1", "k2")
    jacobian[:, 1] *= 1e-9
    found = identifiability(parameters, jacobian)
    assert found.names == ("offset1",)
    assert found.invisible[0].why == "has no effect on any measured number"


def test_a_weak_unknown_is_kept_and_named_with_what_it_resembles():
    random = np.random.default_rng(0)
    jacobian = random.standard_normal((50, 3))
    jacobian[:, 2] = jacobian[:, 0] + 1e-3 * jacobian[:, 2]
    found = identifiability([joint_parameter(f"offset{k}") for k in (1, 2, 3)], jacobian)
    assert found.names == ("offset1", "offset2", "offset3")
    assert {(item.name, item.resembles) for item in found.weak} == {
        ("offset1", ("offset3",)),
        ("offset3", ("offset1",)),
    }
    scaled = jacobian / np.linalg.norm(jacobian, axis=0)
    assert found.weak[0].inflation == pytest.approx(np.sqrt(np.linalg.inv(scaled.T @ scaled)[0, 0]), rel=1e-6)
    assert found.condition == pytest.approx(np.linalg.cond(scaled), rel=1e-6)


def test_the_tolerance_decides_and_is_said():
    random = np.random.default_rng(0)
    jacobian = random.standard_normal((50, 2))
    jacobian[:, 1] = jacobian[:, 0] + 1e-4 * jacobian[:, 1]
    parameters = [joint_parameter("offset1"), joint_parameter("offset2")]
    assert len(identifiability(parameters, jacobian).names) == 2
    coarse = identifiability(parameters, jacobian, tolerance=1e-2)
    assert coarse.names == ("offset1",)
    assert coarse.tolerance == 1e-2


def test_unknowns_are_taken_in_the_order_base_markers_offsets_lengths_twists_springs_weights():
    names = (("base_rz", "base"), ("x[m]", "marker"), ("offset3", "joint"), ("x3", "joint"), ("rx3", "joint"),
             ("k3", "compliance"), ("k3x", "compliance"), ("MX3", "weight"))  # fmt: skip
    ranks = [preference(Unknown(name, group, "m", 0.0, "")) for name, group in names]  # pyright: ignore[reportArgumentType]
    assert ranks == sorted(set(ranks))


def test_bad_jacobians_are_refused():
    parameters = [joint_parameter("offset1"), joint_parameter("offset2")]
    with pytest.raises(CalibrationError, match=r"got shape \(5, 3\), needed is at least one equation by 2 unknowns"):
        identifiability(parameters, np.ones((5, 3)))
    with pytest.raises(CalibrationError, match=r"got shape \(0, 2\)"):
        identifiability(parameters, np.ones((0, 2)))
    with pytest.raises(CalibrationError, match="derivatives by offset2: got a value that is not finite"):
        identifiability(parameters, np.array([[1.0, np.nan]]))
    with pytest.raises(CalibrationError, match="none of the unknowns has an effect"):
        identifiability(parameters, np.zeros((4, 2)))


def test_dependencies_are_those_of_the_start_although_the_solution_blurs_them():
    problem, found = spatial()
    elsewhere = identifiability(problem.parameters, problem.at(spatial_truth()).jacobian)
    assert len(elsewhere.names) == len(found.names)
    assert elsewhere.names != found.names
    assert elsewhere.condition > 10 * found.condition
