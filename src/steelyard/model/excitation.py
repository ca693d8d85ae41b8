"""The rank of given data, kept apart from the rank of the structure.

Base parameters answer what an arm's torques can show under any motion. Whether one recorded motion shows it is
another question, with another cure: a better motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import BaseParameters


@dataclass(frozen=True)
class DataRank:
    """What a motion excites of a model's base parameters.

    Attributes:
        rank: Numerical rank of the base columns on the data.
        structural: Number of base parameters: the rank of rich motion.
        condition: Condition number of the base columns, each scaled to unit length; infinite if rank is missing.
        unexcited: Base parameters whose columns the other ones span on these data.
    """

    rank: int
    structural: int
    condition: float
    unexcited: tuple[str, ...]


def data_rank(base: BaseParameters, regressor: np.ndarray, tolerance: float = 1e-8) -> DataRank:
    """Return the rank of recorded data.

    Args:
        base: Base parameters of the model.
        regressor: Standard regressor on the data (r, p), rows of all recordings stacked.
        tolerance: Singular values below this, relative to the largest, count as zero (columns at unit length).
    """
    columns = regressor[:, list(base.kept_columns)]
    norms = np.linalg.norm(columns, axis=0)
    triangle = np.linalg.qr(columns / np.where(norms > 0, norms, 1.0), mode="r")
    _, singular, right = np.linalg.svd(triangle, full_matrices=True)
    singular = np.concatenate([singular, np.zeros(len(base.base) - len(singular))])
    missing = right[singular <= tolerance * singular[0]]
    unexcited = np.flatnonzero(np.abs(missing).max(axis=0, initial=0.0) > np.sqrt(tolerance))
    return DataRank(
        rank=len(base.base) - len(missing),
        structural=len(base.base),
        condition=float("inf") if len(missing) else float(singular[0] / singular[-1]),
        unexcited=tuple(base.names[k] for k in unexcited),
    )
