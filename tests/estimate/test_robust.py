"""Robust estimation: statsmodels' RLM on the same rows, coverage with clean and spoilt torques, bounded memory."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from estimate.synthetic import SyntheticRows, autoregression, names_of, smooth_columns, sources_of
from steelyard.errors import EstimateError
from steelyard.estimate import generalised, robust_fit, weighted
from steelyard.estimate import robust as module
from steelyard.observe import reduce_rows

sm = pytest.importorskip("statsmodels.api")

COLUMNS = 4
TRUE = np.arange(1.0, COLUMNS + 1)
THEIRS = {"huber": sm.robust.norms.HuberT, "tukey": sm.robust.norms.TukeyBiweight}
NOISES = {
    "normal": lambda rng, rows: rng.standard_normal(rows),
    "long tails": lambda rng, rows: rng.standard_t(3, rows),
    "spikes": lambda rng, rows: rng.standard_normal(rows) + 20 * (rng.random(rows) < 0.05),
}


def rows_of(rng, noise, rows=300, size=1.0):
    W = smooth_columns(rng, rows, COLUMNS)
    W[:, 0] = 1.0
    return np.column_stack([W, W @ TRUE + size * noise])


def least_squares(*sources):
    given = sources_of(*sources)
    return given, weighted(reduce_rows(given), sources[0].equations.names)


@pytest.mark.parametrize("norm", ["huber", "tukey"])
@pytest.mark.parametrize("noise", NOISES)
def test_it_is_that_of_statsmodels(norm, noise):
    rng = np.random.default_rng(3)
    rows = rows_of(rng, NOISES[noise](rng, 300), size=0.1)
    W, y = rows[:, :-1], rows[:, -1]
    found = robust_fit(*least_squares(SyntheticRows("a", [rows], [names_of(COLUMNS)], cuts=(80, 200))), norm)
    start = sm.RLM(y, W, M=THEIRS["huber"]()).fit(tol=1e-12, maxiter=500).params
    theirs = sm.RLM(y, W, M=THEIRS[norm]()).fit(tol=1e-12, maxiter=500, start_params=start)
    np.testing.assert_allclose(found.estimate.values, theirs.params, rtol=1e-6)
    np.testing.assert_allclose(found.estimate.sigma, theirs.bse, rtol=1e-4)  # bse: H1, the default
    np.testing.assert_allclose(list(found.scales.values()), theirs.scale, rtol=1e-4)
    light = np.mean(theirs.weights < 0.5)
    assert found.has_converged
    assert found.down_weighted[0].percent == pytest.approx(100 * light, abs=0.5)
    far = int(np.argmax(np.abs(theirs.resid)))
    assert found.down_weighted[0].time == pytest.approx(far / 100)


SEEDS = 60


@cache
def counted(noise, coefficients=()):
    """Return errors, half-widths and sigmas (seeds, c) of least squares and of both norms, two joints of other size."""
    found = {name: [] for name in ("none", "huber", "tukey")}
    for seed in range(SEEDS):
        rng = np.random.default_rng([11, seed])
        spikes = 20 * (rng.random((2, 300)) < 0.05) * (noise == "spikes")
        both = [
            rows_of(rng, autoregression(rng, 300, coefficients) + extra, size=size)
            for size, extra in zip((1.0, 3.0), spikes, strict=True)
        ]
        sources, plain = least_squares(SyntheticRows("a", both, [names_of(COLUMNS)] * 2))
        estimates = {"none": plain}
        for norm in ("huber", "tukey"):
            fit = robust_fit(sources, plain, norm)
            estimates[norm] = generalised(fit.sources, fit.estimate).estimate if coefficients else fit.estimate
        for name, one in estimates.items():
            found[name].append([one.values - TRUE, one.half_width(), one.sigma])
    return {name: np.array(values).transpose(1, 0, 2) for name, values in found.items()}


def coverage(figures):
    return np.mean(np.abs(figures[0]) <= figures[1], axis=0)


@pytest.mark.large
@pytest.mark.parametrize("norm", ["huber", "tukey"])
def test_clean_rows_cost_little_and_intervals_cover(norm):
    found = counted("clean")
    assert 0.92 < coverage(found[norm]).mean() < 0.98  # 240 intervals: 1.4 % standard error
    assert 1.0 < np.mean(found[norm][2]) / np.mean(found["none"][2]) < 1.06
    assert np.sqrt(np.mean(found[norm][0] ** 2) / np.mean(found["none"][0] ** 2)) < 1.06


@pytest.mark.large
def test_one_sided_spikes_miss_the_intervals_of_least_squares_but_not_those_of_tukey():
    found = counted("spikes")
    assert coverage(found["none"])[0] < 0.05
    assert coverage(found["tukey"]).min() > 0.87
    assert 0.92 < coverage(found["tukey"]).mean() < 0.98
    assert np.mean(found["tukey"][2]) < 0.3 * np.mean(found["none"][2])
    # Huber limits what a spike does, but all of them together move what is constant.
    assert coverage(found["huber"])[0] < 0.9
    assert 0.92 < coverage(found["huber"])[1:].mean() < 0.98
    far = [np.sqrt(np.mean(found[norm][0][:, 0] ** 2)) for norm in ("none", "huber", "tukey")]
    assert far[2] < far[1] < 0.2 * far[0]


@pytest.mark.large
def test_correlated_noise_is_whitened_after_spikes_are_gone():
    found = counted("spikes", (0.8,))
    assert 0.91 < coverage(found["tukey"]).mean() < 0.98
    assert coverage(found["none"])[0] < 0.1


def test_a_bounded_sample_of_residuals_gives_the_scale(monkeypatch):
    rng = np.random.default_rng(0)
    source = SyntheticRows("a", [rows_of(rng, rng.standard_t(3, 5000), 5000)], [names_of(COLUMNS)], cuts=(100, 2500))
    whole = robust_fit(*least_squares(source), "huber")
    monkeypatch.setattr(module, "_STORED", 500)
    sums = module._GroupSums(np.zeros(1))
    for part in np.array_split(np.arange(2000.0), 7):
        sums.add("huber", np.ones((len(part), 1)), np.array([0]), part, 1.0)
    stored = np.concatenate(sums.sizes)
    assert len(stored) <= 500
    np.testing.assert_array_equal(stored, np.arange(0.0, 2000.0, sums.every))
    part = robust_fit(*least_squares(source), "huber")
    assert next(iter(part.scales.values())) == pytest.approx(next(iter(whole.scales.values())), rel=0.15)
    np.testing.assert_allclose(part.estimate.values, whole.estimate.values, atol=0.2 * whole.estimate.sigma.max())


def test_short_recordings_share_their_scale_and_rows_without_noise_have_one():
    rng = np.random.default_rng(1)
    sources = [
        SyntheticRows(label, [rows_of(rng, rng.standard_normal(rows), rows)], [names_of(COLUMNS)])
        for label, rows in (("long", 400), ("short", 30))
    ]
    scales = robust_fit(*least_squares(*sources), "tukey").scales
    assert scales["short", "motor", "joint_1"] == pytest.approx(1.0, rel=0.2)
    exact = SyntheticRows("a", [rows_of(rng, np.zeros(100), 100)], [names_of(COLUMNS)])
    found = robust_fit(*least_squares(exact), "tukey")
    np.testing.assert_allclose(found.estimate.values, TRUE, rtol=1e-9)


def test_an_unknown_norm_is_refused():
    rng = np.random.default_rng(1)
    source = SyntheticRows("a", [rows_of(rng, rng.standard_normal(100), 100)], [names_of(COLUMNS)])
    with pytest.raises(EstimateError, match="robust: got 'tuckey', allowed are huber, tukey; did you mean 'tukey'"):
        robust_fit(*least_squares(source), "tuckey")
