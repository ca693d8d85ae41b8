"""Real arms identified by one command each: errors on unseen motion, plain and with effects chosen, beside targets.

    python -m benchmarks.real [--out FILE.md] [--only WORD]

Errors are computed here from raw files and predicted torques (:mod:`benchmarks.real_scoring`), and compared with those
that the product prints. The recordings are not part of the product: their folder is named by the environment variable
STEELYARD_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_data import TABLES, data_folder
from benchmarks.real_published import SOURCES, PublishedValue, compared
from benchmarks.real_scoring import READERS, TX40_STOPS, Judged, Score, score
from benchmarks.real_tables import errors_table, joints_table, model_table, rows_table, section, summary, write_section
from steelyard.estimate import System
from steelyard.identification import SavedRun, TorquePrediction, load_run, predict
from steelyard.identification.prediction import equations_of_run
from steelyard.recording import Recording, read_recording, read_recordings, read_setup
from steelyard.robot import Robot, load_robot

LWR = "kuka_lwr4/kuka_lwr4.urdf"
AIRBOT = "airbot_play/airbot_play_v3_0_gripper.urdf"
FIVE = tuple(
    f"20_02_{day}-20sec_{harmonics}harm" for day, harmonics in (("05", 12), ("05", 8), ("06", 10), ("06", 5), ("10", 7))
)
"""The UR10e's runs of 20 s."""


@dataclass(frozen=True)
class Target:
    """A row of the table: logs that are judged together by the mean of their errors, and what is good.

    Attributes:
        title: Set and split.
        judged: Logs, filter and window.
        plain: Error of a plain model that somebody else found [%].
        good: Error that is good [%].
        excellent: Error that is excellent [%].
    """

    title: str
    judged: tuple[Judged, ...]
    plain: float
    good: float
    excellent: float


@dataclass(frozen=True)
class RealCase:
    """A set identified by one command.

    Attributes:
        name: Short name.
        robot: Catalogue name, or a file of the data folder.
        config: Name of the set-up in ``benchmarks/data``.
        arguments: Logs and options.
        targets: What its result is judged by.
    """

    name: str
    robot: str
    config: str
    arguments: tuple[str, ...]
    targets: tuple[Target, ...]

    def command(self, root: Path | str, *options: str) -> list[str]:
        """Return the arguments of ``steelyard``, with the data folder named as given."""
        robot = f"{root}/{self.robot}" if "/" in self.robot else self.robot
        config = TABLES.relative_to(TABLES.parents[1]) / f"{self.config}.toml"
        return ["identify", robot, *self.arguments, "--config", str(config), "--root", str(root), *options]


def _single(
    title: str, robot: str, log: str, cutoff: float, figures: tuple[float, float, float], **more: Any
) -> Target:
    return Target(title, (Judged(robot, log, cutoff, **more),), *figures)


def _lwr(training: str, *unseen: tuple[str, tuple[float, float, float]]) -> RealCase:
    logs = tuple(f"kuka_lwr4/measurements_{number}.npz" for number in training.split("+"))
    validate = tuple(word for log, _ in unseen for word in ("--validate", f"kuka_lwr4/measurements_{log}.npz"))
    targets = tuple(_single(f"LWR4+ {training} -> {log}", "kuka_lwr4", log, 8.0, figures) for log, figures in unseen)
    # Its URDF has CAD values, a prior; the catalogue's were identified.
    options = ("--torque", "joint", "--inertia-source", "cad")
    return RealCase(f"lwr4_{training}", LWR, "kuka_lwr4", (*logs, *validate, *options), targets)


def _ur10e() -> RealCase:
    folder = "ur10e/identification/ur-"
    long = ("20_02_12-40sec_12harm", "20_02_12-50sec_12harm", "20_02_19_14harm50sec")
    titles = ("UR10e 30 s -> 40 s", "UR10e 30 s -> 50 s", "UR10e 30 s -> 14 harmonics")
    validate = tuple(word for log in (*long, *FIVE) for word in ("--validate", f"{folder}{log}.csv"))
    targets = [
        _single(title, "ur10e", log, 10.0, (plain, 3.3, 2.35))
        for title, log, plain in zip(titles, long, (4.13, 4.55, 4.38), strict=True)
    ]
    five = tuple(Judged("ur10e", log, 10.0, masks_still=True) for log in FIVE)
    targets.append(Target("UR10e 30 s -> five of 20 s, mean", five, 5.0, 4.0, 3.0))
    return RealCase("ur10e", "ur10e", "ur10e", (f"{folder}20_02_10-30sec_12harm.csv", *validate), tuple(targets))


