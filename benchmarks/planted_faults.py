"""Faults planted into simulated logs: does the verdict see them, and does it name them?

    python -m benchmarks.planted_faults [--seeds 10] [--arms scara_2r ur10e kuka_lwr4] [--faults ...] [--plain]

Every log is simulated in closed loop at 200 Hz with 2 % noise on the torques. A fault is made to the files that a user
would give, and ``steelyard identify a b --validate c`` is run on them. Printed for each fault: how often the grade is
no better than it may be, and how often cause and joint are named.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from steelyard.cli import main as steelyard
from steelyard.recording import Recording, write_recording
from steelyard.robot import Robot, load_robot
from steelyard.simulation import Experiment, Noise, Simulator, recording_of, simulate_together
from steelyard.study import default_motion, default_noise

ARMS = ("scara_2r", "ur10e", "kuka_lwr4")
RATE = 200.0
GRADES = ("good", "fair", "poor")
LOAD, DOUBLE_LOAD = "load", "double load"
LOADS = {"scara_2r": (0.2, 0.1), "ur10e": (3.0, 0.05), "kuka_lwr4": (2.0, 0.05)}
"""Mass [kg] of an undeclared payload, and how far it is from the last link's frame [m]."""

FLAT = ("scara_2r",)
"""Arms that move across gravity: it pulls at no joint."""

Logs = tuple[Recording, Recording, Recording]
"""Two recordings to fit and one to validate with."""


@dataclass(frozen=True)
class Fault:
    """A fault and what must be said of it.

    Attributes:
        plant: Makes the fault in the recordings.
        best: The best grade that may be given.
        texts: Texts that name it, all of which must be printed; ``{joint}`` and ``{other}`` stand for joints.
        concatenated: Whether the first two files are one behind the other in the first.
        heavy: Whether only an arm that gravity pulls at can have it.
    """

    plant: Callable[[Logs, str], Logs]
    best: str
    texts: tuple[str, ...]
    concatenated: bool = False
    heavy: bool = False


def robot_with_load(arm: str) -> Robot:
    """Return an arm that may carry a load nobody declares."""
    robot = load_robot(arm)
    mass, away = LOADS.get(arm, (1.0, 0.05))
    inertia = (mass * away**2, 0, 0, mass * away**2, 0, mass * away**2, mass * away, 0, 0, mass)
    loads = {name: tuple(float(k * value) for value in inertia) for k, name in ((1, LOAD), (2, DOUBLE_LOAD))}
    return replace(robot, payloads={**robot.payloads, **loads})


@dataclass(frozen=True)
class Log:
    """A simulated log of a random Fourier motion.

    Attributes:
        arm: The arm.
        seed: Of motion and noise.
        payload: What it carries.
        weightless: Whether gravity is taken out of its torques.
        noisy: Whether torques and positions have noise; those of a model that computes them have none.
    """

    arm: str
    seed: int
    payload: str | None = None
    weightless: bool = False
    noisy: bool = True


MOST_KEPT = 64
_recorded: dict[Log, Recording] = {}


def record(logs: Sequence[Log]) -> None:
    """Simulate logs together, which takes a fraction of the time of one after the other; forget those before."""
    _recorded.clear()
    runs = simulate_together([_simulator(log) for log in logs], [log.seed for log in logs])
    recordings = [replace(recording_of(run), payload=None, notes=()) for run in runs]
    _recorded.update(zip(logs, recordings, strict=True))


def _simulator(log: Log) -> Simulator:
    robot = robot_with_load(log.arm)
    if log.weightless:
        robot = robot.with_gravity((0.0, 0.0, 0.0))
    motion = default_motion(robot, log.seed)
    noises: dict[str, Any] = {
        key: Noise(value["kind"], tuple(value["std"])) for key, value in default_noise(robot, motion).items()
    }
    experiment = Experiment(record_rate=RATE, encoder_quantum=1e-5, payload=log.payload, **noises)
    return Simulator(robot, motion, experiment if log.noisy else Experiment(record_rate=RATE, payload=log.payload))


def recorded(arm: str, seed: int, payload: str | None = None, *, weightless: bool = False) -> Recording:
    """Return a log of :func:`record`, or one that is simulated now."""
    return recorded_log(Log(arm, seed, payload, weightless))


def recorded_log(log: Log) -> Recording:
    """Return a log of :func:`record`, or one that is simulated now."""
    if log not in _recorded:
        if len(_recorded) >= MOST_KEPT:
            _recorded.clear()
        (run,) = simulate_together([_simulator(log)], [log.seed])
        _recorded[log] = replace(recording_of(run), payload=None, notes=())
    return _recorded[log]


