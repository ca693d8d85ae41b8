"""Known torques, temperature, ripple and coupled friction: planted, found again, refused where they cannot be."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from from_benchmarks import benchmark_module
from steelyard.effects import FrictionConstants
from steelyard.errors import EstimateError, ModelError, ObservationError, RecordingError, RobotError, SimulationError
from steelyard.excitation import design
from steelyard.excitation.certify.certificate import certify
from steelyard.excitation.certify.torque_bounds import TorqueBounder, breaks
from steelyard.excitation.certify.torque_graph import torque_graph
from steelyard.excitation.rows import known_torques
from steelyard.export.differences import unsaid
from steelyard.export.dynamics import arm_dynamics
from steelyard.export.identified import IdentifiedArm
from steelyard.export.numpy_module import numpy_file
from steelyard.export.tables import parameter_document
from steelyard.identification import Settings, fit_arm, identify, load_run, predict, write_run
from steelyard.kernel import compile_batch
from steelyard.model import base_parameters, build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation, equations_of, row_source
from steelyard.recording import Recording, TorqueChannel, load_recordings, read_recording, write_recording
from steelyard.recording.setup import setup_from_table
from steelyard.robot import load_robot, read_table
from steelyard.robot.balancers import Balancer, Formula, Strut, TorqueTable
from steelyard.run import RunFolder
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.simulation.experiment import Plant

PREPARATION = Preparation(mode="none", decimation=5, standstill=0.01)
TABLE = TorqueTable((-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0), (1.0, 3.0, 5.0, 2.0, -3.0, -4.0, 1.0))
STRUT = Strut(0.3, 0.1, 0.3, Formula("50 + 400 * (length - 0.2)", "length"))
BALANCERS = (Balancer("joint_1", TABLE), Balancer("joint_2", STRUT))
ARM = """
robot = {name = "arm", gravity = [0, -9.81, 0]}
joint = [
  {alpha = 0, d = 0, theta = 0, r = 0, lower = -2, upper = 2, inertia = [0.1, 0, 0, 2.4, 0, 2.4, 5, 0, 0, 20]},
  {alpha = 0, d = 0.5, theta = 0, r = 0, gear_ratio = 50, inertia = [0.01, 0, 0, 0.06, 0, 0.06, 0.26, 0, 0, 4]},
]
"""


def hung_arm(balancers=(), **values):
    """Return P1's arm on a wall, gravity in the plane of its motion; scales of balancers are 1 unless given."""
    robot = load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))
    numbers = {body.joint.name: body.number for body in robot.bodies}
    scales = {f"Sb{numbers[one.joint]}": 1.0 for one in balancers}
    return replace(robot, balancers=tuple(balancers), values={**robot.values, **scales, **values})


def motion(seed=3, size=1.5):
    rng = np.random.default_rng(seed)
    sin, cos = rng.uniform(-1, 1, (2, 2, 6)) / np.arange(1, 7) * size
    return fourier([0.0, 0.5], sin, cos, 10.0, ["joint_1", "joint_2"])


def recorded(robot, plant: Plant = "ideal", noise=0.0, seed=0, rate=500.0, **options):
    chosen = Noise("white", (noise, 0.2 * noise)) if noise else None
    width = 0.002 if plant == "compiled" else None
    experiment = Experiment(
        record_rate=rate, plant=plant, saturate=False, motor_noise=chosen, sign_width=width, **options
    )
    return recording_of(simulate(robot, motion(), experiment, [seed]))


def estimated(robot, recording, effects=None, **options):
    settings = Settings(effects=effects, method=options.pop("method", "wls"), preparation=PREPARATION, **options)
    return fit_arm(robot, [recording], settings).fit.estimate


def fitted(robot, recording, effects=None, **options):
    estimate = estimated(robot, recording, effects, **options)
    return dict(zip(estimate.columns, estimate.values.tolist(), strict=True))


# Laws


def test_a_table_is_the_cubic_spline_of_its_points_and_holds_its_ends():
    q = np.linspace(-4.5, 4.5, 1001)
    expected = CubicSpline(TABLE.positions, TABLE.torques)(np.clip(q, -4, 4))
    np.testing.assert_allclose(TABLE.value(q, np), expected, atol=1e-12)
    symbol = ca.SX.sym("q")
    compiled = compile_batch(ca.Function("table", [symbol], [TABLE.value(symbol, ca)]))
    np.testing.assert_allclose(compiled(q[None])[0][0], expected, atol=1e-12)


