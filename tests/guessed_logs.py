"""Logs of simulated arms in the shapes that loggers write, with the truth about them, and what a guess got right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from simulated_experiments import short_log
from steelyard.motion import limits_of, quintic, quintic_profile, random_points
from steelyard.recording import Recording, SetupGuess
from steelyard.recording.columns import selected_columns
from steelyard.recording.units import gear_matrix
from steelyard.robot import Robot, load_robot
from steelyard.simulation import Experiment, recording_of, simulate

NAMES = {
    "q": ("q", "pos_", "actual_q_", "joint_angle_", "position["),
    "qd": ("qd", "vel_", "actual_qd_", "joint_velocity_", "velocity["),
    "torque": ("tau", "torque_", "actual_torque_", "joint_effort_", "effort["),
    "motor_current": ("i", "current_", "actual_current_", "motor_current_", "current["),
}
CHANNELS = ("q", "qd", "torque", "motor_current")


@dataclass(frozen=True)
class Shape:
    """How a log is written.

    Attributes:
        header: Which words name the columns (0 to 4); None for no header.
        degrees: Whether positions are in degrees.
        velocity: Unit of velocities; empty for none.
        motor_side: Whether positions, velocities and torques are before the gears.
        current: Unit of currents instead of torques; empty for torques.
        time: Unit of the stamps; empty for none.
        order: Order of the channels q, qd, torque.
        shuffled: Whether joints stand in another order in the header.
    """

    header: int | None = 0
    degrees: bool = False
    velocity: str = "rad/s"
    motor_side: bool = False
    current: str = ""
    time: str = "s"
    order: tuple[int, ...] = (0, 1, 2)
    shuffled: bool = False


@dataclass(frozen=True)
class Truth:
    """Columns (from 0, in joint order), unit, side and sign of a channel."""

    columns: tuple[int, ...]
    unit: str
    side: str
    sign: int = 1


SCALE = {"rad/s": 1.0, "deg/s": np.pi / 180, "rpm": np.pi / 30, "A": 1.0, "mA": 1e-3}
STAMPS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def written(folder: Path, robot: Robot, log: Recording, shape: Shape, seed: int) -> tuple[Path, dict[str, Truth]]:
    """Write a recording in a shape; return the file and the truth."""
    rng = np.random.default_rng(seed)
    count = len(log.joints)
    gears = gear_matrix(robot, None, None) if shape.motor_side else np.eye(count)
    gain = np.array([robot.values.get(f"drive_gain{body.number}", 10.0) for body in robot.actuated])
    torque = log.torques[0].values * (gain[:, None] if log.torques[0].kind == "motor_current" else 1.0)
    speed = np.gradient(log.q, log.time, axis=1) if log.qd is None else log.qd
    side = "motor" if shape.motor_side else "joint"
    arrays: dict[str, np.ndarray] = {"q": gears @ log.q / (np.pi / 180 if shape.degrees else 1.0)}
    units = {"q": "deg" if shape.degrees else "rad"}
    if shape.velocity:
        arrays["qd"], units["qd"] = gears @ speed / SCALE[shape.velocity], shape.velocity
    if shape.current:
        arrays["motor_current"], units["motor_current"] = torque / gain[:, None] / SCALE[shape.current], shape.current
    else:
        arrays["torque"], units["torque"] = np.linalg.inv(gears).T @ torque, "Nm"
    names = list(arrays)
    names = [names[k] for k in shape.order if k < len(names)]
    columns, header, truth = [], [], {}
    if shape.time:
        columns.append(1.6e9 * (rng.random() > 0.5) + log.time)
        columns[-1] = columns[-1] / STAMPS[shape.time]
        header.append("timestamp")
        truth["time"] = Truth((0,), shape.time, "")
    for name in names:
        joints = rng.permutation(count) if shape.shuffled else np.arange(count)
        start = len(columns)
        columns += [arrays[name][joint] for joint in joints]
        word = NAMES[name][shape.header or 0]
        header += [f"{word}{joint + 1}{']' if word.endswith('[') else ''}" for joint in joints]
        places = tuple(start + joints.tolist().index(joint) for joint in range(count))
        own_side = "joint" if name == "motor_current" else side
        truth[name] = Truth(places, units[name], own_side)
    path = folder / f"log_{seed}.csv"
    text = "" if shape.header is None else ",".join(header)
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=text, comments="", fmt="%.17g")
    return path, truth


@lru_cache(maxsize=8)
def geared(name: str, ratio: tuple[float, ...] = (100.0, 121.0, 80.0, 101.0, 50.0, 100.0, 160.0)) -> Robot:
    """Return an arm with gear ratios, its own or these."""
    robot = load_robot(name)
    if all(body.joint.gear_ratio for body in robot.actuated):
        return robot
    ratios = dict(zip(robot.joint_names, ratio, strict=False))
    joints = tuple(replace(joint, gear_ratio=ratios.get(joint.name)) for joint in robot.joints)
    return replace(robot, joints=joints)


@lru_cache(maxsize=16)
def simulated(name: str, seed: int) -> Recording:
    """Return a simulated log of a catalogue arm with noise on its torques; longer moves than ``short_log``."""
    if name != "ur10e":
        return short_log(name, seed)[1]
    robot = load_robot(name)
    points = random_points(limits_of(robot), 8, 2.0, quintic_profile(), np.random.default_rng(seed))
    experiment = Experiment(record_rate=125, saturate=False, encoder_quantum=1e-6)
    return recording_of(simulate(robot, quintic(points, 2.0, list(robot.joint_names)), experiment, [seed]))


def judged(guess: SetupGuess, truth: dict[str, Truth], names: Sequence[str]) -> Counter[tuple[str, str, str]]:
    """Count ``(channel, aspect, verdict)``: right, unsure (and wrong or not), wrong but likely, wrong but sure."""
    found: Counter[tuple[str, str, str]] = Counter()
    for channel, true in truth.items():
        drives = ("motor_torque", "joint_torque", "motor_current")
        wanted = drives if channel in ("torque", "motor_current") else (channel,)
        item = next((one for one in guess.items if one.channel in wanted), None)
        if item is None or item.columns is None:
            found[channel, "columns", "not found"] += 1
            continue
        columns = tuple(selected_columns(item.columns, names, ""))
        values = {
            "columns": set(columns) == set(true.columns), "unit": item.unit == true.unit,
            "side": item.side == true.side,
            "sign": all(sign == true.sign for sign in item.sign),
            "kind": (item.channel == "motor_current") == (channel == "motor_current"),
        }  # fmt: skip
        for one in item.aspects:
            if one.aspect not in values:
                continue
            right = values[one.aspect]
            verdict = "right" if right else "unsure" if one.confidence == "unsure" else f"wrong but {one.confidence}"
            found[channel, one.aspect, verdict] += 1
        order = next(one for one in guess.items if one.channel == "joints")
        if columns != true.columns and set(columns) == set(true.columns):
            found[channel, "order", "unsure" if order.confidence == "unsure" else f"wrong but {order.confidence}"] += 1
    return found


SHAPES: tuple[tuple[str, Shape], ...] = (
    ("plain", Shape()),
    ("degrees", Shape(1, degrees=True, velocity="deg/s")),
    ("rpm, ms", Shape(2, velocity="rpm", time="ms")),
    ("rad and deg/s, ns", Shape(3, velocity="deg/s", time="ns")),
    ("permuted channels", Shape(4, order=(2, 0, 1), time="us")),
    ("permuted joints", Shape(1, shuffled=True, order=(1, 2, 0))),
    ("motor side", Shape(0, motor_side=True)),
    ("motor side, rpm", Shape(1, motor_side=True, velocity="rpm")),
    ("mA", Shape(1, current="mA")),
    ("A without velocities", Shape(2, current="A", velocity="")),
    ("no stamps", Shape(0, time="")),
    ("no header", Shape(None)),
    ("no header, degrees", Shape(None, degrees=True, velocity="deg/s")),
    ("no header, other order", Shape(None, order=(2, 1, 0), time="ms")),
    ("no header, rpm, motor", Shape(None, motor_side=True, velocity="rpm")),
    ("no header, no stamps", Shape(None, time="", order=(1, 0, 2))),
    ("no header, no velocities", Shape(None, velocity="", degrees=True)),
    ("no header, mA", Shape(None, current="mA", order=(0, 2, 1))),
)
ARMS = ("scara_2r", "kuka_lwr4", "franka_panda", "ur10e", "staubli_tx40", "kuka_ir361")


def headings(path: Path) -> list[str]:
    """Return the names of the columns of a log; numbers from 1 if it has none."""
    with path.open(encoding="utf-8") as file:
        cells = file.readline().strip().split(",")
    return [f"column_{k}" for k in range(1, len(cells) + 1)] if cells[0][0].isdigit() else cells
