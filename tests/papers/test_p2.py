"""P2 reproduced on one simulated experiment with a coarse integrator, without and with its excitation."""

from __future__ import annotations

import json

import pytest

from steelyard.papers import paper_to_json
from steelyard.papers.p2 import p2

pytestmark = pytest.mark.large  # experiments and searches of a quarter of a minute


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


def test_differences_of_two_simulated_arms_are_found_and_those_of_the_printed_ones_told(result):
    claim = next(claim for claim in result.claims if "two simulated arms" in claim.name)
    assert "330 % in Fcl7" in claim.remark
    assert "up to 15 % apart" in claim.remark
    table = result.tables[3]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert len(rows) == 49
    true = [abs(row["true difference %"]) for row in rows if row["true difference %"] is not None]
    assert 10 < max(true) <= 20.0 + 1e-9


def test_the_loaded_run_alone_cannot_tell_the_mass(result):
    claim = next(claim for claim in result.claims if claim.name.startswith("columns of the 49"))
    assert claim.ours == "none; MZL, ML"
    combination = next(claim for claim in result.claims if "combination" in claim.name)
    assert "0.1521 XX4" in combination.remark
    assert "- 0.39 MY4" in combination.remark


def test_the_result_is_json_and_says_how_motions_are_designed(result):
    data = json.loads(json.dumps(paper_to_json(result), allow_nan=False))
    assert data["paper"] == "P2"
    assert any("excitation" in note for note in data["notes"])


@pytest.mark.large
def test_every_claim_of_p2_holds_with_its_excitation():
    found = p2(1, threads=2, plant_rate=2000.0)
    assert [claim.name for claim in found.claims if not claim.holds] == []