CASES = (
    RealCase(
        "panda", "franka_panda", "franka_panda", (),
        (_single("Panda 60 % -> 40 %", "franka_panda", "", 10.0, (1.15, 1.10, 0.85), held_out=0.4),),
    ),
    _lwr("2+3", ("1", (2.43, 2.2, 1.95))),
    _lwr("1", ("2", (2.02, 1.9, 1.75)), ("3", (16.4, 5.0, 3.5))),
    _lwr("3", ("1", (7.0, 3.2, 2.4))),
    RealCase(
        "tx40", "staubli_tx40", "staubli_tx40", (),
        (_single("TX40 60 % -> 40 %, moving", "staubli_tx40", "", 20.0, (7.66, 6.2, 5.2), held_out=0.4,
                 until=TX40_STOPS),),
    ),
    _ur10e(),
    RealCase(
        "airbot", AIRBOT, "airbot_play",
        ("--table", "chirp", "--validate-table", "trapezoidal", "--inertia-source", "cad"),
        (_single("AIRBOT chirp -> trapezoidal", "airbot_play", "trapezoidal", 5.0, (7.41, 7.4, 6.5)),),
    ),
)  # fmt: skip
MODES: dict[str, tuple[str, ...]] = {"plain": ("--plain", "--threads", "1"), "selected": ("--threads", "2")}


@dataclass(frozen=True, eq=False)
class Ran:
    """A command that was run.

    Attributes:
        folder: Its run folder.
        content: Its ``result.json``.
        wall: Seconds of the whole command.
        cpu: CPU seconds of it, start included.
        after_reading: Seconds from the last log read to the verdict.
    """

    folder: Path
    content: dict[str, Any]
    wall: float
    cpu: float
    after_reading: float


def timed(command: Sequence[str], **more: Any) -> tuple[int, float, float, str]:
    """Run a command; return its exit code, wall and CPU seconds, and what it wrote to stderr.

    Bytecode is kept, as it is where a package is installed: without it every start would compile all modules again.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= more.pop("env", {})
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=environment, **more
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def run_case(case: RealCase, mode: str, folder: Path) -> Ran:
    """Identify a set by the command."""
    command = case.command(data_folder(), *MODES[mode], "--out", str(folder), "--quiet")
    code, wall, cpu, error = timed([sys.executable, "-m", "steelyard", *command], cwd=TABLES.parents[1])
    if code not in (0, 2):
        raise SystemExit(f"{case.name}, {mode}: the command failed: {error.strip()[-500:]}")
    stages: dict[str, float] = json.loads((folder / "timing.json").read_text())
    content = json.loads((folder / "result.json").read_text())
    return Ran(folder, content, wall, cpu, sum(stages.values()) - stages.get("reading", 0.0))


@cache
def recordings(robot: str) -> dict[str, Recording]:
    """Return the recordings of a set as the product reads them, by the name of their log."""
    root, setup = data_folder(), TABLES / f"{robot}.toml"
    if robot == "airbot_play":
        return {
            name: read_recording(arm_of(robot), read_setup(setup, name), root=root) for name in ("chirp", "trapezoidal")
        }
    found = read_recordings(arm_of(robot), setup, root=root)
    if len(found) == 1:
        return {"": found[0]}
    stems = [Path(recording.sources[0].path).stem for recording in found]
    return {stem.removeprefix("ur-").removeprefix("measurements_"): one for stem, one in zip(stems, found, strict=True)}


def arm_of(robot: str) -> Robot:
    """Return the arm of a set."""
    files = {"airbot_play": AIRBOT, "kuka_lwr4": LWR}
    return load_robot(data_folder() / files[robot] if robot in files else robot)


def consistent(run: SavedRun, prediction: TorquePrediction) -> SavedRun:
    """Return a run whose judged parameters are those of its physically consistent arm."""
    standard = np.array([row["value"] for row in run.content["standard_parameters"]])
    equations, size = prediction.equations, len(prediction.equations.names)
    estimate = replace(
        run.estimate, system=System(equations.names, np.zeros((size + 1, size + 1)), run.estimate.system.rows),
        values=equations.base.regrouping @ standard, covariance=np.zeros((size, size)), freedom=np.full(size, 1e9),
    )  # fmt: skip
    return replace(run, essential=estimate)


def predicted(prediction: TorquePrediction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times (N,), torques (n, N) and which joints move (n, N)."""
    blocks = list(prediction.blocks())
    time, torque, moving = (
        np.concatenate([getattr(block, name) for block in blocks], axis=-1) for name in ("time", "torque", "moving")
    )
    return time, torque, moving


