"""What a model of the arm shows of a log: faults are named with their joint and size, and their remedies help."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from steelyard.cli import main
from steelyard.errors import EstimateError
from steelyard.identification import Diagnosed, Settings, check_model, diagnose, identify, save_run
from steelyard.identification.diagnosis import _beyond_effort, _without_feigned
from steelyard.identification.gravity_fits import GravityFits, relative_residual
from steelyard.identification.hypotheses import _Fit
from steelyard.identification.log_faults import refuse_removed_gravity
from steelyard.identification.payload_body import _inverse_root
from steelyard.judge import Impossible, Plausibility
from steelyard.model import build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.recording import Recording, write_recording
from steelyard.robot import Robot, load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.study import default_motion, default_noise

ARM = "kuka_ir361"
FAULTY, WALL = 1, 0
LOAD = (0.1, 0.0, 0.0, 1.3, 0.0, 1.3, 6.0, 0.0, 0.0, 30.0)  # compact, 30 kg, 0.2 m from the frame of the last link
PAYLOADS = {
    ARM: {"load": LOAD, "light": tuple(value / 12 for value in LOAD)},
    "ur10e": {"load": tuple(value / 5 for value in LOAD)},
    "staubli_tx40": {"load": tuple(value / 15 for value in LOAD)},
}


@cache
def recorded(
    seed: int, payload: str | None = None, arm: str = ARM, *, weightless: bool = False, slope: float = 0.0
) -> Recording:
    robot = tilted(replace(load_robot(arm), payloads=PAYLOADS.get(arm, {})), np.radians(slope))
    robot = robot.with_gravity((0.0, 0.0, 0.0)) if weightless else robot
    motion = default_motion(robot, seed)
    noises = {key: Noise(one["kind"], tuple(one["std"])) for key, one in default_noise(robot, motion).items()}
    experiment = Experiment(record_rate=200.0, encoder_quantum=1e-5, payload=payload, **noises)  # type: ignore[arg-type]
    if not weightless:  # torques without gravity are told from friction, near standstill too: as a controller has it
        experiment = replace(experiment, plant="ideal", control_rate=200.0)
    found = recording_of(simulate(robot, motion, experiment, [seed]))
    # Positions that are those commanded would be a fault of their own.
    return replace(found, payload=None, reference=None, notes=(), findings=())


def with_torque(recording: Recording, change) -> Recording:
    channel = recording.torques[0]
    return replace(recording, torques=(replace(channel, values=change(channel.values.copy())),))


def reversed_torque(values: np.ndarray) -> np.ndarray:
    values[FAULTY] *= -1
    return values


def two_reversed(values: np.ndarray) -> np.ndarray:
    values[[FAULTY, FAULTY + 1]] *= -1
    return values


def late(values: np.ndarray) -> np.ndarray:
    return np.hstack([values[:, :1], values[:, :1], values[:, :-2]])


def in_degrees(arm: str, rows: list[int], amplitude: float) -> Recording:
    """Return a log without velocities of which some joints, that move by so many rad, are in degrees."""
    robot = load_robot(arm)
    degrees = np.isin(np.arange(len(robot.joint_names)), rows)[:, None]
    sin, cos = np.random.default_rng(4).uniform(-1, 1, (2, len(degrees), 5)) / np.arange(1, 6)
    sin, cos = (np.where(degrees, amplitude, 1.0) * one for one in (sin, cos))
    motion = fourier(np.zeros(len(degrees)), sin, cos, 10.0, list(robot.joint_names))
    noises = {key: Noise(one["kind"], tuple(one["std"])) for key, one in default_noise(robot, motion).items()}
    ideal = Experiment(record_rate=200.0, plant="ideal", control_rate=200.0, saturate=False, encoder_quantum=1e-5)
    log = recording_of(simulate(robot, motion, replace(ideal, **noises), [0]))  # type: ignore[arg-type]
    q = np.where(degrees, np.degrees(log.q), log.q)
    return replace(log, q=q, qd=None, reference=None, payload=None, notes=(), findings=())


def codes(found) -> list[tuple[str, str]]:
    return [(one.code, one.joint) for one in found.findings if one.severity != "info"]


def tilted(robot: Robot, angle: float) -> Robot:
    x, y, z = robot.gravity
    return robot.with_gravity((x, y * np.cos(angle) - z * np.sin(angle), y * np.sin(angle) + z * np.cos(angle)))


def test_clean_recordings_raise_no_warning():
    found = diagnose(ARM, [recorded(0), recorded(1)])
    assert codes(found) == []
    assert not found.is_pointless
    assert found.residual < 0.02


def test_all_torques_in_thousandths_are_one_finding():
    log = with_torque(recorded(0, arm="scara_2r"), lambda values: 1e3 * values)
    (finding,) = diagnose("scara_2r", [log]).findings
    assert (finding.code, finding.severity, finding.joint) == ("torque_unit", "bad", "")
    assert finding.value == pytest.approx(1e3, rel=0.3)
    assert "thousandths" in finding.text


def test_a_tilted_base_is_found_to_its_interval():
    found = diagnose(tilted(load_robot(ARM), 0.05), [recorded(0), recorded(1)])
    (finding,) = [one for one in found.findings if one.code == "tilt"]
    assert finding.interval is not None
    assert finding.interval[0] < np.degrees(0.05) < finding.interval[1]
    assert "--gravity" in finding.remedy


@pytest.mark.parametrize("seed", [0, pytest.param(32, marks=pytest.mark.large)])
def test_a_tilt_that_springs_hide_on_a_level_base_is_found_by_turning_gravity(seed):
    """On a level base its springs look like weight: first moments, which a tilt turns, are not known."""
    logs = [recorded(seed, slope=3.0), recorded(seed + 1, slope=3.0)]
    found = diagnose(ARM, logs)
    assert codes(found) == [("tilt", "")]
    (finding,) = [one for one in found.findings if one.code == "tilt"]
    assert finding.interval is not None
    assert finding.interval[0] < 3.0 < finding.interval[1] < 6.0
    result = identify(ARM, logs[:1], logs[1:], Settings(bias_repeats=0))
    assert "tilt" not in result.equations.model.effects
    assert result.verdict.grade == "fair"
    assert [one.grade for one in result.verdict.reasons if one.criterion == "mounting"] == ["fair"]
    with pytest.raises(EstimateError, match=r"springs of the arm.*--gravity"):
        identify(ARM, logs[:1], logs[1:], Settings(effects=("+tilt",), select=False))
    gravity = tuple(finding.fix["identify.gravity"])
    assert codes(diagnose(load_robot(ARM).with_gravity(gravity), logs)) == []  # the remedy helps


@pytest.mark.parametrize(
    ("arm", "angle"),
    [
        ("staubli_tx40", 8.0),
        pytest.param("ur10e", 8.0, marks=pytest.mark.large),
        pytest.param("kuka_lwr4", 8.0, marks=pytest.mark.large),
    ],
)
def test_first_moments_of_an_arm_on_a_tilted_base_are_not_biased(arm, angle):
    """Gravity is turned: what its main component loses, 1 % at 8 degrees, must not go into masses."""
    logs = [recorded(seed, arm=arm, slope=angle) for seed in (0, 1)]
    settings = Settings(effects=("+tilt",), select=False, bias_repeats=0)
    found = identify(arm, logs[:1], logs[1:], settings)
    robot, estimate = load_robot(arm), found.fit.estimate
    gravity = tilted(robot, np.radians(angle)).gravity
    truth = found.equations.base_values(robot.parameters) | dict(zip(("gx", "gy"), gravity[:2], strict=True))
    known = [k for k, name in enumerate(estimate.columns) if name[:2] not in ("gc", "gs")]  # of moments nobody knows
    z = [(estimate.values[k] - truth[estimate.columns[k]]) / estimate.sigma[k] for k in known]
    assert np.sqrt(np.mean(np.square(z))) < 1.4
    (reason,) = [one for one in found.verdict.reasons if one.criterion == "mounting"]
    assert float(reason.text.split()[5]) == pytest.approx(angle, abs=0.3)
    assert "--gravity" in reason.remedy
    np.testing.assert_allclose(found.robot.gravity, gravity, atol=0.08)


@pytest.mark.parametrize(
    ("slope", "payload", "told"),
    [
        (2.0, None, ["tilt"]),
        pytest.param(5.0, "load", ["tilt", "undeclared_payload"], marks=pytest.mark.large),
        pytest.param(0.0, "load", ["undeclared_payload"], marks=pytest.mark.large),
    ],
)
def test_a_load_is_weighed_under_the_gravity_that_was_found(slope, payload, told):
    log = recorded(0, payload, "ur10e", slope=slope)
    found = diagnose("ur10e", [log])
    assert [code for code, _ in codes(found)] == told
    for one in found.findings:
        if one.code == "undeclared_payload":
            assert one.interval is not None
            assert one.interval[0] < PAYLOADS["ur10e"]["load"][9] < one.interval[1]


@pytest.mark.parametrize("angle", [25.0, 130.0])
def test_a_slope_is_found_between_the_axes(angle):
    (finding,) = [one for one in diagnose(ARM, [recorded(0, slope=angle)]).findings if one.code == "mounting"]
    assert float(finding.text.split()[1]) == pytest.approx(angle, abs=2.0)
    assert finding.text.endswith("as on a slope")
    expected = tilted(load_robot(ARM), np.radians(angle)).gravity
    np.testing.assert_allclose(finding.fix["identify.gravity"], expected, atol=0.4)


def test_parallel_axes_are_not_called_upside_down():
    """What pulls along them bears on no torque, whichever way it pulls."""
    found = diagnose("scara_2r", [recorded(0, arm="scara_2r", slope=5.0)])
    assert codes(found) == [("tilt", "")]
    (finding,) = [one for one in found.findings if one.code == "tilt"]
    assert finding.value == pytest.approx(5.0, abs=0.3)


def test_a_load_in_one_recording_is_named():
    found = diagnose(ARM, [recorded(0), recorded(1, "load")])
    assert ("undeclared_payload", "") in codes(found)
    assert found.is_pointless


@pytest.mark.parametrize(
    ("loaded", "text", "remedy"),
    [
        (
            (True, True, False),
            "all recordings but 'recording 3' carry a payload",
            "validate with recordings that carry",
        ),
        ((False, False, True), "'recording 3' carries a payload", "recordings that do not carry it"),
    ],
)
def test_a_payload_of_the_fit_or_of_validation_alone_is_the_cause_of_a_poor_verdict(loaded, text, remedy):
    logs = [recorded(k, "load" if carries else None) for k, carries in enumerate(loaded)]
    found = identify(ARM, logs[:2], logs[2:], Settings(select=False, bias_repeats=0))
    assert found.verdict.grade == "poor"
    (cause,) = [one for one in found.verdict.reasons if one.criterion == "likely cause"]
    assert text in cause.text
    assert "about 30 kg" in cause.text
    assert remedy in cause.remedy
    assert 'payload = "name"' in cause.remedy


def test_a_small_payload_is_named_where_unseen_motion_is_predicted_worse_than_the_fit():
    light, unloaded = recorded(0, "light"), recorded(1)
    found = identify(ARM, [light], [unloaded], Settings(select=False, bias_repeats=0))
    assert found.verdict.grade == "fair"
    (cause,) = [one for one in found.verdict.reasons if one.criterion == "likely cause"]
    assert "'recording 1' carries a payload" in cause.text
    same = identify(ARM, [recorded(0)], [unloaded], Settings(select=False, bias_repeats=0))
    assert not [one for one in same.verdict.reasons if one.criterion == "likely cause"]


def test_a_late_position_column_is_not_called_an_early_torque():
    def late_position(recording: Recording) -> Recording:
        q = recording.q.copy()
        q[FAULTY] = np.concatenate([np.repeat(q[FAULTY, :1], 4), q[FAULTY, :-4]])
        return replace(recording, q=q, qd=None)

    found = diagnose(ARM, [late_position(recorded(0)), late_position(recorded(1))])
    (finding,) = [one for one in found.findings if one.code in ("delay", "late_position")]
    assert (finding.code, finding.joint) == ("late_position", "joint_2")
    assert finding.value == pytest.approx(0.02, abs=0.005)
    assert not finding.fix


@pytest.mark.large
def test_gravity_taken_out_is_found_where_friction_is_most_of_the_torque():
    found = diagnose("staubli_tx40", [recorded(0, arm="staubli_tx40", weightless=True)])
    assert codes(found) == [("gravity_removed", "")]
    assert found.is_pointless
    assert found.findings[0].value is not None
    assert 1.1 < found.findings[0].value < 2  # a wall or ceiling would have to fit twice as well


@pytest.mark.parametrize(
    ("arm", "weightless", "fits_another_model"),
    [
        ("staubli_tx40", False, False),
        pytest.param("staubli_tx40", True, True, marks=pytest.mark.large),
        (ARM, False, True),
        ("scara_2r", False, False),
        pytest.param("kuka_lwr4", False, False, marks=pytest.mark.large),
    ],
)
def test_another_model_is_fitted_only_where_a_short_look_leaves_gravity_in_doubt(
    monkeypatch, arm, weightless, fits_another_model
):
    """The springs of KUKA's IR 361 are regrouped with gravity: a look cannot tell there. A SCARA feels no gravity."""
    fitted = []
    monkeypatch.setattr(GravityFits, "removed", lambda fits: fitted.append(fits))
    recording = recorded(0, arm=arm, weightless=weightless)
    resolved = resolve_preparation(Preparation(), [recording])
    refuse_removed_gravity(equations_of(build_model(arm)), [("log", recording)], resolved)
    assert bool(fitted) == fits_another_model


