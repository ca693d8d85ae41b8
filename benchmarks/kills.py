"""Kill commands while an older run is in their folder: is it the old run or the new one that is left, never a mixture?

    python -m benchmarks.kills [--kills 100] [--commands identify design ...] [--writers 150]

Every command runs twice with different settings to learn its two results and how long it takes. Then it is started
again and again over the first result, as a fork of this process, and killed (SIGKILL) at a random moment, in half of
the cases while it saves. What is in the folder is compared with
both results by the hashes of all files, as it lies there and after the next command has read it. Last, two writers are
started at once on one folder: one must win, the other say so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.cli import main as steelyard
from steelyard.run.folder import finish_interrupted_save

COMMANDS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "model": (["model", "scara_2r"], ["model", "scara_2r", "--torque", "motor", "--effects", "inertia"]),
    "identify": (
        ["identify", "scara_2r", "one.npz"],
        ["identify", "scara_2r", "one.npz", "--method", "wls", "--reduction", "none"],
    ),
    "payload": (["payload", "arm", "load_a.npz"], ["payload", "arm", "load_b.npz"]),
    "design": (
        ["design", "scara_2r", "--starts", "1", "--duration", "5", "--harmonics", "2", "--format", "csv,npz"],
        ["design", "scara_2r", "--starts", "1", "--duration", "5", "--harmonics", "2", "--seed", "3"],
    ),
    "calibrate": (
        ["calibrate", "ur10e", "points.csv", "--workspace", "50"],
        ["calibrate", "ur10e", "points.csv", "--method", "ols", "--workspace", "20"],
    ),
    "apply": (
        ["apply", "calibrated", "targets.csv", "--angle", "deg"],
        ["apply", "calibrated", "targets.csv", "--angle", "deg", "--point", "0,0,0.1"],
    ),
    "montecarlo": (
        ["montecarlo", "scara_2r", "--seeds", "2", "--rate", "100", "--processes", "1"],
        ["montecarlo", "scara_2r", "--seeds", "3", "--rate", "100", "--processes", "1"],
    ),
}
"""Two different runs of each command."""

SAVING = 0.03
"""How long saving takes at most [s], about."""

Hashes = Mapping[str, str]


@dataclass
class Table:
    """How often each state was found."""

    old: int = 0
    new: int = 0
    mixed: int = 0
    mixed_on_disk: int = 0


def hashes(folder: Path) -> Hashes:
    """Return the SHA-256 of the result and of the files that it names.

    A page that holds times of the machine is named without one: of such a page it is empty if it is that of the result.
    """
    found = {"result.json": (folder / "result.json").read_bytes()}
    provenance = json.loads(found["result.json"])["provenance"]
    named = provenance["files"]
    found |= {name: (folder / name).read_bytes() if (folder / name).is_file() else b"" for name in named}
    own = {name for name, digest in named.items() if not digest and provenance["run"].encode() in found[name]}
    return {name: "" if name in own else hashlib.sha256(content).hexdigest() for name, content in found.items()}


def is_whole(folder: Path) -> bool:
    """Return whether every file that the result names has the hash it names."""
    try:
        named = json.loads((folder / "result.json").read_text(encoding="utf-8"))["provenance"]["files"]
        found = hashes(folder)
    except (OSError, ValueError):
        return False
    return all(found.get(name) == digest for name, digest in named.items())


def killed(name: str, kills: int, place: Path, rng: random.Random) -> Table:
    """Kill a command many times over an old run; ``place`` holds what it reads."""
    first, second = COMMANDS[name]
    old, new, out = place / "old", place / "new", place / "out"
    finished(forked(first, old))
    began = time.perf_counter()
    finished(forked(second, new))
    needed = time.perf_counter() - began
    both = (hashes(old), hashes(new))
    table = Table()
    for _ in range(kills):
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(old, out)
        process = forked(second, out)
        if rng.random() < 0.5:
            wait_for_saving(out, needed)
            time.sleep(rng.uniform(0.0, SAVING))
        else:
            time.sleep(needed * rng.uniform(0.0, 1.05))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        table.mixed_on_disk += not is_whole(out)
        finish_interrupted_save(out)
        now = hashes(out)
        table.old += now == both[0]
        table.new += now == both[1]
        table.mixed += now not in both
    return table


def two_writers(writers: int, place: Path) -> dict[str, int]:
    """Start two writers at once, again and again; return how they ended."""
    found = {"one wins, one refused": 0, "one after the other": 0, "wrong": 0}
    for number in range(writers):
        out = place / f"both_{number}"
        pair = [start(command, out) for command in COMMANDS["identify"]]
        errors = [process.communicate()[1].decode() for process in pair]
        codes = sorted(process.returncode for process in pair)
        reported = sum("is being written by another command" in error for error in errors)
        if codes == [0, 1] and reported == 1 and is_whole(out):
            found["one wins, one refused"] += 1
        elif codes == [0, 0] and is_whole(out):
            found["one after the other"] += 1
        else:
            found["wrong"] += 1
        shutil.rmtree(out)
    return found


def start(command: Sequence[str], out: Path) -> subprocess.Popen[bytes]:
    """Start a command that saves its run in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "steelyard", *command, "--out", str(out)],
        cwd=out.parent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def forked(command: Sequence[str], out: Path) -> int:
    """Start a command as a fork of this process, which has loaded what it needs; return its number."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    os.chdir(out.parent)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(steelyard([*command, "--out", str(out)]))


def finished(process: int) -> None:
    """Wait for a fork and check that it ended well."""
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code not in (0, 2):
        sys.exit(f"a command ended with {code}")


def wait_for_saving(out: Path, longest: float) -> None:
    """Wait until a run is being saved in a folder."""
    end = time.monotonic() + 3 * longest
    while time.monotonic() < end and not list(out.glob(".steelyard-*.tmp")):
        time.sleep(1e-4)


def prepare(place: Path) -> None:
    """Write what the commands read: logs, measurements, targets, and runs that others go on from."""
    write_files(place)
    finished(forked(["identify", "ur10e", "arm.npz"], place / "arm"))
    finished(forked(["calibrate", "ur10e", "points.csv"], place / "calibrated"))


def write_files(place: Path) -> None:
    """Write simulated logs of a SCARA and measurements of a UR10e."""
    import numpy as np

    from benchmarks.planted_faults import LOAD, recorded
    from steelyard.calibration import (
        CalibrationSetup,
        FrameSetup,
        MarkerSetup,
        random_configurations,
        write_measurements,
    )
    from steelyard.calibration import simulated_measurements as measured
    from steelyard.recording import write_recording
    from steelyard.robot import load_robot

    write_recording(recorded("scara_2r", 1), place / "one.npz")
    for name, seed, load in (("arm", 1, None), ("load_a", 2, LOAD), ("load_b", 3, LOAD)):
        write_recording(recorded("ur10e", seed, load), place / f"{name}.npz")
    robot = load_robot("ur10e")
    markers = (MarkerSetup("a", (0.1, 0, 0)), MarkerSetup("b", (0, 0.1, 0)), MarkerSetup("c", (0, 0, 0.1)))
    setup = CalibrationSetup("ee_link", base=FrameSetup((1.2, -0.3, 0.5), (0.1, 0.0, 1.0)), markers=markers)
    q = random_configurations(robot, 30, np.random.default_rng(1)) / 2
    write_measurements(place / "points.csv", measured(robot, setup, q, {"offset2": 2e-3}, sigma=5e-5, seed=1))
    joints = [body.joint.name for body in robot.actuated]
    rows = [",".join(f"{value:.3f}" for value in row) for row in 20 * np.random.default_rng(2).uniform(-1, 1, (5, 6))]
    (place / "targets.csv").write_text("\n".join([",".join(joints), *rows]) + "\n")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS))
    parser.add_argument("--writers", type=int, default=150)
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        prepare(place)
        print(f"{'command':12} {'old':>5} {'new':>5} {'mixed':>6} {'mixed before the next command':>30}")
        for name in requested.commands:
            work = place / f"work_{name}"
            work.mkdir()
            for path in place.iterdir():
                if path != work and not path.name.startswith("work_"):
                    (shutil.copytree if path.is_dir() else shutil.copy)(path, work / path.name)
            found = killed(name, requested.kills, work, random.Random(name))
            print(f"{name:12} {found.old:5d} {found.new:5d} {found.mixed:6d} {found.mixed_on_disk:30d}", flush=True)
        print(f"two writers, {requested.writers} times: {two_writers(requested.writers, place)}")


if __name__ == "__main__":
    main()
