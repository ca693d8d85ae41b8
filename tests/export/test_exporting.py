"""Runs as files: what is written, what is refused, and that a loaded file is the arm of the run."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard import export_model, save_run
from steelyard.cli import main
from steelyard.cli.export import _print
from steelyard.consistency import ConsistencySettings
from steelyard.errors import EstimateError, ExportError
from steelyard.export import EXPORTS, ExportedFile, ExportResult, identified_arm, sampled_arms
from steelyard.identification import Settings, identify, payload_to_json
from steelyard.identification.payload_body import body_from_parameters
from steelyard.plain_data import plain
from steelyard.recording import write_recording
from steelyard.robot import INERTIAL_NAMES, is_consistent, load_robot, read_urdf
from steelyard.run import RunFolder
from steelyard.verdict import Reason, row_below, verdict_of

URDF = """<?xml version="1.0"?>
<!-- my arm -->
<robot name="two">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.005" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="joint_1" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="9" effort="300"/></joint>
  <joint name="joint_2" type="revolute"><origin xyz="0.5 0 0"/><parent link="upper"/><child link="fore"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="9" effort="300"/></joint>
  <transmission name="kept"/>
</robot>
"""
SETTINGS = Settings(method="wls", reduction="none", bias_repeats=0, effects=("inertia", "Fvm", "Fcm"))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "two.urdf"
    path.write_text(URDF)
    return identify(load_robot(path), [scara(1)], [scara(2)], SETTINGS)


@pytest.fixture(scope="module")
def run(found, tmp_path_factory):
    return save_run(found, tmp_path_factory.mktemp("run"))


def test_the_own_file_is_edited_and_holds_the_identified_arm(run, found, tmp_path):
    written = export_model(run, ["urdf"], tmp_path, force=True)
    text = written.paths[0].read_text()
    assert "<!-- my arm -->" in text
    assert '<transmission name="kept"/>' in text
    loaded = read_urdf(written.paths[0]).parameters
    wanted = found.robot.parameters
    inertial = [f"{symbol}{number}" for number in (1, 2) for symbol in INERTIAL_NAMES]
    np.testing.assert_allclose([loaded[n] for n in inertial], [wanted[n] for n in inertial], rtol=1e-9, atol=1e-12)
    assert {one.program.split()[0] for one in written.files[0].comparisons} >= {"steelyard"}


def test_an_identification_and_its_saved_run_are_the_same_arm(run, found):
    here, there = identified_arm(found), identified_arm(run)
    assert here.robot.parameters == pytest.approx(there.robot.parameters)
    assert here.sources == there.sources
    assert there.run == run.content["provenance"]["run"]


def test_every_format_is_written(run, tmp_path):
    written = export_model(run, list(EXPORTS), tmp_path, force=True)
    assert all(path.is_file() and path.stat().st_size for path in written.paths)
    assert json.loads(json.dumps(written.to_json()))["files"][0]["path"].endswith("two.urdf")


def test_samples_are_different_arms_that_can_exist(run, tmp_path):
    arms = sampled_arms(run, 4, seed=1)
    for arm in arms:
        assert all(is_consistent(np.array(body.inertia)) for body in arm.robot.bodies)
    assert len({arm.robot.parameters["ZZ2"] for arm in arms}) == 4
    again = sampled_arms(run, 4, seed=1)
    assert again[2].robot.parameters == arms[2].robot.parameters
    written = export_model(run, ["urdf"], tmp_path, samples=2, force=True)
    (note,) = [one for one in written.notes if "source 'reference'" in one]
    assert "their samples do not show how uncertain they are" in note
    assert [path.name for path in written.paths] == ["two.urdf", "two_sample_001.urdf", "two_sample_002.urdf"]


def test_samples_spread_as_the_sigmas_say(run, found):
    drawn = [arm.robot.parameters for arm in sampled_arms(run, 60, seed=2)]
    standard = found.standard
    assert standard is not None
    for name in ("ZZ2", "Fvm1"):
        sigma = standard.sigma[standard.names.index(name)]
        assert np.std([one[name] for one in drawn]) == pytest.approx(sigma, rel=0.35)


def test_a_poor_verdict_is_not_exported(found, tmp_path):
    poor = save_run(replace(found, verdict=replace(found.verdict, grade="poor")), tmp_path / "run")
    with pytest.raises(ExportError, match="the verdict of the run is poor"):
        export_model(poor, ["yaml"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert export_model(poor, ["yaml"], tmp_path / "out", force=True).paths


def with_verdict(found, *reasons: Reason):
    """Return the identification judged anew: a prediction that is poor, and cautions."""
    row = row_below(
        "predicts", "error", 40.0, "40 %", (5, 10), "unseen motion is predicted to 40 %", "record more", "%"
    )
    return replace(found, verdict=verdict_of([row], reasons))


def test_the_refusal_quotes_the_reason_that_makes_the_run_poor(found, tmp_path):
    caution = Reason("the log was filtered", "record raw signals", "filtered", "fair")
    poor = save_run(with_verdict(found, caution), tmp_path / "run")
    assert poor.content["verdict"]["reasons"][0]["text"] == "the log was filtered"
    with pytest.raises(ExportError, match=r"poor: unseen motion is predicted to 40 %; correct that and run identify"):
        export_model(poor, ["yaml"], tmp_path / "out")
    flipped = Reason("the torque of joint_2 has the wrong sign", "correct it", "signs", "poor")
    fair = replace(found, verdict=verdict_of([], [caution, flipped]))
    with pytest.raises(ExportError, match="poor: the torque of joint_2 has the wrong sign;"):
        export_model(fair, ["yaml"], tmp_path / "out")


def test_the_reason_of_a_forced_file_is_among_the_notes_of_all(found, tmp_path):
    assert found.standard is not None
    values = np.where(np.array(found.standard.names) == "M2", -1.0, found.standard.values)
    odd = replace(found, standard=replace(found.standard, values=values))
    with pytest.raises(ExportError, match="link 'fore': its inertia is not physically possible"):
        export_model(odd, ["urdf"], tmp_path)
    written = export_model(odd, ["urdf", "c"], tmp_path, force=True)
    forced = [note for note in written.files[0].notes if note.startswith("forced although")]
    assert [note.partition(":")[0] for note in forced] == [
        "forced although link 'fore'",
        "forced although steelyard does not load the file",
    ]
    assert set(forced) <= set(written.to_json()["notes"])


def payload_run(folder, arm_verdict, reasons=(), **others):
    """Save a run of ``payload`` with a ball of 2 kg on the catalogue's UR10e."""
    ball = np.array([0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 2.0])
    body = body_from_parameters(ball, 1e-8 * np.eye(10))
    content = {
        "robot": "ur10e", "payload": payload_to_json(body), "covariance": body.covariance, "arm_verdict": arm_verdict,
        "reasons": [{"text": text, "remedy": ""} for text in reasons], "locked_joints": {}, **others,
    }  # fmt: skip
    with RunFolder(folder, "payload") as run:
        run.save({"run": "arm_run", "robot": "ur10e", "logs": []}, {}, plain(content))
    return folder