@pytest.mark.parametrize(
    ("gravity", "effects"),
    [
        ((0.0, 0.0, -9.81), None),
        ((9.81, 0.0, 0.0), None),
        ((0.0, 0.0, 0.0), None),
        ((0.0, 4.0, 5.0), None),
        ((0.0, 0.0, -9.81), ["+Fgm"]),  # friction in proportion to the load is written with the model's own gravity
    ],
)
def test_rows_with_gravity_apart_fit_as_a_model_of_that_gravity_does(effects, gravity):
    recording = recorded(0)
    model, resolved = build_model(ARM, effects), resolve_preparation(Preparation(), [recording])
    fits = GravityFits(equations_of(model), [("log", recording)], resolved, 1)
    turned = equations_of(replace(model, robot=model.robot.with_gravity(gravity)))
    rows = reduce_rows([row_source(recording, turned, resolved, "log")], blocks=1)
    # Samples near standstill are bridged in pieces that fit the cache, whose length depends on the columns.
    assert fits.of(gravity).residual == pytest.approx(relative_residual(rows, turned.names), rel=2e-3)


def test_identify_refuses_torques_without_gravity_in_the_words_of_check(tmp_path, capsys):
    (finding,) = diagnose(ARM, [recorded(0, weightless=True)]).findings
    log, unseen = tmp_path / "log.npz", tmp_path / "unseen.npz"
    write_recording(recorded(0, weightless=True), log)
    write_recording(recorded(1, weightless=True), unseen)
    given = ["identify", ARM, str(log), "--validate", str(unseen), "--plain"]
    assert main(given) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert finding.text in said
    assert finding.remedy in said
    assert "--gravity 0,0,0" in finding.remedy
    assert main([*given, "--gravity", "0,0,0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["grade"] in ("good", "fair")


def fitted(misfit: float, count: int, part: float) -> _Fit:
    """A fit with so many impossible values, the largest of which explains a part of its joint's torque."""
    impossible = [Impossible("ZZ1R", "joint_1", -1.0, 0.1, part)] * count
    return _Fit(misfit, (), lambda: impossible, lambda: ())


def test_a_change_that_leaves_little_impossible_is_a_cure():
    reversed_joint = fitted(0.18, 3, 0.97)
    assert fitted(0.18, 1, 0.08).cures(reversed_joint)
    assert not fitted(0.18, 1, 0.5).cures(reversed_joint)
    assert not fitted(0.4, 1, 0.08).cures(reversed_joint)


def test_an_exchange_that_fits_no_better_is_no_cure():
    before, after = fitted(0.094, 2, 0.5), fitted(0.094, 1, 0.3)
    assert after.cures(before)  # a sign may leave the residuals as they are
    assert not after.cures(before, must_fit_better=True)
    assert fitted(0.05, 1, 0.3).cures(before, must_fit_better=True)


@pytest.mark.parametrize("misfit", [0.05, 0.1, 0.2, 0.29, 0.5, 0.9])
def test_no_fit_above_the_largest_residual_of_a_cure_is_one(misfit):
    before = fitted(misfit, 3, 0.9)
    for part, exchanged in product([0.1, 0.5], [False, True]):
        cures = [
            one for one in np.linspace(0.01, 1.0, 100) if fitted(one, 0, part).cures(before, must_fit_better=exchanged)
        ]
        assert cures
        assert max(cures) <= before.most_to_cure
    assert fitted(before.most_to_cure, 0, 0.1).cures(before)


@pytest.mark.large
@pytest.mark.parametrize("arm", ["staubli_tx40", pytest.param("franka_panda", marks=pytest.mark.large)])
def test_columns_in_reverse_order_are_named_with_the_right_order(arm):
    right = recorded(0, arm=arm)
    names = tuple(reversed(right.joints))
    wrong = replace(right, q=right.q[::-1], qd=None)
    found = diagnose(arm, [with_torque(wrong, lambda values: values[::-1])])
    (finding,) = [one for one in found.findings if one.severity == "bad"]
    assert (finding.code, finding.joint) == ("exchanged_joints", "")
    assert "reverse order" in finding.text
    assert tuple(finding.fix["recording.q.joints"]) == names


@pytest.mark.parametrize(
    ("arm", "steps", "moved", "code"),
    [
        ("ur10e", 1, "q torque", "exchanged_joints"),
        pytest.param("ur10e", 1, "q", "exchanged_positions", marks=pytest.mark.large),
        pytest.param("ur10e", -1, "torque", "exchanged_torques", marks=pytest.mark.large),
        pytest.param("kuka_lwr4", -1, "q torque", "exchanged_joints", marks=pytest.mark.large),
    ],
)
def test_columns_moved_by_one_joint_are_named_with_the_right_order(arm, steps, moved, code):
    log = recorded(0, arm=arm)
    right, whole = np.roll(np.array(log.joints), steps).tolist(), log
    if "q" in moved.split():
        log = replace(log, q=np.roll(log.q, steps, axis=0), qd=None)
    if "torque" in moved:
        log = with_torque(log, lambda values: np.roll(values, steps, axis=0))
    (finding,) = [one for one in diagnose(arm, log).findings if one.severity == "bad"]
    assert (finding.code, finding.joint) == (code, "")
    assert f"that of {whole.joints[0]} is declared as that of {whole.joints[steps]}" in finding.text
    for channel in moved.split():
        # The order in which the columns of the log must be declared is that of what they hold.
        assert finding.fix[f"recording.{channel}.joints"] == right


@pytest.mark.parametrize(
    ("arm", "row", "ratio"),
    [
        pytest.param("franka_panda", 2, 1.25, marks=pytest.mark.large),
        ("staubli_tx40", 1, 2.0),
        pytest.param("franka_panda", 2, 2.0, marks=pytest.mark.large),
    ],
)
def test_a_torque_of_a_wrong_gain_is_named_with_that_gain(arm, row, ratio):
    def larger(values: np.ndarray) -> np.ndarray:
        values[row] *= ratio
        return values

    log = recorded(0, arm=arm)
    found = diagnose(arm, [with_torque(log, larger)])
    (finding,) = [one for one in found.findings if one.code in ("torque_gain", "torque_unit")]
    assert finding.joint == log.joints[row]
    assert finding.interval is not None
    assert finding.interval[0] < ratio < finding.interval[1]
    assert finding.interval[1] - finding.interval[0] < 0.1 * ratio


@pytest.mark.parametrize(
    ("arm", "row"),
    [
        ("staubli_tx40", 2),
        pytest.param("ur10e", 0, marks=pytest.mark.large),
        pytest.param("ur10e", 2, marks=pytest.mark.large),
        pytest.param("kuka_lwr4", 3, marks=pytest.mark.large),
    ],
)
def test_a_joint_that_moves_farther_than_is_measured_is_named(arm, row):
    """As with a wrong gear ratio of positions on the motor side."""
    log = recorded(0, arm=arm)
    q = log.q.copy()
    q[row] *= 0.9
    found = diagnose(arm, [replace(log, q=q, qd=None)])
    assert codes(found) == [("position_scale", log.joints[row])]
    (finding,) = [one for one in found.findings if one.code == "position_scale"]
    assert finding.interval is not None
    assert finding.interval[0] < 0.9 < finding.interval[1]
    assert "gear_ratio" in finding.remedy


@pytest.mark.parametrize(
    ("rows", "joint"),
    [((1, 2), "joint_2, joint_3"), pytest.param((0, 3), "joint_1, joint_4", marks=pytest.mark.large)],
)
def test_two_reversed_torques_are_named_where_neither_alone_makes_the_estimate_possible(rows, joint):
    def change(values: np.ndarray) -> np.ndarray:
        values[list(rows)] *= -1
        return values

    log = with_torque(recorded(0, arm="staubli_tx40"), change)
    assert codes(diagnose("staubli_tx40", [log])) == [("torque_sign", joint)]


def test_a_torque_far_beyond_its_limit_is_bad():
    (finding,) = _beyond_effort(Plausibility((), (), ("joint_5", 2.35), (), None, None, None), Settings())
    assert (finding.code, finding.severity, finding.joint, finding.value) == ("effort_limit", "bad", "joint_5", 2.35)
    assert not [*_beyond_effort(Plausibility((), (), ("joint_5", 1.4), (), None, None, None), Settings())]


@pytest.mark.large
def test_a_joint_in_another_unit_is_named_where_the_file_s_inertias_explain_little_of_its_torque():
    def hundredfold(values: np.ndarray) -> np.ndarray:
        values[2] *= 100
        return values

    clean = recorded(0, arm="ur10e")
    (finding,) = diagnose("ur10e", [with_torque(clean, hundredfold)]).findings
    assert (finding.code, finding.severity, finding.joint) == ("torque_unit", "bad", clean.joints[2])
    assert finding.value == pytest.approx(100, rel=0.02)
    assert "in hundredths" in finding.text


@pytest.mark.large
def test_a_late_torque_is_named_where_parameters_of_its_own_equation_hide_it():
    def late_joint(values: np.ndarray) -> np.ndarray:
        values[FAULTY] = np.concatenate([np.repeat(values[FAULTY, :1], 4), values[FAULTY, :-4]])
        return values

    clean = recorded(0, arm="franka_panda")
    assert codes(diagnose("franka_panda", [clean])) == []
    found = diagnose("franka_panda", [with_torque(clean, late_joint)])
    (finding,) = [one for one in found.findings if one.code == "delay"]
    assert (finding.joint, finding.value) == (clean.joints[FAULTY], pytest.approx(0.02, abs=0.003))


def test_an_arm_on_a_wall_is_not_a_wrong_unit():
    robot = load_robot("staubli_tx40").with_gravity((9.81, 0.0, 0.0))
    assert codes(diagnose(robot, [recorded(WALL, arm="staubli_tx40")])) == [("mounting", "")]


def test_a_delay_beside_another_fault_must_be_certain():
    def late(sigmas: float) -> Diagnosed:
        return Diagnosed("delay", "warning", "", "", value=sigmas, interval=(sigmas - 1.96, sigmas + 1.96))

    tilt, note = Diagnosed("tilt", "warning", "", ""), Diagnosed("weak_parameters", "info", "", "")
    assert _without_feigned([late(4.0), note]) == [late(4.0), note]
    assert _without_feigned([late(4.0), tilt]) == [tilt]
    assert _without_feigned([late(6.0), tilt]) == [late(6.0), tilt]


def test_what_another_finding_explains_is_not_told_beside_it():
    def warning(code: str, joint: str = "", recording: str = "") -> Diagnosed:
        return Diagnosed(code, "warning", "", "", joint, recording, 9.0, (8.9, 9.1))

    drift, gain = warning("friction_drift", "joint_2", "b"), warning("gain_changed", "joint_2", "b")
    late, other = warning("delay", "joint_2"), warning("delay", "joint_3")
    assert _without_feigned([drift, gain]) == [gain]
    assert _without_feigned([replace(drift, joint="joint_1"), gain]) == [replace(drift, joint="joint_1"), gain]
    assert _without_feigned([late, other, drift]) == [other, drift]
    disagree, tilt = warning("disagree", "", "a"), warning("tilt", "", "b")
    assert _without_feigned([disagree, tilt]) == [tilt]
    assert _without_feigned([disagree, drift]) == [disagree, drift]
    assert _without_feigned([disagree, replace(tilt, recording="")]) == [disagree, replace(tilt, recording="")]


def test_friction_that_differs_a_little_between_recordings_is_told_but_no_fault():
    speed = np.sign(np.gradient(recorded(1).q[FAULTY], recorded(1).time))
    friction = load_robot(ARM).parameters

    def more(values: np.ndarray) -> np.ndarray:
        values[FAULTY] += 0.07 * friction["Fcm2"] * speed
        return values

    found = diagnose(ARM, [recorded(0), with_torque(recorded(1), more)]).findings
    drift = [one for one in found if one.code == "friction_drift"]
    assert {(one.joint, one.severity) for one in drift} == {("joint_2", "info")}


def test_friction_that_grows_is_named_with_its_joint():
    def growing(recording: Recording) -> Recording:
        speed = np.gradient(recording.q[FAULTY], recording.time)
        size = 0.3 * np.std(recording.torques[0].values[FAULTY]) * np.linspace(0, 1, recording.samples)

        def change(values: np.ndarray) -> np.ndarray:
            values[FAULTY] += size * np.sign(speed)
            return values

        return with_torque(recording, change)

    assert ("friction_drift", "joint_2") in codes(diagnose(ARM, [growing(recorded(0))]))


def test_friction_that_falls_during_a_log_is_not_called_a_tilted_base():
    """Of a motion that is not repeated: the joint turns about the vertical, where gravity shows only a tilt."""
    arm, twice = "staubli_tx40", recorded(3, arm="staubli_tx40")
    half, friction = twice.samples // 2, load_robot(arm).parameters
    speed = np.gradient(twice.q[0], twice.time)[:half]
    torque = twice.torques[0].values[:, :half].copy()
    torque[0] -= 0.3 * np.linspace(0, 1, half) * (friction["Fcm1"] * np.sign(speed) + friction["Fvm1"] * speed)
    channel = replace(twice.torques[0], values=torque)
    log = replace(twice, time=twice.time[:half], q=twice.q[:, :half], qd=None, reference=None, torques=(channel,))
    assert codes(diagnose(arm, [log])) == [("friction_drift", "joint_1")]


# Of the TX40 friction is most of the torque.
@pytest.mark.parametrize("arm", [ARM, pytest.param("staubli_tx40", marks=pytest.mark.large)])
def test_computed_torques_and_commanded_positions_are_named(arm):
    motion = default_motion(load_robot(arm), 0)
    exact = recording_of(simulate(arm, motion, Experiment(record_rate=200.0)))
    assert {code for code, _ in codes(diagnose(arm, [replace(exact, findings=())]))} == {
        "computed_torque", "commanded_position",
    }  # fmt: skip


@pytest.mark.large
def test_zeros_that_torques_cannot_show_are_told():
    """Any zero of the last joint, and of one about the vertical, fits as well; of wrist 2, one that is far off."""
    log, names = recorded(0, arm="ur10e"), load_robot("ur10e").joint_names

    def found(row: int):
        q = log.q + np.pi / 2 * (np.arange(len(log.q)) == row)[:, None]
        return diagnose("ur10e", [replace(log, q=q, qd=None, reference=None)])

    right, last, wrist = diagnose("ur10e", [replace(log, qd=None, reference=None)]), found(5), found(4)
    assert last.residual == pytest.approx(right.residual, rel=1e-6)
    told = [[one.joint for one in each.findings if one.code == "unseen_zeros"] for each in (right, last, wrist)]
    assert told == [[", ".join(names[k] for k in rows)] for rows in ((0, 5), (0, 5), (0, 4, 5))]


@pytest.mark.large
def test_computed_torques_say_nothing_of_joint_zeros():
    """A controller's model may have other zeros than the log: that is none of the arm."""
    exact = recording_of(simulate("ur10e", default_motion("ur10e", 0), Experiment(record_rate=200.0)))
    q = exact.q + 0.01 * (np.arange(len(exact.q)) == 2)[:, None]
    found = codes(diagnose("ur10e", [replace(exact, q=q, qd=None, reference=None, findings=())]))
    assert found == [("computed_torque", ""), ("commanded_position", "")]


@pytest.mark.parametrize(
    ("change", "code", "joint"),
    [
        (reversed_torque, "torque_sign", "joint_2"),
        (two_reversed, "torque_sign", "joint_2, joint_3"),
        (late, "delay", ""),
    ],
)
def test_the_configuration_that_check_writes_corrects_what_it_found(tmp_path, capsys, monkeypatch, change, code, joint):
    monkeypatch.chdir(tmp_path)
    write_recording(with_torque(recorded(0), change), tmp_path / "log.npz")
    exit_code = main(["check", ARM, "log.npz", "--fix", "fixed.toml", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert exit_code == (2 if code == "torque_sign" else 0)
    (finding,) = [one for one in found["findings"] if one["code"] == code]
    assert finding["joint"] == joint
    assert set(finding) >= {"code", "severity", "joint", "value", "interval", "text", "remedy"}
    assert "set-up" in finding["remedy"] or "--delay" in finding["remedy"]
    assert main(["check", ARM, "log.npz", "--config", "fixed.toml", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert code not in [one["code"] for one in again["findings"]]
    before = (tmp_path / "fixed.toml").read_text()
    assert main(["check", ARM, "log.npz", "--fix", "fixed.toml"]) == 1
    assert "not overwritten" in capsys.readouterr().err
    assert (tmp_path / "fixed.toml").read_text() == before


def test_the_unit_of_a_single_joint_in_degrees_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right = recorded(0)
    right = replace(right, qd=np.gradient(right.q, right.time, axis=1))
    factor = np.where(np.arange(len(right.q)) == 2, 180 / np.pi, 1.0)[:, None]
    wrong = replace(right, q=factor * right.q, qd=np.gradient(factor * right.q, right.time, axis=1), findings=())
    write_recording(wrong, tmp_path / "log.npz")
    write_recording(right, tmp_path / "right.npz")
    assert main(["check", ARM, "log.npz", "--fix", "fixed.toml", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert "degrees" in [one["code"] for one in found["findings"] if one["joint"] == right.joints[2]]
    assert not any("fix" in one for recording in found["recordings"] for one in recording["findings"])
    assert main(["check", ARM, "log.npz", "--config", "fixed.toml", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {"degrees", "velocity", "jump"}.isdisjoint(one["code"] for one in again["findings"])
    assert again["model_note"] is None
    # One configuration cannot correct a log that is right, too.
    assert main(["check", ARM, "right.npz", "log.npz", "--fix", "other.toml", "--quiet"]) == 2
    assert not (tmp_path / "other.toml").exists()


@pytest.mark.parametrize(("arm", "row"), [(ARM, 1), pytest.param("ur10e", 4, marks=pytest.mark.large)])
def test_degrees_of_a_joint_that_moves_by_a_few_are_named(tmp_path, capsys, monkeypatch, arm, row):
    """As radians they are within the limits and no faster than joints are; no velocities contradict them."""
    monkeypatch.chdir(tmp_path)
    log = in_degrees(arm, [row], 0.04)
    write_recording(log, tmp_path / "log.npz")
    assert main(["check", arm, "log.npz", "--fix", "fixed.toml", "--json"]) == 2
    (finding,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["severity"] == "bad"]
    assert (finding["code"], finding["joint"]) == ("position_unit", log.joints[row])
    assert "unit = " in finding["remedy"]
    assert main(["check", arm, "log.npz", "--config", "fixed.toml", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    left = {one["code"] for one in again["findings"] if one["severity"] != "info"}
    assert left <= {"hardly_moving", "outside_limits"}


def test_torques_that_all_seem_small_may_belong_to_positions_in_degrees():
    (finding,) = diagnose("scara_2r", [in_degrees("scara_2r", [0, 1], 0.06)]).findings
    assert (finding.code, finding.severity) == ("torque_unit", "bad")
    assert "positions in degrees?" in finding.text


def test_a_payload_that_is_declared_where_it_is_not_carried_is_to_be_checked():
    robot = replace(load_robot(ARM), payloads=PAYLOADS[ARM])
    logs = [replace(recorded(0), payload="load"), replace(recorded(1, "load"), payload="load")]
    (finding,) = [one for one in diagnose(robot, logs).findings if one.code == "undeclared_payload"]
    assert "beside what is declared" in finding.text
    assert "declared is load in 'recording 1', load in 'recording 2'" in finding.remedy


@pytest.mark.parametrize(
    ("arm", "angle"),
    [
        ("staubli_tx40", 3.0),
        pytest.param("ur10e", 3.0, marks=pytest.mark.large),
        pytest.param("kuka_lwr4", 3.0, marks=pytest.mark.large),
        pytest.param("ur10e", 90.0, marks=pytest.mark.large),
    ],
)
def test_a_recording_of_an_arm_that_was_mounted_otherwise_is_named_with_the_angle(arm, angle):
    logs = [recorded(0, arm=arm), recorded(1, arm=arm, slope=angle)]
    second = identify(arm, logs, settings=Settings(select=False, bias_repeats=0))
    (finding,) = [one for one in diagnose(arm, logs).findings if one.severity != "info"]
    assert finding.code == ("tilt" if angle < 10 else "mounting")
    assert finding.recording == second.sources[1].label
    assert finding.value == pytest.approx(angle, abs=0.3)
    assert "--gravity" in finding.remedy
    assert finding.fix == {}  # gravity of a configuration is that of all recordings
    grade = "fair" if angle < 10 else "poor"
    assert [one.grade for one in second.verdict.reasons if one.criterion == "one recording"] == [grade]
    assert second.verdict.grade == grade
    alike = [recorded(0, arm=arm, slope=angle), recorded(1, arm=arm, slope=angle)]
    assert GravityFits(*gravity_case(arm, alike)).other_mounting is None


def gravity_case(arm: str, logs: list[Recording]):
    model = build_model(load_robot(arm))
    labelled = [(str(number), log) for number, log in enumerate(logs)]
    return equations_of(model), labelled, resolve_preparation(Preparation(), logs), 1


def test_a_zero_that_is_off_in_one_recording_is_no_error_of_all():
    arm = "ur10e"
    logs = [recorded(0, arm=arm), recorded(1, arm=arm)]
    off = 0.06 * (np.arange(len(logs[0].q)) == FAULTY)[:, None]
    (finding,) = [
        one for one in diagnose(arm, [logs[0], replace(logs[1], q=logs[1].q + off)]).findings if one.severity != "info"
    ]
    assert (finding.code, finding.joint) == ("joint_zero", logs[0].joints[FAULTY])
    assert finding.recording != ""
    assert finding.value == pytest.approx(0.06, abs=0.02)
    assert finding.fix == {}
    both = diagnose(arm, [replace(log, q=log.q + off) for log in logs])
    (finding,) = [one for one in both.findings if one.severity != "info"]
    assert (finding.code, finding.recording) == ("joint_zero", "")
    assert finding.fix


@pytest.mark.parametrize("arm", ["staubli_tx40", pytest.param("ur10e", marks=pytest.mark.large)])
def test_a_joint_whose_axis_points_the_other_way_is_named(arm):
    """Position and torque reversed fit nearly as well on the last joint; identify is not deceived either."""
    log = recorded(0, arm=arm)
    signs = np.where(np.arange(len(log.q)) == len(log.q) - 1, -1.0, 1.0)[:, None]
    wrong = with_torque(replace(log, q=signs * log.q, qd=None), lambda values: signs * values)
    (finding,) = [one for one in diagnose(arm, [wrong]).findings if one.severity != "info"]
    assert (finding.code, finding.severity, finding.joint) == ("joint_sign", "bad", log.joints[-1])
    assert set(finding.fix) == {"recording.q.sign", "recording.qd.sign", "recording.torque.sign"}
    assert identify(arm, [wrong], settings=Settings(bias_repeats=0)).verdict.grade != "good"


def test_a_load_is_looked_for_with_a_singular_covariance():
    root = _inverse_root(np.array([[4.0, 2.0], [2.0, 1.0]]))
    assert np.isfinite(root).all()
    regular = np.array([[4.0, 1.0], [1.0, 9.0]])
    assert _inverse_root(regular).T @ _inverse_root(regular) == pytest.approx(np.linalg.inv(regular))


@pytest.mark.parametrize(("arm", "row"), [("ur10e", 5), pytest.param("kuka_lwr4", 6, marks=pytest.mark.large)])
def test_a_torque_of_noise_alone_is_said_not_to_follow_the_motion(arm, row):
    def noise(values: np.ndarray) -> np.ndarray:
        values[row] = np.random.default_rng(0).normal(0, values[row].std(), values.shape[1])
        return values

    log = recorded(0, arm=arm)
    assert "noise_torque" not in [code for code, _ in codes(diagnose(arm, log))]
    (finding,) = [one for one in diagnose(arm, with_torque(log, noise)).findings if one.severity != "info"]
    assert (finding.code, finding.severity, finding.joint) == ("noise_torque", "warning", log.joints[row])
    assert "of its deviation" in finding.text


@pytest.mark.parametrize(
    ("arm", "factor"),
    [
        ("ur10e", 2.0),
        pytest.param("ur10e", 0.5, marks=pytest.mark.large),
        pytest.param("ur10e", 8.0, marks=pytest.mark.large),
        pytest.param("kuka_lwr4", 0.5, marks=pytest.mark.large),
        pytest.param("franka_panda", 1.5, marks=pytest.mark.large),
    ],
)
def test_stamps_that_are_too_long_or_too_short_are_named_with_the_factor(arm, factor):
    """A rate that is declared as half of what it is."""
    log = recorded(0, arm=arm)
    wrong = replace(log, time=factor * log.time, qd=None)
    found = diagnose(arm, wrong)
    (finding,) = [one for one in found.findings if one.severity == "bad"]
    assert (finding.code, finding.joint) == ("stamps", "")
    assert finding.value == pytest.approx(1 / factor, rel=0.1)
    assert f"times too {'long' if factor > 1 else 'short'}" in finding.text
    if factor == 2.0:
        result = identify(arm, wrong, settings=Settings(select=False, bias_repeats=0))
        assert result.verdict.grade == "poor"
        assert any(one.text.startswith("the steps of the stamps seem 2") for one in result.verdict.reasons)


def test_stamps_at_another_rate_are_prepared_into_rows_of_the_same_samples():
    log = recorded(0)
    resolved = resolve_preparation(Preparation(delay=0.002), [log])
    slow = resolve_preparation(resolved.at_rate(0.5), [replace(log, time=2 * log.time)])
    assert (slow.decimation, slow.trim, slow.chosen.delay) == (resolved.decimation, resolved.trim, 0.004)
    assert slow.rate == pytest.approx(resolved.rate / 2)
    assert slow.cutoff == pytest.approx((resolved.cutoff or np.nan) / 2)
    assert slow.standstill == pytest.approx(resolved.standstill / 2)
    assert slow.max_gap == pytest.approx(2 * resolved.max_gap)


@pytest.mark.parametrize(("forgotten", "mass", "grade"), [("load", "30", "poor"), ("light", "2.4", "fair")])
def test_a_payload_forgotten_in_validation_is_named_beside_one_that_is_declared(forgotten, mass, grade):
    logs = [recorded(0), replace(recorded(1, "load"), payload="load"), recorded(2, forgotten)]
    found = identify(ARM, logs[:2], logs[2:], Settings(select=False, bias_repeats=0))
    assert found.verdict.grade == grade
    (cause,) = [one for one in found.verdict.reasons if one.criterion == "likely cause"]
    assert "beside what is declared, 'recording 3' carries a payload" in cause.text
    assert f"about {mass} kg" in cause.text


def test_a_fit_that_no_fault_explains_is_not_passed_over():
    """The torque of a joint is that of another log."""
    other = recorded(1).torques[0].values[FAULTY]

    def of_another_log(values: np.ndarray) -> np.ndarray:
        values[FAULTY] = other[: values.shape[1]]
        return values

    found = diagnose(ARM, [with_torque(recorded(0), of_another_log)])
    (finding,) = [one for one in found.findings if one.severity != "info"]
    assert (finding.code, finding.severity) == ("implausible", "warning")
    assert "of the torque of joint_2" in finding.text


def test_nothing_is_written_where_nothing_can_be_corrected(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_recording(recorded(0), tmp_path / "log.npz")
    assert main(["check", ARM, "log.npz", "--fix", "fixed.toml", "--quiet"]) == 0
    assert "nothing was found that a configuration can correct" in capsys.readouterr().err
    assert not (tmp_path / "fixed.toml").exists()
    write_recording(with_torque(recorded(0), lambda values: 1e3 * values), tmp_path / "large.npz")
    assert main(["check", ARM, "large.npz", "--fix", "fixed.toml", "--quiet"]) == 2


def test_a_check_without_a_model_does_not_say_that_one_found_nothing(tmp_path, capsys):
    write_recording(with_torque(recorded(0), reversed_torque), tmp_path / "log.npz")
    assert main(["check", ARM, str(tmp_path / "log.npz"), "--no-model"]) == 0
    said = capsys.readouterr().out
    assert "no model was fitted: --no-model" in said
    assert "nothing found" not in said.split("log.npz", 1)[1].split("\n", 1)[1]


def test_a_log_that_no_model_fits_is_checked_without_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    still = replace(recorded(0), q=0 * recorded(0).q + 0.1)
    write_recording(still, tmp_path / "log.npz")
    main(["check", ARM, "log.npz", "--json"])
    assert json.loads(capsys.readouterr().out)["model_note"].startswith("no model was fitted")


def test_an_old_model_holds_or_what_has_changed_is_named(tmp_path):
    settings = Settings(select=False, bias_repeats=0)
    save_run(identify(ARM, [recorded(0)], [recorded(1)], settings), tmp_path / "run")
    assert check_model(tmp_path / "run", [recorded(2)], ARM).is_valid
    loaded = check_model(tmp_path / "run", [recorded(2, "load")], ARM)
    assert not loaded.is_valid
    (load,) = [one for one in loaded.findings if one.code == "payload_changed"]
    assert load.value == pytest.approx(30.0, rel=0.1)

    def weaker(values: np.ndarray) -> np.ndarray:
        values[FAULTY] *= 0.7
        return values

    changed = check_model(tmp_path / "run", [with_torque(recorded(2), weaker)], ARM)
    (gain,) = [one for one in changed.findings if one.code == "gain_changed"]
    assert gain.joint == "joint_2"
    assert gain.value == pytest.approx(0.7, abs=0.03)


def test_a_log_that_cannot_judge_an_old_model_is_not_said_to_confirm_it(tmp_path, capsys):
    settings = Settings(select=False, bias_repeats=0)
    save_run(identify(ARM, [recorded(0)], [recorded(1)], settings), tmp_path / "run")
    log = recorded(2)
    still = replace(log, q=np.repeat(log.q[:, :1], log.samples, axis=1), qd=None)
    found = check_model(tmp_path / "run", [still], ARM)
    assert not found.is_valid
    assert not found.is_judged
    write_recording(still, tmp_path / "still.npz")
    assert main(["check", str(tmp_path / "run"), str(tmp_path / "still.npz"), "--json"]) == 2
    content = json.loads(capsys.readouterr().out)
    assert content["relative_error_percent"] is None
    assert {"stands_still", "not_judged"} <= {one["code"] for one in content["findings"]}
    assert main(["check", str(tmp_path / "run"), str(tmp_path / "still.npz")]) == 2
    assert "these logs cannot judge the model" in capsys.readouterr().out
    slow = replace(log, time=1e3 * log.time)
    write_recording(slow, tmp_path / "ms.npz")
    assert main(["check", str(tmp_path / "run"), str(tmp_path / "ms.npz")]) == 2
    assert "time_unit = 'ms'" in " ".join(capsys.readouterr().out.split())
