"""Reduction to essential parameters: against statsmodels' F tests, with the list of what went and why."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from estimate.synthetic import SyntheticRows, factor_of, names_of, observations_of, smooth_columns, sources_of
from steelyard.errors import EstimateError
from steelyard.estimate import generalised, ordinary, weighted
from steelyard.judge.reduction import LeftOutBlocks, _wald, reduce_parameters, scaled_least_squares
from steelyard.observe import reduce_rows

sm = pytest.importorskip("statsmodels.api")

GROUP = ("a", "motor", "joint_1")
TRUE = np.array([5.0, 0.0, 3.0, 0.02, 0.0, -4.0])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    W = rng.standard_normal((200, 6))
    W[:, 4] += W[:, 0]
    return np.column_stack([W, W @ TRUE + rng.standard_normal(200)])


@pytest.fixture(scope="module")
def observations(rows):
    return observations_of(factor_of(rows, names_of(6), GROUP))


@pytest.fixture(scope="module")
def full(observations):
    return ordinary(observations, names_of(6))


def fit(rows, names):
    index = [int(name[1:]) for name in names]
    return sm.OLS(rows[:, -1], rows[:, index]).fit()


def walk(rows, reduction):
    """Yield every step with statsmodels' fits before and after it, and the names before."""
    names = list(names_of(6))
    for step in reduction.steps:
        before = fit(rows, names)
        yield step, before, fit(rows, [name for name in names if name != step.name]), tuple(names)
        names.remove(step.name)


def test_every_step_takes_the_weakest_with_the_f_statistic_of_statsmodels(rows, full):
    """Both tests have the residual variance of the full model: t^2 of the step, Wald's F of all that went."""
    reduction = reduce_parameters(full, "rsd", relative_sigma=0.0)
    assert len(reduction.steps) == 5
    whole, gone = fit(rows, names_of(6)), []
    for step, before, after, names in walk(rows, reduction):
        t = np.abs(before.tvalues) * np.sqrt(before.scale / whole.scale)
        assert step.name == names[int(np.argmin(t))]
        np.testing.assert_allclose(step.relative_sigma, 100 / t.min(), rtol=1e-8)
        np.testing.assert_allclose(step.f, t.min() ** 2, rtol=1e-8)
        gone.append(int(step.name[1:]))
        np.testing.assert_allclose(step.total_f, whole.compare_f_test(after)[0], rtol=1e-8)
        np.testing.assert_allclose(step.total_f, whole.f_test(np.eye(6)[gone]).fvalue, rtol=1e-8)


@pytest.mark.parametrize("method", [ordinary, weighted])
def test_stepwise_has_the_variance_of_the_step_before(rows, observations, method):
    """P5.6: sigmas keep the deviations of the full model and F does not, with weights and without."""
    stepwise = reduce_parameters(method(observations, names_of(6)), "stepwise", level=1e-12)
    assert len(stepwise.steps) > 2
    for step, before, after, _ in walk(rows, stepwise):
        expected = np.sqrt(fit(rows, names_of(6)).scale / before.scale) / np.abs(before.tvalues).min()
        np.testing.assert_allclose(step.relative_sigma, 100 * expected, rtol=1e-8)
        np.testing.assert_allclose(step.f, before.compare_f_test(after)[0], rtol=1e-8)
        np.testing.assert_allclose(step.total_f, fit(rows, names_of(6)).compare_f_test(after)[0], rtol=1e-8)


def test_sigmas_that_are_reported_three_times_larger_make_f_nine_times_smaller(observations):
    estimate = weighted(observations, names_of(6))
    wide = replace(estimate, covariance=9 * estimate.covariance)
    for rule in ("stepwise", "rsd"):
        plain, wider = (reduce_parameters(one, rule, level=1e-12, relative_sigma=0.0).steps for one in (estimate, wide))
        assert len(plain) > 2
        for one, other in zip(plain, wider, strict=False):
            np.testing.assert_allclose((other.f, other.relative_sigma), (one.f / 9, 3 * one.relative_sigma), rtol=1e-9)


