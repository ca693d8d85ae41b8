"""Faults planted into simulated logs: does ``steelyard check`` find them with a model, and name joint and size?

    python -m benchmarks.doctor [--seeds 5] [--first 0] [--arms kuka_lwr4 ur10e staubli_tx40] [--faults ...] [--stated]
                                [--jobs 1] [--keep FILE]
    python -m benchmarks.doctor --real

Sizes, stated before measuring, as users make them: a torque sign, those of two joints, two exchanged columns,
millinewton metres, one joint's torque in hundredths, an arm on a wall, gravity taken out by a driver, a load that
nobody declared (3 kg on the UR10e, 2 and 1 on the others), in all recordings or in one, torques 10 ms late, a base
tilted by 1.3 degrees, a joint zero off by 3 degrees, a torque's gain, or the gear ratio of a position, wrong by 10 %,
a drive gain 10 % lower in one recording, friction that grows by 30 % of the spread of the torque, in all recordings,
or is larger by that much in one, torques that a model computed, commanded positions, drives whose gains are not known
and no run with a payload. Some are shown at other sizes too. Every log is simulated in closed loop at 200 Hz with 2 %
noise on the torques (:mod:`benchmarks.planted_faults`); two logs are checked together. Found: the right name and
joint, a warning or worse but for the missing payload run. False: logs that raise a warning of something else too.
Clean logs must raise none.

On the TX40 friction is most of the torque. By the Cramer-Rao bound of these motions a zero of joint 3 has a sigma of
1.2 to 1.3 degrees there, and a load a sigma of 0.28 kg (links of the file known to 20 %): 3 degrees are 2.4 sigmas and
1 kg 3.5, below the four that a finding needs (and 1 kg is less than a twentieth of that arm). From sigmas, not from
counts, 95 of 100 should be found from about 7 degrees and 1.6 kg on. Sigmas are those of seeds 0 and 1.

With ``--real``, recordings of real arms (STEELYARD_DATA): the quirks that their descriptions name, and what is said.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_data import TABLES, data_folder
from benchmarks.init_real import AIRBOT, icub_logs
from benchmarks.planted_faults import DOUBLE_LOAD, LOAD, Log, record, recorded, recorded_log, with_torques
from steelyard.cli import main as steelyard
from steelyard.identification import diagnose
from steelyard.recording import Recording
from steelyard.robot import Robot, load_robot

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


def _farther(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    """Return logs in which a joint seems to move farther than it does."""
    sizes = np.where(np.arange(len(logs[0].q)) == ELBOW, size, 1.0)[:, None]
    return [replace(log, q=sizes * log.q, qd=None) for log in logs], robot


def _tilted(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    """Return logs of an arm whose base is tilted about x against what the model says."""
    turn = np.array([[1, 0, 0], [0, np.cos(size), -np.sin(size)], [0, np.sin(size), np.cos(size)]])
    x, y, z = turn @ np.array(robot.gravity)
    return logs, robot.with_gravity((float(x), float(y), float(z)))


def _loaded(logs: list[Recording], robot: Robot, size: float, seed: int) -> Case:
    """Return logs with a load, of so many times the usual mass in all of them; zero: one in the second alone."""
    load = DOUBLE_LOAD if size > 1 else LOAD
    first = logs[0] if size < 1 else recorded(robot.name, 3 * seed, load)
    return [first, recorded(robot.name, 3 * seed + 1, load)], robot


def _weightless(logs: list[Recording], robot: Robot, size: float, seed: int) -> Case:
    del logs, size
    return [recorded(robot.name, 3 * seed + k, weightless=True) for k in range(2)], robot


def _one_weaker(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    return [logs[0], with_torques(logs[1], lambda values: _scaled(values, ELBOW, size))], robot


def _with_friction(log: Recording, parts: np.ndarray | float) -> Recording:
    """Return a log with more Coulomb friction of a joint, in parts of the spread of its torque."""
    direction = np.sign(np.gradient(log.q[ELBOW], log.time))
    more = parts * float(np.std(log.torques[0].values[ELBOW])) * direction

    def change(values: np.ndarray) -> np.ndarray:
        values[ELBOW] += more
        return values

    return with_torques(log, change)


def _warming(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    return [_with_friction(log, size * np.linspace(0.0, 1.0, log.samples)) for log in logs], robot


def _another_day(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    return [logs[0], _with_friction(logs[1], size)], robot


def _commanded(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    """Return logs whose positions are the reference, which is not named as such."""
    del size
    found = []
    for log in logs:
        assert log.reference is not None
        found.append(replace(log, q=log.reference, reference=None))
    return found, robot


def _unknown_gains(logs: list[Recording], robot: Robot, size: float, _: int) -> Case:
    del size
    unknown = np.full((len(robot.actuated), len(robot.actuated)), np.inf)
    torques = [tuple(replace(one, gain_covariance=unknown) for one in log.torques) for log in logs]
    return [replace(log, torques=own) for log, own in zip(logs, torques, strict=True)], robot


def _computed(logs: list[Recording], robot: Robot, size: float, seed: int) -> Case:
    del logs, size
    return [recorded_log(Log(robot.name, 3 * seed + k, noisy=False)) for k in range(2)], robot


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
    "two torque signs": Fault(_torques(lambda v, _: _scaled(_scaled(v, ELBOW, -1.0), ELBOW - 1, -1.0)), "torque_sign",
                              ELBOW),
    "exchanged": Fault(_torques(lambda v, _: v[[*range(ELBOW), ELBOW + 1, ELBOW, *range(ELBOW + 2, len(v))]]),
                       "exchanged_torques", ELBOW),
    "in mN m": Fault(_torques(lambda v, _: 1e3 * v), "torque_unit"),
    "one in hundredths": Fault(_torques(lambda v, _: _scaled(v, ELBOW, 100.0)), "torque_unit", ELBOW),
    "on a wall": Fault(lambda logs, robot, *_: (logs, robot.with_gravity((9.81, 0.0, 0.0))), "mounting"),
    "gravity removed": Fault(_weightless, "gravity_removed"),
    "load in one log": Fault(_loaded, "undeclared_payload", stated=0.0),
    "load in all logs": Fault(_loaded, "undeclared_payload", others=(2.0,)),
    "late [s]": Fault(_torques(_late), "delay", None, 0.010, (0.005, 0.0025, 0.001)),
    "tilt [rad]": Fault(_tilted, "tilt", None, np.radians(1.3), (np.radians(0.6), np.radians(0.3))),
    "zero [rad]": Fault(_off_zero, "joint_zero", ELBOW, np.radians(3.0),
                        (np.radians(8.0), np.radians(1.5), np.radians(0.7))),
    "gain": Fault(_torques(lambda v, size: _scaled(v, ELBOW, size)), "torque_gain", ELBOW, 1.1, (1.05, 1.02)),
    "position scale": Fault(_farther, "position_scale", ELBOW, 1.1, (1.05, 1.02)),
    "gain of one log": Fault(_one_weaker, "gain_changed", ELBOW, 0.9, (0.95,)),
    "friction grows": Fault(_warming, "friction_drift", ELBOW, 0.3, (0.1, 0.05)),
    "friction of one log": Fault(_another_day, "friction_drift", ELBOW, 0.3, (0.1, 0.05)),
    "computed torque": Fault(_computed, "computed_torque"),
    "commanded position": Fault(_commanded, "commanded_position"),
    "no payload run": Fault(_unknown_gains, "no_payload_run"),
}  # fmt: skip


def is_found(fault: Fault, arm: str, seed: int, size: float) -> tuple[bool, list[str], bool]:
    """Plant a fault; return whether it is named with its joint, all that is said, and whether some of it is false."""
    robot = load_robot(arm)
    logs, model = fault.plant([recorded(arm, 3 * seed + k) for k in range(2)], robot, size, seed)
    findings = diagnose(model, logs).findings
    warnings = [one for one in findings if one.severity != "info"]
    said = [f"{one.code} {one.joint}".strip() for one in warnings]
    if not fault.code:
        return not said, said, bool(said)
    joint = "" if fault.row is None else robot.joint_names[fault.row]
    right = [one for one in findings if one.code == fault.code and joint in one.joint]
    told = fault.code == "no_payload_run" or any(one.severity != "info" for one in right)
    # Computed torques go with computed positions.
    allowed = {fault.code, "commanded_position"} if fault.code == "computed_torque" else {fault.code}
    false = any(one.code not in allowed or (fault.row is not None and joint not in one.joint) for one in warnings)
    return bool(right) and told, said, false


Outcome = tuple[str, float, str, int, bool, bool, list[str], float]
"""Fault, size, arm, seed, whether it is found, whether something is named falsely, what is said, seconds of CPU."""

TOGETHER = 4
"""Seeds whose logs are simulated together."""


def outcomes_of(arm: str, seeds: Sequence[int], faults: Sequence[str], *, stated: bool) -> list[Outcome]:
    """Return what is said of every fault and size planted into the logs of some seeds."""
    record(list(_logs(arm, seeds, faults, stated=stated)))
    found = []
    for name, seed in product(faults, seeds):
        fault = FAULTS[name]
        for size in (fault.stated, *(() if stated else fault.others)):
            start = time.process_time()
            right, said, false = is_found(fault, arm, seed, size)
            found.append((name, size, arm, seed, right, false, said, time.process_time() - start))
    return found


def _logs(arm: str, seeds: Sequence[int], faults: Sequence[str], *, stated: bool) -> Iterator[Log]:
    """Yield the logs that these faults need."""
    loads = {"load in one log": [LOAD], "load in all logs": [LOAD] if stated else [LOAD, DOUBLE_LOAD]}
    for seed in (3 * seed + k for seed in seeds for k in range(2)):
        yield Log(arm, seed)
        for load in sorted({load for name in faults for load in loads.get(name, [])}):
            yield Log(arm, seed, load)
        if "gravity removed" in faults:
            yield Log(arm, seed, weightless=True)
        if "computed torque" in faults:
            yield Log(arm, seed, noisy=False)


def run(
    arms: Sequence[str], faults: Sequence[str], seeds: Sequence[int], *, stated: bool, jobs: int, kept: Path | None
) -> None:
    """Print how often each fault is found, by size, and how often something else is named too.

    An interrupt prints the table of what is finished. With a file, every outcome is added to it, and those that it has
    are not repeated.
    """
    lines = kept.read_text().splitlines() if kept and kept.exists() else []
    outcomes = [tuple(json.loads(line)) for line in lines]
    known = {one[:4] for one in outcomes}
    parts = [seeds[k : k + TOGETHER] for k in range(0, len(seeds), TOGETHER)]
    with ProcessPoolExecutor(jobs) as pool:
        tasks = []
        for part, arm in product(parts, arms):
            left = [name for name in faults if any((name, FAULTS[name].stated, arm, k) not in known for k in part)]
            tasks += [pool.submit(outcomes_of, arm, part, left, stated=stated)] if left else []
        try:
            for finished, task in enumerate(as_completed(tasks), 1):
                outcomes += task.result()
                if kept is not None:
                    with kept.open("a") as file:
                        file.writelines(f"{json.dumps(one)}\n" for one in task.result())
                print(f"{finished} of {len(tasks)}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
    print_outcomes(arms, faults, outcomes)


def print_outcomes(arms: Sequence[str], faults: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    """Print a line for each fault and size, and up to three logs where it is missed or something else is named."""
    print(f"{'found/false/logs':20}{'size':>9}" + "".join(f"{arm:>18}" for arm in arms))
    chosen = [one for one in outcomes if one[0] in faults]
    for name, size in dict.fromkeys(one[:2] for one in sorted(chosen, key=lambda one: faults.index(one[0]))):
        cells, missed = [], []
        for arm in arms:
            own = [one for one in chosen if one[:3] == (name, size, arm)]
            counts = f"{sum(one[4] for one in own)}/{sum(one[5] for one in own)}/{len(own)}"
            cells.append(f"{counts} {np.mean([one[7] for one in own]) if own else 0:5.1f} s")
            missed += [f"{arm} {one[3]}: {', '.join(one[6]) or 'nothing'}" for one in own if not one[4] or one[5]]
        print(f"{name:20}{size:9.3g}" + "".join(f"{cell:>18}" for cell in cells))
        for line in missed[:3]:
            print(f"    {line}")


UR = "ur10e/identification/ur-"
ICUB_SETUP = """[recording]
time = 1
q = { columns = 2, unit = "deg" }
torque = { kind = "joint_torque", columns = 4 }
"""


@dataclass(frozen=True)
class Quirk:
    """Something odd of real recordings that their description names.

    Attributes:
        what: In words.
        robot: Catalogue name or file.
        setup: Name of a set-up in ``benchmarks/data``, or its text.
        logs: Logs of the data folder; empty: those that the set-up names.
        code: Code that must be said.
        joint: Joint that must be named.
        table: Table of the set-up.
    """

    what: str
    robot: str
    setup: str
    logs: tuple[str, ...]
    code: str
    joint: str = ""
    table: str = "recording"


def quirks(folder: Path) -> list[Quirk]:
    """Return the quirks of the real sets; iCub's logs are written as text into a folder."""
    days = ("20_02_06-20sec_10harm", "20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_19_14harm50sec")
    joint_side = (TABLES / "staubli_tx40.toml").read_text(encoding="utf-8").replace('side = "motor"', 'side = "joint"')
    idle = [case for case in icub_logs(folder) if case.name.endswith("idle")]
    return [
        Quirk("UR10e: jitter", "ur10e", "ur10e", (f"{UR}20_02_10-30sec_12harm.csv",), "jitter"),
        Quirk("UR10e: friction of joint 6 by day", "ur10e", "ur10e", tuple(f"{UR}{day}.csv" for day in days),
              "friction_drift", "wrist_3_joint"),
        Quirk("Panda: lost samples", "franka_panda", "franka_panda", (), "gap"),
        Quirk("LWR4+: filtered before it was saved", "kuka_lwr4", "kuka_lwr4", (), "filtered"),
        Quirk("TX40: motor side, read as joint side", "staubli_tx40", joint_side, (), "degrees"),
        Quirk("AIRBOT: all joints move alike", str(data_folder() / AIRBOT), "airbot_play", (), "alike", "", "chirp"),
        *(Quirk(f"{case.name}: reversed", case.robot, ICUB_SETUP, case.logs, "torque_sign") for case in idle),
    ]  # fmt: skip


