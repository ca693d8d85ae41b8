"""The report of a study and its figures hold the numbers of its verdicts."""

from __future__ import annotations

import base64
import doctest
import inspect
import json
import re

import numpy as np
import pytest

import steelyard
from steelyard.errors import SimulationError
from steelyard.study import StudySettings, figures, montecarlo
from steelyard.study.figures import chance_of_coverage, estimated
from study.studies import scara


@pytest.fixture(scope="module")
def result():
    return montecarlo(scara(), StudySettings(methods=("wls", "gls"), seeds=6, noise_levels=(1.0, 2.0)))


def drawn(figure, place=0):
    return unpacked(figure.data[place].x)


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["bdata"]), "<f4").astype(float)


def test_the_figures_show_the_verdicts(result):
    first = result.verdicts[0]
    np.testing.assert_allclose(
        drawn(result.plot_bias()), [one.bias_in_sigmas for one in first.parameters], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(drawn(result.plot_coverage()), [100 * one.coverage for one in first.parameters])
    ratios = [one.spread / one.reported_sigma for one in first.parameters]
    np.testing.assert_allclose(drawn(result.plot_sigmas()), ratios, rtol=1e-5)
    assert len(result.plot_bias().data) == len(result.verdicts)
    times = unpacked(result.plot_times().data[0].y)
    np.testing.assert_allclose(times, [1e3 * verdict.seconds for verdict in result.verdicts], rtol=1e-5)


def test_the_page_has_a_figure_for_each_noise_level_and_every_case(result):
    page = result.to_html({"command": "steelyard montecarlo"}, ["a note <b>"])
    stored = dict(re.findall(r'<script type="application/json" id="data-([a-z0-9-]+)">(.*?)</script>', page))
    assert {"bias-1", "bias-2", "coverage-1", "coverage-2", "sigmas-1", "efficiency-2", "times"} <= set(stored)
    content = json.loads(stored["coverage-2"])
    assert [trace["name"] for trace in content["data"]] == ["wls", "gls"]
    values = unpacked(content["data"][0]["x"])
    np.testing.assert_allclose(values, [100 * one.coverage for one in result.verdicts[1].parameters])
    assert page.count('<td data-key="&#34;gls&#34;"') == 2
    assert "A note &lt;b&gt;." in page
    assert "At noise level 2: " in page
    assert not all(verdict.judges_coverage for verdict in result.verdicts)
    assert "of 32, too few runs to judge</dd>" in page


def test_chance_holds_most_of_the_right_coverage():
    low, high = chance_of_coverage(100)
    assert (low, high) == (90.0, 99.0)
    assert chance_of_coverage(6) == (pytest.approx(100 * 4 / 6), 100.0)


def test_a_study_without_estimates_is_not_drawn():
    with pytest.raises(SimulationError, match="nothing to draw"):
        estimated([])


@pytest.mark.parametrize("name", ["plot_bias", "plot_coverage", "plot_sigmas", "plot_times", "to_html"])
def test_the_examples_of_the_methods_run(name):
    method = getattr(figures, name)
    (example,) = doctest.DocTestFinder(recurse=False).find(inspect.unwrap(method), name, globs={"steelyard": steelyard})
    assert example.examples
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)