def logs_of(arm: str, seed: int) -> Logs:
    """Return two recordings to fit and one to validate with."""
    first, second, third = (recorded(arm, 3 * seed + k) for k in range(3))
    return first, second, third


def with_torques(recording: Recording, change: Callable[[np.ndarray], np.ndarray]) -> Recording:
    """Return a recording with all its torque channels changed (n, N)."""
    torques = tuple(replace(channel, values=change(channel.values.copy())) for channel in recording.torques)
    return replace(recording, torques=torques)


def _in_all(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Logs, str], Logs]:
    def plant(logs: Logs, arm: str) -> Logs:
        del arm
        first, second, third = (with_torques(log, change) for log in logs)
        return first, second, third

    return plant


def faulty(values: np.ndarray) -> int:
    """Return the row of the joint that faults are planted on: the last but one."""
    return len(values) - 2


def _reversed(values: np.ndarray) -> np.ndarray:
    values[faulty(values)] *= -1
    return values


def _exchanged(values: np.ndarray) -> np.ndarray:
    values[-2:] = values[:-3:-1]
    return values


def _dead(values: np.ndarray) -> np.ndarray:
    values[faulty(values)] = 0.0
    return values


def _spiked(values: np.ndarray) -> np.ndarray:
    """Return torques with 15 single samples that are 20 times as large as the joint's torque."""
    row = faulty(values)
    places = np.random.default_rng(0).choice(values.shape[1], 15, replace=False)
    values[row, places] += 20 * np.sqrt(np.mean(values[row] ** 2)) * np.where(np.arange(15) % 2, 1, -1)
    return values


def _late(values: np.ndarray) -> np.ndarray:
    """Return torques that come 10 ms late."""
    late = round(0.010 * RATE)
    return np.hstack([np.repeat(values[:, :1], late, axis=1), values[:, :-late]])


def _seed(recording: Recording) -> int:
    return int(recording.notes[0])


def _second_loaded(logs: Logs, arm: str) -> Logs:
    return logs[0], recorded(arm, _seed(logs[1]), LOAD), logs[2]


def _validation_loaded(logs: Logs, arm: str) -> Logs:
    return logs[0], logs[1], recorded(arm, _seed(logs[2]), LOAD)


def _weightless(logs: Logs, arm: str) -> Logs:
    first, second, third = (recorded(arm, _seed(log), weightless=True) for log in logs)
    return first, second, third


def _second_mirrored(logs: Logs, arm: str) -> Logs:
    """Return logs of which the second has the position of a joint reversed."""
    del arm
    signs = np.ones((len(logs[1].q), 1))
    signs[faulty(signs)] = -1
    qd = None if logs[1].qd is None else signs * logs[1].qd
    return logs[0], replace(logs[1], q=signs * logs[1].q, qd=qd), logs[2]


def _validation_reversed(logs: Logs, arm: str) -> Logs:
    del arm
    return logs[0], logs[1], with_torques(logs[2], _reversed)


def _second_weaker(logs: Logs, arm: str) -> Logs:
    del arm
    return logs[0], with_torques(logs[1], lambda values: 0.9 * values), logs[2]


def _unchanged(logs: Logs, arm: str) -> Logs:
    del arm
    return logs


FAULTS: dict[str, Fault] = {
    "clean": Fault(_unchanged, "good", ()),
    "all signs": Fault(_in_all(np.negative), "poor", ("all joints seem reversed",)),
    "one sign": Fault(_in_all(_reversed), "poor", ("{joint} seems reversed",)),
    "unit x 1000": Fault(_in_all(lambda values: 1000 * values), "poor", ("unit",)),
    "unit / 1000": Fault(_in_all(lambda values: values / 1000), "poor", ("unit",)),
    "exchanged torques": Fault(_in_all(_exchanged), "poor", ("{joint} and {other} seem exchanged",)),
    "dead column": Fault(_in_all(_dead), "poor", ("dead", "{joint}")),
    "undeclared payload": Fault(_second_loaded, "poor", ("payload",)),
    "spikes": Fault(_in_all(_spiked), "poor", ("spike", "{joint}")),
    "gain 0.9 in one log": Fault(_second_weaker, "fair", ("gain",)),
    "delay 10 ms": Fault(_in_all(_late), "fair", ("late",)),
    "concatenated": Fault(_unchanged, "fair", ("concatenated",), concatenated=True),
    "validation loaded": Fault(_validation_loaded, "poor", ("payload",), heavy=True),
    "one validation sign": Fault(_validation_reversed, "poor", ("{joint} seems reversed in 'unseen'",)),
    "position of one log": Fault(_second_mirrored, "poor", ("position of {joint} seems reversed in 'second'",)),
    "gravity removed": Fault(_weightless, "poor", ("gravity seems to be taken out",), heavy=True),
}


