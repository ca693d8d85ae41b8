"""Identified arms for tests of exports: a robot of the tests with perturbed values, and states to compare at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from arms import arm, motion_of
from steelyard.export import IdentifiedArm
from steelyard.model import Model, build_model
from steelyard.robot import Robot, read_table

_MODELS: dict[tuple[object, ...], Model] = {}  # a model holds its robot, so that the robot's id stays its own

ALL_EFFECTS = ("inertia", "Ia", "Fvm", "Fcam", "offm", "Fvl", "Fcl", "Fcal", "offl")


def identified(robot: Robot | str, effects: Iterable[str] | None = None, sign_width: float = 0.0) -> IdentifiedArm:
    """Return an arm whose known values are up to 10 % off the robot's; values of effects it has none of are drawn."""
    robot = named_arm(robot)
    model = build_model(robot, effects, sign_width=sign_width)
    rng, known = np.random.default_rng(3), robot.parameters
    scale = {body.number: rng.uniform(0.9, 1.1) for body in robot.bodies}  # a body scaled in mass is a body again
    values = {
        one.name: known[one.name] * (scale[one.number] if one.effect == "inertia" else rng.uniform(0.9, 1.1))
        if one.name in known
        else rng.uniform(0.1, 1.0)
        for one in model.parameters
    }
    sigmas = {name: 0.02 * abs(value) for name, value in values.items()}
    return IdentifiedArm(robot.with_parameters(values), model, sigmas, dict.fromkeys(values, "data"), "run-1")


def named_arm(robot: Robot | str) -> Robot:
    """Return an arm of the tests by name; ``coupled`` has coupled motors, ``chain 30`` thirty joints."""
    if not isinstance(robot, str):
        return robot
    if robot.startswith("chain "):
        return long_chain(int(robot.split()[1]))
    return coupled_arm() if robot == "coupled" else arm(robot)


def every_effect(robot: Robot | str) -> tuple[str, ...]:
    """Return all effects that the robot can have, Coulomb friction by direction on the motor side."""
    robot = named_arm(robot)
    return (*ALL_EFFECTS, *(("coupling",) if robot.gear_couplings else ()), *(("spring",) if robot.springs else ()))


def coupled_arm() -> Robot:
    """Return the TX40 with a wrist motor that turns backwards with the joint before, at another rate."""
    robot = arm("staubli_tx40")
    return replace(robot, gear_couplings=tuple(replace(one, ratio=-0.6) for one in robot.gear_couplings))


def long_chain(joints: int) -> Robot:
    """Return a chain from a table: axes at odd angles and at right ones, every seventh joint prismatic."""
    rng = np.random.default_rng(joints)
    rows = []
    for k in range(1, joints + 1):
        alpha = 90 * (-1) ** k if k % 3 else round(float(rng.uniform(-90, 90)), 2)
        kind = "prismatic" if k % 7 == 0 else "revolute"
        centre = rng.uniform(-0.05, 0.05, 3).round(3).tolist()
        rows.append(
            f'[[joint]]\ntype = "{kind}"\nalpha_deg = {alpha}\nd = 0.05\ntheta_deg = 0\nr = {0.1 if k % 2 else 0.0}\n'
            f"lower = -1.5\nupper = 1.5\nvelocity = 2\nacceleration = 10\nmass = {3.0 / k:.4f}\ncentre = {centre}\n"
            f"inertia_at_centre = [{0.02 / k:.5f}, 0, 0, {0.03 / k:.5f}, {0.001 / k:.5f}, {0.025 / k:.5f}]\n"
        )
    return read_table(f'[robot]\nname = "chain_{joints}"\n{"".join(rows)}'.encode())


def states(one: IdentifiedArm, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return seeded random q, qd, qdd (count, joints), the second velocity zero in the first state, and torques."""
    q, qd, qdd = (part.T.copy() for part in motion_of(one.robot, count, seed))
    qd[0, min(1, qd.shape[1] - 1)] = 0.0  # where the sign of friction is zero
    tau = np.random.default_rng(seed + 1).normal(size=q.shape) * np.abs(torques(one, q, qd, qdd)).max(axis=0)
    return {"q": q, "qd": qd, "qdd": qdd, "tau": tau}


def torques(one: IdentifiedArm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, measured: str = "motor") -> np.ndarray:
    """Return torques (count, joints) of the identified arm by the regressor of its model, parameter by parameter."""
    key = (id(one.robot), one.model.effects, measured, one.model.sign_width)
    if key not in _MODELS:
        _MODELS[key] = build_model(one.robot, one.model.effects, measured, sign_width=one.model.sign_width)
    model = _MODELS[key]
    values = np.array([one.robot.parameters[name] for name in model.names])
    return np.array([np.array(model.regressor(*state)) @ values for state in zip(q, qd, qdd, strict=True)])


def parts(one: IdentifiedArm, state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what every generated function must give at the states (count, ...), from torques alone.

    Gravity, inertia matrix and Coriolis torques are those of the arm without other effects; drive inertias and springs
    are found as the torques that accelerations and positions add.
    """
    q, qd, qdd = state["q"], state["qd"], state["qdd"]
    still, size = np.zeros_like(q), q.shape[1]
    at_rest = torques(one, q, qd, still)
    columns = [torques(one, q, qd, still + unit) - at_rest for unit in np.eye(size)]
    matrix = np.stack(columns, axis=-1)
    rigid = IdentifiedArm(one.robot, build_model(one.robot, ["inertia"]))
    springs = IdentifiedArm(one.robot, build_model(one.robot, ["inertia", *({"spring"} & set(one.model.effects))]))
    coriolis = torques(rigid, q, qd, still) - torques(rigid, q, still, still)
    gravity = torques(springs, q, still, still)
    return {
        "inverse_dynamics": torques(one, q, qd, qdd),
        "gravity": gravity,
        "inertia_matrix": matrix,
        "coriolis": coriolis,
        "friction": at_rest - gravity - coriolis,
        "forward_dynamics": np.linalg.solve(matrix, (state["tau"] - at_rest)[..., None])[..., 0],
    }


def assert_parts_equal(got: dict[str, np.ndarray], one: IdentifiedArm, state: dict[str, np.ndarray], to: float) -> None:
    """Compare every function's output; torques relative to the largest torque, accelerations through the torques."""
    wanted = parts(one, state)
    largest = np.abs(wanted["inverse_dynamics"]).max()
    for name, expected in wanted.items():
        scale = {"inertia_matrix": np.abs(expected).max(), "forward_dynamics": np.abs(state["tau"]).max()}
        off = got[name].reshape(expected.shape) - expected
        if name == "forward_dynamics":
            off = np.einsum("...ij,...j->...i", wanted["inertia_matrix"], off)
        assert np.abs(off).max() <= to * scale.get(name, largest), (name, np.abs(off).max())
