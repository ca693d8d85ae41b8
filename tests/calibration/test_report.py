"""The report of a calibration and of chosen poses: figures have the numbers of the result, names are only text."""

from __future__ import annotations

import html
import json
from dataclasses import replace

import numpy as np
import pytest

from browser import MISSING, Browser, is_installed
from chart_data import array_of, example_failures
from steelyard.calibration import (
    CalibrationResult,
    CalibrationSetup,
    ChosenPoses,
    MarkerSetup,
    calibrate,
    choose_poses,
    random_configurations,
    simulated_measurements,
)
from steelyard.calibration.figures import arrow_chart, error_chart, parameter_charts, point_errors
from steelyard.calibration.poses.figures import _range_chart
from steelyard.cli import main
from steelyard.report import DataTable
from steelyard.robot import load_robot

HOSTILE = "</script><img src=x onerror=alert(1)>"
ROBOT = load_robot("scara_2r")
NESTS = [(0.3, 0.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)]
SETUP = CalibrationSetup("link_2", markers=tuple(MarkerSetup(f"nest_{k}", p) for k, p in enumerate(NESTS)))
WRONG = 10


def measured(seed: int, count: int):
    q = random_configurations(ROBOT, count, np.random.default_rng(seed))
    found = simulated_measurements(ROBOT, SETUP, q, {"x2": 2e-3}, sigma=5e-5, seed=seed)
    return replace(found, poses=tuple(f"{HOSTILE} {k}" for k in range(count)))


@pytest.fixture(scope="module")
def found() -> CalibrationResult:
    points = measured(0, 25)
    value = points.value.copy()
    value[WRONG] += [0.03, 0.0, 0.0]
    return calibrate(ROBOT, replace(points, value=value), setup=SETUP, validate=measured(1, 8), workspace=30)


def test_points_have_the_errors_that_the_result_states(found):
    fitted, validation = point_errors(found)
    good = ~fitted.is_left_out
    assert np.flatnonzero(fitted.is_left_out).tolist() == [WRONG]
    stated = found.calibration
    assert stated.held_out is not None
    assert stated.validation is not None
    for errors, accuracy in ((fitted.before, stated.before), (fitted.after, stated.after)):
        assert 1e3 * np.sqrt(np.mean(errors[good] ** 2)) == pytest.approx(accuracy.rms_mm)
    assert 1e3 * np.nanmax(fitted.held_out) == pytest.approx(stated.held_out.max_mm)
    assert 1e3 * np.sqrt(np.mean(validation.before**2)) == pytest.approx(stated.validation.before.rms_mm)
    assert 1e3 * validation.after.max() == pytest.approx(stated.validation.after.max_mm)


def test_a_file_registered_by_itself_is_drawn_so(found):
    settings = replace(found.calibration.settings, validation_base="own")
    own = calibrate(
        ROBOT, found.problem.measurements, setup=SETUP, settings=settings, validate=measured(1, 8), workspace=0
    )
    stated = own.calibration.validation
    assert stated is not None
    assert 1e3 * point_errors(own)[1].after.max() == pytest.approx(stated.after.max_mm)


def test_every_configuration_has_its_error_before_and_after(found):
    chart = error_chart(point_errors(found))
    named = {trace["name"]: trace for trace in chart.data if trace["yaxis"] == "y"}
    assert list(named) == ["before", "after", "after, held out", "left out"]
    np.testing.assert_array_equal(array_of(named["before"]["x"]), np.arange(1, 26))
    assert array_of(named["left out"]["y"]) == pytest.approx([30.0], abs=3.0)
    assert len(array_of(chart.data[-1]["x"])) == 8  # of the validation file


def test_arrows_are_as_long_as_the_errors_times_the_factor_stated(found):
    chart, factor = arrow_chart(found)
    before, after = chart.data[-2:]
    lengths = []
    for trace in (before, after):
        ends = np.array([array_of(trace[axis]).reshape(-1, 3)[:, :2] for axis in "xyz"])
        lengths.append(np.linalg.norm(ends[..., 1] - ends[..., 0], axis=0))
    stated = found.calibration
    assert len(lengths[0]) == stated.before.points
    assert 1e3 * lengths[0].mean() / factor == pytest.approx(stated.before.mean_mm, rel=1e-4)
    assert 1e3 * lengths[1].mean() / factor == pytest.approx(stated.after.mean_mm, rel=1e-3)
    assert [frame["name"] for frame in chart.frames[:2]] == ["1.000", "2.000"]
    assert len(chart.frames) == 25


def test_intervals_are_those_of_the_parameters(found):
    rows = [row for row in found.to_json()["parameters"] if row["group"] == "joint" and row["unit"] == "m"]
    (trace,) = parameter_charts(found.to_json()["parameters"])["mm"].data
    np.testing.assert_allclose(array_of(trace["x"]), [1e3 * (row["value"] - row["nominal"]) for row in rows], rtol=1e-5)
    half = [1e3 * (row["high"] - row["low"]) / 2 for row in rows]
    np.testing.assert_allclose(array_of(trace["error_x"]["array"]), half, rtol=1e-5)


