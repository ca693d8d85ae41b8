"""Rows and factors with columns and noise of one's choice: what the estimators see of a recording, without an arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import cast

import numpy as np
from scipy import signal

from arms import arm
from steelyard.model import build_model
from steelyard.observe import (
    Equations,
    Factor,
    Fingerprint,
    Observations,
    Preparation,
    RecordingInfo,
    ResolvedPreparation,
    RowBlock,
    RowSource,
    RowStack,
    equations_of,
    resolve_preparation,
)
from steelyard.recording import Recording

RATE = 100.0
KINDS_JOINTS = (("motor", "joint_1"), ("motor", "joint_2"))


@cache
def _scara() -> Equations:
    return equations_of(build_model(arm("scara_2r")))


@cache
def resolved_for(factor: int) -> ResolvedPreparation:
    """Return a preparation that only decimates; with a factor of 1 nothing at all."""
    time = np.arange(200) / RATE
    log = Recording(_scara().joints, time, np.stack([np.sin(time), np.cos(time)]))
    return resolve_preparation(Preparation(mode="none", decimation=factor, standstill=0.0), [log])


class SyntheticRows:
    """Rows ``[W_e y_e]`` of one or two equations, in blocks and runs of one's choice."""

    def __init__(
        self,
        label: str,
        rows: Sequence[np.ndarray],
        columns: Sequence[tuple[str, ...]],
        factor: int = 1,
        cuts: Sequence[int] = (),
        gaps: Sequence[int] = (),
    ) -> None:
        names = tuple(dict.fromkeys(name for names in columns for name in names))
        kinds = KINDS_JOINTS[: len(rows)]
        self.equations = replace(_scara(), kinds_joints=kinds, columns=tuple(columns), names=names)
        self.resolved = resolved_for(factor)
        self.label, self.payload, self.columns = label, None, self.equations.columns
        self.sha256, self.samples, self.read = (label,), len(rows[0]), 1.0
        self.rows, self._cuts, self._gaps = [np.asarray(part, dtype=float) for part in rows], cuts, list(gaps)

        self.adjustment = None

    runs, block_runs, adjusted, __iter__ = (
        RowSource.runs, RowSource.block_runs, RowSource.adjusted, RowSource.__iter__,
    )  # fmt: skip

    def _blocks(self) -> Iterator[RowBlock]:
        count = len(self.rows[0])
        share = np.ones((len(self.rows), count))
        share[:, self._gaps] = 0.0
        bounds = [0, *self._cuts, count]
        for first, last in pairwise(bounds):
            motion = np.zeros((2, last - first))
            rows = tuple(part[first:last] for part in self.rows)
            time = np.arange(first, last) / RATE
            yield RowBlock(0, first, time, rows, share[:, first:last], motion, motion, motion, None)


def sources_of(*sources: SyntheticRows) -> list[RowSource]:
    """Return synthetic rows as the row sources that they stand for."""
    return [cast("RowSource", source) for source in sources]


def factor_of(rows: np.ndarray, columns: Sequence[str], group: tuple[str, str, str], block: int = 0) -> Factor:
    """Return the factor of rows (r, c + 1)."""
    stack = RowStack(rows.shape[1])
    stack.push(rows)
    return Factor(*group, block, tuple(columns), stack.triangle(), len(rows))


def observations_of(*factors: Factor) -> Observations:
    """Return observations of factors that were made by hand."""
    labels = dict.fromkeys(factor.recording for factor in factors)
    infos = tuple(RecordingInfo(label, (label,), None, 0) for label in labels)
    return Observations(Fingerprint("synthetic", "g", "u", "f", "n"), tuple(factors), infos)


def names_of(count: int) -> tuple[str, ...]:
    """Return names for that many columns."""
    return tuple(f"p{k}" for k in range(count))


def smooth_columns(rng: np.random.Generator, rows: int, columns: int, pole: float = 0.6) -> np.ndarray:
    """Return W (r, c) whose columns change slowly, as those of an arm in motion."""
    return np.asarray(signal.lfilter([1.0], [1.0, -pole], rng.standard_normal((rows + 50, columns)), axis=0))[50:]


def autoregression(rng: np.random.Generator, rows: int, coefficients: Sequence[float], size: float = 1.0) -> np.ndarray:
    """Return noise (r,) of ``v[t] = sum_k a_k v[t-k] + e[t]`` with e of a standard deviation ``size``."""
    white = size * rng.standard_normal(rows + 500)
    return np.asarray(signal.lfilter([1.0], [1.0, *(-np.asarray(coefficients))], white))[500:]
