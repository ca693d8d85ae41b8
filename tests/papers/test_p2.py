"""P2 reproduced on one simulated experiment with a coarse integrator, without and with its excitation."""

from __future__ import annotations

import json

import pytest

from steelyard.papers import content
from steelyard.papers.p2 import p2


@pytest.fixture(scope="module")
def result():
    return p2(1, threads=2, plant_rate=2000.0, effort=None)


def test_every_claim_of_p2_holds(result):
    assert [claim.name for claim in result.claims if not claim.holds] == []


def test_table_2_has_49_parameters_with_ours_beside_them(result):
    table = result.tables[0]
    assert len(table.rows) == 49
    mass = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (mass["parameter"], mass["paper"], mass["its RSD %"], mass["true here"]) == ("ML", 3.34, 0.09, 3.34)
    assert mass["ours, mean"] == pytest.approx(3.34, rel=0.01)


def test_the_computed_torque_test_tells_every_joint_of_both_torques(result):
    table = result.tables[2]
    assert [row[0] for row in table.rows] == ["motor"] * 7 + ["joint"] * 7
    assert all(0 < row[4] < 30 for row in table.rows)


def test_friction_of_the_two_robots_differs_by_more_than_the_paper_says(result):
    claim = next(claim for claim in result.claims if "two papers' robots" in claim.name)
    assert "Fcl7 by 330 %" in claim.remark
    assert claim.ours == pytest.approx(100 * (3.05 - 2.58) / 3.05)


def test_the_result_is_json_and_says_how_motions_are_designed(result):
    told = json.loads(json.dumps(content(result), allow_nan=False))
    assert told["paper"] == "P2"
    assert any("excitation" in note for note in told["notes"])


@pytest.mark.large
def test_every_claim_of_p2_holds_with_its_excitation():
    found = p2(1, threads=2, plant_rate=2000.0)
    assert [claim.name for claim in found.claims if not claim.holds] == []
