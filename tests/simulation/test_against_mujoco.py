"""The same torques on MuJoCo give the same motion."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from oracles import NO_MUJOCO
from steelyard.errors import SimulationError
from steelyard.motion import quintic
from steelyard.robot import Limits, Robot, load_robot, read_mjcf
from steelyard.simulation import Experiment, Noise, simulate
from steelyard.simulation.mujoco_plant import mujoco_xml

pytest.importorskip("mujoco", reason=NO_MUJOCO)


def moves(robot: Robot, count: int = 2):
    limits = [body.joint.limits for body in robot.actuated]
    middle = np.array([(limit.lower + limit.upper) / 2 for limit in limits])
    points = middle[:, None] + 0.4 * np.random.default_rng(1).uniform(-1, 1, (len(limits), count + 1))
    return quintic(points, 0.5, [body.joint.name for body in robot.actuated])


def without_coulomb(robot: Robot) -> Robot:
    values = {name: value for name, value in robot.values.items() if name.startswith(("Ia", "Fv", "off"))}
    return replace(robot, values=MappingProxyType(values), springs=())


@pytest.mark.parametrize(
    "name",
    [
        "scara_2r",
        "franka_panda",
        "kuka_ir361",
        *(pytest.param(name, marks=pytest.mark.large) for name in ("kuka_lwr4", "ur10e")),
    ],
)
def test_both_plants_move_alike_to_the_integrator_s_tolerance(name):
    """Both integrate by Runge-Kutta of order four with the same steps; Coulomb friction is compared below."""
    robot = without_coulomb(load_robot(name))
    experiment = Experiment(control="pd", saturate=False, disturbance=Noise("white", (0.1,) * len(robot.actuated)))
    ours = simulate(robot, moves(robot), experiment)
    theirs = simulate(robot, moves(robot), replace(experiment, plant="mujoco"))
    np.testing.assert_allclose(ours.q, theirs.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.qd, theirs.qd, rtol=0, atol=1e-8)
    torque = np.abs(ours.motor_torque).max()
    np.testing.assert_allclose(ours.motor_torque, theirs.motor_torque, rtol=0, atol=1e-8 * torque)
    np.testing.assert_allclose(ours.joint_torque, theirs.joint_torque, rtol=0, atol=1e-8 * torque)


@pytest.mark.large
def test_dry_friction_of_both_plants_is_alike_away_from_standstill():
    """Theirs is a constraint with a softness of its own, so only moving samples can agree."""
    robot = load_robot("kuka_lwr4")
    ours = simulate(robot, moves(robot), Experiment(record_rate=100))
    theirs = simulate(robot, moves(robot), Experiment(record_rate=100, plant="mujoco"))
    moving = (np.abs(ours.qd[0]) > 0.1).all(axis=0)
    assert moving.sum() > 20
    difference = np.abs(ours.motor_torque[0] - theirs.motor_torque[0])[:, moving]
    assert (difference.max(axis=1) < 0.02 * np.abs(ours.motor_torque[0]).max(axis=1)).all()


def test_what_mujoco_cannot_do_is_refused_with_the_reason():
    robot = load_robot("staubli_tx40")
    with pytest.raises(SimulationError, match=r"plant 'mujoco': Iac6 = 0.00964 has no counterpart there"):
        simulate(robot, moves(robot), Experiment(plant="mujoco"))
    with pytest.raises(SimulationError, match="without delay"):
        simulate(load_robot("scara_2r"), moves(load_robot("scara_2r")), Experiment(plant="mujoco", delay=0.001))


def test_the_model_of_the_plant_is_one_of_moving_bodies_without_limits():
    robot = load_robot("ur10e")
    truth = robot.parameters | {"Ia1": 0.5, "Fvm4": 1.0, "Fvl4": 0.25}
    text = mujoco_xml(robot, truth, 0.001)
    read = read_mjcf(text.encode())
    assert [body.parent for body in read.bodies] == [body.parent for body in robot.bodies]
    assert all(body.joint.limits == Limits() for body in read.bodies)
    for name in ("ZZ2", "MX3", "M6", "Ia1"):
        assert read.parameters[name] == pytest.approx(truth[name], abs=1e-12)
    assert read.parameters["Fvm4"] == 1.25  # both sides of the gear
    assert '<flag contact="disable"/>' in text
    with pytest.raises(SimulationError, match="MuJoCo needs a positive mass for every link; link 2 has 0 kg"):
        mujoco_xml(robot, {**robot.parameters, "M2": 0.0}, 0.001)
