"""Whether a claim comes out as expected is decided by its figures, and by nothing else."""

from __future__ import annotations

import json

import pytest

from steelyard.papers import Claim, PaperResult, near, paper_to_json, same, within
from steelyard.papers.claim import table, two_standard_errors

WHY = "the figure is another"


@pytest.mark.parametrize(("ours", "holds"), [(1.0, True), (1.1, True), (0.9, True), (1.11, False), (-1.0, False)])
def test_a_figure_near_its_reference_holds_and_a_wrong_one_does_not(ours, holds):
    claim = near("mass", 1.2, ours, 1.0, 0.1 + 1e-12, why="two sd", fails_if=WHY)
    assert claim.holds is holds
    assert claim.expected == "1 +- 0.1 (two sd)"
    assert claim.ours == ours


@pytest.mark.parametrize(("ours", "holds"), [(2.0, True), (3.0, True), (1.99, False), (3.01, False)])
def test_a_figure_within_bounds_holds_and_one_outside_does_not(ours, holds):
    claim = within("count", 5, ours, 2, 3, fails_if=WHY)
    assert claim.holds is holds
    assert claim.expected == "2 to 3"


def test_one_sided_bounds_are_said_as_such():
    assert within("rsd", 25, 60.0, 51, float("inf"), fails_if=WHY).expected == "at least 51"
    assert within("error", 25, 60.0, -float("inf"), 51, fails_if=WHY).expected == "at most 51"
    assert within("count", 21, 21.0, 21, 21, fails_if=WHY).expected == "21"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_never_holds_and_still_becomes_json(bad):
    claims = (near("x", 1, bad, 0.0, 1.0, fails_if=WHY), within("x", 1, bad, 0, 1, fails_if=WHY))
    assert not any(claim.holds for claim in claims)
    json.dumps([claim.ours for claim in claims], allow_nan=False)


def test_texts_hold_only_where_they_are_equal():
    assert same("counts", "79, 74", "79, 74", "79, 74", fails_if=WHY).holds
    assert not same("counts", "79, 74", "79, 73", "79, 74", fails_if=WHY).holds


def test_a_result_becomes_plain_data_with_every_key():
    claims = (near("a", 1.0, 1.0, 1.0, 0.1, "remark", fails_if=WHY), same("b", "x", "y", "x", fails_if=WHY))
    result = PaperResult("P1", "title", claims, (table("t", ["a", "b"], [["x", float("nan")], [None, 2]]),), ("note",))
    data = json.loads(json.dumps(paper_to_json(result), allow_nan=False))
    assert set(data) == {"paper", "title", "claims", "tables", "notes"}
    keys = ["name", "paper", "ours", "expected", "holds", "paper_holds", "fails_if", "remark"]
    assert [list(claim) for claim in data["claims"]] == [keys] * 2
    assert [claim["holds"] for claim in data["claims"]] == [True, False]
    assert data["tables"] == [{"title": "t", "columns": ["a", "b"], "rows": [["x", None], [None, 2]]}]
    assert not result.holds


def test_a_table_refuses_a_row_of_another_length():
    with pytest.raises(ValueError, match="a row of 1 entries under 2 headings"):
        table("t", ["a", "b"], [["x"]])


def test_a_claim_cannot_be_changed_afterwards():
    claim = Claim("a", 1, 2, "1", False, WHY)
    with pytest.raises(AttributeError):
        claim.holds = True  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("ours", "holds", "paper_holds", "outcome"),
    [
        (1.0, True, False, "as expected; the paper's statement does not hold"),
        (4.0, False, False, "not as expected; the paper's statement does not hold"),
        (30.0, False, True, "not as expected; the paper's statement holds"),
    ],
)
def test_a_statement_known_to_fail_is_as_expected_while_it_does_and_not_when_it_holds(
    ours, holds, paper_holds, outcome
):
    claim = within("gain", "27 to 42", ours, 0.0, 3.0, fails_if=WHY, claimed=(27.0, 42.0))
    assert (claim.holds, claim.paper_holds, claim.outcome) == (holds, paper_holds, outcome)


def test_what_is_expected_must_decide_whether_the_paper_holds():
    with pytest.raises(ValueError, match="leaves open whether the paper holds"):
        within("gain", 2, 1.0, 0.5, 3.0, fails_if=WHY, claimed=(2.0, 4.0))
    assert within("gain", 2, 2.5, 2.0, 3.0, fails_if=WHY, claimed=(1.0, 4.0)).paper_holds


def test_a_claim_without_a_reason_to_fail_and_one_that_is_counted_twice_are_refused():
    with pytest.raises(ValueError, match="what would make it fail"):
        Claim("a", 1, 2, "1", False, " ")
    claim = same("a", 1, 1, 1, fails_if=WHY)
    with pytest.raises(ValueError, match="'a' is counted twice"):
        PaperResult("P1", "title", (claim, claim), (), ())


def test_two_standard_errors_shrink_with_the_root_of_the_number():
    assert two_standard_errors(0.3, 9) == two_standard_errors(0.3, [0.0] * 9) == pytest.approx(0.2)