def test_a_periodic_table_repeats_smoothly():
    positions = tuple(np.radians(np.arange(-180.0, 180.0, 15.0)).tolist())
    table = TorqueTable(positions, tuple(np.sin(3 * np.array(positions) + 0.4).tolist()), periodic=True)
    q = np.linspace(-10, 10, 997)
    np.testing.assert_allclose(table.value(q, np), np.sin(3 * q + 0.4), atol=0.01)


def test_the_torque_of_a_strut_is_the_slope_of_its_energy():
    q, step = np.linspace(-2, 2, 41), 1e-5

    def energy(angle):
        length = np.sqrt(0.3**2 + 0.1**2 - 2 * 0.3 * 0.1 * np.cos(angle + 0.3))
        return 50 * length + 200 * (length - 0.2) ** 2

    slope = (energy(q + step) - energy(q - step)) / (2 * step)
    np.testing.assert_allclose(STRUT.value(q, np), slope, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * sin(q) ** 2 - -q / 4 + pi", lambda q: 2 * np.sin(q) ** 2 + q / 4 + np.pi),
        ("sqrt(abs(q)) * exp(-q) + log(q + 3)", lambda q: np.sqrt(np.abs(q)) * np.exp(-q) + np.log(q + 3)),
        ("(q + 3) ** 1.3 + (q + 3) ** -2 + 7", lambda q: (q + 3) ** 1.3 + (q + 3) ** -2 + 7),
    ],
)
def test_formulas_mean_what_they_say_for_numbers_and_symbols(text, expected):
    q, formula = np.linspace(-1, 1, 21), Formula(text, "q")
    np.testing.assert_allclose(formula.value(q, np), expected(q), rtol=1e-12)
    symbol = ca.SX.sym("q")
    compiled = compile_batch(ca.Function("formula", [symbol], [formula.value(symbol, ca)]))
    np.testing.assert_allclose(compiled(q[None])[0][0], expected(q), rtol=1e-11)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("formula = \"__import__('os').getcwd()\"", "the formula cannot be used: a call is not allowed"),
        ('formula = "open(q)"', "'open' is not allowed in it; allowed are numbers, q, pi"),
        ('formula = "(lambda: 1)()"', "a call is not allowed"),
        ('formula = "q.real"', "a attribute is not allowed"),
        ('formula = "q if q else 1"', "a ifexp is not allowed"),
        ('formula = "2 ** q"', "'q' is not allowed in it"),
        ('formula = "q ** 99999"', "an exponent in it is 99999"),
        ('formula = "9 ** 9 ** 9"', "an exponent in it is"),
        ('formula = "1e999 * q"', "a number in it is too large"),
        ('formula = "1 / 0"', "a constant in it is no finite number"),
        ('formula = "1 / (q - 1)"', "the torque at position 1 is inf"),
        ('formula = "1 +"', "it is no formula such as"),
        ('formula = "1j * q"', "a constant is not allowed"),
        (f'formula = "{"-" * 100}q"', "it is nested deeper than 40"),
        (f'formula = "{"(" * 300}q"', "it is no formula such as"),
        (f'formula = "{"1+" * 300}q"', "it has 601 letters, allowed are 500"),
        ("position = [0, 1, 2], torque = [1, 2, 3]", "got 3 positions and 3 torques; as many of both are needed, 4 to"),
        ("position = [0, 1, 2, 2], torque = [1, 2, 3, 4]", "positions have to rise"),
        ("position = [0, 1, 2, 9], torque = [1, 2, 3, 4], periodic = true", "positions of one turn at most"),
        ("periodic = true", "'torque' is missing|torque"),
        ('formula = "q", torque = [1]', "got formula and position and torque; give one of: formula;"),
        ("scale = 2", "got none; give one of"),
        ("on_parent = 0.3, on_link = 0.1", "give force, a number or a formula in length, or stiffness"),
        ("on_parent = 0.3, on_link = 0.1, force = 1, stiffness = 2", "give force, a number or a formula"),
        ("on_parent = 0.3, on_link = -1, force = 1", "on_link"),
        ('formula = "q", colour = 1', "colour"),
    ],
)
def test_wrong_balancers_are_refused_in_one_line(keys, message):
    with pytest.raises(RobotError, match=message) as caught:
        read_table(f'{ARM}\nbalancer = [{{joint = "joint_1", {keys}}}]\n'.encode())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            '{joint = "joint_3", formula = "q"}',
            "'joint_3' is none that moves on its own; allowed: joint_1, joint_2",
        ),
        ('{joint = "joint_1", formula = "q"}, {joint = "joint_1", formula = "q"}', "has two balancers"),
    ],
)
def test_balancers_of_no_or_of_the_same_joint_are_refused(rows, message):
    with pytest.raises(RobotError, match=message):
        read_table(f"{ARM}\nbalancer = [{rows}]\n".encode())