def test_parameters_of_one_direction_are_judged_along_it(full):
    """Correlation 1: of two parameters only their sum, in sigmas, has a variance, and that is 2."""
    covariance = np.eye(6)
    covariance[1, 3] = covariance[3, 1] = 6.0
    covariance[1, 1], covariance[3, 3] = 4.0, 9.0
    both = replace(full, covariance=covariance)
    x = full.values[1] / 2 + full.values[3] / 3
    assert _wald(both, ["p1", "p3"]) == pytest.approx(x**2 / 4)
    nearly = replace(full, covariance=np.where(covariance == 6, 5.94, covariance))  # correlation 0.99
    pair = full.values[[1, 3]]
    assert _wald(nearly, ["p1", "p3"]) == pytest.approx(pair @ np.linalg.solve([[4, 5.94], [5.94, 9]], pair) / 2)
    assert _wald(both, ["p0", "p2"]) == pytest.approx((full.values[0] ** 2 + full.values[2] ** 2) / 2)


def test_elimination_by_f_ends_before_the_first_parameter_that_matters(rows, full):
    reduction = reduce_parameters(full, "f")
    np.testing.assert_allclose(reduction.threshold, stats.f.isf(0.05, 1, 194), rtol=1e-12)
    assert {step.name for step in reduction.steps} == {"p1", "p3", "p4"}
    assert all(step.f < reduction.threshold for step in reduction.steps)
    assert reduction.estimate.columns == ("p0", "p2", "p5")
    theirs = fit(rows, ("p0", "p2", "p5"))
    np.testing.assert_allclose(reduction.estimate.values, theirs.params, rtol=1e-9)
    scale = np.sqrt(fit(rows, names_of(6)).scale / theirs.scale)
    np.testing.assert_allclose(reduction.estimate.sigma, scale * theirs.bse, rtol=1e-8)
    assert (np.abs(theirs.tvalues) ** 2 > reduction.threshold).all()


def test_the_threshold_tends_to_3_85_for_many_rows(full):
    assert abs(stats.f.isf(0.05, 1, 10_000) - 3.85) < 0.01
    assert reduce_parameters(full, "f", level=0.01).threshold > reduce_parameters(full, "f").threshold


def test_what_is_left_is_marked_as_after_selection(full):
    assert reduce_parameters(full, "f").estimate.after_selection
    unreduced = reduce_parameters(full, "none")
    assert unreduced.estimate is full
    assert unreduced.steps == ()
    assert not unreduced.estimate.after_selection


def test_a_protected_parameter_stays(full):
    reduction = reduce_parameters(full, "f", protected=["p1"])
    assert "p1" in reduction.estimate.columns
    assert {step.name for step in reduction.steps} == {"p3", "p4"}
    assert reduction.protected == ("p1",)
    everything = reduce_parameters(full, "f", protected=names_of(6))
    assert everything.steps == ()


def test_a_protected_parameter_does_not_stop_the_others_from_going(full):
    """Also where the protected one is the weakest of all."""
    weakest = reduce_parameters(full, "f").steps[0].name
    others = {step.name for step in reduce_parameters(full, "f", protected=[weakest]).steps}
    assert others == {"p1", "p3", "p4"} - {weakest}


def test_rsd_goes_on_until_every_relative_sigma_is_below_the_threshold(full):
    reduction = reduce_parameters(full, "rsd", relative_sigma=20.0)
    assert all(step.relative_sigma > 20 for step in reduction.steps)
    assert (reduction.estimate.relative_sigma <= 20).all()
    assert reduction.threshold == 20.0
    assert reduce_parameters(full, "rsd").steps == reduction.steps
    assert reduce_parameters(full, "rsd").threshold == 20.0
    last = reduction.steps[-1].relative_sigma
    assert len(reduce_parameters(full, "rsd", relative_sigma=last).steps) == len(reduction.steps) - 1


def test_bic_ends_at_its_smallest_along_the_way(rows, full):
    way = reduce_parameters(full, "rsd", relative_sigma=0.0)
    reduction = reduce_parameters(full, "bic")
    criteria = [_bic(rows, names_of(6))]
    left = list(names_of(6))
    for step in way.steps:
        left.remove(step.name)
        criteria.append(_bic(rows, left))
        np.testing.assert_allclose(step.bic, criteria[-1], rtol=1e-9)
    best = int(np.argmin(criteria))
    assert [step.name for step in reduction.steps] == [step.name for step in way.steps[:best]]
    np.testing.assert_allclose(reduction.threshold, criteria[best], rtol=1e-9)
    assert 0 < best < 5