def test_the_payload_of_a_poor_run_is_refused(found, tmp_path):
    good = {"grade": "good", "criteria": [], "reasons": []}
    poor = with_verdict(found).to_json()["verdict"]
    assert export_model(payload_run(tmp_path / "a", good), payload="ur", out=tmp_path / "out").paths
    arm = payload_run(tmp_path / "b", poor)
    with pytest.raises(
        ExportError, match=r"the run of the arm, 'arm_run', is poor: unseen motion .* or write the files"
    ):
        export_model(arm, payload="ur")
    forced = export_model(arm, payload="ur", out=tmp_path / "out", force=True)
    assert forced.notes[0].startswith("forced: the verdict of the run of the arm, 'arm_run', is poor: unseen motion")
    assert f"# {forced.notes[0]}\n" in forced.paths[0].read_text()
    weak = payload_run(tmp_path / "c", good, ["the motion was not enough"])
    with pytest.raises(
        ExportError, match=r"the verdict of the payload is poor: the motion was not enough; .*run payload"
    ):
        export_model(weak, payload="ur")
    for form in ("ur", "kuka", "franka", "ros2"):
        forced = export_model(weak, payload=form, out=tmp_path / "out", force=True)
        assert forced.notes == ("forced: the verdict of the payload is poor: the motion was not enough",)
        assert forced.notes[0] in forced.paths[0].read_text()