def test_a_robot_file_gives_scale_unknown_scale_and_where_a_table_ends():
    rows = """balancer = [
      {joint = "joint_1", position = [-1, 0, 1, 1.5], torque = [1, 2, 3, 3], scale = 0.8},
      {joint = "joint_2", on_parent = 0.3, on_link = 0.1, stiffness = 1000, free_length = 0.2, estimate = true},
    ]"""
    robot = read_table(f"{ARM}\n{rows}\n[values]\nFd3m1 = 0.3\n".encode())
    assert (robot.values["Sb1"], robot.values["Sb2"], robot.values["Fd3m1"]) == (0.8, 1.0, 0.3)
    assert any("its table has positions -1 to 1.5, the joint -2 to 2" in note for note in robot.notes)
    model = build_model(robot)
    assert model.chosen_effects[-1] == "balancer2"
    assert [one.joint for one in model.known_balancers] == ["joint_1"]
    assert build_model(robot, measured="difference").known_balancers == robot.balancers
    locked = robot.with_locked({"joint_1": 0.0})
    assert [one.joint for one in locked.balancers] == ["joint_2"]
    assert build_model(locked).chosen_effects[-1] == "balancer1"
    assert locked.values["Sb1"] == 1.0
    made = replace(robot, values={"Sb1": 0.8})
    assert (made.values["Sb1"], made.values["Sb2"]) == (0.8, 1.0)
    assert made.with_locked({"joint_1": 0.0}).values["Sb1"] == 1.0


# Identification


@pytest.mark.parametrize("plant", [pytest.param("ideal", marks=pytest.mark.large), "compiled"])
def test_balancers_of_known_and_unknown_scale_leave_the_arm_as_it_is(plant):
    planted = hung_arm(BALANCERS, Sb1=0.9, Sb2=1.1)
    recording, truth = recorded(planted, plant), planted.parameters
    without = fitted(hung_arm(), recording)
    assert abs(without["MX1"] - 7.0) > 0.1
    for robot, effects in ((planted, None), (hung_arm(BALANCERS), ("+balancer",))):
        found = fitted(robot, recording, effects)
        assert found["MX1"] == pytest.approx(7.0, abs=0.01)
        assert found["MX2"] == pytest.approx(truth["MX2"], abs=0.003)
        assert found["Fcm2"] == pytest.approx(truth["Fcm2"], abs=0.005)
    assert (found["Sb1"], found["Sb2"]) == pytest.approx((0.9, 1.1), abs=0.01)


def test_a_scale_of_one_joint_is_estimated_and_the_other_known():
    planted = hung_arm(BALANCERS, Sb1=0.9, Sb2=1.1)
    found = fitted(hung_arm(BALANCERS, Sb1=0.9), recorded(planted), ("+balancer2",))
    assert "Sb1" not in found
    assert found["Sb2"] == pytest.approx(1.1, abs=0.005)


@pytest.mark.parametrize(("stated", "grade"), [(0.9, "silent"), (1.0, None), (-0.9, "fair")])
def test_a_scale_other_than_the_file_s_is_said_and_a_wrong_sign_is_not_good(stated, grade):
    recording = recorded(hung_arm(BALANCERS[:1], Sb1=0.9), noise=0.05)
    found = identify(
        hung_arm(BALANCERS[:1], Sb1=stated), [recording],
        settings=Settings(effects=("+balancer",), bias_repeats=0, preparation=PREPARATION, select=False),
    )  # fmt: skip
    reasons = [one for one in found.verdict.reasons if one.criterion == "balancer"]
    assert [one.grade for one in reasons] == ([] if grade == "silent" else [grade])
    assert all("its scale is 0.9" in one.text and f"says {stated:.3g}" in one.text for one in reasons)


