"""A new effect is one function and one entry: robot files, models, simulation, fits and checks are found from there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import casadi as ca
import numpy as np
import pytest

import steelyard
from steelyard.effects import EFFECTS, Effect, other_side, value_symbols
from steelyard.errors import DesignError, RobotError, SimulationError
from steelyard.excitation.certify.torque_graph import directions_of
from steelyard.identification import Settings, fit_arm, identify
from steelyard.model import build_model
from steelyard.model.terms.term import diagonal_term, joint_parameter
from steelyard.motion import quintic
from steelyard.observe import Preparation
from steelyard.robot import GearCoupling, load_robot
from steelyard.robot.balancers import Balancer, Formula
from steelyard.simulation import Experiment, Noise, recording_of, simulate

TRUE = (0.4, 0.1)
EFFECT_NAMES = ("inertia", "Fvm", "Fcm", "Fsql")


def square_root(effect, robot, motion):
    """Return ``Fsq sign(qd) sqrt(|qd|)``, friction of a lubricated bearing."""
    parameters = [
        joint_parameter(body, effect.symbols[0], effect, "N m (s/rad)^0.5", "N (s/m)^0.5", "dry")
        for body in robot.actuated
    ]
    return diagonal_term(parameters, motion.sign(motion.qd) * ca.sqrt(ca.fabs(motion.qd) + 1e-9))


@pytest.fixture
def registered(monkeypatch):
    module = ModuleType("steelyard.model.terms.square_root")
    vars(module).update(square_root=square_root)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = Effect("Fsql", "grows with the root of the speed", "square_root.square_root", ("Fsql",), "link")
    monkeypatch.setitem(EFFECTS, "Fsql", entry)


def arm_with(values, tmp_path):
    """Return P1's arm read from a file that gives these coefficients."""
    (source,) = Path(steelyard.__file__).parent.rglob("scara_2r.toml")
    text = source.read_text()
    assert "\n[values]\n" in text
    path = tmp_path / "arm.toml"
    path.write_text(text.replace("\n[values]\n", f"\n[values]\nFsql = {list(values)}\n"))
    return load_robot(path)


def recorded(robot, seed=0):
    points = np.zeros((2, 21))
    points[:, 1:-1] = np.random.default_rng(seed).uniform(-1, 1, (2, 19)) * [[0.45], [2.6]]
    experiment = Experiment(
        control="pd", kp=(400, 12), kd=(70, 1.6), record_rate=100, encoder_quantum=1e-6, saturate=False,
        motor_noise=Noise("white", (0.05, 0.005)),
    )  # fmt: skip
    return recording_of(simulate(robot, quintic(points, 1.0, ["joint_1", "joint_2"]), experiment, [seed]))


@pytest.mark.parametrize("method", ["wls", "ekf"])
def test_it_is_read_simulated_and_identified(registered, tmp_path, method):
    robot = arm_with(TRUE, tmp_path)
    fit = fit_arm(robot, [recorded(robot)], Settings(method=method, effects=EFFECT_NAMES)).fit.estimate
    found = [float(fit.values[fit.columns.index(name)]) for name in ("Fsql1", "Fsql2")]
    np.testing.assert_allclose(found, TRUE, rtol=0.1)


def test_a_negative_coefficient_is_an_arm_that_cannot_exist(registered, tmp_path):
    robot = arm_with((-0.4, 0.1), tmp_path)
    settings = Settings(effects=EFFECT_NAMES, preparation=Preparation(cutoff=8.0))
    found = identify(robot, [recorded(robot)], settings=settings)
    assert "Fsql1" in {one.what for one in found.plausibility.impossible}
    assert found.verdict.grade != "good"


def test_mujoco_refuses_what_its_joints_do_not_have(registered, tmp_path):
    pytest.importorskip("mujoco")
    robot = arm_with(TRUE, tmp_path)
    motion = quintic([[0.0, 0.3], [0.0, 1.0]], 1.0, ["joint_1", "joint_2"])
    with pytest.raises(SimulationError, match=r"plant 'mujoco': Fsql1 = 0\.4 has no counterpart there"):
        simulate(robot, motion, Experiment(record_rate=100, plant="mujoco", velocity="tachometer"))


def test_a_column_that_cannot_be_bounded_is_refused_with_a_remedy(registered):
    model = build_model("scara_2r", EFFECT_NAMES)
    with pytest.raises(DesignError, match=r"a sign enters in a way that cannot be bounded; .*leave that effect out"):
        directions_of(model.regressor)


def test_an_unregistered_value_is_refused(tmp_path):
    with pytest.raises(RobotError, match=r"\[values\]: name of a list is 'Fsql'; allowed: Ia, Fvm"):
        arm_with(TRUE, tmp_path)


@pytest.mark.parametrize("effect", EFFECTS.values())
def test_the_entry_names_the_parameters_of_its_term(effect):
    arm = load_robot("kuka_lwr4")
    arm = replace(
        arm,
        friction=replace(arm.friction, ripple_of="joint"),
        springs=("joint_2",),
        balancers=(Balancer("joint_2", Formula("10 * sin(q)", "q")),),
        gear_couplings=(GearCoupling("joint_7", "joint_6"),),
    )
    parameters = build_model(arm, [effect.name], "both").parameters
    symbols = {one.symbol for one in parameters}
    assert symbols == set(effect.symbols) - ({"gz"} if effect.name == "tilt" else set())
    assert {(one.effect, one.side) for one in parameters} == {(effect.name, effect.side)}


def test_friction_by_direction_can_be_given_and_simulated():
    robot = load_robot("scara_2r")
    values = {name: value for name, value in robot.values.items() if not name.startswith("Fc")}
    directed = replace(robot, values={**values, "Fcpm1": 0.8, "Fcnm1": 0.4, "Fcpm2": 0.2, "Fcnm2": 0.1})
    fit = fit_arm(directed, [recorded(directed)], Settings(method="wls", effects=("inertia", "Fvm", "Fcam"))).fit
    found = dict(zip(fit.estimate.columns, fit.estimate.values, strict=True))
    assert {"Fcpm", "Fcnm"} <= set(value_symbols())
    np.testing.assert_allclose(
        [found[name] for name in ("Fcpm1", "Fcnm1", "Fcpm2", "Fcnm2")], [0.8, 0.4, 0.2, 0.1], rtol=0.1
    )


def test_effects_of_one_side_have_a_twin_on_the_other():
    assert [other_side(name) for name in ("Fvm", "Fcal", "offl", "Ia", "coupling")] == [
        "Fvl",
        "Fcam",
        "offm",
        None,
        None,
    ]