def _bic(rows, names):
    """Return statsmodels' BIC less the terms that all models share."""
    constant = len(rows) * (np.log(2 * np.pi) + 1)
    return fit(rows, names).bic - constant


def test_order_follows_the_sigmas_of_the_noise_model():
    """Slow noise makes an offset look certain to plain least squares; the noise model lets it go."""
    rng = np.random.default_rng(3)
    W = np.column_stack([np.ones(400), smooth_columns(rng, 400, 2, pole=0.0)])
    noise = np.zeros(400)
    for t in range(1, 400):
        noise[t] = 0.97 * noise[t - 1] + rng.standard_normal()
    y = W @ [0.0, 2.0, 1.0] + noise - noise.mean() + 1.0
    given = sources_of(SyntheticRows("a", [np.column_stack([W, y])], [("off", "p1", "p2")]))
    plain = weighted(reduce_rows(given), ("off", "p1", "p2"))
    careful = generalised(given, plain).estimate
    assert "off" in reduce_parameters(plain, "f").estimate.columns
    reduction = reduce_parameters(careful, "f")
    assert [step.name for step in reduction.steps] == ["off"]
    assert reduction.estimate.covariance_kind == "model"
    # What is left has the covariance that the reported one gives to a linear function of the full estimate.
    A = careful.system.triangle[:-1, :-1].T @ careful.system.triangle[:-1, :-1]
    carry = np.column_stack([np.linalg.solve(A[1:, 1:], A[1:, 0]), np.eye(2)])
    np.testing.assert_allclose(reduction.estimate.values, carry @ careful.values, rtol=1e-9)
    np.testing.assert_allclose(reduction.estimate.covariance, carry @ careful.covariance @ carry.T, rtol=1e-9)


def test_one_parameter_is_never_taken_away():
    rng = np.random.default_rng(4)
    rows = np.column_stack([rng.standard_normal(50), rng.standard_normal(50)])
    estimate = ordinary(observations_of(factor_of(rows, ("p0",), GROUP)), ("p0",))
    assert reduce_parameters(estimate, "f").estimate.columns == ("p0",)


def test_unknown_rules_and_names_are_refused(full):
    with pytest.raises(
        EstimateError, match="reduction: got 'rds', allowed are f, stepwise, rsd, bic, none; did you mean 'rsd'"
    ):
        reduce_parameters(full, "rds")
    with pytest.raises(EstimateError, match="protected parameter 'p9' is not among those estimated; did you mean 'p"):
        reduce_parameters(full, "f", protected=["p9"])


def many_small_effects(t):
    """Return 400 rows in 20 blocks with one large parameter and 30 small ones, uncorrelated, all with this t value."""
    rng = np.random.default_rng(8)
    orthogonal = np.linalg.qr(rng.standard_normal((400, 32)))[0] * 20
    W, noise = orthogonal[:, :31], orthogonal[:, 31]
    sigma = 1 / np.sqrt(400 - 31)
    rows = np.column_stack([W, W @ np.concatenate([[5.0], np.full(30, t * sigma)]) + noise])
    return observations_of(*(factor_of(rows[20 * b : 20 * b + 20], names_of(31), GROUP, b) for b in range(20)))


def test_harmless_removals_do_not_add_up():
    """Every step's own test allows it, t = 1.6; the test of all that went stops at the fourth of thirty."""
    estimate = weighted(many_small_effects(1.6), names_of(31))
    careful, stepwise = reduce_parameters(estimate, "f"), reduce_parameters(estimate, "stepwise")
    assert len(stepwise.steps) == 30
    assert len(careful.steps) == 3
    assert careful.steps[-1].total_f == pytest.approx(1.6**2, rel=1e-6)
    assert stats.f.isf(0.05, 4, 369) < 1.6**2 < stats.f.isf(0.05, 3, 369)