@pytest.mark.large
def test_intervals_of_an_unknown_scale_cover():
    planted, robot = hung_arm(BALANCERS, Sb1=0.9, Sb2=1.1), hung_arm(BALANCERS)
    clean, rng, seeds = recorded(planted), np.random.default_rng(7), 120
    channel, size = clean.torques[0], np.array([[0.5], [0.1]])
    inside = np.zeros((seeds, 2), dtype=bool)
    for seed in range(seeds):
        noisy = channel.values + size * rng.standard_normal(channel.values.shape)
        recording = replace(clean, torques=(replace(channel, values=noisy),))
        found = estimated(robot, recording, ("+balancer",), method="gls")
        place = [found.columns.index(name) for name in ("Sb1", "Sb2")]
        sigma = np.sqrt(np.diag(found.covariance)[place])
        inside[seed] = np.abs(found.values[place] - [0.9, 1.1]) <= 1.96 * sigma
    # 240 intervals of 95 %: three standard deviations are 4.2 %.
    assert 0.908 <= inside.mean() <= 0.992


def test_a_sine_is_not_told_from_the_weight_of_its_link():
    robot = hung_arm([Balancer("joint_1", Formula("30 * sin(q + 0.3)", "q"))])
    base = base_parameters(build_model(robot, ["inertia", "balancer"]))
    assert not any(name.startswith("Sb") for name in base.names)
    found = fitted(robot, recorded(hung_arm(robot.balancers)))
    assert found["MX1"] == pytest.approx(7.0, abs=0.01)


@cache
def noisy_log_of_balancers():
    """Return an arm with balancers and a recording of it."""
    planted = hung_arm(BALANCERS, Sb1=0.9, Sb2=1.1)
    return planted, recorded(planted, "compiled", noise=0.05)


@pytest.mark.parametrize("method", ["gls", "iterated", "rls", "iv", "didim", "ekf"])
def test_every_method_sees_the_torque_without_the_balancer(method):
    planted, recording = noisy_log_of_balancers()
    found = fit_arm(planted, [recording], Settings(effects=("inertia", "Fvm", "Fcm"), method=method)).fit.estimate
    values = dict(zip(found.columns, found.values.tolist(), strict=True))
    assert values["MX1"] == pytest.approx(7.0, abs=0.1)
    assert values["MX2"] == pytest.approx(planted.parameters["MX2"], abs=0.03)


def test_a_recording_beyond_a_table_is_refused():
    short = Balancer("joint_1", TorqueTable((-0.1, 0.0, 0.1, 0.2), (1.0, 2.0, 1.0, 0.0)))
    with pytest.raises(RobotError, match=r"'joint_1' is at .*, the table of its balancer has .* -0.1 to 0.2"):
        fitted(hung_arm([short]), recorded(hung_arm()))


def test_a_balancer_that_the_robot_lacks_is_refused():
    with pytest.raises(ModelError, match=r"effect 'balancer': robot 'scara_2r' has no balancer"):
        _ = build_model("scara_2r", ["balancer"]).parameters
    with pytest.raises(ModelError, match=r"effect 'balancer2': joint 2 has no part of 'balancer'"):
        _ = build_model(hung_arm(BALANCERS[:1]), ["+balancer2"]).parameters


@pytest.mark.large
def test_selection_finds_a_wrong_scale_and_leaves_a_right_one():
    right = hung_arm(BALANCERS)
    for scale, chosen in ((1.0, False), (1.3, True)):
        recording = recorded(hung_arm(BALANCERS, Sb1=scale), noise=0.2)
        found = identify(right, [recording], settings=Settings(select=True, bias_repeats=0))
        assert any(name.startswith("balancer") for name in found.equations.model.chosen_effects) is chosen


# Other consumers