COMMENTED = ("urdf", "mjcf", "c", "numpy", "yaml", "json", "latex")


def plain_text(content: bytes) -> str:
    """Return a file as one line of words, without the marks and line breaks of comments."""
    return re.sub(r"[\s#*%]+", " ", content.decode())


def test_a_forced_export_says_so_in_every_file_and_on_the_screen(found, tmp_path, capsys):
    poor = save_run(with_verdict(found), tmp_path / "run")
    forced = "forced: the verdict of the run is poor: unseen motion is predicted to 40 %"
    written = export_model(poor, COMMENTED, tmp_path / "out", samples=1, force=True)
    assert forced in written.to_json()["notes"]
    for file in written.files:
        assert plain_text(forced.encode()) in plain_text(file.content), file.name
    assert main(["export", str(poor.folder), "--yaml", "--force", "--out", str(tmp_path / "out")]) == 0
    assert f"note: {forced}" in " ".join(capsys.readouterr().out.split())


def test_cautions_about_the_consistent_arm_travel_with_it(found, tmp_path):
    reasons = [
        Reason(f"what {about} says", "do something", about, "fair", "plausible")
        for about in ("mass", "prior", "consistency", "delay")
    ]
    fair = save_run(replace(found, verdict=verdict_of([], reasons)), tmp_path / "run")
    written = export_model(fair, COMMENTED, tmp_path / "out", force=True)
    assert list(written.notes) == [f"caution: what {about} says" for about in ("mass", "prior", "consistency")]
    for file in written.files:
        assert all(note in file.content.decode() for note in written.notes), file.name
        assert "delay" not in file.content.decode()


def test_an_export_says_which_links_are_a_guess(found, tmp_path):
    assert found.standard.prior is None
    edge = replace(found, standard=replace(found.standard, edges=("upper", "fore", "wrist", "hand")))
    said = (
        "caution: at the edge of what a body can be: upper, fore, wrist, hand; what the data do not show of them "
        "(mass, centre, inertia) is a guess, and with it torques under another gravity"
    )
    for name, one, notes in (("edge", edge, [said]), ("inside", found, [])):
        run = save_run(one, tmp_path / name)
        written = export_model(run, COMMENTED, tmp_path / f"{name}_out", force=True)
        assert [note for note in written.notes if "edge" in note] == notes
        functions = export_model(run, ["casadi"], tmp_path / f"{name}_out", force=True)
        assert [note for note in functions.files[0].notes if "edge" in note] == notes
        for file in (
            *written.files,
            functions.files[-1],
        ):  # comments are wrapped, each line with a mark at its beginning
            text = " ".join(line.lstrip("#*% ") for line in file.content.decode().splitlines())
            assert (said in text) == bool(notes), file.name


@pytest.mark.parametrize(
    ("formats", "options", "message"),
    [
        ("urdf", {}, r"formats: got 'urdf', allowed is a list of names, such as \['urdf'\]"),
        ([], {}, "no format is given; allowed: urdf, mjcf"),
        (["urfd"], {}, "format 'urfd'; allowed: urdf, .*did you mean 'urdf'"),
        (["c"], {"sides": "joint"}, "option 'sides'; allowed: side, .*did you mean 'side'"),
        (["urdf"], {"side": "joint"}, "--side has no effect on --urdf: it is for --c, --casadi, --numpy; add one"),
        (["c"], {"new_file": True}, "--new-file has no effect on --c: it is for --urdf, --mjcf; add"),
        (["urdf"], {"frame": "fore"}, "--payload-frame has no effect on --urdf: it is for --payload ur"),
        (["urdf"], {"seed": 3}, "--seed is that of --samples, and there are none"),
        (["latex"], {"samples": 2}, "--samples are written as URDF or MJCF; add --urdf or --mjcf"),
        (["urdf"], {"payload": "urscript"}, "payload format 'urscript'; allowed: ur, "),
    ],
)
def test_requests_without_sense_are_one_line(run, tmp_path, formats, options, message):
    with pytest.raises(ExportError, match=message):
        export_model(run, formats, tmp_path / "out", force=True, **options)
    assert not (tmp_path / "out").exists()


