"""Cost of `identify` against the length of the log: CPU seconds, CPU a row and most resident memory, 7 joints.

One log after the other: the time in a fresh process that has compiled the model before the clock starts, the memory in
one that identifies from this log alone, as the command does. The largest log is made last and deleted.
STEELYARD_LOG_ROWS in the environment names another largest size (10,000,000 rows are 1.5 GB).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.timing import most_resident_megabytes
from steelyard.cli import main

if TYPE_CHECKING:
    from steelyard.recording import Recording

ROBOT, RATE = "kuka_lwr4", 500.0
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000, 10_000_000)
WANTED = {100_000: "at most 3 s", 2_000_000: "at most 30 s and 400 MB"}
_AT_ONCE = 500_000


def run() -> None:
    """Print and check the figures of every size up to the largest."""
    largest = int(float(os.environ.get("STEELYARD_LOG_ROWS", "2e6")))
    print(f"identify {ROBOT}, motor torques, one text log at {RATE:g} Hz, a quarter held out, one thread")
    print(f"  {'rows':>10} {'log':>8} {'start':>8} {'work':>8} {'a row':>9} {'memory':>8}")
    with tempfile.TemporaryDirectory() as folder:
        short = Path(folder) / "short.csv"
        write_log(short, SIZES[0])
        for rows in (size for size in SIZES if size <= largest):
            log = Path(folder) / "log.csv"
            write_log(log, rows)
            found, alone = _measured(short, log), _measured(log)
            print(
                f"  {rows:>10} {log.stat().st_size / 1e6:>5.0f} MB {found['start']:>6.2f} s {found['work']:>6.2f} s "
                f"{1e6 * found['work'] / rows:>6.1f} us {alone['megabytes']:>5.0f} MB"
                + (f"  (wanted: {WANTED[rows]})" if rows in WANTED else "")
            )


def _measured(*logs: Path) -> dict[str, float]:
    """Return CPU time and memory of a process that identifies from logs, one after the other."""
    child = [sys.executable, "-m", "benchmarks.log_length", *map(str, logs)]
    return json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)


def write_log(path: Path, rows: int) -> None:
    """Write a log of so many rows: the default motion again and again, encoder noise, torques with 2 % of noise."""
    import numpy as np
    import polars as pl

    from steelyard.observe import part_of
    from steelyard.recording import write_recording

    period, rng = _period(), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        head = write_recording(part_of(period, 0, 2), Path(folder) / "head.csv")
        comment, names = head.read_text().splitlines()[:2]
    torque = period.torques[0].values
    noise = 0.02 * np.sqrt((torque**2).mean(axis=1))
    with path.open("wb") as file:
        file.write(f"{comment}\n{names}\n".encode())
        for first in range(0, rows, _AT_ONCE):
            numbers = np.arange(first, min(first + _AT_ONCE, rows))
            place = numbers % period.samples
            q = period.q[:, place] + 1e-5 * rng.standard_normal((len(period.q), numbers.size))
            measured = torque[:, place] + noise[:, None] * rng.standard_normal((len(torque), numbers.size))
            table = np.vstack([numbers / RATE, q, measured])
            frame = pl.DataFrame({f"{k}": row for k, row in enumerate(table)})
            file.write(frame.write_csv(include_header=False, float_precision=7).encode())


def _period() -> Recording:
    # Imported here: the process whose memory is measured has what the command has, no simulator.
    from steelyard.robot import load_robot
    from steelyard.simulation import Experiment, recording_of, simulate
    from steelyard.study import default_motion

    robot = load_robot(ROBOT)
    experiment = Experiment(plant="ideal", control_rate=RATE, record_rate=RATE)
    found = recording_of(simulate(robot, default_motion(robot, 1), experiment, [1]))
    torques = tuple(channel for channel in found.torques if channel.kind == "motor_torque")
    return replace(found, torques=torques, qd=None, reference=None, notes=())


def identify_all(logs: Sequence[str]) -> None:
    """Identify from each log; print the CPU time before and of the last, and the most memory, as JSON."""
    start = 0.0
    with contextlib.redirect_stdout(io.StringIO()):
        for log in logs:
            start = time.process_time()
            if main(["identify", ROBOT, log, "--torque", "motor", "--threads", "1", "--plain", "--json"]) == 1:
                sys.exit(f"'{log}' was not identified")
        work = time.process_time() - start
    print(json.dumps({"start": start, "work": work, "megabytes": most_resident_megabytes()}))


if __name__ == "__main__":
    identify_all(sys.argv[1:])