def test_a_saved_run_predicts_the_whole_torque_of_the_drive(tmp_path):
    robot = hung_arm(BALANCERS, Sb1=0.9)
    recording = recorded(robot, noise=0.05)
    found = identify(robot, [recording], settings=Settings(select=False, bias_repeats=0))
    with RunFolder(tmp_path / "run", "identify") as folder:
        write_run(folder, {"robot": ""}, {}, found, {}, {})
    again = predict(load_run(tmp_path / "run"), [recording], robot)
    frame = again.to_frame()
    measured = recording.torques[0].values[0]
    inside = np.isin(np.round(recording.time, 6), np.round(frame["time"].to_numpy(), 6))
    np.testing.assert_allclose(frame["measured_motor[joint_1]"].to_numpy(), measured[inside], atol=0.02)
    assert np.abs(frame["error_motor[joint_1]"].to_numpy()).mean() < 0.1
    other = replace(robot, values={**robot.values, "Sb1": 1.0})
    with pytest.raises(EstimateError, match="is not the arm of the run"):
        predict(load_run(tmp_path / "run"), [recording], other)


def _module(arm):
    """Return what the exported NumPy module defines."""
    names: dict[str, Any] = {"arm": arm}
    exec(compile(numpy_file(arm)[0].content, "module", "exec"), names)
    return names


def test_exports_include_the_balancer_and_urdf_says_it_cannot():
    wrapped = TorqueTable(tuple(np.linspace(-3, 3, 7)), (0.0, 1.0, 3.0, -2.0, 0.5, 1.0, 2.0), periodic=True)
    law = Formula("5 * sqrt(abs(q + 9)) ** 1.3 - -2 ** 2 / (pi + exp(-abs(q)))", "q")
    with_laws = hung_arm((Balancer("joint_1", wrapped), Balancer("joint_2", law)))
    robot = hung_arm(BALANCERS, Sb1=0.9)
    arm = IdentifiedArm(robot, build_model(robot))
    dynamics = arm_dynamics(arm)
    q = np.array([0.3, 0.4])
    bare = arm_dynamics(IdentifiedArm(hung_arm(), build_model(hung_arm())))
    gravity, without = (np.array(one.functions["gravity"](q, one.values)).ravel() for one in (dynamics, bare))
    expected = [0.9 * TABLE.value(0.3, np), STRUT.value(0.4, np)]
    np.testing.assert_allclose(gravity - without, expected, rtol=1e-9)
    for module in (_module(arm), _module(IdentifiedArm(with_laws, build_model(with_laws)))):
        own = arm_dynamics(module["arm"])
        for position in (q, np.array([-3.2, 7.1])):
            exact = np.array(own.functions["gravity"](position, own.values)).ravel()
            np.testing.assert_allclose(module["gravity"](position), exact, rtol=1e-9)
            np.testing.assert_allclose(module["gravity"](np.array([position, q]))[0], exact, rtol=1e-9)
    listed = parameter_document(arm)["balancers"]
    assert [(one["joint"], one["scale"]) for one in listed] == [("joint_1", 0.9), ("joint_2", 1.0)]
    assert listed[0]["law"]["torques"] == list(TABLE.torques)
    assert any("known torques of balancers" in line and "joint_1 0.9" in line for line in unsaid(robot))


@pytest.mark.parametrize("kind", ["table and strut", "periodic table and formula"])
def test_design_knows_the_torque_of_balancers_and_bounds_it(kind):
    wrapped = TorqueTable(tuple(np.linspace(-3, 3, 7)), (0.0, 1.0, 3.0, -2.0, 0.5, 1.0, 2.0), periodic=True)
    formula = Formula("5 * (q + 9) ** 1.3", "q")
    others = (Balancer("joint_1", wrapped), Balancer("joint_2", formula))
    robot = hung_arm(BALANCERS if kind == "table and strut" else others, Sb1=0.9, Sb2=1.2)
    known, bare = known_torques(robot, "motor"), known_torques(hung_arm(), "motor")
    assert known is not None
    assert bare is not None
    path = motion()
    samples = path.sample(200.0)
    functions = [one.function(False, 1e-3) for one in (known, bare)]
    whole, without = (one([samples.q, samples.qd, samples.qdd])[0] for one in functions)
    laws = [one.torque(samples.q[row], np) for row, one in enumerate(robot.balancers)]
    np.testing.assert_allclose(whole - without, np.array([[0.9], [1.2]]) * laws, atol=1e-9)
    bounder = TorqueBounder(torque_graph(known.model, known.values, "motor"), path, np.full(2, 100.0))
    certificate = certify([bounder], breaks(path))
    largest = np.abs(whole).max(axis=1)
    for row, finding in enumerate(certificate.findings):
        assert largest[row] - 0.01 <= finding.worst <= 1.02 * largest[row] + 0.7


