"""Stribeck velocities, Dahl lengths, sign width and delay as unknowns beside the linear parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from steelyard.cli.identify import settings_table
from steelyard.consistency import ConsistencySettings
from steelyard.effects import FrictionConstants
from steelyard.errors import EstimateError, SteelyardError
from steelyard.estimate import Estimate
from steelyard.identification import (
    ArmFit,
    SavedRun,
    Settings,
    fit_arm,
    identify,
    identify_gains,
    predict,
    save_run,
    settings_from_table,
)
from steelyard.identification.fitting import fit_sources
from steelyard.identification.inputs import sources_of
from steelyard.identification.nonlinear import NonlinearFit, _without_strength, estimate_nonlinear, without_columns
from steelyard.identification.nonlinear_search import ConstantSearch, ConstantsFit
from steelyard.model import build_model, constants_of, with_constants
from steelyard.motion import fourier
from steelyard.observe import Preparation, equations_of, resolve_preparation, row_source
from steelyard.recording import Recording
from steelyard.robot import Robot, load_robot
from steelyard.signals import DahlElements
from steelyard.simulation import Experiment, recording_of, simulate

SIN, COS = [[0.5, 0.2, 0.1], [0.4, -0.3, 0.15]], [[0.2, -0.1, 0.1], [-0.3, 0.1, 0.05]]


HANGING = (0.0, -9.81, 0.0)
PREPARATION = Preparation(cutoff=12.0, decimation=4)
SETTINGS = Settings(
    select=False, gravity=HANGING, bias_repeats=0, reduction="none", consistency=ConsistencySettings(draws=2)
)


def arm(**values: float) -> Robot:
    robot = load_robot("scara_2r").with_gravity(HANGING)
    return replace(robot, values={**robot.values, **values})


def recorded(robot: Robot, period: float = 5.0, width: float | None = None) -> Recording:
    motion = fourier([0.0, 0.0], SIN, COS, period, list(robot.joint_names))
    experiment = Experiment(record_rate=200, plant="ideal", saturate=False, sign_width=width)
    return recording_of(simulate(robot, motion, experiment, [0]))


def noisy(recording: Recording, seed: int = 0, late: float = 0.0) -> Recording:
    """Return the recording with noise of 0.3 % on its torques, recorded late."""
    channel, time = recording.torques[0], recording.time
    size = 0.003 * np.sqrt((channel.values**2).mean(axis=1, keepdims=True))
    torque = CubicSpline(time, channel.values, axis=1)(time - late) if late else channel.values
    values = torque + size * np.random.default_rng(seed).standard_normal(torque.shape)
    return replace(recording, torques=(replace(channel, values=values), *recording.torques[1:]))


@lru_cache(maxsize=4)
def with_friction(period: float) -> Recording:
    """Return a recording of friction with a Stribeck velocity of 0.07 rad/s and a Dahl length of 0.006 rad."""
    robot = arm(Fs3m1=0.3, Fs3m2=0.1, Fd3m1=0.3, Fd3m2=0.1)
    friction = FrictionConstants(dahl=(0.001, 0.003, 0.006, 0.03, 0.1, 0.3), stribeck=(0.01, 0.03, 0.07, 0.3))
    return recorded(replace(robot, friction=friction), period)


def friction_settings(**changes) -> Settings:
    return replace(SETTINGS, effects=("+Fs3m", "+Fd3m"), nonlinear=("stribeck", "dahl"), **changes)


def estimated(log: Recording, settings: Settings) -> tuple[NonlinearFit, ArmFit, ArmFit]:
    """Return what the search found, the fit with its uncertainty, and that with the constants held."""
    model = build_model(arm(), settings.effects, friction=settings.friction)
    found = estimate_nonlinear(model, [("log", log)], resolve_preparation(settings.preparation, [log]), settings)
    equations = equations_of(found.model)
    held = fit_sources(sources_of([("log", log)], equations, found.resolved), equations, settings)
    return found, found.completed(held), held


def values_of(found: NonlinearFit) -> list[float]:
    """Return the values found; nan for constants that are not identifiable."""
    return [np.nan if one.value is None else one.value for one in found.parameters]


def torques(model, recording: Recording, chi: dict[str, float]) -> np.ndarray:
    """Return the rows' torques at values of the parameters, and the columns of the constants where there are any."""
    resolved = resolve_preparation(Preparation(cutoff=20.0, decimation=1, standstill=0.0), [recording])
    equations = equations_of(model)
    rows = [block.rows for block in row_source(recording, equations, resolved, "log")]
    return np.stack(
        [
            np.concatenate([part[e][:, :-1] for part in rows]) @ [chi.get(name, 0.0) for name in names]
            for e, names in enumerate(equations.columns)
        ]
    )


