"""P1 reproduced: filters and their bias, the six essential parameters, condition numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import signal

from steelyard.papers import content
from steelyard.papers.p1 import delay_of_forward_filter, p1


@pytest.fixture(scope="module")
def result():
    return p1(3, threads=2)


def test_every_claim_of_p1_holds(result):
    assert [claim.name for claim in result.claims if not claim.holds] == []


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
    told = json.loads(json.dumps(content(result), allow_nan=False))
    assert told["paper"] == "P1"
    assert any("Kalman" in note for note in told["notes"])


def test_the_same_seeds_give_the_same_result_on_one_thread(result):
    again = p1(3, threads=1)
    assert content(again) == content(result)
    assert np.isfinite([claim.ours for claim in again.claims if isinstance(claim.ours, float)]).all()
