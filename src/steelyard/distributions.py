"""Quantiles and tails of the chi-square, F, t and normal distributions, on ``scipy.special`` alone.

``scipy.stats`` builds some 130 distributions while it is imported, with their docstrings, and loads ``scipy.optimize``,
``scipy.sparse``, ``scipy.integrate``, ``scipy.ndimage`` and ``scipy.spatial`` for it: together with ``scipy.signal``
more than half of the start-up time of a command. The functions below are the ones that ``scipy.stats`` calls itself, so
the numbers are the same. They are named as there: ``cdf`` is the distribution function, ``sf`` what it leaves to 1,
``ppf`` the inverse of the former and ``isf`` of the latter. Arguments are numbers or arrays, degrees of freedom need
not be whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special


def chi2_cdf(x: ArrayLike, df: ArrayLike) -> np.ndarray:
    """Return the probability of a chi-square variable of ``df`` degrees of freedom below x."""
    return special.chdtr(df, x)


def chi2_sf(x: ArrayLike, df: ArrayLike) -> np.ndarray:
    """Return the probability of a chi-square variable of ``df`` degrees of freedom above x."""
    return special.chdtrc(df, x)


def chi2_ppf(p: ArrayLike, df: ArrayLike) -> np.ndarray:
    """Return the x below which a chi-square variable lies with probability p."""
    return 2 * special.gammaincinv(np.asarray(df) / 2, p)


def chi2_isf(p: ArrayLike, df: ArrayLike) -> np.ndarray:
    """Return the x above which a chi-square variable lies with probability p."""
    return special.chdtri(df, p)


def f_sf(x: ArrayLike, dfn: ArrayLike, dfd: ArrayLike) -> np.ndarray:
    """Return the probability of an F variable above x; ``dfn`` and ``dfd``: numerator and denominator."""
    return special.fdtrc(dfn, dfd, np.maximum(x, 0.0))  # rounding can make a statistic of 0 negative


def f_ppf(p: ArrayLike, dfn: ArrayLike, dfd: ArrayLike) -> np.ndarray:
    """Return the x below which an F variable lies with probability p."""
    return special.fdtri(dfn, dfd, p)


def f_isf(p: ArrayLike, dfn: ArrayLike, dfd: ArrayLike) -> np.ndarray:
    """Return the x above which an F variable lies with probability p."""
    return special.fdtri(dfn, dfd, 1 - np.asarray(p))


def t_sf(x: ArrayLike, df: ArrayLike) -> np.ndarray:
    """Return the probability of Student's t above x."""
    return special.stdtr(df, -np.asarray(x))


def t_ppf(p: ArrayLike, df: ArrayLike) -> np.ndarray:
    """Return the x below which Student's t lies with probability p."""
    return special.stdtrit(df, p)


def norm_cdf(x: ArrayLike) -> np.ndarray:
    """Return the probability of a standard normal variable below x."""
    return special.ndtr(x)


def norm_sf(x: ArrayLike) -> np.ndarray:
    """Return the probability of a standard normal variable above x."""
    return special.ndtr(-np.asarray(x))


def norm_ppf(p: ArrayLike) -> np.ndarray:
    """Return the x below which a standard normal variable lies with probability p."""
    return special.ndtri(p)


def binom_cdf(hits: int, count: int, p: float) -> float:
    """Return the probability of so many hits or fewer in ``count`` trials, each with probability p."""
    return float(special.bdtr(hits, count, p))


def wilson_interval(hits: int, count: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval of the share of hits in ``count`` trials."""
    z = float(special.ndtri(0.5 + level / 2))
    share = hits / count
    middle = 2 * hits + z**2
    reach = z * np.sqrt(4 * count * share * (1 - share) + z**2)
    whole = 2 * (count + z**2)
    # Without a hit, or with hits only, the interval ends at 0 or 1 but for rounding.
    low = 0.0 if hits == 0 else float(middle - reach) / whole
    return low, 1.0 if hits == count else float(middle + reach) / whole