def test_a_payload_run_that_does_not_name_its_locked_joints_is_refused(tmp_path):
    folder = payload_run(tmp_path, {"grade": "good", "criteria": [], "reasons": []}, locked_joints=None)
    with pytest.raises(EstimateError, match=r"does not say which joints were locked, .*run steelyard payload again"):
        export_model(folder, payload="ur")


def test_a_payload_run_has_no_arm_and_no_samples(tmp_path):
    folder = payload_run(tmp_path, {"grade": "good", "criteria": [], "reasons": []})
    for options, message in (
        ({}, "is a run of payload, which has no arm; name a format of payloads with --payload: ur,"),
        ({"formats": ["urdf"], "payload": "ur"}, "with --payload, not with --urdf"),
        ({"payload": "ur", "samples": 2}, "--samples has no effect on a run of payload"),
        ({"payload": "ur", "tool": 2}, "--tool has no effect on --payload ur: it is for --payload kuka"),
        ({"payload": "kuka", "inertia": False}, "--without-inertia has no effect on --payload kuka"),
    ):
        with pytest.raises(ExportError, match=message):
            export_model(folder, **options)


def test_a_new_file_can_be_written_beside_the_robot_s_own(run, tmp_path):
    (path,) = export_model(run, ["urdf"], tmp_path, force=True, new_file=True).paths
    assert "<!-- my arm -->" not in path.read_text()
    assert read_urdf(path).joint_names == ("joint_1", "joint_2")


def test_a_base_only_run_says_what_to_run(tmp_path):
    settings = replace(SETTINGS, effects=("Fvm", "Fcm"))
    run = save_run(identify("scara_2r", scara(1), settings=settings), tmp_path)
    with pytest.raises(ExportError, match=r"base parameters only.*--effects inertia"):
        export_model(run, ["urdf"], force=True)


def test_a_run_of_an_earlier_version_says_what_to_run(run):
    old = replace(run, content={k: v for k, v in run.content.items() if k != "standard_parameters"})
    with pytest.raises(ExportError, match=r"a run of an earlier version.*run identify again"):
        identified_arm(old)


