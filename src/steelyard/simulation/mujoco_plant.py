"""The same experiment simulated by MuJoCo, an independent implementation of rigid-body dynamics.

Bodies, armature and damping are MuJoCo's own, and so is dry friction (``frictionloss``, a constraint of its solver).
Offsets are applied as torques. Springs and couplings have no counterpart there and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import SimulationError
from ..model import Model
from ..progress import Progress, part_of
from ..robot import INERTIAL_NAMES, Joint, Link, Robot
from ..robot.mjcf_files import import_mujoco, without_mujoco_log
from ..robot.new_mjcf import new_mjcf
from .compiled_plant import OnLost, divergence
from .experiment import Experiment, noise_of_seed, quantised
from .plant import plant_equations
from .tuning import ClosedLoop

_OF_MUJOCO = ("inertia", "Ia", "Fvm", "Fcm", "offm", "Fvl", "Fcl", "offl")
"""Effects that MuJoCo's joints have, or that are added to their torques."""


def mujoco_xml(robot: Robot, truth: Mapping[str, float], timestep: float) -> str:
    """Return an MJCF model of a robot with its true parameters: a body for each moving one, in the robot's order.

    Joints have no limits and bodies no shapes.

    Raises:
        SimulationError: If a link has no mass.
    """
    names = {0: "base", **{body.number: f"body_{body.number}" for body in robot.bodies}}
    links, joints = [Link(names[0])], []
    for body in robot.bodies:
        inertia = tuple(truth[f"{name}{body.number}"] for name in INERTIAL_NAMES)
        if inertia[-1] <= 0:
            raise SimulationError(
                f"MuJoCo needs a positive mass for every link; link {body.number} has {inertia[-1]:g} kg"
            )
        links.append(Link(names[body.number], inertia))
        ends, own = (names[body.parent], names[body.number]), body.joint
        joints.append(Joint(f"joint_{body.number}", own.kind, *ends, body.placement, own.axis))
    bare = Robot("plant", tuple(links), tuple(joints), names[0], robot.gravity, values=dict(truth))
    option = {"timestep": timestep, "integrator": "RK4"}
    return new_mjcf(bare, option=option, flags={"contact": "disable"}).decode()


def _both_sides(truth: Mapping[str, float], symbol: str, number: int) -> float:
    return sum(truth.get(f"{symbol}{side}{number}", 0.0) for side in "ml")


def check_mujoco_can(model: Model, truth: Mapping[str, float], experiment: Experiment) -> None:
    """Refuse effects and controllers that MuJoCo's joints cannot represent."""
    if len(model.robot.bodies) != len(model.robot.actuated):
        raise SimulationError("plant 'mujoco': mimicking joints are not simulated there; use the compiled plant")
    for parameter in model.parameters:
        if parameter.effect not in _OF_MUJOCO and truth[parameter.name] != 0:
            raise SimulationError(
                f"plant 'mujoco': {parameter.name} = {truth[parameter.name]:g} has no counterpart there; "
                "use the compiled plant, or set it to 0 in the robot's file"
            )
    if experiment.delay_steps or experiment.velocity != "tachometer":
        raise SimulationError("plant 'mujoco' runs without delay and with tachometers; use the compiled plant")


