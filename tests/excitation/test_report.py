"""The report of a designed motion: figures have the numbers of the certificate and of the predicted accuracy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from chart_data import array_of, example_failures
from steelyard.cli import main
from steelyard.excitation import Design, DesignSettings
from steelyard.excitation import design as design_experiment
from steelyard.excitation.figures import clearance_chart, limit_uses, sigma_chart, torque_chart, use_chart

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def design() -> Design:
    settings = DesignSettings(motion="quintic", moves=3, duration=4.0, noise=(1.0, 0.2), starts=1)
    return design_experiment("scara_2r", settings, start=[0.0, 0.5])


def test_uses_of_limits_are_those_of_the_certificate(design):
    uses, findings = limit_uses(design), {finding.name: finding for finding in design.certificate.findings}
    assert len(uses) == len(findings)
    torque = next(one for one in uses if one.name == "torque of joint_1")
    assert torque.used == pytest.approx(findings["torque of joint_1"].worst / design.limits.torque[0])
    upper = next(one for one in uses if one.name == "upper of joint_1")
    assert (upper.text, upper.sign, upper.unit) == ("upper position of joint_1", "<=", "rad")
    clearance = next(one for one in uses if one.kind == "clearance")
    assert clearance.used is None
    assert clearance.reached == -findings[clearance.name.removeprefix("clearance ")].worst > 0
    drawn = [array_of(trace["x"]) for trace in use_chart(uses).data]
    assert max(values.max() for values in drawn) == pytest.approx(100 * max(one.used or 0 for one in uses), rel=1e-5)


def test_torques_and_clearances_over_time_stay_within_what_is_proven(design):
    findings = {finding.name: finding for finding in design.certificate.findings}
    chart, clearances = torque_chart(design), clearance_chart(design)
    assert chart is not None
    assert clearances is not None
    lines = [trace for trace in chart.data if trace["mode"] == "lines"]
    for joint, trace in zip(("joint_1", "joint_2"), lines, strict=True):
        worst = findings[f"torque of {joint}"].worst
        assert 0.9 * worst < array_of(trace["y"]).max() <= worst * (1 + 1e-6)
    least = min(-findings[rule.name].worst for rule in design.limits.rules)
    drawn = [array_of(trace["y"]) for trace in clearances.data]
    assert least - 1e-6 <= min(values.min() for values in drawn) < least + 0.02


def test_sigmas_are_beside_those_of_random_motions(design):
    own, random = sigma_chart(design).data
    known = design.figures.relative_sigma <= 10
    expected = np.sort(100 * design.figures.relative_sigma[known])[::-1]
    np.testing.assert_allclose(array_of(own["x"]), expected, rtol=1e-5)
    assert random["name"] == "random motions"
    assert len(sigma_chart(replace(design, baseline=None)).data) == 1


def test_the_page_states_the_numbers_and_takes_notes_for_text(design):
    page = replace(design, notes=(HOSTILE,)).to_html()
    assert HOSTILE not in page
    assert "<img src=x" not in page
    for text in (f"{design.value:.4g}", *design.figures.names, "lower position of joint_1"):
        assert text in page
    for name in ("motion", "sigmas", "limits-used", "torque-limits", "clearances", "arm"):
        assert f'<figure id="{name}">' in page


def test_the_value_of_the_search_is_told_from_that_of_the_recording(design):
    best = min(one.final for one in design.starts if one.final is not None)
    assert f"{best:.4g}" != f"{design.value:.4g}"
    assert f"with the exact sign the best, {best:.4g}, is {design.value:.4g}." in design.to_html()


def test_a_run_folder_has_the_report(tmp_path):
    out = tmp_path / "designed"
    options = ["--motion", "quintic", "--moves", "3", "--duration", "4", "--starts", "1", "--format", "none"]
    assert main(["design", "scara_2r", *options, "--out", str(out), "--quiet"]) == 0
    assert "report.html" in json.loads((out / "result.json").read_text())["provenance"]["files"]
    assert "Motion to record on scara_2r" in (out / "report.html").read_text()


@pytest.mark.parametrize("method", [Design.plot, Design.to_html])
def test_the_examples_run(method):
    assert not example_failures(method)
