"""What every verdict shares: the worst of its rows, limits that make sense, and plain data of any result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

from steelyard.calibration.fit.settings import CalibrationThresholds
from steelyard.configuration import Section, record_from
from steelyard.errors import CalibrationError, EstimateError
from steelyard.judge import Thresholds
from steelyard.plain_data import SCHEMA_VERSION, json_text, plain
from steelyard.verdict import (
    Reason,
    first_named,
    graded_row,
    row_above,
    row_below,
    row_not_judged,
    verdict_of,
    verdict_to_json,
)


def row(question, value, limits=(1.0, 2.0)):
    return row_below(question, "size", value, f"{value:g}", limits, "it is so large", "make it small", "mm")


def test_a_verdict_in_a_notebook_has_its_rows_and_runs_nothing():
    hostile = "<script>alert(1)</script>"
    judged = row_below("predicts", hostile, 3.0, "3 mm", (1.0, 2.0), f"it is {hostile}", "make it small", "mm")
    text = verdict_of([judged], [Reason("a caution", "look", grade="fair")])._repr_html_()
    assert "<b>poor</b>" in text
    assert "<td>3 mm</td><td>&lt;= 1 mm</td>" in text
    assert "make it small" in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("value", "below", "above"),
    [
        (0.99, "good", "poor"),
        (1.0, "good", "fair"),
        (1.01, "fair", "fair"),
        (2.0, "fair", "good"),
        (2.01, "poor", "good"),
    ],
)
def test_limits_belong_to_the_better_grade(value, below, above):
    small = row("known", value)
    large = row_above("known", "count", value, "", (2.0, 1.0), "so many", "more", "%")
    assert (small.grade, small.good, small.fair) == (below, "<= 1 mm", "<= 2 mm")
    assert (large.grade, large.good, large.fair) == (above, ">= 2 %", ">= 1 %")
    assert bool(small.remedy) == (below != "good")


@pytest.mark.parametrize(
    ("plausible", "predicts", "known", "grade"),
    [(0, 0, 0, "good"), (0, 0, 3, "good"), (1.5, 0, 0, "fair"), (0, 3, 0, "poor"), (3, 1.5, 0, "poor")],
)
def test_a_verdict_is_the_worse_of_plausible_and_predicts(plausible, predicts, known, grade):
    rows = [row("plausible", plausible), row("predicts", predicts), row("known", known)]
    rows.append(row_not_judged("predicts", "spread", ("", ""), "one recording only"))
    assert verdict_of(rows).grade == grade


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (10.04, "10 %", "10.04 %"), (9.98, "10 %", "10 %"), (3.0001, "3 %", "3.0001 %"), (2.5, "2.5 %", "2.5 %"),
        (0.01004, "10 mm", "10 mm"), (12.0, "many", "many"), (3.0000000001, "3 %", "3 %"),
    ],
)  # fmt: skip
def test_a_rounded_number_is_on_the_right_side_of_its_limits(value, text, expected):
    assert row_below("predicts", "size", value, text, (3.0, 10.0), "", "", "%").text_value == expected
    shown = row_above("predicts", "size", 79.96, "80 %", (80.0, 50.0), "", "", "%").text_value
    assert shown == "79.96 %"
    limits = ("0.8 to 1.25", "0.67 to 1.5")
    assert graded_row("plausible", "factor", 1.2504, "1.25", limits, "fair", "", "").text_value == "1.2504"


def test_a_question_without_a_judged_row_has_no_grade():
    found = verdict_of([row("plausible", 0.5)])
    assert found.answers == {"plausible": "good", "predicts": None, "known": None}
    assert "does it predict? not judged" in found._repr_html_()


def test_a_caution_counts_for_its_question_only_if_it_carries_a_grade():
    rows = [row("plausible", 0), row("predicts", 1.5), row("known", 0)]
    mild, severe = Reason("a", "b"), Reason("c", "d", "cause", "poor", "known")
    found = verdict_of(rows, [mild, severe])
    assert dict(found.questions) == {"plausible": "good", "predicts": "fair", "known": "poor"}
    assert found.grade == "fair"
    assert [reason.text for reason in found.reasons] == ["c", "it is so large", "a"]
    content = json.loads(json.dumps(verdict_to_json(found)))
    assert content["reasons"][0] == {"text": "c", "remedy": "d", "about": "cause", "question": "known"}
    assert content["criteria"][1]["grade"] == "fair"


@pytest.mark.parametrize(
    ("kind", "error", "table", "expected"),
    [
        (Thresholds, EstimateError, {"error_good": 20.0}, "error_good: got 20, allowed is at most error_fair, 15"),
        (Thresholds, EstimateError, {"known_good": 10.0}, "known_fair: got 50, allowed is at most known_good, 10"),
        (Thresholds, EstimateError, {"delay": -1.0}, "delay: got -1.0, allowed are finite numbers of 0"),
        (Thresholds, EstimateError, {"spread_fair": inf}, "spread_fair: got inf"),
        (Thresholds, EstimateError, {"error_god": 1.0}, "'error_god'.*did you mean 'error_good'"),
        (CalibrationThresholds, CalibrationError, {"enough_good": 1.0}, "enough_fair: got 1.5, allowed is at most"),
        (CalibrationThresholds, CalibrationError, {"size_fair": 0.1}, "size_good: got 0.5, allowed is at most"),
    ],
)
def test_limits_that_make_no_sense_are_refused(kind, error, table, expected):
    with pytest.raises(error, match=expected):
        record_from(kind, Section(table, "[thresholds]", error))


def test_a_row_without_a_fair_limit_may_have_any_good_one():
    assert CalibrationThresholds(known_good=99).known_good == 99


def test_only_the_first_names_are_written_out():
    assert first_named(["a", "b", "c"]) == "a, b, c"
    assert first_named(["a", "b", "c", "d", "e"], "; ") == "a; b; c and 2 more"


@dataclass(frozen=True)
class Record:
    name: str
    values: np.ndarray


def test_results_become_plain_data():
    given = {
        "record": Record("r", np.array([[1.0, nan], [inf, 2.0]])), "path": Path("a") / "b", "flag": np.bool_(True),
        "count": np.int64(3), "single": np.float32(0.5), "pair": (None, -inf), "empty": np.zeros((0, 2)),
    }  # fmt: skip
    wanted = {
        "record": {"name": "r", "values": [[1.0, None], [None, 2.0]]}, "path": str(Path("a/b")), "flag": True,
        "count": 3, "single": 0.5, "pair": [None, None], "empty": [],
    }  # fmt: skip
    found = plain(given)
    assert found == wanted
    assert [type(found[key]) for key in ("flag", "count", "single")] == [bool, int, float]
    text = json.loads(json_text("check", found))
    assert list(text)[:3] == ["schema", "command", "record"]
    assert text["schema"] == SCHEMA_VERSION