def changes(model, recording: Recording, chi: dict[str, float], name: str) -> np.ndarray:
    resolved = resolve_preparation(Preparation(cutoff=20.0, decimation=1, standstill=0.0), [recording])
    equations = equations_of(model).with_constants([name], chi)
    rows = [block.rows for block in row_source(recording, equations, resolved, "log")]
    found = []
    for e, names in enumerate(equations.columns):
        one = np.concatenate([part[e] for part in rows])
        found.append(one[:, names.index(name)] if name in names else np.zeros(len(one)))
    return np.stack(found)


CHI = {"ZZ1": 3.0, "ZZ2": 0.1, "Fvm1": 1.0, "Fcm1": 2.0, "Fcm2": 0.5, "Fs3m1": 1.2, "Fs3m2": -0.3, "Fd2m1": 0.7}


@pytest.mark.parametrize("name", ["stribeck3", "dahl2", "sign_width"])
def test_columns_of_constants_are_derivatives_of_the_torques(name):
    width = 0.05 if name == "sign_width" else 0.0
    model = build_model(arm(), ["+Fs3m", "+Fd2m"], sign_width=width)
    recording, step = recorded(arm()), 1e-4
    present = {"stribeck3": 0.1, "dahl2": 0.003, "sign_width": 0.05}[name]
    above, below = (
        torques(with_constants(model, {name: present * np.exp(way * step)}), recording, CHI) for way in (1, -1)
    )
    column = changes(model, recording, CHI, name)
    assert np.abs(column).max() > 0.05
    np.testing.assert_allclose(column, (above - below) / (2 * step), atol=1e-6)


def test_the_column_of_a_delay_is_the_rate_of_the_torques():
    model, recording = build_model(arm(), ["inertia", "Ia", "Fvm", "Fcm", "Fd5m"]), recorded(arm())
    chi = {"ZZ1": 3.0, "ZZ2": 0.1, "MX1": 2.0, "Fvm1": 1.0, "Fd5m1": 0.7}
    rate = np.gradient(torques(model, recording, chi), 1 / 200, axis=1)
    column = changes(model, recording, chi, "delay")
    # Where a joint turns round, the Dahl state has a corner, and differences in time straddle it.
    close = np.abs(column + rate) < 0.005 * np.abs(rate).max(axis=1, keepdims=True)
    assert close[:, 2:-2].mean() > 0.97


def test_states_of_dahl_elements_bring_their_derivatives():
    q = np.cumsum(np.random.default_rng(1).normal(size=(2, 400)), axis=1) / 100
    lengths, step = np.array([0.01, 0.1]), 1e-5
    both = DahlElements(lengths.tolist(), 2, changes=True)
    found = np.hstack([both.push(q[:, :150]), both.push(q[:, 150:])])
    above, below = (DahlElements((lengths * np.exp(way * step)).tolist(), 2).push(q) for way in (1, -1))
    np.testing.assert_allclose(found[4:], (above - below) / (2 * step), atol=1e-8)
    np.testing.assert_array_equal(found[:4], DahlElements(lengths.tolist(), 2).push(q))


def test_constants_are_those_of_the_effects_of_a_model():
    model = build_model(arm(), ["inertia", "Fvm", "Fs3m", "Fd2m", "Fd5m1"])
    kinds = ("stribeck", "dahl", "sign_width", "delay")
    assert list(constants_of(model, kinds)) == ["stribeck3", "dahl2", "dahl5", "sign_width", "delay"]
    assert constants_of(build_model(arm(), ["inertia", "Fvm"]), kinds) == {"delay": ()}


