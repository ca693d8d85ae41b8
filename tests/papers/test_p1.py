"""P1 reproduced: filters and their bias, the six essential parameters, condition numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import signal

from steelyard.motion import quintic
from steelyard.papers import paper_to_json
from steelyard.papers.p1 import delay_of_forward_filter, p1
from steelyard.papers.p1_motion import WW, _planned, _problem

pytestmark = pytest.mark.large  # experiments and searches of a quarter of a minute


@pytest.fixture(scope="module")
def result():
    return p1(6, threads=2, starts=1)


def test_every_claim_of_p1_comes_out_as_expected(result):
    assert [claim.name for claim in result.claims if not claim.holds] == []


def test_far_cheaper_and_the_paper_s_cond_u_do_not_hold(result):
    broken = [claim.name for claim in result.claims if claim.paper_holds is False]
    assert any("processor time" in name for name in broken)
    assert sum("cond(U) of a simulated experiment" in name for name in broken) == 2
    assert any("rms error of the filter" in claim.name for claim in result.claims if claim.paper_holds)


@pytest.mark.large
def test_every_claim_of_p1_holds_with_all_its_starts():
    assert [claim.name for claim in p1(6, threads=2).claims if not claim.holds] == []


def test_condition_numbers_of_an_optimised_motion_are_numpy_s():
    ready, settings = _problem(("1 s", WW), 1, 1)
    motion = quintic(np.array([[0.0, 0.3, -0.2, 0.0], [0.0, 1.5, 2.0, 0.0]]), 1.0, ["joint_1", "joint_2"])
    q, qd, qdd, _ = motion.derivatives((np.arange(300) + 0.5) / 100)
    rows = scara_rows(q, qd, qdd) / np.repeat([2.0, 0.10], 300)[:, None]
    prior = np.array([3.42, 0.07, 0.58, 0.064, 0.131, 0.015, 0.156])
    scaled = np.delete(rows, 5, axis=1) * prior
    found = _planned(ready, motion)
    assert found.weighted == pytest.approx(np.linalg.cond(rows), rel=1e-6)
    assert found.prior == pytest.approx(np.linalg.cond(scaled), rel=1e-6)
    assert settings.moves == 30


def scara_rows(q, qd, qdd):
    """P1's equations as printed, columns ZZR1 Fv1 Fs1 ZZ2 LMX2 LMY2 Fv2 Fs2, with the simulated arm's friction."""
    cosine, sine, zero = np.cos(q[1]), np.sin(q[1]), np.zeros_like(q[0])
    both, twice = qdd[0] + qdd[1], 2 * qdd[0] + qdd[1]
    speeds = qd[1] * (2 * qd[0] + qd[1])
    first = [
        qdd[0],
        qd[0],
        np.tanh(qd[0] / 1e-3),
        both,
        twice * cosine - speeds * sine,
        -twice * sine - speeds * cosine,
    ]
    second = [zero, zero, zero, both, qdd[0] * cosine + qd[0] ** 2 * sine, qd[0] ** 2 * cosine - qdd[0] * sine]
    return np.hstack([[*first, zero, zero], [*second, qd[1], np.tanh(qd[1] / 1e-3)]]).T


def test_all_eight_parameters_are_told_under_all_three_filters(result):
    names = [claim.name for claim in result.claims if ", filtering: " in claim.name]
    assert len(names) == len(set(names)) == 24


def test_without_filter_the_inertia_is_lost_and_with_forward_filter_the_friction(result):
    ours = {claim.name: claim.ours for claim in result.claims}
    assert ours["ZZR1, filtering: none"] < 0.2 * 3.42
    assert ours["Fv1, filtering: forward"] < -0.5
    assert ours["ZZR1, filtering: full"] == pytest.approx(3.42, rel=0.03)


def test_the_delay_of_the_forward_filter_is_scipy_s_group_delay():
    zeros, poles, gain = signal.butter(4, 20, fs=100, output="zpk")  # pyright: ignore[reportGeneralTypeIssues, reportAssignmentType]
    numerator, denominator = signal.zpk2tf(zeros, poles, gain)
    _, samples = signal.group_delay((numerator, denominator), w=np.array([0.1]), fs=100)  # pyright: ignore[reportArgumentType]
    assert delay_of_forward_filter() == pytest.approx(samples[0] / 100, rel=1e-3)


def test_the_paper_s_columns_stand_beside_ours(result):
    table = result.tables[0]
    assert len(table.rows) == 8
    first = dict(zip(table.columns, table.rows[0], strict=False))
    assert (first["parameter"], first["true"], first["none: paper"], first["full: paper"]) == ("ZZR1", 3.42, 0.51, 3.47)


def test_the_result_is_json_and_says_what_is_left_out(result):
    data = json.loads(json.dumps(paper_to_json(result), allow_nan=False))
    assert data["paper"] == "P1"
    assert any("Kalman" in note for note in data["notes"])


@pytest.mark.large
def test_the_same_seeds_give_the_same_result_on_one_thread(result):
    again = p1(6, threads=1, starts=1)
    assert paper_to_json(again) == paper_to_json(result)
    assert np.isfinite([claim.ours for claim in again.claims if isinstance(claim.ours, float)]).all()