def test_a_simulation_by_mujoco_refuses_them_in_one_line():
    with pytest.raises(SimulationError, match="Sb1 = 1 has no counterpart there; use the compiled plant"):
        recorded(hung_arm(BALANCERS), "mujoco")


@pytest.mark.large
@pytest.mark.parametrize("seed", range(3))
def test_a_weak_log_of_a_balanced_heavy_arm_is_better_than_cad_with_fitted_friction(seed):
    (_, fixed, found), is_arm = benchmark_module("consistency").balanced_errors(seed, "ideal")
    assert found <= fixed
    assert is_arm


# Known torques in the log


def with_known(recording, known):
    channel = recording.torques[0]
    return replace(recording, torques=(replace(channel, values=channel.values + known),), known_torque=known)


def test_a_recorded_known_torque_is_subtracted():
    robot = hung_arm()
    clean = recorded(robot)
    known = np.vstack([8 * np.sin(3 * clean.time), 0.5 * np.cos(2 * clean.time)])
    plain, found = fitted(robot, clean), fitted(robot, with_known(clean, known))
    assert found == pytest.approx(plain, abs=1e-9)
    source = row_source(with_known(clean, known), equations_of(build_model(robot)), _resolved(robot, clean), "log")
    assert source.template.known_torque is not None


def _resolved(robot, recording):
    return fit_arm(robot, [recording], Settings(method="wls", preparation=PREPARATION)).resolved


def test_known_torques_act_on_the_links():
    """The difference of motor and joint torque does not have them."""
    time = np.arange(2000) / 500
    q = np.vstack([np.sin(2 * time), np.cos(3 * time)])
    torques = tuple(TorqueChannel(kind, np.zeros_like(q)) for kind in ("motor_torque", "joint_torque"))
    log = Recording(("joint_1", "joint_2"), time, q, torques=torques, known_torque=np.ones_like(q))
    robot = hung_arm()
    for measured, value in (("motor", -1.0), ("joint", -1.0), ("difference", 0.0)):
        model = build_model(robot, ["inertia", "Fvm"] if measured != "difference" else ["Fvm"], measured)
        source = row_source(log, equations_of(model), _resolved(robot, recorded(robot)), "log")
        block = next(iter(source))
        np.testing.assert_allclose(block.rows[0][:, -1], value, atol=1e-9)


def test_a_setup_names_columns_of_some_joints(tmp_path):
    robot = hung_arm()
    clean = recorded(robot)
    gas = 4 * np.sin(clean.time)
    header = "t,q1,q2,tau1,tau2,gas"
    rows = np.vstack([clean.time, clean.q, clean.torques[0].values, 1000 * gas]).T
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=header, comments="")
    table = {
        "time": "t", "q": "q{1..2}", "torque": {"columns": "tau{1..2}", "kind": "motor_torque"},
        "known_torque": {"columns": "gas", "joints": ["joint_2"], "unit": "mNm", "sign": -1},
    }  # fmt: skip
    log = read_recording(robot, setup_from_table(table), tmp_path / "log.csv")
    assert log.known_torque is not None
    np.testing.assert_allclose(log.known_torque, np.vstack([0 * gas, -gas]), atol=1e-6)
    assert any("known_torque is subtracted from the recorded torques" in note for note in log.notes)
    before_gears = {**table["known_torque"], "side": "motor"}
    setup = setup_from_table({**table, "known_torque": before_gears, "gear_ratio": 50})
    geared = read_recording(robot, setup, tmp_path / "log.csv").known_torque
    assert geared is not None
    np.testing.assert_allclose(geared[1], -50 * gas, atol=1e-4)
    for joints, message in ((["joint_9"], "no joint 'joint_9'"), (None, r"say which joint each column is of")):
        wrong = {**table, "known_torque": {"columns": "gas", **({"joints": joints} if joints else {})}}
        with pytest.raises(RecordingError, match=message):
            read_recording(robot, setup_from_table(wrong), tmp_path / "log.csv")


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_known_torques_and_temperatures_are_written_and_read(tmp_path, suffix):
    robot = hung_arm()
    clean = recorded(robot, temperature=(20.0, 50.0, 5.0))
    log = replace(clean, known_torque=np.vstack([clean.time, 2 * clean.time]))
    (read,) = load_recordings(robot, write_recording(log, tmp_path / f"log{suffix}"))
    assert read.known_torque is not None
    assert read.temperature is not None
    assert clean.temperature is not None
    assert log.known_torque is not None
    np.testing.assert_allclose(read.known_torque, log.known_torque)
    np.testing.assert_allclose(read.temperature, clean.temperature)