def test_velocity_length_and_delay_are_found_with_sigmas_that_hold_the_truth():
    log, settings = noisy(with_friction(12.0), 1, late=0.004), friction_settings()
    found, fit, _ = estimated(log, replace(settings, nonlinear=(*settings.nonlinear, "delay")))
    truth = {"stribeck3": 0.07, "dahl3": 0.006, "delay": 0.004}
    assert [one.name for one in found.parameters] == list(truth)
    for one in found.parameters:
        assert one.sigma is not None
        assert one.interval_95 is not None
        assert one.interval_95[0] < truth[one.name] < one.interval_95[1]
        assert 0 < one.sigma < 0.15 * truth[one.name]
    velocity, length, delay = found.parameters
    assert found.model.friction.stribeck == (0.01, 0.03, velocity.value, 0.3)
    assert found.model.friction.dahl[2] == length.value
    assert found.resolved.chosen.delay == delay.value
    assert fit.estimate.columns == tuple(equations_of(found.model).names)


def test_sigmas_of_linear_parameters_include_the_constants():
    _, fit, held = estimated(noisy(with_friction(12.0), 1), friction_settings(method="wls", covariance="model"))
    estimate = fit.estimate
    assert fit.constants_held is held.estimate
    assert estimate.columns == held.estimate.columns
    ratio = estimate.sigma / held.estimate.sigma
    assert ratio.max() > 1.1
    assert ratio.min() > 0.95
    # The system is the joint one without the constants: the same solution, less information.
    np.testing.assert_allclose(estimate.system.values, estimate.values, rtol=1e-6)
    assert estimate.system.freedom == held.estimate.system.freedom - 2


def test_leaving_columns_out_of_an_estimate_preserves_their_uncertainty():
    log = noisy(with_friction(12.0), 1)
    fit = fit_arm("scara_2r", log, replace(friction_settings(), nonlinear=(), method="wls")).fit.estimate
    less = without_columns(fit, ["Fvm1", "Fs3m2"])
    left = [k for k, name in enumerate(fit.columns) if name not in ("Fvm1", "Fs3m2")]
    np.testing.assert_allclose(less.system.inverse, fit.system.inverse[np.ix_(left, left)], rtol=1e-8)
    np.testing.assert_allclose(less.system.values, fit.values[left], rtol=1e-8)


def test_the_given_values_do_not_decide_what_is_found():
    friction = FrictionConstants(dahl=(0.001, 0.003, 0.3), stribeck=(0.01, 0.03, 0.01))  # each decades away
    found = estimated(noisy(with_friction(12.0), 1), friction_settings(friction=friction, method="wls"))[0]
    np.testing.assert_allclose(values_of(found), [0.07, 0.006], rtol=0.1)


def test_elements_that_are_exchanged_are_no_second_minimum():
    robot = arm(Fd1m1=0.2, Fd1m2=0.06, Fd4m1=0.4, Fd4m2=0.1)
    friction = FrictionConstants(dahl=(0.002, 0.003, 0.006, 0.05, 0.1, 0.3))
    log = noisy(recorded(replace(robot, friction=friction), 12.0))
    found = estimated(log, replace(SETTINGS, effects=("+Fd1m", "+Fd4m"), nonlinear=("dahl",), method="wls"))[0]
    np.testing.assert_allclose(values_of(found), [0.002, 0.05], rtol=0.15)


def test_a_sign_width_is_found():
    (found,) = estimated(noisy(recorded(arm(), 12.0, 0.05)), replace(SETTINGS, nonlinear=("sign_width",)))[0].parameters
    assert found.interval_95 is not None
    assert found.interval_95[0] < 0.05 < found.interval_95[1]
    assert found.title == "width of the smooth sign"


def test_an_exact_sign_has_no_width():
    found, fit, held = estimated(noisy(recorded(arm(), 12.0)), replace(SETTINGS, nonlinear=("sign_width",)))
    (parameter,) = found.parameters
    assert (parameter.value, parameter.sigma, found.model.sign_width) == (None, None, 0.0)
    assert parameter.text.startswith("width of the smooth sign is not identifiable from these recordings (")
    assert found.remarks == [parameter.text]
    assert fit is held


def test_a_velocity_without_stribeck_friction_is_not_identifiable():
    settings = replace(SETTINGS, effects=("+Fs3m",), nonlinear=("stribeck",))
    found = estimated(noisy(recorded(arm(), 12.0), 1), settings)[0]
    (parameter,) = found.parameters
    assert parameter.value is None
    assert found.model.friction.stribeck[2] == parameter.given == 0.1
    assert "it stays at 0.1 rad/s" in parameter.text


