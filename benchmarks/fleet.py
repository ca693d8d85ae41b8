"""A fleet of simulated arms with planted changes: what `steelyard fleet` finds, and how fast on workers.

200 arms (half UR10e, half Panda) that differ by 5 % in the inertias of their links and 20 % in friction, five short
logs each; a step and a slow growth of friction, a payload that nobody declared, three broken logs.
STEELYARD_FLEET_UNITS in the environment names another number of arms.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.timing import most_resident_megabytes
from steelyard.fleet import FleetResult, identify_fleet
from steelyard.kernel import compile_batch
from steelyard.model import Model, base_parameters, build_model
from steelyard.recording import Recording, recording_from_arrays, write_recording
from steelyard.robot import Robot, load_robot
from steelyard.study import default_motion

ROBOTS = ("ur10e", "franka_panda")
RATE, SECONDS, LOGS = 100.0, 8.0, 5
INERTIA_SPREAD, FRICTION_SPREAD = 0.05, 0.2
TORQUE_NOISE, ENCODER_NOISE = 0.02, 1e-5
"""Part of the rms torque of each joint, and [rad]."""
FEW = 60
"""Logs by which clusters are timed."""


@dataclass(frozen=True)
class Planted:
    """A change of one unit.

    Attributes:
        robot: Its robot.
        unit: Number of the unit.
        first: Number of the first log that has it.
        joint: Number of the joint whose friction changes; 0 for a payload.
        factors: Friction of each log as a part of that before; masses of a payload [kg] for joint 0.
    """

    robot: str
    unit: int
    first: int
    joint: int
    factors: tuple[float, ...]


def planted(units: int) -> tuple[Planted, ...]:
    """Return the changes of a fleet of so many units of each robot."""
    return (
        Planted("ur10e", units // 6, 3, 3, (1, 1, 1, 1.4, 1.4)),
        Planted("franka_panda", units // 3, 1, 4, (1, 1.15, 1.3, 1.45, 1.6)),
        Planted("ur10e", units // 2, 2, 0, (0, 0, 2.0, 2.0, 2.0)),
    )


class ArmMaker:
    """Makes logs of units of a robot; the regressor of each motion is evaluated once.

    Args:
        name: Name of the robot.
        logs: How many motions.
    """

    def __init__(self, name: str, logs: int = LOGS) -> None:
        self.robot: Robot = load_robot(name)
        self.model: Model = build_model(self.robot)
        self.base = base_parameters(self.model)
        self.mean = np.array([self.robot.parameters.get(one.name, 0.0) for one in self.model.parameters])
        function = compile_batch(self.model.regressor)
        self.time = np.arange(0.0, SECONDS, 1 / RATE)
        self.motions, self.regressors = [], []
        for seed in range(logs):
            motion = default_motion(self.robot, seed).at(self.time)
            self.motions.append(motion.q)
            inputs = (motion.q, motion.qd, motion.qdd)
            self.regressors.append(function.dense(*map(np.ascontiguousarray, inputs))[0])

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of every standard parameter, as if each varied alone."""
        is_friction = np.array([bool(one.friction) for one in self.model.parameters])
        return np.abs(self.mean) * np.where(is_friction, FRICTION_SPREAD, INERTIA_SPREAD)

    def unit(self, rng: np.random.Generator) -> np.ndarray:
        """Return the standard parameters of a unit: links scaled as a whole, every coefficient of friction alone."""
        numbers = {one.number for one in self.model.parameters}
        of_link = {number: 1 + INERTIA_SPREAD * rng.standard_normal() for number in sorted(numbers)}
        factors = [
            1 + FRICTION_SPREAD * rng.standard_normal() if one.friction else of_link[one.number]
            for one in self.model.parameters
        ]
        return self.mean * np.array(factors)

    def recording(self, log: int, parameters: np.ndarray, rng: np.random.Generator) -> Recording:
        """Return a recording of an arm."""
        torque = np.einsum("epn,p->en", self.regressors[log], parameters)
        noise = TORQUE_NOISE * np.sqrt(np.mean(torque**2, axis=1, keepdims=True))
        q = self.motions[log] + ENCODER_NOISE * rng.standard_normal(self.motions[log].shape)
        kind = "motor_torque" if self.model.measured == "motor" else "joint_torque"
        measured = torque + noise * rng.standard_normal(torque.shape)
        return recording_from_arrays(self.robot, {"time": self.time, "q": q.T, kind: measured.T})

    def payload(self, mass: float) -> np.ndarray:
        """Return what a ball of that mass, 10 cm before the last link's frame, adds to the parameters."""
        last, (radius, distance) = self.robot.actuated[-1].number, (0.05, 0.1)
        own = 0.4 * mass * radius**2
        added = {"XX": own + mass * distance**2, "YY": own + mass * distance**2, "ZZ": own}
        added |= {"MZ": mass * distance, "M": mass}
        return np.array([added.get(one.symbol, 0.0) * (one.number == last) for one in self.model.parameters])

    def base_values(self, parameters: np.ndarray) -> np.ndarray:
        """Return the base parameters of standard ones."""
        return self.base.regrouping @ parameters


