"""Motions over intervals of time."""

from __future__ import annotations

import numpy as np
import pytest

from random_motions import KINDS, random_trajectory
from steelyard.errors import DesignError
from steelyard.excitation.certify.torque_bounds import breaks, spans
from steelyard.motion import Trajectory, fourier, with_approach

JOINTS = ("a", "b", "c")


def random_intervals(trajectory: Trajectory, width: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals inside sections, none longer than the width."""
    rng = np.random.default_rng(seed)
    edges = breaks(trajectory)
    section = rng.integers(0, len(edges) - 1, count)
    low, high = edges[section], edges[section + 1]
    begin = low + rng.random(count) * (high - low)
    return begin, np.minimum(begin + width * rng.random(count), high)


@pytest.mark.parametrize("width", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_motion_stays_within_its_spans(kind: str, width: float, seed: int) -> None:
    trajectory = random_trajectory(kind, JOINTS, seed)
    begin, end = random_intervals(trajectory, width, 150, seed)
    span = spans(trajectory, begin, end)
    for part in np.concatenate([np.linspace(1e-9, 1 - 1e-9, 41), np.random.default_rng(seed).random(20)]):
        there = trajectory.at(begin + part * (end - begin))
        values = np.array([there.q, there.qd, there.qdd, there.qddd])
        # The jerk may jump at the very end of an interval; position to acceleration may not.
        assert (np.abs(values - span.middles) <= span.radii + 1e-14)[:3].all()
        inside = end - begin > 1e-6
        assert (np.abs(values - span.middles) <= span.radii + 1e-14)[3][:, inside].all()


@pytest.mark.parametrize("kind", KINDS)
def test_radii_shrink_to_those_of_the_next_derivative(kind: str) -> None:
    trajectory = random_trajectory(kind, JOINTS, 5)
    begin, end = random_intervals(trajectory, 1e-5, 100, 1)
    begin, end = begin[end - begin > 1e-7], end[end - begin > 1e-7]
    span = spans(trajectory, begin, end)
    for order in range(3):
        first = np.abs(span.middles[order + 1]) * span.half
        second = np.abs(span.middles[order + 1 :]).max() * 1e4 * span.half**2
        assert (span.radii[order] >= first).all()
        assert (span.radii[order] <= first + second + 2 * span.rounding[order] + 1e-13).all()


def test_rounding_of_the_middles_is_small() -> None:
    trajectory = random_trajectory("approached", JOINTS, 0)
    span = spans(trajectory, *random_intervals(trajectory, 0.1, 50, 0))
    assert span.rounding.max() < 1e-10


@pytest.mark.parametrize("kind", ["quintic", "trapezoidal", "approached"])
def test_the_jerk_jumps_at_breaks_only(kind: str) -> None:
    trajectory = random_trajectory(kind, JOINTS, 1)
    edges = breaks(trajectory)
    assert edges[0] == 0
    assert edges[-1] == trajectory.duration
    time = np.linspace(0, trajectory.duration, 20001)
    change = np.abs(np.diff(trajectory.at(time).qddd)).max(axis=0)
    jumps = np.flatnonzero(change > 0.05 * np.abs(trajectory.at(time).qddd).max())
    for jump in jumps:
        assert np.any((edges >= time[jump] - 1e-12) & (edges <= time[jump + 1] + 1e-12))
    assert len(jumps) > 0


def test_one_period_stands_for_all_and_an_approached_motion_has_all_of_them() -> None:
    periodic = fourier([0.0], [[0.3]], [[0.1]], 4.0, ["a"], periods=5)
    assert breaks(periodic).tolist() == [0.0, 4.0]
    assert breaks(with_approach(periodic, [0.0], 1.0, 2.0)).tolist() == [0.0, 1.0, 21.0, 23.0]


def test_an_unknown_kind_of_motion_is_refused() -> None:
    class Other(Trajectory):
        @property
        def duration(self) -> float:
            return 1.0

        def derivatives(self, time: np.ndarray) -> None:  # type: ignore[override]
            raise NotImplementedError

        extrema = _with_rows = derivatives  # type: ignore[assignment]

    with pytest.raises(DesignError, match="Other has no bounds"):
        spans(Other(JOINTS), np.array([0.0]), np.array([1.0]))
