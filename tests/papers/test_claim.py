"""Whether a claim holds is decided by its figures, and by nothing else."""

from __future__ import annotations

import json

import pytest

from steelyard.papers import Claim, PaperResult, content, near, same, within
from steelyard.papers.result import table


@pytest.mark.parametrize(("ours", "holds"), [(1.0, True), (1.1, True), (0.9, True), (1.11, False), (-1.0, False)])
def test_a_figure_near_its_reference_holds_and_a_wrong_one_does_not(ours, holds):
    claim = near("mass", 1.2, ours, 1.0, 0.1 + 1e-12, why="two sd")
    assert claim.holds is holds
    assert claim.expected == "1 +- 0.1 (two sd)"
    assert claim.ours == ours


@pytest.mark.parametrize(("ours", "holds"), [(2.0, True), (3.0, True), (1.99, False), (3.01, False)])
def test_a_figure_within_bounds_holds_and_one_outside_does_not(ours, holds):
    claim = within("count", 5, ours, 2, 3)
    assert claim.holds is holds
    assert claim.expected == "2 to 3"


def test_one_sided_bounds_are_said_as_such():
    assert within("rsd", 25, 60.0, 51, float("inf")).expected == "at least 51"
    assert within("error", 25, 60.0, -float("inf"), 51).expected == "at most 51"
    assert within("count", 21, 21.0, 21, 21).expected == "21"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_never_holds_and_still_becomes_json(bad):
    claims = (near("x", 1, bad, 0.0, 1.0), within("x", 1, bad, 0, 1))
    assert not any(claim.holds for claim in claims)
    json.dumps([claim.ours for claim in claims], allow_nan=False)


def test_texts_hold_only_where_they_are_equal():
    assert same("counts", "79, 74", "79, 74", "79, 74").holds
    assert not same("counts", "79, 74", "79, 73", "79, 74").holds


def test_a_result_becomes_plain_data_with_every_key():
    claims = (near("a", 1.0, 1.0, 1.0, 0.1, "remark"), same("b", "x", "y", "x"))
    result = PaperResult("P1", "title", claims, (table("t", ["a", "b"], [["x", float("nan")], [None, 2]]),), ("note",))
    told = json.loads(json.dumps(content(result), allow_nan=False))
    assert set(told) == {"paper", "title", "claims", "tables", "notes"}
    assert [list(claim) for claim in told["claims"]] == [["name", "paper", "ours", "expected", "holds", "remark"]] * 2
    assert [claim["holds"] for claim in told["claims"]] == [True, False]
    assert told["tables"] == [{"title": "t", "columns": ["a", "b"], "rows": [["x", None], [None, 2]]}]
    assert not result.holds


def test_a_table_refuses_a_row_of_another_length():
    with pytest.raises(ValueError, match="a row of 1 entries under 2 headings"):
        table("t", ["a", "b"], [["x"]])


def test_a_claim_cannot_be_changed_afterwards():
    claim = Claim("a", 1, 2, "1", False)
    with pytest.raises(AttributeError):
        claim.holds = True  # pyright: ignore[reportAttributeAccessIssue]