def test_a_reduced_model_that_predicts_left_out_blocks_worse_is_not_taken():
    """Sigmas ten times too large would let everything go; the blocks that a fit leaves out say otherwise."""
    data = many_small_effects(10.0)
    estimate = weighted(data, names_of(31))
    wide = replace(estimate, covariance=100 * estimate.covariance)
    blocks = LeftOutBlocks(data, data, estimate.weights, estimate.columns)
    assert len(reduce_parameters(wide, "f").steps) == 30
    guarded = reduce_parameters(wide, "f", left_out=blocks)
    assert guarded.steps == ()
    assert guarded.estimate is wide
    assert "predicted worse" in guarded.stopped


def test_parameters_that_are_nothing_still_go_with_left_out_blocks():
    data = many_small_effects(0.1)
    estimate = weighted(data, names_of(31))
    guarded = reduce_parameters(estimate, "f", left_out=LeftOutBlocks(data, data, estimate.weights, estimate.columns))
    assert len(guarded.steps) > 15


def test_left_out_blocks_are_predicted_by_fits_of_the_others():
    rng = np.random.default_rng(11)
    rows = np.column_stack([W := rng.standard_normal((60, 3)), W @ [1.0, 2.0, 3.0] + rng.standard_normal(60)])
    data = observations_of(*(factor_of(rows[10 * b : 10 * b + 10], names_of(3), GROUP, b) for b in range(6)))
    squares = LeftOutBlocks(data, data, {GROUP: 1.0}, names_of(3), parts=3).squares(("p0", "p2"))
    expected = []
    for part in range(3):
        unseen = np.arange(60) // 20 == part
        x = np.linalg.lstsq(rows[~unseen][:, [0, 2]], rows[~unseen][:, -1], rcond=None)[0]
        expected.append([np.sum((rows[unseen][:, -1] - rows[unseen][:, [0, 2]] @ x) ** 2)])
    np.testing.assert_allclose(squares, expected, rtol=1e-9)


def test_a_reason_to_hold_leaves_everything(full):
    held = reduce_parameters(full, "f", hold="the recordings disagree")
    assert held.estimate is full
    assert (held.steps, held.stopped) == ((), "the recordings disagree")


def predicting(full, *errors):
    """Return the reduction of five steps with given prediction errors (p, u) of six parameters, of five, and so on."""
    left_out: Any = SimpleNamespace(squares=lambda columns: np.array(errors[6 - len(columns)], dtype=float))
    return reduce_parameters(full, "rsd", relative_sigma=0.0, left_out=left_out)


SAME = [[1.0], [4.0]]


def test_steps_go_on_while_no_part_is_predicted_worse_by_two_per_cent(full):
    whole = predicting(full, *[SAME] * 6)
    assert (len(whole.steps), whole.stopped) == (5, "")
    slightly = [[1.0], [4 * 1.019**2]]
    worse = [[0.5], [4 * 1.021**2]]
    assert len(predicting(full, SAME, slightly, slightly, slightly, slightly, SAME).steps) == 5
    stopped = predicting(full, SAME, SAME, SAME, worse, SAME, SAME)
    assert len(stopped.steps) == 2
    assert stopped.stopped == (
        "the rule would leave out 5 parameters; it was stopped after 2, because with fewer the parts of the training "
        "data that a fit leaves out are predicted worse than with all parameters"
    )
    assert len(stopped.estimate.columns) == 4


def test_the_last_step_predicts_all_parts_together_no_worse(full):
    together = [[1.0], [4.01]]
    assert len(predicting(full, SAME, SAME, together, together, together, together).steps) == 1
    assert len(predicting(full, SAME, together, [[0.99], [4.01]], together, together, together).steps) == 2
    # Forces and torques are not added: each unit has to be predicted as well as before.
    two = [[1.0, 9.0], [4.0, 9.0]]
    other = [[0.5, 9.0], [4.0, 9.01]]
    assert len(predicting(full, two, two, two, two, other, other).steps) == 3


def test_parts_that_are_predicted_exactly_stay_so(full):
    exact = [[0.0], [4.0]]
    assert len(predicting(full, exact, exact, exact, [[1e-9], [3.0]], exact, exact).steps) == 2


