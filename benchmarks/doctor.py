"""Faults planted into simulated logs: does ``steelyard check`` find them with a model, and name joint and size?

    python -m benchmarks.doctor [--seeds 5] [--arms kuka_lwr4 ur10e staubli_tx40] [--faults ...] [--stated]

Sizes, stated before measuring, as users make them: a torque sign, two exchanged columns, millinewton metres, one
joint's torque in hundredths, an arm on a wall, gravity taken out by a driver, a load that nobody declared (3 kg on the
UR10e, 2 and 1 on the others), in all recordings or in one, torques 10 ms late, a base tilted by 1.3 degrees, a joint
zero off by 3 degrees, a gear ratio or gain wrong by 10 %, a drive gain 10 % lower in one recording, friction that grows
by 30 % of the spread of the torque, torques that a model computed. Some are shown at smaller sizes too. Every log is
simulated in closed loop at 200 Hz with 2 % noise on the torques (:mod:`benchmarks.planted_faults`); two logs are
checked together. Found: a warning or worse of the right name and joint. Clean logs must raise none.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.planted_faults import LOAD, recorded, with_torques
from steelyard.identification import diagnose
from steelyard.recording import Recording
from steelyard.robot import Robot, load_robot
from steelyard.simulation import Experiment, recording_of, simulate
from steelyard.study import default_motion

ARMS = ("kuka_lwr4", "ur10e", "staubli_tx40")
ELBOW = 2
"""Row of the joint that finer faults are planted on: it bears weight on every arm."""

Case = tuple[list[Recording], Robot]
Plant = Callable[[list[Recording], Robot, float, int], Case]


def _torques(change: Callable[[np.ndarray, float], np.ndarray]) -> Plant:
    return lambda logs, robot, size, _: ([with_torques(log, lambda v: change(v, size)) for log in logs], robot)


def _scaled(values: np.ndarray, row: int, factor: float) -> np.ndarray:
    values[row] *= factor
    return values


def _late(values: np.ndarray, delay: float) -> np.ndarray:
    """Return torques that come late, on a grid of 200 Hz."""
    grid = np.arange(values.shape[1]) / 200.0
    return np.array([np.interp(grid - delay, grid, row) for row in values])


def _off_zero(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    return [replace(log, q=log.q + size * (np.arange(len(log.q)) == ELBOW)[:, None]) for log in logs], robot


def _tilted(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    """Return logs of an arm whose base is tilted about x against what the model says."""
    turn = np.array([[1, 0, 0], [0, np.cos(size), -np.sin(size)], [0, np.sin(size), np.cos(size)]])
    x, y, z = turn @ np.array(robot.gravity)
    return logs, robot.with_gravity((float(x), float(y), float(z)))


def _loaded(logs: list[Recording], robot: Robot, size: float, seed: int) -> Case:
    first = logs[0] if size < 1 else recorded(robot.name, 3 * seed, LOAD)
    return [first, recorded(robot.name, 3 * seed + 1, LOAD)], robot


def _weightless(logs: list[Recording], robot: Robot, size: float, seed: int) -> Case:
    del logs, size
    return [recorded(robot.name, 3 * seed + k, weightless=True) for k in range(2)], robot


def _one_weaker(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    return [logs[0], with_torques(logs[1], lambda values: _scaled(values, ELBOW, size))], robot


def _warming(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    """Return logs in which the Coulomb friction of a joint grows, in parts of the spread of its torque."""
    found = []
    for log in logs:
        direction = np.sign(np.gradient(log.q[ELBOW], log.time))
        growth = size * np.linspace(0.0, 1.0, log.samples) * float(np.std(log.torques[0].values[ELBOW]))

        def change(values: np.ndarray, extra: np.ndarray = growth * direction) -> np.ndarray:
            values[ELBOW] += extra
            return values

        found.append(with_torques(log, change))
    return found, robot


def _computed(logs: list[Recording], robot: Robot, size: float, seed: int) -> Case:
    del logs, size
    motions = [default_motion(robot, 3 * seed + k) for k in range(2)]
    return [recording_of(simulate(robot, motion, Experiment(record_rate=200.0))) for motion in motions], robot


@dataclass(frozen=True)
class Fault:
    """A fault and what must be said of it.

    Attributes:
        plant: Makes it.
        code: Code of the finding.
        row: Row of the joint that must be named; None: no joint.
        stated: Stated size.
        others: Further sizes.
    """

    plant: Plant
    code: str
    row: int | None = None
    stated: float = 1.0
    others: tuple[float, ...] = ()


FAULTS: dict[str, Fault] = {
    "clean": Fault(lambda logs, robot, *_: (logs, robot), ""),
    "torque sign": Fault(_torques(lambda v, _: _scaled(v, ELBOW, -1.0)), "torque_sign", ELBOW),
    "exchanged": Fault(_torques(lambda v, _: v[[*range(ELBOW), ELBOW + 1, ELBOW, *range(ELBOW + 2, len(v))]]),
                       "exchanged_torques", ELBOW),
    "in mN m": Fault(_torques(lambda v, _: 1e3 * v), "torque_unit"),
    "one in hundredths": Fault(_torques(lambda v, _: _scaled(v, ELBOW, 100.0)), "torque_unit", ELBOW),
    "on a wall": Fault(lambda logs, robot, *_: (logs, robot.with_gravity((9.81, 0.0, 0.0))), "mounting"),
    "gravity removed": Fault(_weightless, "gravity_removed"),
    "load in one log": Fault(_loaded, "undeclared_payload", stated=0.0),
    "load in all logs": Fault(_loaded, "undeclared_payload"),
    "late [s]": Fault(_torques(_late), "delay", None, 0.010, (0.005, 0.0025, 0.001)),
    "tilt [rad]": Fault(_tilted, "tilt", None, np.radians(1.3), (np.radians(0.6), np.radians(0.3))),
    "zero [rad]": Fault(_off_zero, "joint_zero", ELBOW, np.radians(3.0), (np.radians(1.5), np.radians(0.7))),
    "gain": Fault(_torques(lambda v, size: _scaled(v, ELBOW, size)), "torque_gain", ELBOW, 1.1, (1.05, 1.02)),
    "gain of one log": Fault(_one_weaker, "gain_changed", ELBOW, 0.9, (0.95,)),
    "friction grows": Fault(_warming, "friction_drift", ELBOW, 0.3, (0.1, 0.05)),
    "computed torque": Fault(_computed, "computed_torque"),
}  # fmt: skip


def is_found(fault: Fault, arm: str, seed: int, size: float) -> tuple[bool, list[str]]:
    """Plant a fault and return whether it is named with its joint, and all that is said."""
    robot = load_robot(arm)
    logs, model = fault.plant([recorded(arm, 3 * seed + k) for k in range(2)], robot, size, seed)
    findings = [one for one in diagnose(model, logs).findings if one.severity != "info"]
    said = [f"{one.code} {one.joint}".strip() for one in findings]
    if not fault.code:
        return not said, said
    joint = "" if fault.row is None else robot.joint_names[fault.row]
    return any(one.code == fault.code and joint in one.joint for one in findings), said


def run(arms: Sequence[str], faults: Sequence[str], seeds: int, *, stated: bool) -> None:
    """Print how often each fault is found, by size."""
    print(f"{'fault':20}{'size':>9}" + "".join(f"{arm:>16}" for arm in arms))
    for name in faults:
        fault = FAULTS[name]
        for size in (fault.stated, *(() if stated else fault.others)):
            cells, missed = [], []
            for arm in arms:
                start = time.process_time()
                found = [is_found(fault, arm, seed, size) for seed in range(seeds)]
                missed += [f"{arm}: {', '.join(said) or 'nothing'}" for is_right, said in found if not is_right]
                spent = (time.process_time() - start) / seeds
                cells.append(f"{sum(one for one, _ in found)}/{seeds} {spent:5.1f} s")
            print(f"{name:20}{size:9.3g}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
            for line in missed[:3]:
                print(f"    {line}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Faults that a model shows.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--faults", nargs="+", default=tuple(FAULTS))
    parser.add_argument("--stated", action="store_true", help="only the stated sizes")
    given = parser.parse_args()
    run(given.arms, given.faults, given.seeds, stated=given.stated)
