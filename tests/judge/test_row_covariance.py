"""Covariances by name, from rows and factors: against statsmodels on one equation."""

from __future__ import annotations

import numpy as np
import pytest

from estimate.synthetic import SyntheticRows, autoregression, names_of, smooth_columns, sources_of
from steelyard.errors import EstimateError
from steelyard.estimate import generalised, ordinary, weighted
from steelyard.judge.covariance import COVARIANCES, default_lags, weighted_residuals, with_covariance
from steelyard.observe import reduce_rows

sm = pytest.importorskip("statsmodels.api")

ROWS, COLUMNS = 240, 5


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    W = smooth_columns(rng, ROWS, COLUMNS)
    y = W @ np.arange(1.0, COLUMNS + 1) + autoregression(rng, ROWS, [0.5]) * (1 + np.abs(W[:, 0]))
    source = SyntheticRows("a", [np.column_stack([W, y])], [names_of(COLUMNS)], cuts=(1, 77, 100))
    given = sources_of(source)
    return W, y, given, reduce_rows(given)


def with_kind(kind, estimate, problem):
    return with_covariance(kind, estimate, problem[3], problem[2])


@pytest.mark.parametrize("method", [ordinary, weighted])
def test_the_sandwich_is_that_of_statsmodels(method, problem):
    theirs = sm.OLS(problem[1], problem[0]).fit(cov_type="HC3")
    ours = with_kind("sandwich", method(problem[3], names_of(COLUMNS)), problem)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)
    assert ours.covariance_kind == "sandwich"


@pytest.mark.parametrize("method", [ordinary, weighted])
def test_hac_is_that_of_statsmodels(method, problem):
    lags = default_lags(ROWS)
    theirs = sm.OLS(problem[1], problem[0]).fit(cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": False})
    ours = with_kind("hac", method(problem[3], names_of(COLUMNS)), problem)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)


@pytest.mark.parametrize("method", [ordinary, weighted])
def test_blocks_are_statsmodels_clusters(method, problem):
    counts = [factor.rows for factor in problem[3].factors]
    assert len(counts) > 10
    groups = np.repeat(np.arange(len(counts)), counts)
    theirs = sm.OLS(problem[1], problem[0]).fit(cov_type="cluster", cov_kwds={"groups": groups})
    ours = with_kind("block", method(problem[3], names_of(COLUMNS)), problem)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)


def test_classical_comes_back(problem):
    plain = ordinary(problem[3], names_of(COLUMNS))
    again = with_kind("classical", with_kind("hac", plain, problem), problem)
    np.testing.assert_allclose(again.covariance, sm.OLS(problem[1], problem[0]).fit().cov_params(), rtol=1e-8)
    np.testing.assert_array_equal(again.values, plain.values)


def test_two_joints_and_two_recordings_stack_in_the_sandwich():
    rng = np.random.default_rng(1)
    names, sizes = (("p0", "p1"), ("p1", "p2")), {"a": (1.0, 4.0), "b": (2.0, 0.5)}
    sources, W_all, y_all = [], [], []
    for label, pair in sizes.items():
        rows = [rng.standard_normal((60, 3)) * [1, 1, size] for size in pair]
        sources.append(SyntheticRows(label, rows, names))
        W_all += [np.insert(rows[0][:, :2], 2, 0, axis=1), np.insert(rows[1][:, :2], 0, 0, axis=1)]
        y_all += [part[:, -1] for part in rows]
    given = sources_of(*sources)
    observations = reduce_rows(given)
    estimate = weighted(observations, names_of(3))
    noise_groups = [(label, "motor", joint) for label in sizes for joint in ("joint_1", "joint_2")]
    weight = np.repeat([1 / estimate.deviations[group] for group in noise_groups], 60)
    theirs = sm.OLS(np.concatenate(y_all) * weight, np.vstack(W_all) * weight[:, None]).fit(cov_type="HC3")
    ours = with_covariance("sandwich", estimate, observations, given)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)
    # Blocks of time are clusters over both joints of a recording.
    groups = []
    for label in sizes:
        counts = [f.rows for f in observations.factors if f.recording == label and f.joint == "joint_1"]
        groups += 2 * [f"{label}{k}" for k, count in enumerate(counts) for _ in range(count)]
    clusters = np.unique(groups, return_inverse=True)[1]
    theirs = sm.OLS(np.concatenate(y_all) * weight, np.vstack(W_all) * weight[:, None]).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}
    )
    ours = with_covariance("block", estimate, observations, given)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)


def test_hac_does_not_reach_across_a_break_or_from_joint_to_joint():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((100, 3))
    whole = sources_of(SyntheticRows("a", [rows], [names_of(2)], gaps=(50,)))
    parts = sources_of(SyntheticRows("a", [rows[:50]], [names_of(2)]), SyntheticRows("b", [rows[51:]], [names_of(2)]))
    found = []
    for given in (whole, parts):
        observations = reduce_rows(given)
        found.append(with_covariance("hac", ordinary(observations, names_of(2)), observations, given).covariance)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_whitened_rows_have_white_residuals_and_a_sandwich_near_the_model(problem):
    rng = np.random.default_rng(3)
    W = smooth_columns(rng, 3000, 3)
    y = W @ [1.0, 2.0, 3.0] + autoregression(rng, 3000, [0.8])
    given = sources_of(SyntheticRows("a", [np.column_stack([W, y])], [names_of(3)], cuts=(500,)))
    fit = generalised(given, weighted(reduce_rows(given), names_of(3)))
    found = list(weighted_residuals(fit.estimate, given, fit.noise.whitening))
    assert [run.starts for run, _, _ in found] == [True, False]
    rho = np.concatenate([residual for _, _, residual in found])
    assert abs(rho[1:] @ rho[:-1] / (rho @ rho)) < 0.06
    np.testing.assert_allclose(rho @ rho, fit.estimate.system.squares, rtol=1e-9)
    careful = with_covariance("sandwich", fit.estimate, fit.whitened, given, fit.noise.whitening)
    np.testing.assert_allclose(careful.sigma, fit.estimate.sigma, rtol=0.1)
    blocks = with_covariance("block", fit.estimate, fit.whitened, given, fit.noise.whitening)
    np.testing.assert_allclose(blocks.sigma, fit.estimate.sigma, rtol=0.5)


def test_the_kind_at_hand_comes_back_as_it_is(problem):
    plain = weighted(problem[3], names_of(COLUMNS))
    assert with_kind("classical", plain, problem) is plain


def test_every_kind_has_a_name_and_others_are_refused(problem):
    plain = weighted(problem[3], names_of(COLUMNS))
    assert COVARIANCES == ("model", "classical", "sandwich", "block", "hac")
    with pytest.raises(EstimateError, match=r"covariance: got 'hack', allowed are model, .*did you mean 'hac'"):
        with_kind("hack", plain, problem)
    with pytest.raises(EstimateError, match="covariance 'model' belongs to method 'gls'; method 'wls' has no noise"):
        with_kind("model", plain, problem)