@dataclass(frozen=True)
class Truth:
    """What a fleet was made from.

    Attributes:
        units: Base parameters of every unit (U, c) by robot, before its changes.
        spread: Standard deviations between units (c,) of the base parameters by robot.
        columns: Names of the base columns by robot.
        changes: What was planted.
        broken: Serial numbers and numbers of the broken logs.
    """

    units: dict[str, np.ndarray]
    spread: dict[str, np.ndarray]
    columns: dict[str, list[str]]
    changes: tuple[Planted, ...]
    broken: tuple[tuple[str, int], ...]


def make_fleet(folder: Path, units: int, robots: tuple[str, ...] = ROBOTS, seed: int = 0) -> Truth:
    """Write logs and manifest of a fleet with so many units of each robot."""
    rng, changes = np.random.default_rng(seed), planted(units)
    lines, found, spread, columns = ["robot,serial,date,files"], {}, {}, {}
    for name in robots:
        maker, mine = ArmMaker(name), []
        for unit in range(units):
            standard = maker.unit(rng)
            mine.append(maker.base_values(standard))
            for log in range(LOGS):
                recording = maker.recording(log, _changed(maker, standard, changes, unit, log), rng)
                file = f"{name}_{unit:03d}_{log}.npz"
                write_recording(replace(recording, notes=(), findings=()), folder / file)
                lines.append(f"{name},{_serial(name, unit)},2026-0{log + 1}-15,{file}")
        draws = np.array([maker.base_values(maker.unit(rng)) for _ in range(2000)])
        found[name], spread[name] = np.array(mine), draws.std(axis=0)
        columns[name] = [one.column for one in maker.base.base]
    broken = tuple((_serial(robots[0], unit), 1) for unit in (1, 2, 4))
    for unit, content in zip((1, 2, 4), (b"", b"no archive", None), strict=True):
        file = folder / f"{robots[0]}_{unit:03d}_1.npz"
        file.write_bytes(file.read_bytes()[:5000] if content is None else content)
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")
    return Truth(found, spread, columns, tuple(one for one in changes if one.robot in robots), broken)


def _serial(robot: str, unit: int) -> str:
    return f"{robot[:2].upper()}{unit:03d}"


def _changed(maker: ArmMaker, standard: np.ndarray, changes: tuple[Planted, ...], unit: int, log: int) -> np.ndarray:
    changed = standard.copy()
    for one in changes:
        if (one.robot, one.unit) == (maker.robot.name, unit):
            if one.joint:
                own = [bool(part.friction) and part.number == one.joint for part in maker.model.parameters]
                changed[own] *= one.factors[log]
            else:
                changed += maker.payload(one.factors[log])
    return changed


