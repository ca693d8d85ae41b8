"""Words of messages; and text from outside: what terminals, JSON, spreadsheets, LaTeX and HTML get of hostile names."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import steelyard
from steelyard.text import (
    counted,
    csv_text,
    for_csv,
    for_json,
    for_latex,
    for_terminal,
    for_yaml,
    from_csv,
    latex_number,
    with_remedy,
)

HOSTILE = "arm[/left]\x1b[31m\x9b\u202e\ud800\n\U000e0001"


def test_a_terminal_gets_visible_escapes_and_brackets_as_they_are():
    assert for_terminal(HOSTILE) == r"arm[/left]\x1b[31m\x9b\u202e\ud800\n\U000e0001"
    assert for_terminal("Gelenk_ä 関節") == "Gelenk_ä 関節"


def test_json_carries_no_unprintable_character_and_the_same_data():
    document = for_json(json.dumps({HOSTILE: [HOSTILE, "ä"]}, indent=2, ensure_ascii=False))
    assert all(letter.isprintable() or letter == "\n" for letter in document)
    assert "ä" in document
    assert json.loads(document) == {HOSTILE: [HOSTILE, "ä"]}


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1+2", "-j", "@SUM(A1)", "\tx", "\rx"])
def test_no_spreadsheet_takes_a_name_for_a_formula_and_the_reader_gets_the_name(name):
    assert for_csv(name) == f"'{name}"
    assert from_csv(for_csv(name)) == name


@pytest.mark.parametrize("cell", ["-1.5", "+2e-3", "nan", "-inf", "'quoted'", "joint_1", ""])
def test_numbers_and_other_names_stay_as_they_are(cell):
    assert for_csv(cell) == from_csv(cell) == cell


def test_a_table_is_quoted_where_needed():
    rows = [['a,"b"', "=c"], ["1", "-2"]]
    assert list(csv.reader(csv_text(rows).splitlines())) == [['a,"b"', "'=c"], ["1", "-2"]]


def test_counts_and_remedies_are_english():
    assert [counted(number, "gap") for number in (0, 1, 2)] == ["0 gaps", "1 gap", "2 gaps"]
    assert with_remedy("a gap in 'log'", "") == "a gap in 'log'"
    assert with_remedy("a gap in 'log'", "record again") == "a gap in 'log'; record again"


def test_percent_signs_stand_apart():
    """Texts of the package have '10 %', which the format '%' of Python does not write."""
    for path in Path(steelyard.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\{[^{}\n]*:\.\d%\}", text), path


def test_latex_and_html_get_no_commands():
    assert for_latex(r"\input{a}_$") == r"\textbackslash{}input\{a\}\_\$"
    assert for_latex("\x1b") == r"\textbackslash{}x1b"


def test_a_character_beyond_u_ffff_is_one_character_in_yaml():
    assert for_yaml("\U0001f600") == '"\U0001f600"'
    assert for_yaml("a\U000e0001\u202e\x85") == r'"a\U000e0001\u202e\u0085"'


def test_numbers_of_latex():
    assert [latex_number(value, ".3g") for value in (1.5, -2e-7, None)] == ["$1.5$", r"$-2\cdot 10^{-7}$", "--"]