def write_logs(folder: Path, fault: Fault, arm: str, seed: int) -> list[str]:
    """Write the files of a fault and return the arguments of ``steelyard identify``."""
    logs = tuple(replace(log, notes=(str(3 * seed + k),)) for k, log in enumerate(logs_of(arm, seed)))
    planted = fault.plant(logs, arm)  # type: ignore[arg-type]  # three of them
    names = [folder / f"{name}.npz" for name in ("first", "second", "unseen")]
    for name, log in zip(names, planted, strict=True):
        write_recording(replace(log, notes=()), name)
    training = [str(name) for name in names[:2]]
    if fault.concatenated:
        training = [str(_concatenated(*names[:2]))]
    return [arm, *training, "--validate", str(names[2])]


def _concatenated(first: Path, second: Path) -> Path:
    """Return one file with the samples of both, stamps as they were."""
    with np.load(first) as one, np.load(second) as other:
        arrays = {
            key: one[key] if one[key].ndim == 0 else np.concatenate([one[key], other[key]], axis=-1)
            for key in one.files
        }
    path = first.with_name("both.npz")
    np.savez(path, **arrays)  # type: ignore[arg-type]  # names are those of a recording
    return path


def identified(arguments: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit code and what ``steelyard identify --json`` says."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = steelyard(["identify", *arguments, "--json"])
    return code, json.loads(printed.getvalue())


@dataclass(frozen=True)
class Outcome:
    """What was said of a fault.

    Attributes:
        code: Exit code.
        result: The JSON result.
        grade: Grade of the verdict; ``error`` for an error.
        observed: Whether the grade is no better than it may be.
        named: Whether cause and joint are named.
    """

    code: int
    result: dict[str, Any]
    grade: str
    observed: bool
    named: bool


def can_have(arm: str, name: str) -> bool:
    """Return whether an arm can have a fault."""
    return arm not in FLAT or not FAULTS[name].heavy


def outcome(name: str, arm: str, seed: int, options: Sequence[str] = ()) -> Outcome:
    """Plant a fault, identify, and compare what is said with what must be."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder:
        code, result = identified([*write_logs(Path(folder), fault, arm, seed), *options])
    if "error" in result:
        refused = bool(fault.texts) and all(word in json.dumps(result, ensure_ascii=False) for word in fault.texts)
        return Outcome(code, result, "error", refused, refused)
    verdict = result["verdict"]
    said = json.dumps([verdict["reasons"], result.get("findings", [])], ensure_ascii=False)
    joints = [body.joint.name for body in load_robot(arm).actuated]
    texts = [word.format(joint=joints[-2], other=joints[-1]) for word in fault.texts]
    observed = GRADES.index(verdict["grade"]) >= GRADES.index(fault.best)
    if name == "clean":
        observed = verdict["questions"]["predicts"] == "good" and verdict["questions"]["plausible"] == "good"
    return Outcome(code, result, verdict["grade"], observed, all(word in said for word in texts))


def run(
    arms: Sequence[str] = ARMS,
    faults: Sequence[str] = tuple(FAULTS),
    seeds: int = 10,
    options: Sequence[str] = (),
) -> None:
    """Print the table: for each fault and arm how often it is seen and named."""
    print(f"  {seeds} seeds: grade no better than it may be / cause and joint named")
    print(f"  {'fault':22}" + "".join(f"{arm:>16}" for arm in arms))
    for name in faults:
        groups = []
        for arm in arms:
            outcomes = [outcome(name, arm, seed, options) for seed in range(seeds if can_have(arm, name) else 0)]
            counts = f"{sum(o.observed for o in outcomes)} / {sum(o.named for o in outcomes)}"
            groups.append(counts if outcomes else "cannot have it")
        print(f"  {name:22}" + "".join(f"{group:>16}" for group in groups), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--faults", nargs="+", default=tuple(FAULTS))
    parser.add_argument("--plain", action="store_true", help="choose no further effects")
    given = parser.parse_args()
    run(given.arms, given.faults, given.seeds, ["--plain"] if given.plain else [])
