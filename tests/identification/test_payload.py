"""What is it holding, when the arm is known from a run; and what a run keeps."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from simulated_experiments import lwr4, scara
from steelyard.consistency import ConsistencySettings
from steelyard.errors import EstimateError, ObservationError, SteelyardError
from steelyard.identification import (
    PayloadBody,
    Settings,
    fit_arm,
    identify,
    identify_payload,
    payload_body,
    read_run,
    save_run,
)
from steelyard.identification.inputs import refuse_same_data
from steelyard.identification.payload import _reasons
from steelyard.identification.payload_body import body_from_parameters, centre_text, impossible_payload
from steelyard.observe import Preparation, RecordingInfo, hashes_of, load_observations
from steelyard.robot import load_robot, parameters_from_centre

LWR4 = load_robot("kuka_lwr4")
QUICK = Settings(select=False, bias_repeats=0, consistency=ConsistencySettings(draws=2))
TRUE = np.array(LWR4.payloads["P5"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    found = identify(LWR4, [lwr4(1), lwr4(5)], settings=QUICK)
    return save_run(found, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def held(run):
    """The payload of one loaded recording."""
    return identify_payload(LWR4, run, [lwr4(2, "P5")])


@pytest.fixture(scope="module")
def of_scara():
    """Two results of one arm."""
    return [identify("scara_2r", [scara(seed)], settings=QUICK) for seed in (1, 2)]


def test_the_payload_is_found_with_the_arm_s_uncertainty_in_it(held):
    mass, sigma = held.body.mass
    assert abs(mass - TRUE[9]) < 4 * sigma
    assert held.enough
    assert 0.3 < held.agreement < 2.0
    assert np.all(np.abs(held.body.inertia - TRUE[:6]) < 4.5 * held.body.inertia_sigma)


@pytest.mark.large
def test_it_agrees_with_identifying_arm_and_payload_together(held):
    alone = held.body
    settings = replace(QUICK, select=None)
    together = identify(LWR4, [lwr4(1), lwr4(5), lwr4(2, "P5")], [lwr4(3, "P5")], settings).payload
    assert together is not None
    assert abs(alone.mass[0] - together.mass[0]) < 2 * together.mass[1]
    assert alone.mass[1] == pytest.approx(together.mass[1], rel=0.35)


def test_an_empty_gripper_is_said_to_be_empty(run):
    found = identify_payload(LWR4, run, [lwr4(6)])
    assert any("not significant" in reason.text for reason in found.reasons)


def test_an_arm_that_has_changed_is_said_to_have_changed(run):
    recording = lwr4(2, "P5")
    speed = np.gradient(recording.q, recording.time, axis=1)
    stiffer = tuple(replace(c, values=c.values + 3.0 * np.sign(speed) + 5.0 * speed) for c in recording.torques)
    found = identify_payload(LWR4, run, [replace(recording, torques=stiffer)])
    assert any("behaves otherwise" in reason.text for reason in found.reasons)


def test_a_payload_that_no_body_has_is_said_to_be_none(run):
    empty, loaded = lwr4(2), lwr4(2, "P5")
    lighter = tuple(
        replace(a, values=2 * a.values - b.values) for a, b in zip(empty.torques, loaded.torques, strict=True)
    )
    found = identify_payload(LWR4, run, [replace(empty, torques=lighter)])
    assert any("no body is like this: mass -4." in reason.text for reason in found.reasons)
    assert any("most likely the recordings are exchanged" in reason.text for reason in found.reasons)
    assert centre_text(found.body) == "not identifiable"


def test_recordings_of_the_run_itself_are_refused():
    given = [scara(1), scara(2)]
    known = [RecordingInfo("arm", hashes_of(given[1]), None, 100)]
    refuse_same_data(known, given[:1])
    with pytest.raises(
        EstimateError, match=r"'recording 2' is the same data as 'arm' of the arm's own run .* with the"
    ):
        refuse_same_data(known, given)


def test_a_centre_with_a_sigma_beyond_any_reach_is_not_identifiable():
    values = np.array([0.1, 0, 0, 0.1, 0, 0.1, 0.1, 0, 0.05, 1.0])
    covariance = np.diag([1e-6] * 6 + [1e-6, 1e-6, 400.0, 1e-6])
    body = body_from_parameters(values, covariance)
    assert centre_text(body) == "100.0 +- 1.0, 0.0 +- 1.0, not identifiable mm"
    assert body.inertia_at_centre is not None
    assert not np.isfinite(body.inertia_at_centre).any()
    nothing = body_from_parameters(1e-14 * values, covariance)
    assert centre_text(nothing) == "not identifiable"


def test_a_payload_found_with_a_poor_arm_says_so_wherever_it_is_shown(run):
    reasons = [{"text": "the torques are <b>reversed</b>", "about": "likely cause"}]
    poor = {"grade": "poor", "criteria": [], "reasons": reasons, "questions": {}}
    found = identify_payload(LWR4, replace(run, content={**run.content, "verdict": poor}), [lwr4(2, "P5")])
    said = "the verdict of the arm's own run is poor: the torques are <b>reversed</b>"
    assert found.reasons[0].text == said
    for page in (found.to_html(), found._repr_html_()):
        assert "own run is poor: the torques are &lt;b&gt;reversed" in page
        assert "<b>reversed" not in page


def test_no_recording_or_a_loaded_run_is_refused(run):
    with pytest.raises(EstimateError, match="no recording is given"):
        identify_payload(LWR4, run, [])
    with pytest.raises(EstimateError, match="loaded recordings alone"):
        identify_payload(LWR4, replace(run, content={**run.content, "payload_model": "loaded"}), [lwr4(2, "P5")])


def test_the_inertia_about_the_centre_is_steiner_s():
    estimate = fit_arm(LWR4, [lwr4(1), lwr4(2, "P5")], QUICK).fit.estimate
    body = payload_body(estimate)
    values = dict(zip(estimate.columns, estimate.values, strict=True))
    moment = np.array([values[f"M{axis}L"] for axis in "XYZ"])
    shift = (moment @ moment * np.eye(3) - np.outer(moment, moment)) / values["ML"]
    assert body is not None
    assert body.inertia_at_centre is not None
    assert body.centre_sigma is not None
    assert body.inertia_at_centre[0] == pytest.approx(values["XXL"] - shift[0, 0])
    assert body.inertia_at_centre[4] == pytest.approx(values["YZL"] - shift[1, 2])
    # The delta method against drawing from the covariance.
    draws = np.random.default_rng(0).multivariate_normal(estimate.values, estimate.covariance, 20_000)
    place = [estimate.columns.index(name) for name in ("MXL", "ML")]
    assert (draws[:, place[0]] / draws[:, place[1]]).std() == pytest.approx(body.centre_sigma[0], rel=0.05)


def test_a_run_keeps_its_factors_and_estimate(run):
    names = run.content["files"]
    assert sorted(path.name for path in run.folder.iterdir()) == sorted([*names.values(), "report.html", "result.json"])
    observations = load_observations(run.folder / names["observations"])
    assert {info.label for info in observations.recordings} == {"recording 1", "recording 2"}
    values = {row["name"]: row["full_value"] for row in run.content["parameters"]}
    assert values["Ia1"] == run.estimate.values[run.estimate.columns.index("Ia1")]


def test_writing_again_replaces_the_run_as_a_whole(of_scara, tmp_path):
    first, second = of_scara
    save_run(first, tmp_path)
    save_run(second, tmp_path)
    assert len(list(tmp_path.glob("estimate.*.npz"))) == 1
    np.testing.assert_array_equal(read_run(tmp_path).estimate.values, second.estimate.values)


def test_a_run_killed_before_its_result_leaves_the_old_one(of_scara, tmp_path, monkeypatch):
    first, second = of_scara
    save_run(first, tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("steelyard.identification.run_files.save_observations", killed)
    with pytest.raises(KeyboardInterrupt):
        save_run(second, tmp_path)
    np.testing.assert_array_equal(read_run(tmp_path).estimate.values, first.estimate.values)


def test_what_is_no_run_is_refused_in_one_line(run, tmp_path):
    with pytest.raises(SteelyardError, match="no run in"):
        read_run(tmp_path / "nowhere")
    shutil.copytree(run.folder, tmp_path / "copy")
    assert read_run(tmp_path / "copy").content == run.content
    arrays = tmp_path / "copy" / run.content["files"]["estimate"]
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(SteelyardError, match="missing or not as it was written"):
        read_run(tmp_path / "copy")


@pytest.mark.large
def test_an_earlier_run_counts_as_if_its_recordings_had_been_given(run):
    settings = replace(QUICK, select=None, hold_out=0.25, preparation=Preparation(cutoff=8.0, decimation=20))
    first = identify(LWR4, [lwr4(1)], [lwr4(6)], settings)
    both = identify(LWR4, [lwr4(1), lwr4(5)], [lwr4(6)], settings)
    folder = run.folder.parent / "earlier"
    save_run(first, folder)
    added = identify(LWR4, [lwr4(5)], [lwr4(6)], settings, earlier=[read_run(folder)])
    off = np.abs(added.estimate.values - both.estimate.values) / both.estimate.sigma
    assert np.sqrt(np.mean(off**2)) < 0.35
    ratio = added.estimate.sigma / both.estimate.sigma
    assert np.median(ratio) == pytest.approx(1.0, abs=0.1)
    assert np.mean(np.abs(ratio - 1) < 0.3) > 0.9  # the noise of one recording alone is less well known
    with pytest.raises(ObservationError, match="are the same data"):
        identify(LWR4, [lwr4(1)], [lwr4(6)], settings, earlier=[read_run(folder)])
    other = replace(settings, preparation=Preparation(cutoff=9.0, decimation=20))
    with pytest.raises(ObservationError, match="because of other filter"):
        identify(LWR4, [lwr4(5)], [lwr4(6)], other, earlier=[read_run(folder)])
    tilted = LWR4.with_gravity((4.905, 0.0, -8.4957))
    with pytest.raises(ObservationError, match="because of other geometry"):
        identify(tilted, [lwr4(5)], [lwr4(6)], settings, earlier=[read_run(folder)])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, None),
        ({9: -2.0}, "mass -2"),
        ({5: 1.0}, "inertia with negative density"),  # ZZ above XX + YY
    ],
)
def test_a_payload_that_no_body_can_be_is_named(change, text):
    ten = parameters_from_centre(2.0, np.array([0.02, 0.0, 0.08]), np.diag([0.01, 0.012, 0.009]))
    for place, value in change.items():
        ten[place] = value
    covariance = np.diag(np.full(10, 1e-6))
    sigma = np.sqrt(np.diag(covariance))
    centre = ten[6:9] / ten[9]
    inside = ten[:6] - parameters_from_centre(ten[9], centre, np.zeros((3, 3)))[:6]
    body = PayloadBody(
        (float(ten[9]), 1e-3), None if ten[9] < 0 else centre, sigma[6:9], ten[:6], sigma[:6], inside, sigma[:6],
        covariance,
    )  # fmt: skip
    found = impossible_payload(body)
    assert (found == []) if text is None else text in found[0]


def test_of_an_arm_that_branches_the_link_of_the_payload_is_named(held):
    assert not any("branches" in reason.text for reason in _reasons(held.body, True, 5e6, LWR4))
    last = replace(LWR4.joint("joint_7"), parent="link_5")
    branched = replace(LWR4, joints=tuple(last if joint.name == last.name else joint for joint in LWR4.joints))
    assert not list(_reasons(held.body, True, 1.0, branched))
    moved, link = _reasons(held.body, True, 5374028.97, branched)
    assert "moved by over 1000 times what chance explains" in moved.text
    assert link.text == "the arm branches, and the payload is taken to be on link 'link_7'"
    assert "payload_link" in link.remedy
