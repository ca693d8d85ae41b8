"""Branch and bound over time, and the exact extremes of joints."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from random_motions import KINDS, random_trajectory
from steelyard.excitation.certify.certificate import (
    Certificate,
    LimitFinding,
    certify,
    first_intervals,
    joint_findings,
)
from steelyard.motion import fourier, motion_limits


class Waves:
    """``a sin(w t + p)``, bounded by Taylor's theorem; a coarse bound counts too much curvature."""

    def __init__(self, amplitude: list[float], rate: list[float], limits: list[float], coarse: float = 1.0) -> None:
        self.names = tuple(f"wave {k}" for k in range(len(limits)))
        self.limits = np.array(limits)
        self._amplitude, self._rate, self._coarse = np.array(amplitude)[:, None], np.array(rate)[:, None], coarse
        self.evaluated = 0

    def values(self, time: np.ndarray) -> np.ndarray:
        return self._amplitude * np.sin(self._rate * time + 0.3)

    def bounds(
        self, begin: np.ndarray, end: np.ndarray, wanted: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        self.evaluated += len(begin)
        time, half = 0.5 * (begin + end), 0.5 * (end - begin)
        slope = self._amplitude * self._rate * np.cos(self._rate * time + 0.3)
        curvature = self._coarse * np.abs(self._amplitude) * self._rate**2
        return self.values(time), self.values(time) + np.abs(slope) * half + curvature * half**2 / 2


def test_the_largest_value_is_found_to_the_tolerance_and_never_underestimated() -> None:
    waves = Waves([2.0, 30.0, 0.1], [40.0, 3.0, 7.0], [1.9, 100.0, 0.2])
    certificate = certify([waves], np.array([0.0, 1.0, 5.0]))
    for finding, amplitude in zip(certificate.findings, (2.0, 30.0, 0.1), strict=True):
        assert amplitude <= finding.worst <= amplitude + 1e-6 * finding.limit
        taken = waves.values(np.array([finding.instant]))[waves.names.index(finding.name), 0]
        assert taken >= finding.worst - 1e-6 * finding.limit
    assert certificate.findings[0].violation == pytest.approx(0.1, abs=1e-5)
    assert [finding.violation for finding in certificate.findings[1:]] == [0.0, 0.0]
    assert not certificate.holds
    assert certificate.worst_violation == certificate.findings[0]


def test_deciding_takes_less_work_and_gives_the_same_answer() -> None:
    wide = Waves([2.0, 3.0], [40.0, 3.0], [2.2, 2.9])
    decided = certify([wide], np.array([0.0, 5.0]), decide=True)
    full = Waves([2.0, 3.0], [40.0, 3.0], [2.2, 2.9])
    found = certify([full], np.array([0.0, 5.0]))
    assert [f.violation > 0 for f in decided.findings] == [f.violation > 0 for f in found.findings] == [False, True]
    assert 2.0 <= decided.findings[0].worst <= 2.2
    assert 2.9 < decided.findings[1].worst <= 3.0
    assert wide.evaluated < full.evaluated


def test_a_limit_that_is_just_reached_is_told_to_within_the_tolerance_when_deciding() -> None:
    (finding,) = certify([Waves([2.0], [3.0], [2.0])], np.array([0.0, 5.0]), decide=True).findings
    assert 0 <= finding.violation <= 2e-6


def test_bounds_stay_true_when_work_runs_out() -> None:
    waves = Waves([2.0], [40.0], [5.0], coarse=50.0)
    (finding,) = certify([waves], np.array([0.0, 5.0]), most_intervals=1).findings
    assert finding.worst > 2.0
    assert waves.evaluated < 1000


def test_a_function_without_limit_is_told_and_cannot_be_broken() -> None:
    (finding,) = certify([Waves([2.0], [3.0], [np.inf])], np.array([0.0, 5.0])).findings
    assert finding.worst == pytest.approx(2.0, abs=1e-5)
    assert finding.violation == 0


def test_a_constant_and_a_zero_end_at_once() -> None:
    still = Waves([0.0], [3.0], [1.0])
    (finding,) = certify([still], np.array([0.0, 5.0])).findings
    assert finding.worst == 0
    assert still.evaluated == len(first_intervals(np.array([0.0, 5.0]))[0])


def test_first_intervals_cover_all_time_and_no_break_lies_inside_one() -> None:
    edges = np.array([0.0, 1e-3, 0.7, 9.0])
    begin, end = first_intervals(edges)
    assert begin[0] == 0
    assert end[-1] == 9.0
    assert (begin[1:] == end[:-1]).all()
    assert set(edges) <= {*begin, *end}
    assert (end > begin).all()


@pytest.mark.parametrize("kind", KINDS)
def test_joint_findings_agree_with_dense_samples(kind: str) -> None:
    joints = ("shoulder", "elbow")
    trajectory = random_trajectory(kind, joints, 4)
    limits = motion_limits(joints, lower=-0.4, upper=[0.5, np.inf], velocity=0.8, acceleration=2.0, jerk=[9.0, np.inf])
    found = {finding.name: finding for finding in joint_findings(trajectory, limits)}
    assert set(found) == {
        f"{what} of {joint}"
        for what in ("lower", "upper", "velocity", "acceleration", "jerk")
        for joint in joints
        if joint == "shoulder" or what not in ("upper", "jerk")
    }
    time = np.random.default_rng(0).uniform(0, trajectory.duration, 100_000)
    there = trajectory.at(time)
    reached = {"lower": there.q.min(axis=1), "upper": there.q.max(axis=1)}
    for what, rows in (("velocity", there.qd), ("acceleration", there.qdd), ("jerk", there.qddd)):
        reached[what] = np.abs(rows).max(axis=1)
    for name, finding in found.items():
        what, joint = name.split(" of ")
        value = reached[what][joints.index(joint)]
        sign = -1 if what == "lower" else 1
        assert sign * (finding.worst - value) >= -1e-12
        assert finding.worst == pytest.approx(value, rel=1e-2, abs=1e-3)
        assert finding.violation == pytest.approx(max(0.0, sign * (finding.worst - finding.limit)), abs=1e-11)


def test_a_limit_reached_exactly_holds() -> None:
    trajectory = fourier([0.1], [[0.2]], [[0.0]], 2 * np.pi, ["a"])
    limits = motion_limits(["a"], lower=-0.1, upper=0.3, velocity=0.2)
    assert [finding.violation for finding in joint_findings(trajectory, limits)] == [0.0, 0.0, 0.0]


def test_certificates_add_up_and_are_frozen() -> None:
    held, broken = LimitFinding("a", 1.0, 2.0, 0.0, 0.0), LimitFinding("b", 3.0, 2.0, 0.5, 1.0)
    both = Certificate((held,)) + Certificate((broken,))
    assert both.findings == (held, broken)
    assert not both.holds
    assert Certificate((held,)).holds
    assert Certificate((held,)).worst_violation is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        held.worst = 0.0  # type: ignore[misc]
