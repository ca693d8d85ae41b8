"""Drive gains from a payload of known mass, on simulated arms with planted gains and on a real UR10e."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from steelyard.cli import main
from steelyard.cli.gains import print_gains
from steelyard.errors import ConfigError, EstimateError, RecordingError
from steelyard.estimate import fit_scales, joint_deviations
from steelyard.identification import (
    Settings,
    fit_arm,
    identify,
    identify_gains,
    identify_payload,
    payload_body,
    predict,
    read_run,
    save_run,
)
from steelyard.model import build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.recording import (
    DriveGains,
    Recording,
    TorqueChannel,
    read_gains,
    read_recording,
    with_gains,
    write_gains,
    write_recording,
)
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, recording_of, simulate

MASS = 5.0
BRICK = (0.02, 0, 0, 0.2, 0, 0.2, 0.9, 0.1, 0, MASS)
ARM = replace(
    load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0)), payloads={"brick": BRICK}
)  # hangs, so that both joints feel weight
TRUE = np.array([1.3, 0.8])
"""True over recorded torque."""
QUICK = Preparation(cutoff=8.0, decimation=5)
SETUPS = Path(__file__).parents[2] / "benchmarks" / "data"


@lru_cache(maxsize=2)
def clean(payload: str | None) -> Recording:
    """Return 20 s of the arm without noise."""
    size = np.random.default_rng(5).uniform(-1, 1, (2, 2, 10)) * [[[0.35], [0.5]]]
    motion = fourier([0, 0], size[0], size[1], 20.0, ["joint_1", "joint_2"])
    experiment = Experiment(plant="ideal", control_rate=100, record_rate=100, encoder_quantum=1e-6, payload=payload)
    return recording_of(simulate(ARM, motion, experiment))


def recorded(seed: int, payload: str | None, noise: float = 0.01, correlation: float = 0.9) -> Recording:
    """Return torques in units that are wrong by ``TRUE``, with correlated noise of a part of their rms."""
    one, rng = clean(payload), np.random.default_rng([seed, payload is not None])
    torque = one.torque().values / TRUE[:, None]
    white = rng.standard_normal(torque.shape)
    coloured = white.copy()
    for k in range(1, white.shape[1]):
        coloured[:, k] = correlation * coloured[:, k - 1] + np.sqrt(1 - correlation**2) * white[:, k]
    size = noise * np.sqrt((torque**2).mean(axis=1, keepdims=True))
    return replace(one, torques=(TorqueChannel("motor_torque", torque + size * coloured),))


def found(seed: int, **options):
    settings = Settings(preparation=QUICK)
    return identify_gains(ARM, recorded(seed, None), recorded(seed, "brick"), MASS, settings=settings, **options)


def test_planted_gains_are_recovered_within_their_intervals():
    result = found(1)
    low, high = result.interval.T
    assert np.all((low < TRUE) & (high > TRUE))
    assert np.all(result.gains.relative_sigma < 0.1)
    assert result.to_json()["joints"][0]["nominal"] == 1.0
    shares = [one["share_of_blocks"] + one["share_of_friction_models"] for one in result.to_json()["joints"]]
    assert shares == pytest.approx([1.0, 1.0])
    assert "Drive gains of scara_2r" in result.to_html()


def with_factor(one: Recording, joint: int, factor: float) -> Recording:
    torque = one.torque().values.copy()
    torque[joint] *= factor
    return replace(one, torques=(TorqueChannel("motor_torque", torque),))


@pytest.mark.parametrize(("joint", "factor", "grade"), [(0, 1.08, "fair"), (1, 1 / 1.08, "fair"), (1, 1.2, "poor")])
def test_a_gain_that_differs_with_payload_is_named_with_its_size_and_is_not_known(joint, factor, grade):
    logs = recorded(1, None, 0.002), with_factor(recorded(1, "brick", 0.002), joint, factor)
    result = identify_gains(ARM, *logs, MASS, settings=Settings(preparation=QUICK))
    row = next(one for one in result.verdict.criteria if one.name == "gains with payload against without")
    assert row.grade == grade
    change, sigma = result.change[:, joint]
    assert abs(change - (1 / factor - 1)) < 3 * sigma
    assert row.value == pytest.approx(100 * abs(change))
    assert f"the gain of joint_{joint + 1} is" in row.sentence
    assert result.grades[joint] in ("weak", "unknown", "doubtful")
    assert result.gains.relative_sigma[joint] > 0.05
    texts = [one.text for one in result.reasons if f"'joint_{joint + 1}'" in one.text]
    assert not texts  # more motion would not help


@pytest.mark.large
def test_gains_that_are_the_same_are_hardly_ever_said_to_differ():
    """Correlated noise of 1 %: 2 x 100 changes, 3 sigmas; what is said to be a sigma is one."""
    away = []
    for seed in range(100):
        equations, observations = observations_of(seed, 0.01)
        fit = fit_scales(observations, equations.names, equations.joints, {"ML": MASS})
        away.append(fit.changes / fit.change_sigma)
    assert np.mean(np.abs(away) > 3) <= 0.02
    assert 0.6 < np.sqrt(np.mean(np.square(away))) < 1.3


def observations_of(seed: int, noise: float):
    model = build_model(ARM, None, "motor", "paired")
    equations = equations_of(model)
    recordings = [recorded(seed, None, noise), recorded(seed, "brick", noise)]
    resolved = resolve_preparation(QUICK, recordings)
    sources = [row_source(one, equations, resolved, str(k)) for k, one in enumerate(recordings)]
    return equations, reduce_rows(sources, blocks=12)


def with_measured_torques_as_regressors(equations, observations) -> np.ndarray:
    """Return gains by the linear least squares that is not to be used: ``g_j y_j - W x = W_known``."""
    names, joints = equations.names, equations.joints
    deviations = joint_deviations(observations)
    rows = []
    for factor in observations.factors:
        part = np.zeros((len(factor.triangle), len(names) + len(joints)))
        part[:, [names.index(name) for name in factor.columns]] = -factor.triangle[:, :-1]
        part[:, len(names) + joints.index(factor.joint)] = factor.triangle[:, -1]
        rows.append(part / deviations[factor.recording, factor.kind, factor.joint])
    stacked, mass = np.vstack(rows), names.index("ML")
    others = [k for k in range(stacked.shape[1]) if k != mass]
    return np.linalg.lstsq(stacked[:, others], -MASS * stacked[:, mass], rcond=None)[0][-len(joints) :]


def test_gains_do_not_collapse_under_noise_as_those_of_linear_least_squares_do():
    ours, linear = [], []
    for seed in range(6):
        equations, observations = observations_of(seed, 0.05)
        fit = fit_scales(observations, equations.names, equations.joints, {"ML": MASS})
        ours.append(1 / fit.scales / TRUE)
        linear.append(with_measured_torques_as_regressors(equations, observations) / TRUE)
    assert np.mean(linear, axis=0).max() < 0.85
    assert np.mean(linear, axis=0).min() < 0.5
    assert np.abs(np.mean(ours, axis=0) - 1).max() < 0.15


@pytest.mark.large
def test_intervals_cover_the_planted_gains_in_95_percent():
    """Block jackknife and t intervals against correlated noise, lag-one correlation 0.9: 2 x 100 of them."""
    inside = [((one := found(seed).interval)[:, 0] < TRUE) & (one[:, 1] > TRUE) for seed in range(100)]
    assert 0.90 <= np.mean(inside) <= 0.995


def test_a_mass_of_the_robot_file_is_known_with_its_inertia():
    loaded = replace(recorded(1, "brick"), payload="brick")
    result = identify_gains(ARM, recorded(1, None), loaded, settings=Settings(preparation=QUICK))
    assert result.mass == MASS
    assert len(result.known) == 10
    low, high = result.interval.T
    assert np.all((low < TRUE) & (high > TRUE))


def test_a_joint_about_a_vertical_axis_is_said_to_feel_no_weight():
    upright = replace(ARM.with_gravity((0.0, 0.0, -9.81)), payloads=ARM.payloads)
    settings = Settings(preparation=QUICK)
    result = identify_gains(upright, recorded(1, None), recorded(1, "brick"), MASS, settings=settings)
    assert np.allclose(result.weight, 0, atol=1e-9)


def test_what_cannot_be_done_is_refused_in_one_line():
    empty, loaded = recorded(1, None), recorded(1, "brick")
    with pytest.raises(EstimateError, match="no recording with payload is given"):
        identify_gains(ARM, empty, [], MASS)
    with pytest.raises(EstimateError, match="given as unloaded says that it carries payload 'brick'"):
        identify_gains(ARM, replace(empty, payload="brick"), loaded, MASS)
    with pytest.raises(EstimateError, match="mass of the payload is not given"):
        identify_gains(ARM, empty, replace(loaded, payload="other"))
    with pytest.raises(EstimateError, match="mass: got -1 kg"):
        identify_gains(ARM, empty, loaded, -1.0)
    tx40 = load_robot("staubli_tx40")
    still = Recording(tx40.joint_names, np.arange(3.0), np.zeros((6, 3)))
    with pytest.raises(EstimateError, match="turn with two joints"):
        identify_gains(tx40, still, still, 1.0)


def gains_with(mass: float, log=recorded, arm=ARM, **options):
    return identify_gains(arm, log(1, None), log(1, "brick"), mass, settings=Settings(preparation=QUICK), **options)


@pytest.mark.parametrize(("mass", "factor"), [(1000 * MASS, 1000), (2 * MASS, 2), (MASS / 1000, 1e-3)])
def test_a_mass_in_another_unit_is_a_poor_verdict_that_names_units(mass, factor):
    result = gains_with(mass)
    assert result.verdict.grade == "poor"
    assert "known" not in result.grades
    assert "verdict poor" in result.gains.source
    row = next(row for row in result.verdict.criteria if row.name == "gains over those given before")
    assert row.value == pytest.approx(factor, rel=0.1)
    assert any("unit of the mass (kg) and of the centre (m)" in one.remedy for one in result.reasons)
    assert result.to_json()["verdict"]["grade"] == "poor"


@pytest.mark.large
def test_effort_limits_speak_where_no_gain_was_given_before():
    def currents(seed: int, payload: str | None) -> Recording:
        torque = recorded(seed, payload).torque().values
        return replace(recorded(seed, payload), torques=(TorqueChannel("motor_current", torque / 7),))

    grades = [gains_with(mass, currents).verdict.grade for mass in (MASS, 1000 * MASS)]
    assert grades == ["fair", "poor"]
    rows = {row.name: row.grade for row in gains_with(1000 * MASS, currents).verdict.criteria}
    assert rows["gains over those given before"] is None
    assert {rows["payload's weight over effort limit"], rows["torque over effort limit"]} == {"poor"}


def test_a_centre_beyond_the_reach_of_the_arm_is_refused_and_one_within_is_not():
    with pytest.raises(EstimateError, match=r"centre: got 181.* m from the origin of link 'link_2'.*reach.* metres"):
        gains_with(MASS, centre=(180.0, 20.0, 0.0))
    assert gains_with(MASS, centre=(0.18, 0.02, 0.0)).verdict.grade == "fair"
    heavy = replace(ARM, payloads={"brick": (*BRICK[:6], 900.0, 100.0, 0, MASS)})
    with pytest.raises(EstimateError, match=r"reach of the arm"):
        identify_gains(heavy, recorded(1, None), replace(recorded(1, "brick"), payload="brick"))


def row_of(result, name: str):
    return next(row for row in result.verdict.criteria if row.name == name)


@pytest.mark.large
def test_a_wrong_centre_is_a_poor_verdict_that_says_where_the_data_have_it():
    right, wrong = (gains_with(MASS, centre=(x, 0.02, 0.0)) for x in (0.18, 0.12))
    name = "given centre against the data"
    assert (row_of(right, name).grade, row_of(wrong, name).grade) == ("good", "poor")
    assert wrong.verdict.grade == "poor"
    expected = r"the data have the payload's centre at x 1[78]\d\.\d .* given is 120\.0"
    assert any(re.search(expected, one.text) for one in wrong.reasons)
    assert row_of(gains_with(MASS), name).text_value == "not judged"


def test_does_it_predict_is_answered_by_blocks_that_are_left_out():
    row = row_of(found(1), "error of left-out blocks")
    assert row.question == "predicts"
    assert row.value is not None
    assert 0 < row.value < 5  # noise of 1 % of the torques


def test_exchanged_recordings_are_named():
    with pytest.raises(EstimateError, match=r"negative mass.*most likely.*are exchanged"):
        gains_with(MASS, lambda seed, name: replace(recorded(seed, None if name else "brick"), payload=None))


def test_the_verdict_judges_the_torques_of_the_gains_that_are_printed():
    """With noise as large as the torques the gains given before are kept, and no gain of the data is behind a text."""
    noisy = partial(recorded, noise=3.0)
    result = gains_with(MASS, noisy, centre=(-0.5, 0.3, 0.0))
    assert "unknown" in result.grades
    torques = [np.abs(noisy(1, name).torque().values).max(axis=1) for name in (None, "brick")]
    effort = [ARM.joint(joint).limits.effort for joint in ARM.joint_names]
    highest = (result.gains.values * np.max(torques, axis=0) / effort).max()
    assert row_of(result, "torque over effort limit").value <= highest


def test_a_wrong_mass_is_said_to_be_invisible(capsys):
    print_gains(found(1), None)
    assert "a wrong mass cannot be seen in these data" in " ".join(capsys.readouterr().out.split())


GAINS = DriveGains("motor_torque", ("joint_1", "joint_2"), TRUE, np.array([[4e-4, 1e-4], [1e-4, 9e-4]]), 'by "hand"\n')


def test_a_file_of_gains_comes_back_as_it_was(tmp_path):
    write_gains(tmp_path / "gains.toml", GAINS)
    for place in (tmp_path, tmp_path / "gains.toml"):
        back = read_gains(place)
        assert (back.kind, back.joints, back.source) == (GAINS.kind, GAINS.joints, GAINS.source)
        np.testing.assert_allclose(back.values, GAINS.values, rtol=1e-8)
        np.testing.assert_allclose(back.covariance, GAINS.covariance, rtol=1e-7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gains]\n", "'kind' is missing"),
        ('[gains]\nkind = "torque"\n', "allowed: motor_current"),
        ('[gains]\nkind = "motor_torque"\njoints = ["a"]\nvalues = [1, 2]\nrelative_sigma = [0]\n', "of the 1 joints"),
        ('[gains]\nkind = "motor_torque"\njoints = ["a"]\nvalues = [-1]\nrelative_sigma = [0]\n', "entry 1 must be"),
    ],
)
def test_a_bad_file_of_gains_is_refused(text, message, tmp_path):
    (tmp_path / "gains.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_gains(tmp_path)


def test_gains_of_another_arm_or_kind_are_refused():
    with pytest.raises(RecordingError, match="no gain for joint 'joint_2'"):
        with_gains(recorded(1, None), replace(GAINS, joints=("joint_1", "other")))
    with pytest.raises(RecordingError, match="gains are of a motor_current"):
        with_gains(recorded(1, None), replace(GAINS, kind="motor_current"))


def test_a_written_recording_keeps_gains_and_their_errors(tmp_path):
    log = write_recording(with_gains(recorded(1, None), GAINS), tmp_path / "log.npz")
    channel = read_recording(ARM, log).torque()
    np.testing.assert_array_equal(channel.gain, GAINS.values)
    np.testing.assert_array_equal(channel.gain_covariance, GAINS.covariance)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = Settings(bias_repeats=0, preparation=QUICK)
    result = identify(ARM, with_gains(recorded(1, None, 0.01), GAINS), settings=settings)
    return save_run(result, tmp_path_factory.mktemp("run"))


def test_a_payload_is_found_with_the_gains_of_the_run_and_their_errors(run):
    """Errors of the gains against gains that were drawn anew, arm and payload identified with each."""
    loaded = recorded(2, "brick", 0.01)
    carried = identify_payload(ARM, run, loaded)
    exact = identify_payload(ARM, run, loaded, gain_sigma=0.0)
    assert carried.gains[0].source == GAINS.source
    assert abs(carried.body.mass[0] - MASS) < 3 * carried.body.mass[1]
    assert carried.body.mass[0] == exact.body.mass[0]
    by_gains = np.sqrt(carried.body.mass[1] ** 2 - exact.body.mass[1] ** 2)
    steps = []
    for j in range(2):
        moved = replace(GAINS, values=GAINS.values * np.exp(0.01 * np.eye(2)[j]))
        both = [with_gains(one, moved) for one in (recorded(1, None, 0.01), replace(loaded, payload="brick"))]
        steps.append(_mass(both) - _mass([with_gains(one, GAINS) for one in both]))
    expected = np.sqrt(np.array(steps) @ GAINS.covariance @ np.array(steps)) / 0.01
    assert by_gains == pytest.approx(expected, rel=0.25)
    assert carried.gain_share == pytest.approx((by_gains / carried.body.mass[1]) ** 2)


def _mass(recordings: list[Recording]) -> float:
    body = payload_body(fit_arm(ARM, recordings, Settings(method="wls", preparation=QUICK)).fit.estimate)
    assert body is not None
    return body.mass[0]


def test_where_gains_are_unknown_the_answer_is_a_sentence(run):
    with pytest.raises(EstimateError, match="mass is not identifiable: the gain of the motor_torque is unknown"):
        identify_payload(ARM, run, recorded(2, "brick"), gain_sigma=np.inf)
    unknown = replace(GAINS, covariance=np.full((2, 2), np.inf))
    both = [with_gains(one, unknown) for one in (recorded(1, None), replace(recorded(2, "brick"), payload="brick"))]
    result = identify(ARM, both, settings=Settings(bias_repeats=0, preparation=QUICK))
    assert result.payload is None
    assert any("payload is not identifiable: gains are unknown" in note for note in result.notes)
    assert result.to_json()["gains"][0]["relative_covariance"] is None


def test_a_run_of_other_torques_is_refused(run):
    other = replace(
        recorded(2, "brick"), torques=(TorqueChannel("motor_current", clean("brick").torque().values, "", TRUE),)
    )
    with pytest.raises(EstimateError, match="the arm was identified from a motor_torque"):
        identify_payload(ARM, run, other)
    damaged = replace(read_run(run.folder), content={**run.content, "gains": [{"kind": "x"}]})
    with pytest.raises(EstimateError, match="gains that cannot be read"):
        identify_payload(ARM, damaged, recorded(2, "brick"))


def test_predictions_and_later_runs_have_the_gains_of_the_run(run):
    """The log as it is, in units that are wrong by up to 30 %."""
    error = predict(run, recorded(3, None, 0.01), ARM).error
    assert error is not None
    assert error.relative_percent < 3
    with pytest.raises(EstimateError, match="other gains of its motor_torque"):
        identify(ARM, recorded(3, None, 0.01), settings=Settings(bias_repeats=0, preparation=QUICK), earlier=[run])


UR10E = "ur10e/identification"
PAIRS = (("ur-20_01_31-unload", "ur-20_01_31-load"), ("ur-20_02_19_14harm50sec", "ur-20_02_19_14harm50secLoad"))


@pytest.fixture(scope="module")
def ur10e_gains(tmp_path_factory):
    """Gains of either pair of recordings of a real UR10e, by the command."""
    data, folder = data_folder(), tmp_path_factory.mktemp("gains")
    options = ["--mass", "2.805", "--config", str(SETUPS / "ur10e.toml"), "--root", str(data), "-q"]
    for k, pair in enumerate(PAIRS):
        logs = [f"{UR10E}/{name}.csv" for name in pair]
        assert main(["gains", "ur10e", *logs, *options, "--out", str(folder / str(k))]) == 0
    return folder


@pytest.mark.data
@pytest.mark.large
def test_gains_of_two_days_contain_each_other_on_joints_2_and_3(ur10e_gains):
    results = [json.loads((ur10e_gains / str(k) / "result.json").read_text()) for k in range(2)]
    for mine, other in (results, results[::-1]):
        for j in (1, 2):
            low, high = mine["joints"][j]["interval_95"]
            assert low < other["joints"][j]["gain"] < high
            assert mine["joints"][j]["grade"] == "known"
            assert mine["joints"][j]["relative_sigma_percent"] < 3
        assert mine["joints"][0]["grade"] == "weak"
        assert mine["joints"][0]["payload_weight_rms"] < 1e-9


def payload_of(capsys, out: Path, pair: tuple[str, str], *options: str) -> dict:
    setup = ["--config", str(SETUPS / "ur10e.toml"), "--root", str(data_folder())]
    unloaded, loaded = (f"{UR10E}/{name}.csv" for name in pair)
    assert main(["identify", "ur10e", unloaded, *options, *setup, "--out", str(out), "-q"]) in (0, 2)
    capsys.readouterr()
    assert main(["payload", str(out), loaded, *setup, "--json"]) in (0, 2)
    return json.loads(capsys.readouterr().out)


@pytest.mark.data
@pytest.mark.large
@pytest.mark.parametrize(("known", "judged"), [(0, 1), (1, 0)])
def test_the_mass_on_the_other_pair_is_right_to_2_percent(ur10e_gains, known, judged, tmp_path, capsys):
    found = payload_of(capsys, tmp_path / "arm", PAIRS[judged], "--gains", str(ur10e_gains / str(known)))
    mass, sigma = found["payload"]["mass"], found["payload"]["mass_sigma"]
    assert abs(mass / 2.805 - 1) < 0.02
    assert abs(mass - 2.805) < 2 * sigma < 0.1
    assert found["gains"][0]["source"].startswith("steelyard gains")


@pytest.mark.data
@pytest.mark.large
def test_published_gains_carry_an_uncertainty_that_covers_the_mass(tmp_path, capsys):
    found = payload_of(capsys, tmp_path / "arm", PAIRS[1])
    mass, sigma = found["payload"]["mass"], found["payload"]["mass_sigma"]
    assert abs(mass / 2.805 - 1) > 0.05
    assert abs(mass - 2.805) < 1.96 * sigma
    assert found["mass_variance_by_gains"] > 0.9


@pytest.mark.data
@pytest.mark.large
def test_the_mass_on_the_airbot_is_said_not_to_be_identifiable(tmp_path, capsys):
    data = data_folder()
    setup = ["--config", str(SETUPS / "airbot_play.toml"), "--root", str(data)]
    robot = str(data / "airbot_play/airbot_play_v3_0_gripper.urdf")
    assert main(["identify", robot, "--table", "chirp", *setup, "--out", str(tmp_path), "--json"]) == 0
    questions = json.loads(capsys.readouterr().out)["verdict"]["questions"]
    assert questions == {"plausible": "fair", "predicts": "fair", "known": "poor"}
    assert main(["payload", str(tmp_path), "--table", "chirp_loaded", *setup]) == 1
    assert "the payload's mass is not identifiable" in capsys.readouterr().err