# Temperature

WARM = {"FcTm1": -0.01, "FcTm2": -0.002, "FvTm1": -0.002, "FvTm2": -0.0003}


@pytest.mark.parametrize("plant", [pytest.param("ideal", marks=pytest.mark.large), "compiled"])
def test_friction_by_temperature_is_found(plant):
    robot = hung_arm()
    planted = replace(robot, values={**robot.values, **WARM})
    recording = recorded(planted, plant, temperature=(20.0, 60.0, 4.0))
    found = fitted(robot, recording, ("+FcTm", "+FvTm"))
    np.testing.assert_allclose([found[name] for name in WARM], list(WARM.values()), atol=6e-4)
    assert found["Fcm1"] == pytest.approx(robot.values["Fcm1"], abs=0.01)


def test_friction_by_temperature_and_with_a_state_are_found_together():
    robot = hung_arm()
    planted = replace(robot, values={**robot.values, **WARM, "Fd3m1": 0.5})
    recording = recorded(planted, temperature=(20.0, 60.0, 4.0))
    assert recording.temperature is not None
    holed = recording.temperature.copy()
    holed[:, :50], holed[1, 300:700] = np.nan, np.nan
    found = fitted(robot, replace(recording, temperature=holed), ("+FcTm", "+FvTm", "+Fd3m1"))
    assert found["Fd3m1"] == pytest.approx(0.5, abs=0.03)
    assert found["FcTm1"] == pytest.approx(-0.01, abs=2e-3)


def test_the_reference_temperature_is_a_constant():
    robot = replace(hung_arm(), friction=FrictionConstants(temperature=40.0))
    planted = replace(robot, values={**robot.values, **WARM})
    found = fitted(robot, recorded(planted, temperature=(20.0, 60.0, 4.0)), ("+FcTm", "+FvTm"))
    assert found["Fcm1"] == pytest.approx(robot.values["Fcm1"], abs=0.01)
    notes = arm_dynamics(IdentifiedArm(planted, build_model(planted, ["+FcTm"]))).notes
    assert any("at 40 deg C, the reference temperature" in note for note in notes)


def test_without_temperatures_the_effect_is_refused():
    robot = hung_arm()
    with pytest.raises(ObservationError, match=r"has no temperature, on which effect 'FcTm' depends"):
        fitted(robot, recorded(robot), ("+FcTm",))
    recording = recorded(robot, temperature=(20.0, 60.0, 4.0))
    assert recording.temperature is not None
    unknown = recording.temperature * np.array([[1.0], [np.nan]])
    with pytest.raises(ObservationError, match=r"no temperature of joint 'joint_2' in its first samples"):
        fitted(robot, replace(recording, temperature=unknown), ("+FcTm",))
    assert "FcTm1" in fitted(robot, replace(recording, temperature=unknown), ("+FcTm1",))


@pytest.mark.parametrize("method", ["ekf", "ml", "iv", "didim"])
def test_methods_that_cannot_have_temperatures_say_so(method):
    robot = hung_arm()
    recording = recorded(robot, temperature=(20.0, 60.0, 4.0))
    with pytest.raises((ModelError, SimulationError), match=r"temperature.*leave"):
        fit_arm(robot, [recording], Settings(effects=("+FcTm",), method=method))


def test_a_design_refuses_friction_by_temperature():
    with pytest.raises(ModelError, match=r"effect 'FcTm' .*temperatures, which the design of a motion cannot have"):
        design("scara_2r", effects=["inertia", "FcTm"])


@pytest.mark.parametrize("temperature", [(20.0, 30.0), (20.0, math.nan, 1.0), (20.0, 30.0, 0.0)])
def test_wrong_temperatures_of_an_experiment_are_refused(temperature):
    with pytest.raises(SimulationError, match="temperature"):
        Experiment(temperature=temperature)