def print_findings(found: FleetResult, truth: Truth) -> None:
    """Print what was found beside what was planted."""
    units = sum(len(part) for part in truth.units.values())
    wanted = {(one.robot, _serial(one.robot, one.unit)): one for one in truth.changes}
    print(f"  left out: {len(found.broken)} of {len(found.logs)} logs ({len(truth.broken)} were broken)")
    for one in found.findings:
        planted_one = wanted.get((one.robot, one.serial))
        print(f"  {'planted' if planted_one else 'FALSE'}: {one.text} (chance {one.p:.1g})")
    named = {(one.robot, one.serial) for one in found.findings}
    false = len(named - set(wanted))
    print(f"  found {len(named & set(wanted))} of {len(wanted)} planted; {false} of {units} units falsely")
    for one in truth.changes:
        when = [f.date for f in found.findings if (f.robot, f.serial) == (one.robot, _serial(one.robot, one.unit))]
        print(f"    {_serial(one.robot, one.unit)}: planted from 2026-0{one.first + 1}-15 on, found {when and when[0]}")
    for robot in found.robots:
        places = [truth.columns[robot.robot].index(one.column) for one in robot.parameters]
        low, high = robot.hierarchy.variance_interval()
        spread = truth.spread[robot.robot][places]
        inside = (low <= spread**2) & (spread**2 <= high)
        serials = [_serial(robot.robot, unit) for unit in range(len(truth.units[robot.robot]))]
        true = truth.units[robot.robot][[serials.index(serial) for serial in robot.serials]][:, places]
        clean = [s for s in range(len(robot.serials)) if (robot.robot, robot.serials[s]) not in wanted]
        alone, (values, sigma) = robot.hierarchy.single_units()[0], robot.unit_values
        errors = [np.sqrt(np.nanmean((one - true)[clean] ** 2, axis=0)) for one in (values, alone)]
        covered = np.abs(values - true)[clean] <= 1.96 * sigma[clean]
        print(
            f"  {robot.robot}: {len(robot.serials)} units, {robot.hierarchy.iterations} iterations; "
            f"{inside.sum()} of {len(inside)} variances between units within their 95 % intervals; "
            f"shrunken unit estimates cover {100 * covered.mean():.1f} %; their rms error over that of single ones: "
            f"median {np.median(errors[0] / errors[1]):.2f}, from {np.min(errors[0] / errors[1]):.2f} to "
            f"{np.max(errors[0] / errors[1]):.2f}"
        )


def print_cluster(folder: Path) -> None:
    """Print throughput, memory and bytes of a Dask cluster of this machine beside those of one process."""
    from distributed import LocalCluster

    manifest = folder / "manifest.csv"
    few = folder / "few.csv"
    few.write_text("\n".join(manifest.read_text().splitlines()[: FEW + 1]))
    seconds: dict[int, float] = {}
    contents = set()
    for workers in (1, 2, 4):
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", memory_limit=0
        ) as cluster:
            address = str(cluster.scheduler_address)  # type: ignore[union-attr]  # it is not asynchronous
            identify_fleet(few, folder / f"warm_{workers}", scheduler=address)  # compiles
            memory = _largest_memory(address)
            start = time.perf_counter()
            found = identify_fleet(few, folder / f"cold_{workers}", scheduler=address)
            seconds[workers] = time.perf_counter() - start
            contents.add(str(found.to_json()))
            print(
                f"  {workers} Dask workers: {FEW / seconds[workers]:.2f} logs/s, largest worker {memory:.0f} MB after "
                f"{FEW} logs, {_largest_memory(address):.0f} MB after {2 * FEW}"
            )
    alone = identify_fleet(few, folder / "alone")
    sent = sum(path.stat().st_size for path in (folder / "alone" / "store").rglob("*.npz")) / FEW
    read = sum(path.stat().st_size for log in alone.logs for path in log.paths if path.exists()) / FEW
    same, efficiency = contents == {str(alone.to_json())}, seconds[1] / seconds[2] / 2
    print(f"  same content as one process: {'yes' if same else 'NO'}; efficiency of 2 workers: {efficiency:.2f}")
    cores, moved = 10_000 * seconds[1] / FEW / (8 * 3600), 10_000 * sent / 1e9
    print(
        f"  a log of {SECONDS:g} s at {RATE:g} Hz has {read / 1e3:.0f} kB; {sent / 1e3:.0f} kB come back. 10,000 arms "
        f"in a night of 8 h, a log each: {cores:.1f} cores like these, {moved:.2f} GB moved"
    )


def _largest_memory(address: str) -> float:
    from distributed import Client

    with Client(address) as client:
        found: dict[str, float] = client.run(most_resident_megabytes)  # type: ignore[assignment]
    return max(found.values())


def run() -> None:
    """Make a fleet, identify it on local workers and on a cluster, and print what was found and how long it took."""
    units = int(os.environ.get("STEELYARD_FLEET_UNITS", "200")) // len(ROBOTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = make_fleet(folder, units)
        print(f"{units} units each of {', '.join(ROBOTS)}, {LOGS} logs of {SECONDS:g} s each")
        print_cluster(folder)
        start = time.perf_counter()
        found = identify_fleet(folder / "manifest.csv", folder / "out", workers=os.cpu_count() or 1)
        print(f"  {time.perf_counter() - start:.0f} s on {os.cpu_count()} local workers")
        print_findings(found, truth)


if __name__ == "__main__":
    sys.exit(run())
