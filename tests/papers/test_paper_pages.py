"""Reports of papers: claims sorted by what they say of the paper, tables and figures, and an index."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from steelyard import papers
from steelyard.cli import main
from steelyard.papers import PaperResult, papers_index, within
from steelyard.papers.claim import table
from steelyard.papers.figures import AxisTorques, p3_figures, p4_torque_figures
from steelyard.papers.p3_runs import OneRun3


def paper(name: str = "P3", remark: str = "iterating <b>gains</b> nothing") -> PaperResult:
    held = within("ratio that holds", 2.0, 2.1, 1, 3, fails_if="it is another", claimed=(1, 3))
    broken = within("ratio that breaks", "27 to 42", 1.5, 0, 3, remark, fails_if="it gains as much", claimed=(27, 42))
    further = within("figure beside", "not said", 0.25, 0, 1, fails_if="it is large")
    printed = table("Table 3: compliances", ["", "paper", "ours"], [["k21", 0.287, 0.2871], ["k22", None, 0.277]])
    drawn = p3_figures(["k21", "k22"], one_run(), np.array([1.0, 2.0]))
    return PaperResult(name, "Authors 2013: a <i>title", (held, broken, further), (printed,), ("a note",), {}, drawn)


def one_run() -> OneRun3:
    around = np.array([[0.9, 1.1], [1.9, 2.1]])
    return OneRun3(np.array([[1.1, 2.2], [1.01, 2.01], [1.0, 2.0]]), 1.01 * around, around)


def test_a_page_has_claims_tables_and_figures_and_harmless_texts():
    page = paper().to_html({"command": "steelyard papers"})
    places = [page.index(text) for text in ("Statements that hold</h2>", "ratio that holds", "do not hold</h2>",
              "ratio that breaks", "Figures</h2>", "figure-3a", "Table 3: compliances.", "figure beside")]  # fmt: skip
    assert places == sorted(places)
    for text in ("it gains as much", "Iterating &lt;b&gt;gains&lt;/b&gt; nothing.", "0.2871", "a &lt;i&gt;title"):
        assert text in page
    assert "<b>gains" not in page
    assert '<button type="button" class="sort"></button>' not in page  # a heading that a reader can hear


def test_an_index_links_to_every_page():
    page = papers_index([paper("P1"), paper("P3")])
    assert re.findall(r'<a href="(P\d\.html)">', page) == ["P1.html", "P3.html"]
    assert len(page) < 100_000  # no figures, no plotly


def test_one_paper_has_a_report_and_several_an_index(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papers, "reproduce", lambda name, **also: paper(name))
    assert main(["papers", "P3", "--out", "one"]) == 0
    assert {path.name for path in Path("one").iterdir()} == {"report.html", "result.json", "timing.json"}
    assert json.loads(Path("one/result.json").read_text(encoding="utf-8"))["paper"] == "P3"
    assert main(["papers", "P1", "P3", "--out", "one"]) == 0
    assert {path.name for path in Path("one").iterdir()} == {
        "P1.html", "P3.html", "index.html", "result.json", "timing.json"
    }  # fmt: skip
    content = json.loads(Path("one/result.json").read_text(encoding="utf-8"))
    assert [each["paper"] for each in content["papers"]] == ["P1", "P3"]
    capsys.readouterr()
    assert main(["papers", "--json"]) == 0
    assert [each["paper"] for each in json.loads(capsys.readouterr().out)["papers"]] == ["P1", "P2", "P3", "P4", "P5"]


@pytest.mark.parametrize(("names", "message"), [(["P1", "P1"], "given twice"), (["P1", "P7"], "got 'P7', allowed are")])
def test_names_are_checked_before_any_work(names, message, capsys):
    assert main(["papers", *names]) == 1
    assert message in capsys.readouterr().err


def test_the_captions_say_what_was_computed():
    figures = p3_figures(["k21", "k22"], one_run(), np.array([1.0, 2.0]))
    assert "changes them by up to 9.5 %" in figures[0].caption
    assert "2 of 2 pairs overlap" in figures[1].caption
    torques = AxisTorques(np.arange(3.0), np.zeros((1, 3)), np.full((1, 3), 2.0), np.zeros((1, 3)))
    assert "Its mean squares are 4 N" in p4_torque_figures(torques, torques)[0].caption
