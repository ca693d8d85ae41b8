"""Effects in proportion to the torques of an arm have those of its payload in them, wherever it carries one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from steelyard.errors import EstimateError
from steelyard.identification import (
    Settings,
    fit_arm,
    identify,
    identify_gains,
    identify_payload,
    load_run,
    predict,
    save_run,
)
from steelyard.model import build_model, stacked_regressor
from steelyard.motion import fourier
from steelyard.observe import Preparation
from steelyard.recording import Recording
from steelyard.robot import INERTIAL_NAMES, GearCoupling, Robot, load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate

BRICK = (0.02, 0, 0, 0.3, 0, 0.3, 0.9, 0.1, 0, 3.0)
LOAD = {"Fgm1": 0.15, "Fgm2": 0.1}
HUNG = load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))  # on a wall: both joints feel weight
ARM = replace(HUNG, payloads={"brick": BRICK}, values={**HUNG.values, **LOAD})
CARRIED = {f"{symbol}L": float(value) for symbol, value in zip(INERTIAL_NAMES, BRICK, strict=True)}
PREPARATION = Preparation(mode="none", decimation=5, standstill=0.05)
QUICK = Settings(effects=("+Fgm",), method="wls", reduction="none", bias_repeats=0, preparation=PREPARATION)


@lru_cache(maxsize=8)
def recorded(seed: int, payload: str | None = None) -> Recording:
    return simulated(ARM, seed, payload)


def simulated(robot: Robot, seed: int, payload: str | None = None) -> Recording:
    sin, cos = np.random.default_rng(seed).uniform(-1, 1, (2, 2, 6)) / np.arange(1, 7) * 1.5
    motion = fourier([0.0, 0.5], sin, cos, 10.0, ["joint_1", "joint_2"])
    noise = Noise("white", (0.2, 0.05))
    experiment = Experiment(plant="ideal", control_rate=200, record_rate=200, motor_noise=noise, payload=payload)
    return recording_of(simulate(robot, motion, experiment, [seed]))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    found = identify(ARM, recorded(1), recorded(2), QUICK)
    return save_run(found, tmp_path_factory.mktemp("unloaded"))


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    found = identify(ARM, [recorded(1), recorded(3, "brick")], recorded(4, "brick"), QUICK)
    return found, save_run(found, tmp_path_factory.mktemp("paired"))


def newton_euler(q, qd, qdd, gravity, *, carries: bool) -> np.ndarray:
    """Return the torques (2, N) of the two links in their plane, written without the library."""
    planar = [[ARM.parameters[f"{symbol}{k}"] for symbol in ("ZZ", "MX", "MY", "M")] for k in (1, 2)]
    if carries:
        planar[1] = [a + b for a, b in zip(planar[1], (BRICK[5], *BRICK[6:8], BRICK[9]), strict=True)]
    turn, speed, change = np.cumsum(q, axis=0), np.cumsum(qd, axis=0), np.cumsum(qdd, axis=0)
    along = np.array([np.cos(turn), np.sin(turn)])  # (xy, joints, N)
    across = np.array([-along[1], along[0]])
    elbow = 0.5 * along[:, 0]
    pull = -np.array(gravity[:2])[:, None]
    origin = [pull, pull + 0.5 * (across[:, 0] * change[0] - along[:, 0] * speed[0] ** 2)]
    moments, forces = [], []
    for k, (zz, mx, my, mass) in enumerate(planar):
        arm = mx * along[:, k] + my * across[:, k]
        turned = np.array([-arm[1], arm[0]])
        forces.append(mass * origin[k] + turned * change[k] - arm * speed[k] ** 2)
        moments.append(zz * change[k] + arm[0] * origin[k][1] - arm[1] * origin[k][0])
    reaction = elbow[0] * forces[1][1] - elbow[1] * forces[1][0]
    return np.array([moments[0] + moments[1] + reaction, moments[1]])


@pytest.mark.parametrize("carries", [False, True])
def test_columns_are_those_of_all_that_the_arm_carries(carries):
    effects = ("inertia", "Fvm", "Fgm", "tilt", "gain", "zero")
    model = build_model(ARM, effects, payload="paired").with_inertias({**ARM.parameters, **CARRIED})
    q, qd, qdd = motion = np.random.default_rng(0).uniform(-2, 2, (3, 2, 40))
    regressor = model.regressor if carries else model.unloaded_regressor
    rows = stacked_regressor(regressor, *motion).reshape(2, 40, -1)
    columns = dict(zip(model.names, rows.transpose(2, 0, 1), strict=True))

    def torque(shift=(0.0, 0.0), gx=0.0):
        return newton_euler(q + np.array(shift)[:, None], qd, qdd, (gx, -9.81, 0.0), carries=carries)

    for k in (1, 2):
        own = np.arange(1, 3)[:, None] == k
        step = 1e-5 * np.ravel(own)
        assert columns[f"Fgm{k}"] == pytest.approx(own * np.abs(torque()) * np.sign(qd))
        assert columns[f"kt{k}"] == pytest.approx(own * torque())
        assert columns[f"dq{k}"] == pytest.approx((torque(step) - torque(-step)) / 2e-5, abs=1e-6)
    assert columns["gx"] == pytest.approx(torque(gx=0.5) / 0.5 - torque() / 0.5)


def test_a_payload_is_found_beside_friction_in_proportion_to_the_load(run):
    found = identify_payload(ARM, run, recorded(21, "brick"))
    mass, sigma = found.body.mass
    assert abs(mass - 3.0) < min(3 * sigma, 0.015)
    values = dict(zip(found.estimate.columns, found.estimate.values, strict=True))
    assert [values["MXL"], values["MYL"], values["ZZL"]] == pytest.approx([0.9, 0.1, 0.3], abs=0.005)
    assert found.agreement < 2
    assert not [one for one in found.reasons if "otherwise" in one.text or "no body" in one.text]


def test_arm_and_payload_are_found_together(paired):
    found, _ = paired
    values = found.values()
    sigma = dict(zip(found.fit.estimate.columns, np.sqrt(np.diag(found.fit.estimate.covariance)), strict=True))
    for name, true in {**LOAD, "ML": 3.0, "MXL": 0.9}.items():
        assert abs(values[name] - true) < 3.5 * sigma[name], name
        assert values[name] == pytest.approx(true, rel=0.01 if name in LOAD else 0.005)
    assert found.disagreement is None


def test_a_saved_run_predicts_loaded_recordings_with_the_payload_in_the_load(paired):
    found, folder = paired
    error = predict(folder, recorded(4, "brick"), ARM).error
    assert error is not None
    assert error.relative_percent == pytest.approx(found.unseen_error.relative_percent, rel=1e-6)
    assert error.relative_percent < 1


def test_a_run_without_the_payload_in_its_load_still_loads_and_is_said_to_be_biased(paired):
    run = load_run(paired[1])
    assert not [one for one in identify_payload(ARM, run, recorded(5, "brick")).reasons if "biased" in one.text]
    friction = run.choices.friction
    assert friction is not None
    own = {name: value for name, value in friction.inertias.items() if not name.endswith("L")}
    content = json.loads(json.dumps(run.content))
    content["provenance"]["settings"]["friction"]["inertias"] = own
    before = replace(run, content=content)
    assert predict(before, recorded(4, "brick"), ARM).error is not None
    reasons = identify_payload(ARM, before, recorded(5, "brick")).reasons
    assert [one for one in reasons if "'Fgm' ignores the payload" in one.text]


def test_loaded_recordings_count_with_an_earlier_run(run):
    found = identify(ARM, [recorded(5), recorded(3, "brick")], recorded(4, "brick"), QUICK, earlier=[run])
    values = found.values()
    assert values["Fgm1"] == pytest.approx(0.15, rel=0.01)
    assert values["ML"] == pytest.approx(3.0, rel=0.005)
    with pytest.raises(EstimateError, match="do not tell them from the arm's"):
        identify(ARM, recorded(3, "brick"), recorded(4, "brick"), QUICK, payload="paired", earlier=[run])


def test_a_zero_and_a_tilt_are_found_from_loaded_recordings():
    plain = replace(ARM, values=HUNG.values)
    tilted = plain.with_gravity((0.25, -9.81, 0.0))
    moved = [replace(one, q=one.q + np.array([[0.02], [0.0]])) for one in _pair(plain)]
    for recordings, effect, name, true in ((moved, "+zero1", "dq1", -0.02), (_pair(tilted), "+tilt", "gx", 0.25)):
        settings = Settings(effects=(effect,), method="wls", preparation=PREPARATION)
        found = fit_arm(plain, recordings, settings).fit.estimate
        values = dict(zip(found.columns, found.values, strict=True))
        assert values[name] == pytest.approx(true, rel=0.05)
        assert values["ML"] == pytest.approx(3.0, rel=0.005)


def test_a_coupled_motor_carries_the_payload_too():
    coupled = (GearCoupling("joint_2", "joint_1", 0.7),)
    values = {**HUNG.values, "Iac2": 0.05, "Fvc2": 0.05, "Fcc2": 0.3, "Fgc2": 0.15}
    robot = replace(ARM, gear_couplings=coupled, values=values)
    settings = Settings(effects=("+coupling", "+Fgc"), method="wls", preparation=PREPARATION)
    found = fit_arm(robot, _pair(robot), settings).fit.estimate
    values = dict(zip(found.columns, found.values, strict=True))
    assert values["Fgc2"] == pytest.approx(0.15, rel=0.01)
    assert values["ML"] == pytest.approx(3.0, rel=0.005)


def _pair(robot: Robot) -> list[Recording]:
    return [simulated(robot, 1), simulated(robot, 3, "brick")]


@pytest.mark.parametrize(("effects", "place"), [(None, 1), (("+Fgm",), 0)])
def test_gains_are_those_of_an_arm_whose_gears_feel_the_payload(effects, place):
    settings = Settings(effects=effects, preparation=PREPARATION)
    found = identify_gains(ARM, recorded(1), recorded(3, "brick"), 3.0, settings=settings)
    by_load = found.models[place]
    assert "Fgm" in by_load.effects
    assert by_load.gains == pytest.approx([1.0, 1.0], abs=0.005)
    assert found.gains.values == pytest.approx([1.0, 1.0], abs=0.005)
