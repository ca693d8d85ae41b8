"""Figures of recordings: what was recorded, thinned, with its peaks and gaps."""

from __future__ import annotations

import numpy as np
import pytest

from chart_data import array_of, example_failures
from steelyard.recording import Recording, TorqueChannel
from steelyard.recording.figures import recording_chart

JOINTS = ("joint_1", "joint_2")


def test_thinned_lines_keep_peaks():
    time = np.arange(300_000) / 1000
    q = np.array([np.sin(time), np.cos(time)])
    q[0, 123_457] = 9.0
    drawn = [array_of(trace["y"]) for trace in recording_chart(Recording(JOINTS, time, q)).data]
    assert [len(line) for line in drawn] == pytest.approx([1000, 1000], abs=500)
    assert np.nanmax(drawn[0]) == 9.0


def test_noise_is_drawn_alike_from_beginning_to_end():
    time = np.arange(250_000) / 1000
    noise = np.random.default_rng(0).normal(size=(2, time.size))
    trace = recording_chart(Recording(JOINTS, time, noise)).data[0]
    x, y = array_of(trace["x"]), array_of(trace["y"])
    early, late = ((x >= begin) & (x < begin + 50) for begin in (0.0, 200.0))
    assert early.sum() == pytest.approx(late.sum(), rel=0.05)
    assert np.ptp(y[early]) == pytest.approx(np.ptp(y[late]), rel=0.2)


def test_a_gap_interrupts_the_lines():
    time = np.arange(1000) / 100
    time[500:] += 3
    chart = recording_chart(Recording(JOINTS, time, np.array([np.sin(time), np.cos(time)])))
    assert all(np.isnan(array_of(trace["y"])).sum() == 1 for trace in chart.data)
    assert array_of(chart.data[0]["x"])[0] == 0.0


def test_every_channel_has_a_column_with_its_unit():
    time = np.arange(100) / 100
    q, ones = np.array([np.sin(time), np.cos(time)]), np.ones((2, 100))
    torques = (TorqueChannel("motor_current", ones), TorqueChannel("wrench", np.ones((6, 100)), "<i>sensor</i>"))
    log = Recording(JOINTS, time, q, qd=q, torques=torques, reference=q)
    chart = recording_chart(log, "scara_2r")
    titles = [chart.layout[f"yaxis{k}"]["title"]["text"] for k in ("", 2, 3, 4)]
    assert titles == ["joint_1<br>[rad]", "[rad/s]", "[A]", "fx<br>[N]"]
    assert [trace["name"] for trace in chart.data[:2]] == ["measured", "reference"]
    assert len(chart.data) == 2 * 2 + 2 + 2 + 6
    headings = [note["text"] for note in chart.layout["annotations"]]
    assert "&lt;i&gt;sensor&lt;/i&gt;" in headings
    assert log.plot().to_plotly_json()["layout"]["yaxis2"]["title"]["text"] == "[rad/s or m/s]"


def test_the_example_runs():
    assert not example_failures(Recording.plot)