class MujocoPlant:
    """The arm in closed loop on MuJoCo; the controller runs in Python, one seed after the other."""

    def __init__(self, loop: ClosedLoop) -> None:
        self._mujoco, truth = import_mujoco("plant 'mujoco'", SimulationError), loop.truth
        check_mujoco_can(loop.model, truth, loop.experiment)
        self._experiment, self._loop, self._reference = loop.experiment, loop, loop.reference
        self._substeps = loop.substeps
        xml = mujoco_xml(loop.model.robot, truth, 1 / loop.plant_rate)
        self._model = self._mujoco.MjModel.from_xml_string(xml)
        self._values = loop.values
        self._motor_torque = plant_equations(loop.model).motor_torque
        numbers = range(1, len(loop.kp) + 1)
        self._motor_viscous = np.array([truth.get(f"Fvm{k}", 0.0) for k in numbers])
        self._offset = np.array([_both_sides(truth, "off", k) for k in numbers])
        self._motor_offset = np.array([truth.get(f"offm{k}", 0.0) for k in numbers])
        motor_dry = np.array([truth.get(f"Fcm{k}", 0.0) for k in numbers])
        all_dry = np.array([_both_sides(truth, "Fc", k) for k in numbers])
        self._motor_share = np.divide(motor_dry, all_dry, out=np.zeros(len(all_dry)), where=all_dry > 0)

    def run(self, seeds: tuple[int, ...], threads: int, progress: Progress, on_lost: OnLost) -> np.ndarray:
        """Return q, qd, qdd, motor torque, joint torque of every seed (S, 5 n, N); of those lost they mean nothing.

        Seeds run one after the other, whatever the threads.
        """
        with without_mujoco_log(self._mujoco):
            runs = [self._run_seed(seed, part_of(progress, k, len(seeds)), on_lost) for k, seed in enumerate(seeds)]
        return np.stack(runs)

    def _run_seed(self, seed: int, progress: Progress, on_lost: OnLost) -> np.ndarray:
        size, periods = self._reference.shape[0] // 3, self._reference.shape[1]
        data = self._mujoco.MjData(self._model)
        data.qpos[:], data.qvel[:] = self._reference[:size, 0], self._reference[size : 2 * size, 0]
        rate, every = self._experiment.control_rate, self._experiment.record_every
        disturbance = noise_of_seed(self._experiment, "disturbance", seed, size, periods, rate)
        recorded = np.empty((5 * size, periods // every))
        held = None
        for k in range(periods):
            torque = self._command(data, self._reference[:, k], size)
            if k % every == 0:
                # Where the torque jumps, the mean of before and after is recorded, as by the compiled plant.
                mean = torque if held is None else (held + torque) / 2
                mean_disturbance = disturbance[:, max(k - 1, 0) : k + 1].mean(axis=1)
                data.qfrc_applied[:] = mean + mean_disturbance - self._offset
                self._mujoco.mj_forward(self._model, data)
                recorded[:, k // every] = self._output(data, mean, mean_disturbance)
            held = torque
            data.qfrc_applied[:] = torque + disturbance[:, k] - self._offset
            for _ in range(self._substeps):
                self._mujoco.mj_step(self._model, data)
            if self._is_lost(data):
                on_lost(seed, divergence((k + 1) / rate))
                break
            if k % 500 == 0:
                progress(k, periods)
        return recorded

    def _is_lost(self, data: Any) -> bool:
        """Return whether MuJoCo found the state unusable; it then restarts at zero, and counts a warning."""
        kinds = self._mujoco.mjtWarning
        return any(
            data.warning[kind].number for kind in (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
        )

    def _command(self, data: Any, reference: np.ndarray, size: int) -> np.ndarray:
        encoder = quantised(np.array(data.qpos), self._loop.quantum)
        qr, qdr, qddr = reference[:size], reference[size : 2 * size], reference[2 * size :]
        correction = self._loop.kp * (qr - encoder) + self._loop.kd * (qdr - np.array(data.qvel))
        if self._experiment.control == "pd":
            command = correction
        else:
            command = np.array(self._motor_torque(encoder, qdr, qddr + correction, self._values)).ravel()
        return np.clip(command, -self._loop.effort, self._loop.effort)

    def _output(self, data: Any, torque: np.ndarray, disturbance: np.ndarray) -> np.ndarray:
        """Return q, qd, qdd, motor torque, joint torque; motor-side friction and rotor taken off the last."""
        dry = -np.array(data.qfrc_constraint)
        rubbed = self._motor_viscous * data.qvel + self._motor_share * dry
        motor_side = self._model.dof_armature * data.qacc + rubbed + self._motor_offset
        return np.concatenate([data.qpos, data.qvel, data.qacc, torque, torque + disturbance - motor_side])
