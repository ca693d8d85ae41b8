"""Runs side by side, against figures computed by hand and the papers' own."""

from __future__ import annotations

import csv
import io

import pytest

from steelyard import base_parameters, build_model, load_robot
from steelyard.errors import EstimateError
from steelyard.judge import (
    ComparedRun,
    ComparedValue,
    compare_parameters,
    published_names,
    published_run,
    to_csv,
    to_latex,
)

FIRST = ComparedRun(
    "ours",
    {
        "ZZ1R": ComparedValue(2.0, 0.3, "kg m^2"),
        "Fvm1": ComparedValue(-10.0, 0.0, "N m s/rad"),
        "off_1": ComparedValue(0.0, 0.1, "N m"),
        "ML": ComparedValue(4.0, None, "kg"),
    },
)
SECOND = ComparedRun(
    "their_&_run",
    {
        "ZZ1R": ComparedValue(3.0, 0.4, "kg m^2"),
        "Fvm1R": ComparedValue(-12.0, 1.0, "N m s/rad"),
        "off_1": ComparedValue(0.5, None, "N m"),
        "ML": ComparedValue(4.4, None, "kg"),
        "MX7": ComparedValue(1e-7, 1e-8, "kg m"),
    },
)


def test_differences_are_those_computed_by_hand():
    comparison = compare_parameters([FIRST, SECOND])
    rows = {row.name: row.differences[0] for row in comparison.rows}
    assert list(rows) == ["ZZ1R", "Fvm1", "off_1", "ML", "MX7"]
    figures = {name: (d.absolute, d.percent, d.sigmas) for name, d in rows.items() if d is not None}
    assert figures["ZZ1R"] == pytest.approx((1.0, 50.0, 2.0))
    assert figures["Fvm1"] == pytest.approx((-2.0, -20.0, -2.0))
    assert figures["off_1"] == (0.5, None, pytest.approx(5.0))
    assert figures["ML"] == (pytest.approx(0.4), pytest.approx(10.0), None)
    assert rows["MX7"] is None
    summary = comparison.summaries[0]
    assert (summary.compared, summary.with_sigma, summary.within) == (4, 3, 2)
    assert summary.largest_sigmas == ("off_1", pytest.approx(5.0))
    assert summary.largest_percent == ("ZZ1R", pytest.approx(50.0))
    assert summary.near_zero == 1


def test_per_cent_of_a_value_near_zero_are_not_the_largest():
    names = ("ZZ2", "MY2", "MX2")
    values = ((1.0, 0.1), (-5.68e-7, 2.5e-6), (0.3, None))
    others = ((1.1, 0.1), (3.608e-4, 2.5e-4), (0.31, 0.4))
    first, second = (
        ComparedRun(name, {key: ComparedValue(*one, "kg m") for key, one in zip(names, run, strict=True)})
        for name, run in (("a", values), ("b", others))
    )
    (summary,) = compare_parameters([first, second]).summaries
    assert summary.largest_percent == ("ZZ2", pytest.approx(10.0))
    assert summary.near_zero == 2  # without a sigma in the first run, the other's counts


def test_quantities_that_regroup_other_parameters_are_not_subtracted():
    motor = ComparedRun("A", {"ZZ2R": ComparedValue(4.46, 0.2, "kg m^2", "ZZ2R = ZZ2 + Ia2")})
    joint = ComparedRun("C", {"ZZ2R": ComparedValue(1.28, 0.02, "kg m^2", "ZZ2R = ZZ2")})
    silent = ComparedRun("other", {"ZZ2R": ComparedValue(1.4, 0.02, "kg m^2")})
    (row,) = compare_parameters([motor, joint, silent]).rows
    assert row.differences[0] is None
    assert row.differences[1] is not None
    assert row.values[1] == joint.parameters["ZZ2R"]


def test_csv_reads_back_to_the_last_bit():
    comparison = compare_parameters([FIRST, SECOND, published_run("p5_lwr4_d")])
    table = list(csv.DictReader(io.StringIO(to_csv(comparison), newline="")))
    assert len(table) == len(comparison.rows)
    for line, row in zip(table, comparison.rows, strict=True):
        assert line["parameter"] == row.name
        for run, value in zip(comparison.runs, row.values, strict=True):
            assert line[f"{run} value"] == ("" if value is None else repr(value.value))
        difference = row.differences[0]
        if difference is None:
            assert line["their_&_run difference"] == ""
        else:
            assert float(line["their_&_run difference"]) == difference.absolute
            assert line["their_&_run sigmas"] == ("" if difference.sigmas is None else repr(difference.sigmas))


