"""Pages without a browser: what they hold, that they ask nothing of the network, and that names stay names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hostile_arm import HOSTILE, SCRIPT
from simulated_experiments import scara
from steelyard.consistency import ConsistencySettings
from steelyard.errors import EstimateError
from steelyard.identification import Identification, Settings, identify
from steelyard.identification.figures import friction_curves, residual_samples, unseen_motion
from steelyard.identification.report import _explained_by
from steelyard.plots import Chart, EvenSample, FrictionCurve, Thinned, friction_plot, plot_text, thin
from steelyard.report import DataTable, Figure, Page, PageSection, page_html
from steelyard.verdict import Reason, graded_row, verdict_of

FIGURE = re.compile(r'<script type="application/json" id="data-([\w-]+)">(.*?)</script>', re.DOTALL)
CODE = re.compile(r"<script>(.*?)</script>\n", re.DOTALL)
NAMES = {
    "torques", "friction", "histogram", "whiteness", "residual-velocity", "residual-acceleration", "residual-position",
    "residual-load", "arm", "singular-values", "correlations", "spectra",
}  # fmt: skip
CURVE = FrictionCurve(np.zeros(3), np.zeros(3), np.zeros(3), "N m", "rad/s")


def figures(text: str) -> dict[str, dict]:
    return {name: json.loads(content) for name, content in FIGURE.findall(text)}


def decoded(values: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=f"<{values['dtype']}")


def test_a_run_has_a_report_that_its_result_knows(page, found):
    content = json.loads((page.parent / "result.json").read_text(encoding="utf-8"))
    assert content["provenance"]["files"]["report.html"] == hashlib.sha256(page.read_bytes()).hexdigest()
    text = page.read_text(encoding="utf-8")
    assert content["provenance"]["run"] in text
    assert f'<span class="grade {found.verdict.grade}">' in text
    assert set(figures(text)) == NAMES
    for row in found.verdict.criteria:
        assert f'<th scope="row">{row.name.replace("<", "&lt;")}</th>' in text
    assert page.stat().st_size < 8_000_000


def test_every_axis_has_a_name_and_every_figure_a_sentence(page):
    text = page.read_text(encoding="utf-8")
    for name, figure in figures(text).items():
        layout = figure["layout"]
        axes = [layout[key] for key in layout if re.fullmatch(r"[xy]axis\d*", key)]
        shown = [axis for axis in axes if axis.get("visible", True) and axis.get("showticklabels", True)]
        if name not in ("correlations", "arm", "singular-values"):
            assert all(axis["title"]["text"] for axis in shown), name
        caption = re.search(rf'<figure id="{name}">.*?<figcaption[^>]*>(.*?)</figcaption>', text, re.DOTALL)
        assert caption is not None
        assert len(caption[1]) > 40


def test_nothing_is_asked_of_the_network_and_only_our_scripts_may_run(page):
    text = page.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    allowed = set(re.findall(r"sha256-([\w+/=]+)", policy[1]))
    scripts = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in CODE.findall(text)]
    assert set(scripts) == allowed
    assert len(scripts) == 2
    assert "default-src &#39;none&#39;" in policy[1]
    outside = CODE.sub("", FIGURE.sub("", text)).replace("&lt;img src=x", "")
    assert not re.search(r"<(link|iframe|object|embed|base)\b|\ssrc=|https?://|@import|url\(", outside)


def test_hostile_names_are_text_in_the_page(page):
    outside = CODE.sub("", page.read_text(encoding="utf-8"))
    assert HOSTILE not in outside
    assert "<script>window.hacked" not in outside
    assert "&lt;img src=x onerror=" in outside


def test_figures_show_what_was_judged(page, found):
    torques = figures(page.read_text(encoding="utf-8"))["torques"]["data"]
    lines = {(trace["name"], trace["yaxis"]): trace for trace in torques}
    measured, predicted, error = (decoded(lines[name, "y"]["y"]) for name in ("measured", "predicted", "error"))
    joint = found.unseen_error.joints[0]
    assert np.abs(measured).max() == pytest.approx(joint.torque_max, rel=1e-5)
    assert np.abs(error).max() == pytest.approx(joint.maximum, rel=1e-5)
    assert len(predicted) <= 1500
    assert any(trace.get("meta") == "outlier" for trace in torques)


def test_plot_methods_are_figures_of_the_report(found, page):
    drawn = figures(page.read_text(encoding="utf-8"))
    assert len(found.plot_torques().data) == len(drawn["torques"]["data"])
    assert len(found.plot_residuals().data) == len(drawn["histogram"]["data"])
    assert len(found.plot_friction().data) == len(drawn["friction"]["data"])
    assert found.plot_parameters().layout.xaxis.title.text == "95 % interval [% of the value]"
    with pytest.raises(EstimateError, match=r"against 'speed': allowed are velocity, acceleration, position, load"):
        found.plot_residuals("speed")


def test_thinning_keeps_peaks_and_gaps():
    time = np.arange(100_000.0)
    line = np.sin(time / 3000)
    line[[1234, 77_777]] = 5.0, -7.0
    line[50_000:50_010] = np.nan
    x, y = thin(time, line, 900)
    assert len(x) <= 900
    assert (np.nanmax(y), np.nanmin(y)) == (5.0, -7.0)
    assert x[np.nanargmax(y)] == 1234
    assert np.isnan(y).sum() >= 1
    assert (np.diff(x) > 0).all()


def test_lines_that_come_in_blocks_are_thinned_alike():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, 200_000))
    values[0, 150_001] = 40.0
    thinned, sample = Thinned(2, 600), EvenSample(500)
    for first in range(0, 200_000, 777):
        block = values[:, first : first + 777]
        time = np.arange(first, first + block.shape[1], dtype=float)
        thinned.add(time, block)
        sample.add(time[None])
    (x, y), (_, other) = thinned.lines()
    assert len(y) <= 600
    assert (y.max(), x[y.argmax()]) == (40.0, 150_001)
    assert (other.min(), other.max()) == (values[1].min(), values[1].max())
    taken = sample.values()[0]
    assert 250 <= len(taken) <= 1000
    assert len(set(np.diff(taken))) == 1


def test_texts_in_figures_are_no_markup():
    assert plot_text("<b>bold</b>") == "&lt;b&gt;bold&lt;/b&gt;"
    assert plot_text("the 'shoulder' & \"elbow\"") == "the 'shoulder' &amp; \"elbow\""  # plotly shows &quot; as it is
    assert plot_text("shoulder_of_the_arm_1", 10) == "shoul…rm_1"
    assert plot_text("a\u202eb") == r"a\u202eb"


def test_a_page_needs_no_figure_and_escapes_every_cell():
    rows = [[SCRIPT, 1.5, HOSTILE], ["x", None, HOSTILE]]
    table = DataTable("t", ["a", "b", SCRIPT], rows, SCRIPT, is_folded=True)
    html = page_html(Page(SCRIPT, SCRIPT, [PageSection(SCRIPT, [table], SCRIPT)], facts={"f": SCRIPT}))
    assert SCRIPT not in html
    assert HOSTILE not in html
    assert len(html) < 100_000  # no plotly without a figure
    assert '<td data-key="1.5" class="number">1.5</td>' in html


def test_json_of_a_figure_cannot_end_its_script():
    chart = Chart(100)
    chart.add(x=[1], y=[2], name=SCRIPT)
    html = page_html(Page("t", "s", [PageSection("p", [Figure("f", chart, "A caption.")])]))
    assert SCRIPT not in html
    assert figures(html)["f"]["data"][0]["name"] == SCRIPT


@pytest.fixture(scope="module")
def arm() -> Identification:
    settings = Settings(method="wls", bias_repeats=0, consistency=ConsistencySettings(draws=2))
    return identify("scara_2r", [scara(1)], settings=settings)


def test_the_law_of_friction_is_the_law_and_not_its_filtered_rows(arm):
    values, samples = arm.values(), residual_samples(arm)
    for number, curve in enumerate(friction_curves(arm, samples).values(), 1):
        assert curve.line is not None
        speed, torque = curve.line
        viscous, dry = (values.get(f"{name}{number}", 0.0) for name in ("Fvm", "Fcm"))
        np.testing.assert_allclose(torque, viscous * speed + dry * np.sign(speed), atol=1e-12)
        assert speed[0] == samples[number - 1].signals["velocity"].min()
    trace = arm.plot_friction().data[1]
    assert trace.name == "fitted law"
    assert trace.mode == "lines"


def test_a_law_that_depends_on_more_than_the_speed_is_a_cloud():
    curve = FrictionCurve(np.array([1.0, -1.0]), np.array([2.0, -2.0]), np.array([1.5, -1.5]), "N m", "rad/s")
    assert friction_plot({"a": curve}).data[1]["mode"] == "markers"


def test_circled_errors_are_those_that_are_judged():
    settings = Settings(method="wls", reduction="none", bias_repeats=0, consistency=ConsistencySettings(draws=2))
    found = identify("scara_2r", [scara(1)], [scara(3)], settings)
    drawn, judged = unseen_motion(found).joints[1], found.unseen_error.joints[1]
    assert np.nanmax(np.abs(drawn.lines["error"][1])) > 1.5 * judged.maximum  # near standstill
    assert np.abs(drawn.points["largest errors"][1]).max() == pytest.approx(judged.maximum)


def test_a_caption_says_what_its_own_signal_explains():
    def test(**shares: float) -> SimpleNamespace:
        return SimpleNamespace(
            patterns=[SimpleNamespace(signal=name, share_explained=share) for name, share in shares.items()]
        )

    tests = {"joint_1": test(velocity=0.76, load=0.02), "joint_2": test()}
    assert "joint_1 (76 %): the model lacks an effect" in _explained_by("velocity", tests)  # type: ignore[arg-type]
    assert "most of joint_1 (2 %)" in _explained_by("load", tests)  # type: ignore[arg-type]
    assert _explained_by("position", tests).startswith("No joint's residuals")  # type: ignore[arg-type]


def test_a_held_out_part_is_drawn_at_its_time_in_the_recording(arm):
    recording, time = scara(1), unseen_motion(arm).time
    assert time[0] == pytest.approx(0.75 * recording.duration, abs=0.7)
    assert time[-1] == pytest.approx(recording.duration, abs=0.7)


def test_a_spike_that_the_filter_takes_is_in_the_torque_as_recorded():
    log = scara(3)
    values = log.torques[0].values.copy()
    values[1, 1000] += 50.0
    spiked = replace(log, torques=(replace(log.torques[0], values=values),))
    settings = Settings(method="wls", reduction="none", bias_repeats=0, consistency=ConsistencySettings(draws=2))
    lines = unseen_motion(identify("scara_2r", [scara(1)], [spiked], settings)).joints[1].lines
    assert np.nanmax(lines["as recorded"][1]) == pytest.approx(values[1, 1000])
    assert np.nanmax(lines["measured"][1]) < 0.5 * values[1, 1000]


def test_a_joint_without_torque_is_named_where_errors_are_told():
    log = scara(1)
    values = log.torques[0].values.copy()
    values[1] = 0.0
    dead = replace(log, torques=(replace(log.torques[0], values=values),))
    settings = Settings(method="wls", bias_repeats=0, consistency=ConsistencySettings(draws=2))
    page = identify("scara_2r", [dead], [scara(3)], settings).to_html()
    assert "(1 of 2 joints)" in page
    assert page.count("without joint_2, whose torques are not used") >= 2
    assert "more are not excited by these recordings and have no value" in page


def test_the_histogram_says_how_far_residuals_go_and_the_condition_number_is_the_verdict_s(arm):
    page = arm.to_html()
    far = [np.abs(one.residual - one.residual.mean()).max() / one.residual.std() for one in residual_samples(arm)]
    assert f"hold all beyond 4. Farthest: {max(far):.3g} on joint_{int(np.argmax(far)) + 1}." in page
    assert f"Condition number {arm.condition.normalised:.3g};" in page


def test_digits_follow_the_interval_beside_them():
    rows = [
        [3.4201126773, 2.875e-05, "kg"], [-0.26201176, 8.131e-06, "kg"], [0.5, None, "kg"], [0.0, 1e-9, "kg"],
        [1.0 / 3, 2.0, "kg"], [1.0 / 3, 1e-300, "kg"], [float("inf"), 1.0, "kg"], [7, 1e-9, "kg"],
    ]  # fmt: skip
    table = DataTable("t", ["value", "± 95 %", "unit"], rows, "Values.", intervals={0: 1})
    shown = [cells[0] for cells in table.cells()]
    assert [text for text, _ in shown[:5]] == ["3.420113", "-0.2620118", "0.5", "0", "0.3333"]
    assert [text for text, _ in shown[5:]] == ["0.333333333333333", "inf", "7"]
    assert [key for _, key in shown[:2]] == ["3.4201126773", "-0.26201176"]
    assert table.cells()[0][1] == ("2.875e-05", "2.875e-05")


def test_values_of_a_run_are_shown_within_their_intervals(page, found):
    text = page.read_text(encoding="utf-8")
    for row in found.to_json()["parameters"]:
        if row["interval_95"] is None:
            continue
        low, high = row["interval_95"]
        shown = re.search(rf'<td data-key="{re.escape(repr(row["value"]))}" class="number">([^<]*)</td>', text)
        assert shown is not None
        assert abs(float(shown[1]) - row["value"]) < (high - low) / 20


def test_titles_of_small_plots_have_room_and_tell_the_whole_name():
    names = [f"a_very_long_name_of_a_joint_in_a_robot_file_{k} (motor)" for k in range(3)]
    titles = friction_plot(dict.fromkeys(names, CURVE)).layout["annotations"]
    assert [one["text"] for one in titles] == [f"a_very_long…_{k} (motor)" for k in range(3)]
    assert [one["hovertext"] for one in titles] == names
    (short,) = friction_plot({"joint_1": CURVE}).layout["annotations"]
    assert short["text"] == "joint_1"
    assert "hovertext" not in short


def test_criteria_stand_under_their_questions_and_reasons_have_their_grades():
    rows = [
        graded_row("predicts", "error", 3.0, "3 %", ("<= 5 %", "<= 9 %"), "good", "", ""),
        graded_row("known", "sigma", 30.0, "30 %", ("<= 5 %", "<= 9 %"), "poor", "A sigma is large.", "Record more."),
        graded_row("plausible", "links", 0.0, "0", ("0", "0"), "good", "", ""),
    ]
    cautions = [Reason("The log is doubtful.", "", grade="fair"), Reason("It is slow.", "")]
    html = page_html(Page("t", "s", [], verdict=verdict_of(rows, cautions)))
    groups = re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)
    assert [re.findall(r'<th scope="row(?:group" colspan="4)?">(.*?)</th>', group) for group in groups] == [
        ["is it plausible?", "links"],
        ["does it predict?", "error"],
        ["are the parameters known?", "sigma"],
    ]
    assert [re.findall(r'<span class="grade (\w+)">', group)[0] for group in groups] == ["fair", "good", "poor"]
    reasons = re.search(r'<ol class="reasons">(.*?)</ol>', html, re.DOTALL)
    assert reasons is not None
    assert [" ".join(re.sub(r"<[^>]*>", " ", one).split()) for one in reasons[1].split("</li>")[:-1]] == [
        "fair The log is doubtful.",
        "poor A sigma is large. Record more.",
        "It is slow.",
    ]
    assert "of the findings above that are marked with a grade" in html