def test_the_page_states_the_numbers_and_takes_names_for_text(found):
    page = found.to_html({"note": HOSTILE})
    assert HOSTILE not in page
    assert "<img src=x" not in page
    assert html.escape(f"{HOSTILE} 3") in page  # the configuration left out
    for text in (f"{found.calibration.before.rms_mm:.3g} mm", f"{found.calibration.after.rms_mm:.3g} mm", "x2"):
        assert text in page
    for name in ("errors", "arm", "parameters-1", "workspace", "weights", "convergence"):
        assert f'<figure id="{name}">' in page
    assert len(page) < 6_000_000
    assert 'class="sort"></button>' not in page  # every column has a title, for screen readers too


@pytest.mark.skipif(not is_installed(), reason=MISSING)
@pytest.mark.large
def test_a_click_on_a_configuration_shows_the_arm_there(found, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(found.to_html(), encoding="utf-8")
    with Browser() as browser:
        browser.open(path)
        browser.run("document.querySelector('#errors').scrollIntoView()")
        browser.wait_for("document.querySelector('#errors .plot').dataset.drawn === 'yes'")
        point = "{points: [{x: 7, data: {meta: 'outlier'}}]}"
        browser.run(f"document.querySelector('#errors .plot').emit('plotly_click', {point})")
        browser.wait_for("document.querySelector('#arm .plot').dataset.shown === '7.000'")
        assert browser.run("return document.querySelectorAll('img').length") == 0
        assert [one for one in browser.requests() if not one.startswith(("file:", "data:", "blob:"))] == []


def test_a_page_without_map_and_validation(found):
    page = replace(found, workspace=None, others=None).to_html()
    assert '<figure id="workspace">' not in page
    assert len(error_chart(point_errors(replace(found, others=None))).data) == 4


def test_counts_have_all_their_digits():
    table = DataTable("accuracy", ["points", "mean [mm]"], [[1440, 0.123456]], "Errors.", digits=3)
    assert table.cells() == [[("1440", "1440"), ("0.123", "0.123456")]]


def test_chosen_poses_have_a_report_in_their_run_folder(tmp_path):
    out = tmp_path / "chosen"
    assert (
        main(["poses", "scara_2r", "--count", "6", "--candidates", "20", "--keep", "--out", str(out), "--quiet"]) == 0
    )
    content, page = json.loads((out / "result.json").read_text()), (out / "report.html").read_text()
    assert "report.html" in content["provenance"]["files"]
    assert f"{content['value']:.4g}" in page
    for name in ("sigmas-1", "ranges", "arm"):
        assert f'<figure id="{name}">' in page


def test_joint_names_of_poses_are_text():
    chosen = choose_poses("scara_2r", 6, candidates=20, keep=True)
    named = tuple(replace(joint, name=f"{HOSTILE}{joint.name}") for joint in ROBOT.joints)
    page = replace(chosen, robot=replace(ROBOT, joints=named)).to_html()
    assert html.escape(f"{HOSTILE}joint_1 [deg]") in page
    assert HOSTILE not in page
    assert "<img src=x" not in page


def test_the_range_of_a_joint_without_limits_is_a_turn():
    free = replace(ROBOT.joints[0], limits=replace(ROBOT.joints[0].limits, lower=-np.inf, upper=np.inf))
    arm = replace(ROBOT, joints=(free, ROBOT.joints[1]))
    chosen = choose_poses(arm, 6, candidates=20, keep=True)
    shown = array_of(_range_chart(chosen).data[0]["x"])
    np.testing.assert_allclose(shown, 100 * (chosen.design.q[0] + np.pi) / (2 * np.pi), rtol=1e-6)
    assert "the range of a joint without limits is a turn" in chosen.to_html()


def test_a_joint_without_play_is_drawn_at_the_start_of_its_range():
    chosen = choose_poses("scara_2r", 6, candidates=20, keep=True)
    fixed = replace(ROBOT.joints[1], limits=replace(ROBOT.joints[1].limits, lower=0.3, upper=0.3))
    q = chosen.design.q.copy()
    q[1] = 0.3
    arm = replace(ROBOT, joints=(ROBOT.joints[0], fixed))
    page = replace(chosen, robot=arm, design=replace(chosen.design, q=q)).to_html()  # warnings are errors here
    assert "joint_1 uses least of its range" in page
    assert "NaN" not in page.partition('id="data-ranges">')[2].partition("</script>")[0]


@pytest.mark.parametrize("method", [CalibrationResult.plot_errors, CalibrationResult.to_html, ChosenPoses.to_html])
def test_the_examples_run(method):
    assert not example_failures(method)