def test_latex_has_as_many_cells_as_columns_and_escaped_names():
    text = to_latex(compare_parameters([FIRST, SECOND]))
    lines = text.splitlines()
    assert lines[0] == r"\begin{tabular}{llrrrrrr}"
    assert lines[-1] == r"\end{tabular}"
    assert r"their\_\&\_run" in lines[2]
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    cells = [[cell.strip() for cell in line.removesuffix(r" \\").split(" & ")] for line in body]
    assert {len(row) for row in cells} == {8}
    table = {row[0]: row[1:] for row in cells}
    assert table["ZZ1R"] == [r"kg m\textasciicircum{}2", "$2$", "$15$", "$3$", "$13$", "$+50.0$", "$+2.0$"]
    assert table[r"off\_1"][-2:] == ["--", "$+5.0$"]
    assert table["MX7"] == ["kg m", "--", "--", r"$1\cdot 10^{-7}$", "$10$", "--", "--"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([FIRST], "got 1 runs, needed are at least two"),
        ([FIRST, FIRST], "two runs are called 'ours'"),
        ([FIRST, ComparedRun("x", {"ML": ComparedValue(1.0, None, "g")})], "unit is 'kg', in run 'x' it is 'g'"),
        ([FIRST, ComparedRun("x", {"ML": ComparedValue(float("nan"), None, "kg")})], "'ML' is nan"),
        (
            [FIRST, ComparedRun("x", dict.fromkeys(("Fvm1", "Fvm1R"), ComparedValue(1.0, None, "N m s/rad")))],
            "'Fvm1' comes twice",
        ),
    ],
)
def test_runs_that_do_not_compare_are_refused(runs, message):
    with pytest.raises(EstimateError, match=message):
        compare_parameters(runs)


COUNTS = {
    "p2_lwr4": 49,
    "p5_lwr4_a": 34,
    "p5_lwr4_b": 23,
    "p5_lwr4_b_joint_positions": 23,
    "p5_lwr4_c": 44,
    "p5_lwr4_d": 21,
}
MEASURED = {
    "p2_lwr4": "both",
    "p5_lwr4_a": "motor",
    "p5_lwr4_b": "joint",
    "p5_lwr4_c": "both",
    "p5_lwr4_d": "difference",
}


def test_published_tables_have_the_papers_counts_of_essential_parameters():
    assert {name: len(published_run(name).parameters) for name in published_names()} == COUNTS


@pytest.mark.parametrize("name", MEASURED)
def test_published_parameters_are_base_parameters_of_the_model_with_its_units_and_regrouping(name):
    payload = "none" if MEASURED[name] == "difference" else "paired"
    model = build_model(load_robot("kuka_lwr4"), measured=MEASURED[name], payload=payload)
    base = {parameter.name: parameter for parameter in base_parameters(model).base}
    for parameter, value in published_run(name).parameters.items():
        assert value.unit == base[parameter].unit, parameter
        assert value.regrouping in ("", base[parameter].text)


def percent_of(rows, name, place=0):
    difference = rows[name][place]
    assert difference is not None
    assert difference.percent is not None
    return abs(difference.percent)


def test_differences_of_models_are_those_that_the_paper_prints():
    comparison = compare_parameters([published_run(f"p5_lwr4_{model}") for model in "abcd"])
    rows = {row.name: row.differences for row in comparison.rows}
    for name, percent in {"Ia3": 1.5, "Fvm1R": 0.7, "Fcm2R": 7.0, "Ia4": 7.3, "Fcm5R": 11.0, "Ia7": 4.5}.items():
        assert percent_of(rows, name, 2) == pytest.approx(percent, abs=0.5), name
    for name, percent in {"MY2R": 2.4, "XX4R": 20.0, "MXL": 16.0, "ML": 1.7}.items():
        assert percent_of(rows, name, 1) == pytest.approx(percent, abs=0.5), name
    assert rows["ZZ2R"] == (None, None, None)


def test_two_robots_of_one_kind_differ_by_some_20_per_cent_in_their_drives():
    comparison = compare_parameters([published_run("p5_lwr4_c"), published_run("p2_lwr4")])
    rows = {row.name: row.differences for row in comparison.rows}
    assert 10 < max(percent_of(rows, f"Ia{k}") for k in range(1, 8)) < 20
    assert percent_of(rows, "MY2R") < 1
    assert comparison.summaries[0].within < comparison.summaries[0].compared


def test_an_unknown_table_is_refused_with_the_nearest_name():
    with pytest.raises(EstimateError, match="did you mean 'p5_lwr4_c'"):
        published_run("p5_lwr4c")