def test_a_changed_robot_file_is_refused_and_the_own_file_is_not_overwritten(found, tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(URDF)
    own = identify(load_robot(path), [scara(1)], [scara(2)], SETTINGS)
    run = save_run(own, tmp_path)
    with pytest.raises(ExportError, match="is the file that the robot was read from; give another --out"):
        export_model(run, ["urdf"], force=True)
    path.write_text(URDF.replace('value="2"', 'value="3"'))
    with pytest.raises(EstimateError, match="has changed since the run; restore it, or identify"):
        export_model(run, ["urdf"], tmp_path / "out", force=True)
    assert found is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--yaml", "--samples", "2"], "--samples are written as URDF or MJCF"),
        (["--urdf", "--samples", "-3"], "--samples: got -3, allowed is 1 or more, or 0 for none"),
        (["--payload", "ur"], "has no payload"),
        (["--yaml", "--calibration", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, capsys, arguments, message):
    shutil.copytree(run.folder, tmp_path / "copy")
    assert main(["export", str(tmp_path / "copy"), *arguments, "--force", "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_command_prints_what_it_wrote(run, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["export", str(run.folder), "--urdf", "--yaml", "--force", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "loaded again: largest difference of torques" in text
    assert f"saved: {out}" in " ".join(text.split())
    assert main(["export", str(run.folder), "--force", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["comparisons"][0]["states"] == 1000


@pytest.mark.parametrize("width", [80, pytest.param(120, marks=pytest.mark.large)])
def test_the_screen_has_whole_names_and_short_numbers_once(tmp_path, capsys, monkeypatch, width):
    name = "an_arm_with_a_rather_long_name_of_its_own"
    robot = replace(load_robot("scara_2r"), name=name)
    found = identify(robot, [scara(1)], [scara(2)], replace(SETTINGS, effects=("inertia", "Ia", "Fvm", "Fcm", "offm")))
    run = save_run(found, tmp_path / "run")
    monkeypatch.setenv("COLUMNS", str(width))
    files = export_model(run, ["urdf", "mjcf"], tmp_path, robot=robot, samples=2, force=True)
    _print(files)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for path in files.paths:
        assert f"{path.name} " in text
    assert text.count("torque offset, motor side (offm)") == 1  # not once for each sample
    assert not re.search(r"[1-9]\d{4,}", text.partition("saved:")[0])
    assert re.search(r"\d\.\d{10,}", " ".join(files.files[0].notes))  # with all digits in the file


def test_files_that_no_program_loads_are_listed_without_a_heading(run, tmp_path, capsys):
    _print(export_model(run, ["yaml", "latex"], tmp_path, force=True))
    assert capsys.readouterr().out.splitlines()[1:3] == ["two.yaml", "two.tex"]


def test_a_folder_without_a_run_is_refused(tmp_path, capsys):
    write_recording(scara(1), tmp_path / "log.npz")
    assert main(["export", str(tmp_path), "--urdf"]) == 1
    assert "there is no result.json" in capsys.readouterr().err


def test_values_of_the_file_that_the_model_lacks_do_not_count_twice():
    """The drive inertia of the file is part of what was identified: left in the arm, it would be there twice."""
    robot = replace(load_robot("scara_2r"), values={**load_robot("scara_2r").values, "Ia1": 1.5, "drive_gain1": 3.0})
    found = identify(robot, [scara(1)], [scara(2)], SETTINGS)
    assert found.robot.values["Ia1"] == 0
    assert found.robot.values["drive_gain1"] == 3.0


def test_an_arm_that_bounds_keep_from_predicting_is_refused(tmp_path):
    settings = replace(SETTINGS, consistency=ConsistencySettings(mass={"link_2": (300.0, 400.0)}, draws=2))
    run = save_run(identify("scara_2r", [scara(1)], [scara(2)], settings), tmp_path / "run")
    with pytest.raises(ExportError, match=r"the consistent arm predicts unseen motion to .*mass of 'link_2'"):
        export_model(run, ["yaml"], tmp_path / "out")
    forced = export_model(run, ["yaml"], tmp_path / "out", force=True)
    assert any(note.startswith("forced: the consistent arm predicts unseen motion to ") for note in forced.notes)
    assert all(f'"{note}"' in forced.paths[0].read_text() for note in forced.notes)


def test_notes_of_samples_are_printed_once(capsys):
    inertia = "not in the file: rotor and gear inertia (Ia): {}"
    files = (
        ExportedFile("two.urdf", b"", (inertia.format("joint_1 0.5 kg m^2, joint_2 0.25 kg m^2"),)),
        ExportedFile("two_sample_001.urdf", b"", (inertia.format("joint_1 0.75 kg m^2"),)),
        ExportedFile("two_sample_002.urdf", b"", (inertia.format("joint_2 0.125 kg m^2"), "forced although odd")),
    )
    _print(ExportResult("two", files, tuple(Path(file.name) for file in files)))
    lines = " ".join(capsys.readouterr().out.split()).split("note: ")[1:]
    assert lines[0].strip() == inertia.format("joint_1 0.5 kg m^2, joint_2 0.25 kg m^2")
    assert lines[1].startswith("forced although odd (two_sample_002.urdf)")
    assert len(lines) == 2