def findings_of(quirk: Quirk, folder: Path) -> list[dict[str, Any]]:
    """Return what ``steelyard check`` says of a quirk's recordings; a set-up that is a text is written to a folder."""
    setup = TABLES / f"{quirk.setup}.toml"
    if "\n" in quirk.setup:
        setup = folder / "setup.toml"
        setup.write_text(quirk.setup, encoding="utf-8")
    told = io.StringIO()
    given = [quirk.robot, *quirk.logs, "--config", str(setup), "--table", quirk.table, "--root", str(data_folder())]
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        steelyard(["check", *given, "--json"])
    return json.loads(told.getvalue())["findings"]


def print_quirks() -> None:
    """Print which quirks of real recordings are named, and all warnings beside."""
    with tempfile.TemporaryDirectory() as name:
        for quirk in quirks(Path(name)):
            findings = findings_of(quirk, Path(name))
            right = [one for one in findings if one["code"] == quirk.code and quirk.joint in one["joint"]]
            said = sorted({f"{one['code']} {one['joint']}".strip() for one in findings if one["severity"] != "info"})
            print(f"{quirk.what:40}{quirk.code if right else 'NOT NAMED':20}warnings: {', '.join(said)}", flush=True)
            for one in right[:1]:
                print(f"    {one['severity']}: {' '.join(one['text'].split())}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Faults that a model shows.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--faults", nargs="+", default=tuple(FAULTS))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--stated", action="store_true", help="only the stated sizes")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share arms and seeds")
    parser.add_argument("--keep", type=Path, help="file of outcomes: what it has is not repeated, new ones are added")
    parser.add_argument("--real", action="store_true", help="recordings of real arms")
    given = parser.parse_args()
    if given.real:
        print_quirks()
    else:
        seeds = range(given.first, given.first + given.seeds)
        run(given.arms, given.faults, seeds, stated=given.stated, jobs=given.jobs, kept=given.keep)