def test_every_recording_is_cut_into_five_parts_of_consecutive_blocks():
    rng = np.random.default_rng(12)
    sizes = {"a": 12, "b": 5}
    rows = {(name, b): rng.standard_normal((4, 3)) for name, count in sizes.items() for b in range(count)}
    factors = [factor_of(part, names_of(2), (name, "motor", "joint_1"), 10 * b) for (name, b), part in rows.items()]
    data, weights = observations_of(*factors), {(name, "motor", "joint_1"): 1.0 for name in sizes}
    found = LeftOutBlocks(data, data, weights, names_of(2))
    assert len(found.parts) == 5
    # 12 blocks: 3, 2, 3, 2, 2; the blocks of the other recording are a part each.
    ends = {"a": [0, 3, 5, 8, 10, 12], "b": range(6)}
    for part, (triangle, (unseen,)) in enumerate(found.parts):
        own = [key for key in rows if ends[key[0]][part] <= key[1] < ends[key[0]][part + 1]]
        inside = np.vstack([rows[key] for key in own])
        outside = np.vstack([rows[key] for key in rows if key not in own])
        np.testing.assert_allclose(unseen.T @ unseen, inside.T @ inside, atol=1e-12)
        np.testing.assert_allclose(triangle.T @ triangle, outside.T @ outside, atol=1e-12)


@pytest.mark.parametrize(("part", "held"), [(1e-3, True), (1e-10, False)])
def test_directions_that_the_other_parts_hardly_excite_get_no_value(part, held):
    """Columns a and a + part b: a motion along b is predicted by the fit, or not at all where b is but rounding."""
    rng = np.random.default_rng(15)
    a, b = rng.standard_normal((2, 2, 50))
    b[1] *= 1e3 / part  # unseen motion is along b
    blocks = [np.column_stack([a[k], a[k] + part * b[k], a[k] + 3 * part * b[k]]) for k in range(2)]
    data = observations_of(*(factor_of(rows, names_of(2), GROUP, k) for k, rows in enumerate(blocks)))
    squares = LeftOutBlocks(data, data, {GROUP: 1.0}, names_of(2), parts=2).squares(names_of(2))
    error = squares[1, 0] / np.sum(blocks[1][:, -1] ** 2)
    assert error < 1e-8 if held else error > 0.1


def test_left_out_rows_are_predicted_as_measured_by_fits_of_weighted_ones():
    """Two equations, one in N: fitted are other rows (as whitened) with weights; without weight one is not fitted."""
    rng = np.random.default_rng(13)
    groups = [("a", "motor", f"joint_{k}") for k in (1, 2, 3)]
    measured, used = (rng.standard_normal((2, 3, 6, 3)) for _ in range(2))  # part, equation
    observed = [
        observations_of(*(factor_of(given[b, e], names_of(2), groups[e], b) for b in range(2) for e in range(3)))
        for given in (measured, used)
    ]
    weights = {groups[0]: 2.0, groups[1]: 0.5}
    found = LeftOutBlocks(
        observed[0], observed[1], weights, names_of(2), lambda f: "N" if f.joint == "joint_2" else "N m", parts=2
    ).squares(("p0", "p1"))
    expected = []
    for part in range(2):
        fitted = np.vstack([2.0 * used[1 - part, 0], 0.5 * used[1 - part, 1]])
        x = np.linalg.lstsq(fitted[:, :2], fitted[:, 2], rcond=None)[0]
        errors = np.sum((measured[part][..., :2] @ x - measured[part][..., 2]) ** 2, axis=1)
        expected.append([errors[1], errors[0] + errors[2]])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_least_squares_of_scaled_columns_gives_none_to_what_is_not_there():
    rng = np.random.default_rng(14)
    rows = rng.standard_normal((20, 3)) * [1e-12, 1.0, 1e6]
    y = rng.standard_normal(20)
    found = scaled_least_squares(np.column_stack([rows, np.zeros(20)]), y, 1e-8)
    np.testing.assert_allclose(found[:3] * [1e-12, 1.0, 1e6], np.linalg.lstsq(rows / [1e-12, 1, 1e6], y)[0], rtol=1e-9)
    assert found[3] == 0
    twice = scaled_least_squares(np.column_stack([rows[:, 1], (1 + 1e-10 * y) * rows[:, 1]]), 4 * rows[:, 1], 1e-8)
    np.testing.assert_allclose(twice, [2, 2], rtol=1e-6)