@pytest.mark.parametrize(("strength", "is_lost"), [(0.01, True), (0.2, False)])
def test_a_length_of_which_no_strength_is_significant_is_not_identifiable(strength, is_lost):
    model = build_model(arm(), ("+Fd3m",))
    estimate = SimpleNamespace(
        columns=("ZZ1", "Fd3m1", "Fd3m2"), values=np.array([3.0, strength, -0.01]), covariance=1e-4 * np.eye(3)
    )
    lost = _without_strength(model, ["dahl3", "delay"], cast(Estimate, estimate))
    assert lost == (("dahl3", "no strength of it is significant: Fd3m1, Fd3m2") if is_lost else None)


def test_a_delay_is_identifiable_where_its_steps_end_beside_the_least_residuals():
    """Reversals of Coulomb friction are not in the derivative: the least residuals are a sigma or two away."""

    class Search(ConstantSearch):
        def __init__(self, least: float) -> None:
            self._least = least

        def _scored(self, point):
            return ConstantsFit(point, {}, 1 + (point["delay"] - self._least) ** 2 / 1e-6)

        def _worse(self, one, best):
            return one.score - best.score

    best = ConstantsFit({"delay": 0.011}, {}, 1 + 1.44)
    assert Search(0.0122).flatness(["delay"], best, np.array([[1e-6]]))["delay"] == pytest.approx(np.hypot(1, 1.2))
    best = ConstantsFit({"delay": 0.011}, {}, 1.0)
    assert Search(0.011).flatness(["delay"], best, np.array([[1e-6]]))["delay"] == pytest.approx(1.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> SavedRun:
    """A run with a Dahl length and a delay that were found."""
    log, unseen = (noisy(with_friction(period), k, late=0.004) for k, period in enumerate((12.0, 9.0)))
    settings = friction_settings(method="wls", preparation=PREPARATION)
    found = identify("scara_2r", log, unseen, replace(settings, nonlinear=("dahl", "delay")))
    return save_run(found, tmp_path_factory.mktemp("nonlinear") / "run")


def test_a_run_is_used_later_with_the_values_found(run):
    length, delay = run.content["nonlinear"]
    assert (length["name"], delay["name"]) == ("dahl3", "delay")
    assert length["value"] != length["given"]
    assert run.choices.friction.dahl[2] == length["value"]
    assert run.choices.preparation.delay == delay["value"]
    along = predict(run, noisy(with_friction(9.0), 1, late=0.004))
    expected = run.content["validation"]["relative_error_percent"]
    assert along.error is not None
    assert along.error.relative_percent == pytest.approx(expected, rel=0.2)


def test_a_run_that_is_added_brings_the_values_it_found(run):
    other, unseen = (noisy(with_friction(period), 5, late=0.004) for period in (10.0, 9.0))
    settings = replace(friction_settings(method="wls", preparation=PREPARATION), nonlinear=())
    joined = identify("scara_2r", other, unseen, settings, earlier=[run])
    length, delay = run.content["nonlinear"]
    assert joined.equations.model.friction.dahl[2] == length["value"]
    assert joined.resolved.chosen.delay == delay["value"]
    with pytest.raises(EstimateError, match="leave --nonlinear out, or give all recordings at once"):
        identify("scara_2r", other, unseen, replace(settings, nonlinear=("dahl",)), earlier=[run])


@pytest.mark.parametrize("method", ["ekf", "ml", "iv", "didim", "rls"])
def test_methods_without_columns_refuse_nonlinear_parameters(method):
    with pytest.raises(EstimateError, match=f"with method '{method}', which has no columns.*gls, wls, iterated, ols"):
        Settings(method=method, nonlinear=("delay",))


def test_what_cannot_be_estimated_is_refused_with_what_can():
    log = noisy(with_friction(12.0), 1)
    with pytest.raises(SteelyardError, match=r"nonlinear.*allowed.*stribeck, dahl, sign_width, delay"):
        Settings(nonlinear=("stribek",))
    with pytest.raises(EstimateError, match=r"no effect with a Dahl length; allowed.*: sign-width, delay; add .*Fd2m"):
        identify("scara_2r", log, settings=replace(SETTINGS, nonlinear=("dahl",)))
    with pytest.raises(EstimateError, match="estimated by identify alone"):
        fit_arm("scara_2r", log, friction_settings())
    with pytest.raises(EstimateError, match="with drive gains"):
        identify_gains("scara_2r", log, log, settings=friction_settings())


def test_the_command_line_takes_names_by_commas():
    table = settings_table({"nonlinear": "stribeck, sign-width"}, None)
    assert settings_from_table(table).nonlinear == ("stribeck", "sign_width")
