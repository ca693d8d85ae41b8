"""P4 reproduced: criteria of excitation, and figures against independent code."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from steelyard.motion import fourier
from steelyard.papers import paper_to_json
from steelyard.papers.designs import designed
from steelyard.papers.p4 import p4
from steelyard.papers.p4_bench import (
    C2,
    POSITION_VARIANCE,
    first_criterion,
    noisy_covariance,
    p4_arm,
    with_joint_scaled,
)


@pytest.fixture(scope="module")
def result():
    return p4(threads=2)


@pytest.fixture(scope="module")
def motion():
    rng = np.random.default_rng(5)
    sin, cos = 0.05 * rng.standard_normal((2, 3, 5))
    return fourier([0.0, -0.8, 0.8], sin, cos, 10.0, ["joint_1", "joint_2", "joint_3"])


@pytest.mark.large
def test_every_claim_of_p4_comes_out_as_expected(result):
    assert [claim.name for claim in result.claims if not claim.holds] == []


@pytest.mark.large
def test_a_d_optimal_motion_is_proven_and_far_better_than_a_random_one(motion):
    arm = p4_arm()
    settings = replace(arm.settings, criterion=C2, starts=1)
    ready = arm.ready(settings)
    found = designed(ready, settings)
    assert found.certificate.holds
    assert found.value == pytest.approx(found.figures.log10_det_covariance)
    assert found.value < ready.forecast()(motion).log10_det_covariance - 10


@pytest.mark.large
def test_c2_has_the_smaller_determinant_and_c1_the_smaller_condition_number(result):
    ours = {claim.name: claim for claim in result.claims}
    first = ours["c1: condition number, rows over noise, columns at unit length"].ours
    assert first < ours["condition number of c2's motion, as of c1"].ours
    second = ours["c2: log10 det of the covariance"]
    assert second.ours < float(second.remark.split()[-1])


@pytest.mark.large
def test_axis_1_moving_less_and_less_is_told(result):
    rows = result.tables[1].rows
    assert [row[0] for row in rows] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert all(later[2] > earlier[2] for earlier, later in pairwise(rows))


def test_the_first_criterion_is_numpy_s_condition_number(motion):
    ready = p4_arm().ready(p4_arm().settings)
    weighted = ready.forecast().matrices(motion)[1]
    columns = np.linalg.cholesky(weighted).T
    expected = np.linalg.cond(columns / np.linalg.norm(columns, axis=0))
    assert first_criterion(ready, motion) == pytest.approx(expected, rel=1e-8)


def test_one_joint_can_be_made_to_move_less(motion):
    smaller = with_joint_scaled(motion, 0, 0.5)
    time = np.linspace(0, 10, 50)
    before, after = (each.derivatives(time)[1] for each in (motion, smaller))
    np.testing.assert_allclose(after, before * [[0.5], [1.0], [1.0]], rtol=1e-12)


def test_without_position_noise_to_speak_of_the_bound_is_the_plain_covariance(motion):
    arm = p4_arm()
    ready, values = arm.ready(arm.settings), dict(arm.known.values)
    plain = np.linalg.inv(ready.forecast().matrices(motion)[1])
    tiny = noisy_covariance(ready, motion, values, np.full(3, 1e-12))
    np.testing.assert_allclose(np.diag(tiny), np.diag(plain), rtol=1e-6)
    noisy = noisy_covariance(ready, motion, values, 1e3 * np.sqrt(POSITION_VARIANCE))
    assert (np.diag(noisy) > 1.001 * np.diag(plain)).any()
    assert (np.diag(noisy) > (1 - 1e-9) * np.diag(plain)).all()


@pytest.mark.large
def test_the_result_is_json_and_says_what_is_left_out(result):
    data = json.loads(json.dumps(paper_to_json(result), allow_nan=False))
    assert data["paper"] == "P4"
    assert any("maximum likelihood" in note for note in data["notes"])
    assert [len(table["rows"]) for table in data["tables"][:4]] == [21, 5, 2, 3]
