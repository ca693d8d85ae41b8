"""Small simulated measurements of arms, made once in a test run: files that the documentation calibrates."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from steelyard.calibration import (
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
    Measurements,
    random_configurations,
    simulated_measurements,
    write_measurements,
)
from steelyard.robot import Robot, load_robot, transform_from_placement

UR10E_ERRORS = {"offset2": 2e-3, "z3": 0.8e-3, "rx3": 0.7e-3, "x4": -0.5e-3, "offset4": -1.5e-3, "offset5": 1e-3}
BASE = FrameSetup((1.2, -0.3, 0.5), (0.1, 0.0, 1.0))
NESTS = (
    MarkerSetup("nest_1", (0.10, 0.0, 0.05)),
    MarkerSetup("nest_2", (0.0, 0.10, 0.05)),
    MarkerSetup("nest_3", (-0.05, -0.10, 0.10)),
)
NODES_DEG = (0.0, -25.0, -57.0, -100.0, -140.0)


@lru_cache(maxsize=4)
def ur10e(seed: int, count: int) -> Measurements:
    """Return positions of three nests on a UR10e with errors of some joints, noise 0.05 mm."""
    return _positions(load_robot("ur10e"), "ee_link", UR10E_ERRORS, seed, count)


def any_arm(path: Path, link: str, errors: dict[str, float]) -> Measurements:
    """Return positions of three nests on an arm of a file, at 20 configurations."""
    return _positions(load_robot(str(path)), link, errors, 1, 20)


def _positions(robot: Robot, link: str, errors: dict[str, float], seed: int, count: int) -> Measurements:
    q = random_configurations(robot, count, np.random.default_rng(seed)) / 2
    setup = CalibrationSetup(link, base=BASE, markers=NESTS)
    return simulated_measurements(robot, setup, q, errors, sigma=5e-5, seed=seed)


@lru_cache(maxsize=1)
def kr270() -> Measurements:
    """Return deflections of a KUKA KR-270 under a mass, as in P3; softer than the catalogue's by a third."""
    robot = load_robot("kuka_kr270")
    joints = tuple(body.joint.name for body in robot.actuated)
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.5, 1.5, (len(joints), 15))
    q[1] = np.radians(np.resize(NODES_DEG, q.shape[1]))
    tool = transform_from_placement(robot.frame("tool").placement)[1]
    markers = []
    for name in ("marker_1", "marker_2", "marker_3"):
        x, y, z = (float(value) for value in transform_from_placement(robot.frame(name).placement)[1] - tool)
        markers.append(MarkerSetup(name, (x, y, z), known=True))
    setup = CalibrationSetup(
        "tool", base=FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), known=True), markers=tuple(markers), geometry="none",
        loads=(Load("heavy", (0.0, 0.0, -265 * 9.81), (0.0, 0.0, 0.0), (0.15, 0.0, -0.4)),),
        elastic=ElasticSetup(joints, nodes={"joint_2": tuple(np.radians(NODES_DEG).tolist())}),
    )  # fmt: skip
    soft = {name: 4 / 3 * robot.values[name] for name in ("k21", "k22", "k23", "k24", "k25", "k3", "k4", "k5", "k6")}
    return simulated_measurements(
        robot, setup, q, soft, kind="difference", loads=("heavy",), repeats=3, sigma=5e-5, seed=3
    )


def write_measured_arms(folder: Path) -> None:
    """Write the measurements that the documentation speaks of."""
    write_measurements(folder / "points.csv", ur10e(1, 40))
    write_measurements(folder / "other_points.csv", ur10e(2, 15))
    write_measurements(folder / "spoilt_points.csv", _spoilt(ur10e(1, 40)))
    write_measurements(folder / "deflections.csv", kr270(), ["heavy"])
    _write_wide(folder / "tracker.csv", ur10e(1, 40))


def _spoilt(measured: Measurements) -> Measurements:
    """Return measurements in which three points were read wrongly, by 30 mm."""
    value = measured.value.copy()
    value[[10, 41, 92], [0, 1, 2]] += 0.03
    return replace(measured, value=value)


def _write_wide(path: Path, measured: Measurements) -> None:
    """Write a row for each configuration, millimetres and degrees, as a tracker's software does."""
    nests = range(len(measured.markers))
    titles = [*(f"A{k + 1}" for k in range(len(measured.joints))), *(f"{c}{k + 1}" for k in nests for c in "XYZ")]
    lines = [";".join(titles)]
    for pose in range(len(measured.poses)):
        rows = np.flatnonzero(measured.pose == pose)
        numbers = [*np.degrees(measured.q[:, rows[0]]), *(1e3 * measured.value[rows]).ravel()]
        lines.append(";".join(f"{number:.9g}" for number in numbers))
    path.write_text("\n".join(lines) + "\n")
