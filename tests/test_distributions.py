"""Quantiles and tails are those of scipy.stats."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard import distributions

FREEDOMS = np.array([0.5, 1.0, 2.0, 3.7, 30.0, 1234.5])
PROBABILITIES = np.array([1e-9, 0.001, 0.3, 0.5, 0.95, 0.99865, 1 - 1e-9])
POINTS = np.array([0.0, 1e-3, 0.7, 2.0, 10.0, 300.0])


@pytest.mark.parametrize("kind", ["cdf", "sf", "ppf", "isf"])
def test_chi_square(kind):
    at = (POINTS if kind in ("cdf", "sf") else PROBABILITIES)[:, None]
    expected = getattr(stats.chi2, kind)(at, FREEDOMS)
    np.testing.assert_allclose(getattr(distributions, f"chi2_{kind}")(at, FREEDOMS), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["sf", "ppf", "isf"])
def test_f(kind):
    at = (np.append(POINTS, -1e-18) if kind == "sf" else PROBABILITIES)[:, None, None]
    expected = getattr(stats.f, kind)(at, FREEDOMS[:, None], FREEDOMS)
    np.testing.assert_allclose(
        getattr(distributions, f"f_{kind}")(at, FREEDOMS[:, None], FREEDOMS), expected, rtol=1e-13
    )


@pytest.mark.parametrize("kind", ["sf", "ppf"])
def test_t(kind):
    at = (np.append(POINTS, -3.0) if kind == "sf" else PROBABILITIES)[:, None]
    freedom = np.append(FREEDOMS, np.inf)
    expected = getattr(stats.t, kind)(at, freedom)
    np.testing.assert_allclose(getattr(distributions, f"t_{kind}")(at, freedom), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["cdf", "sf", "ppf"])
def test_normal(kind):
    at = PROBABILITIES if kind == "ppf" else np.append(POINTS, -POINTS)
    np.testing.assert_allclose(getattr(distributions, f"norm_{kind}")(at), getattr(stats.norm, kind)(at), rtol=1e-13)


@pytest.mark.parametrize(("hits", "count"), [(0, 5), (5, 5), (3, 7), (94, 100), (1, 1)])
def test_shares_of_hits(hits, count):
    expected = stats.binomtest(hits, count).proportion_ci(0.95, method="wilson")
    found = distributions.wilson_interval(hits, count, 0.95)
    assert found == pytest.approx((expected.low, expected.high), rel=1e-13)
    assert distributions.binom_cdf(hits, count, 0.95) == pytest.approx(stats.binom.cdf(hits, count, 0.95), rel=1e-13)