@dataclass(frozen=True, eq=False)
class Outcome:
    """Errors of one row by one model.

    Attributes:
        scores: Of every log, computed here.
        printed: What the product says of each, over the samples in which each joint moves [%].
    """

    scores: tuple[Score, ...]
    printed: tuple[float, ...]

    def mean(self, name: str) -> float:
        """Return the mean of a figure over the logs."""
        return float(np.mean([getattr(one, name) for one in self.scores]))

    @property
    def joints(self) -> np.ndarray:
        """Error of every joint, the mean over the logs [%]."""
        return np.mean([one.joints for one in self.scores], axis=0)

    @property
    def differs(self) -> float:
        """Largest difference of the product's figure and that computed here [points]."""
        return max(abs(one.moving - own) for one, own in zip(self.scores, self.printed, strict=True))


def judge_target(run: SavedRun, target: Target, *, physical: bool = False) -> Outcome:
    """Judge the model of a run, or its physically consistent arm."""
    scores, printed = [], []
    for row in target.judged:
        recording = recordings(row.robot)[row.log]
        found = predict(run, [recording], arm_of(row.robot))
        if physical:
            found = predict(consistent(run, found), [recording], arm_of(row.robot))
        assert found.error is not None  # the recordings have torques
        log = READERS[row.robot](data_folder(), row.log)
        scores.append(score(log, row, *predicted(found)))
        # A run holds the end of its own log out: of that part, it alone knows the figure.
        of_run = run.content["consistency" if physical else "validation"]
        of_run = of_run["validation"] if physical else of_run
        printed.append(of_run["relative_error_percent"] if row.held_out < 1 else found.error.relative_percent)
    return Outcome(tuple(scores), tuple(printed))


@dataclass(frozen=True, eq=False)
class Result:
    """A row of the table.

    Attributes:
        case: The set.
        target: The row.
        ran: Commands by mode.
        outcomes: Errors by model: those of both commands, and the physically consistent arm of each.
        published: Published values beside ours, with the first row of a set.
        published_by: Where they come from.
    """

    case: RealCase
    target: Target
    ran: dict[str, Ran]
    outcomes: dict[str, Outcome]
    published: tuple[PublishedValue, ...] = ()
    published_by: str = ""

    @property
    def command(self) -> str:
        """The plain command, as a reader would repeat it."""
        return f"steelyard {shlex.join(self.case.command('$STEELYARD_DATA')).replace(chr(39), '')}"


def results_of(case: RealCase, folder: Path) -> list[Result]:
    """Identify a set, plain and selected, and judge both."""
    ran = {mode: run_case(case, mode, folder / f"{case.name}_{mode}") for mode in MODES}
    runs = {mode: load_run(one.folder) for mode, one in ran.items()}
    published_by, values = SOURCES.get(case.name, ("", None))
    equations = equations_of_run(runs["plain"], arm_of(case.targets[0].judged[0].robot))
    published = () if values is None else compared(values(data_folder(), equations.base), runs["plain"], equations)
    found = []
    for k, target in enumerate(case.targets):
        outcomes: dict[str, Outcome] = {}
        for mode, one in runs.items():
            outcomes[mode] = judge_target(one, target)
            outcomes[f"{mode}, consistent"] = judge_target(one, target, physical=True)
        found.append(Result(case, target, ran, outcomes, published if k == 0 else (), published_by))
    return found


def run(only: str = "", out: Path | None = None) -> None:
    """Identify all sets whose name contains a word; print the tables and write them as Markdown."""
    data_folder()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as name:
        for case in CASES:
            if only not in case.name:
                continue
            results += results_of(case, Path(name))
            print(f"  {results[-1].command}", flush=True)
            for result in results:
                if result.case is case:
                    print(f"    {_line(result)}", flush=True)
    if not results:
        raise SystemExit(f"no set has '{only}' in its name; there are {', '.join(case.name for case in CASES)}")
    for table in (errors_table, rows_table, joints_table, model_table):
        print(f"\n{table(results)}", end="")
    print(f"\n{summary(results)}")
    if out is not None:
        write_section(out, "real arms", section(results))
        print(f"written: {out}")


def _line(result: Result) -> str:
    target = result.target
    errors = ", ".join(f"{name} {outcome.mean('window'):.2f} %" for name, outcome in result.outcomes.items())
    return f"{target.title}: {errors}; good {target.good:g}, excellent {target.excellent:g}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Identify the real arms and tabulate errors on unseen motion.")
    parser.add_argument("--out", type=Path, help="Markdown page; its section on real arms is written anew")
    parser.add_argument("--only", default="", help="only sets whose name contains this word")
    options = parser.parse_args()
    run(options.only, options.out)


if __name__ == "__main__":
    main()