# Ripple and coupled motors


@pytest.mark.parametrize("plant", ["ideal", "compiled"])
def test_torque_ripple_of_known_orders_is_found(plant):
    robot = hung_arm()
    ripple = {"Rs1m1": 0.3, "Rc1m1": -0.2, "Rs2m2": 0.05, "Rc2m2": 0.1}
    constants = FrictionConstants(ripple=(7.0, 12.0), ripple_of="joint")
    planted = replace(robot, friction=constants, values={**robot.values, **ripple})
    found = fitted(replace(robot, friction=constants), recorded(planted, plant), ("+R1m1", "+R2m2"))
    np.testing.assert_allclose([found[name] for name in ripple], list(ripple.values()), atol=0.01)


def test_ripple_counts_in_turns_of_a_coupled_motor():
    robot = load_robot("staubli_tx40")
    joints = tuple(replace(one, gear_ratio=30.0) for one in robot.joints)
    robot = replace(robot, joints=joints, friction=FrictionConstants(ripple=(2.0,)))
    model = build_model(robot, ["R1m"])
    q = np.linspace(0.1, 0.6, 6)
    W = np.array(model.regressor(q, np.zeros(6), np.zeros(6)))
    column = model.names.index("Rs1m6")
    expected = np.zeros(6)
    expected[[4, 5]] = np.sin(2 * 30 * (q[5] + q[4]))
    np.testing.assert_allclose(W[:, column], expected, atol=1e-12)
    with pytest.raises(ModelError, match=r"effect 'R2m': \[friction\] ripple has 1 orders, none of number 2"):
        _ = build_model(robot, ["R2m"]).parameters


@pytest.mark.parametrize("ripple", ["[]", "[1, 2, 3, 4, 5]", "[0]", '["a"]', "[-1]"])
def test_wrong_orders_are_refused(ripple):
    with pytest.raises(RobotError, match="one to four orders above 0"):
        read_table(f"{ARM}\n[friction]\nripple = {ripple}\n".encode())


def test_friction_of_a_coupled_motor_is_that_in_motor_coordinates():
    robot = load_robot("staubli_tx40")
    C, qd = robot.motor_coupling(), np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.9])
    motor = (C @ qd)[5]
    shapes = {
        "Fvvc": motor * abs(motor),
        "Fvrc": math.copysign(abs(motor) ** 0.5, motor),
        "Fvtc": math.copysign(abs(motor) ** (1 / 3), motor),
        "Fs4c": math.exp(-((motor / 0.3) ** 2)) * math.copysign(1, motor),
    }
    for name, torque in shapes.items():
        W = np.array(build_model(robot, [name]).regressor(np.zeros(6), qd, np.zeros(6)))
        np.testing.assert_allclose(W[:, 0], C.T @ [0, 0, 0, 0, 0, torque], atol=1e-12)
    # All motors with one viscous coefficient: Fvm and Fvc together are C^T Fv C qd.
    model = build_model(robot, ["Fvm", "coupling"])
    W = np.array(model.regressor(np.zeros(6), qd, np.zeros(6)))
    values = {f"Fvm{k}": float((C.T @ C)[k - 1, k - 1]) for k in range(1, 7)} | {"Fvc6": 1.0}
    np.testing.assert_allclose(W @ [values.get(name, 0.0) for name in model.names], C.T @ C @ qd, atol=1e-12)


def test_friction_of_a_coupled_motor_is_found():
    robot = load_robot("staubli_tx40")
    planted = replace(robot, values={**robot.values, "Fvvc6": 0.05, "Fs4c6": 0.4})
    rng = np.random.default_rng(2)
    sin, cos = rng.uniform(-1, 1, (2, 6, 5)) / np.arange(1, 6) * 0.6
    path = fourier([0.0] * 6, sin, cos, 10.0, list(robot.joint_names))
    run = simulate(planted, path, Experiment(record_rate=200, plant="ideal", saturate=False))
    found = fitted(robot, recording_of(run), ("+Fvvc", "+Fs4c"))
    assert (found["Fvvc6"], found["Fs4c6"]) == pytest.approx((0.05, 0.4), abs=0.02)
