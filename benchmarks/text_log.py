"""A large text log read, checked, filtered and decimated: rows a second, memory, and time against polars' reader.

Makes a log of 2 GB in a temporary folder; STEELYARD_LOG_MB in the environment sets another size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import most_resident_megabytes, ratio, round_robin
from steelyard.cli.output import ProgressBar
from steelyard.recording import read_recording, stream_recording
from steelyard.robot import Robot, load_robot
from steelyard.signals import Decimator, LowPassStream, low_pass

RATE = 1000.0
BLOCK = 100_000
PART_MB = 200


def run() -> None:
    """Print reading speed and memory of the whole log, and reading time of a part of it against polars."""
    megabytes = int(os.environ.get("STEELYARD_LOG_MB", "2000"))
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "whole.csv", Path(folder) / "part.csv"
        write_log(whole, megabytes)
        size = whole.stat().st_size / 1e6
        child = [sys.executable, "-m", "benchmarks.text_log", str(whole)]
        found = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(
            f"text log of {size:.0f} MB, 7 joints, 1 kHz, {found['rows']} rows: read, checked, filtered at 10 Hz and "
            f"decimated to {found['kept']} rows in a fresh process"
        )
        print(
            f"  time                    {found['seconds']:.1f} s, {found['rows'] / found['seconds']:.3g} rows a second"
        )
        print(f"  most resident memory      {found['megabytes']:.0f} MB  (wanted: 1000)")
        whole.unlink()
        write_log(part, min(megabytes, PART_MB))
        _print_against_polars(part)


def _print_against_polars(path: Path) -> None:
    robot = load_robot("franka_panda")

    def streamed() -> None:
        for _ in stream_recording(robot, path):
            pass

    contestants = {
        "polars": lambda: pl.read_csv(path, comment_prefix="#"),
        "read": lambda: read_recording(robot, path),
        "streamed": streamed,
    }
    print(f"{path.stat().st_size / 1e6:.0f} MB of it: read, hashed and checked, times what polars' read_csv takes")
    for clock, what in ((time.process_time, "CPU"), (time.perf_counter, "wall")):
        times = round_robin(contestants, clock=clock)
        print(f"  {what} time, polars         {times['polars'].median:.2f} s")
        print(f"  {what} time, read_recording {ratio(times['read'], times['polars'])}  (wanted: at most 1.5)")
        print(f"  {what} time, streamed       {ratio(times['streamed'], times['polars'])}")


def write_log(path: Path, megabytes: int) -> None:
    """Write a log of about that size: smooth motion within the limits, its exact velocity, torques with noise."""
    robot = load_robot("franka_panda")
    rng = np.random.default_rng(0)
    first = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 1_000_000:
            frame = _rows(robot, first, rng)
            file.write(frame.write_csv(include_header=not first, float_precision=6).encode())
            first += frame.height


def _rows(robot: Robot, first: int, rng: np.random.Generator) -> pl.DataFrame:
    stamps = (first + np.arange(BLOCK)) / RATE
    columns = {"time": stamps}
    rows: dict[str, dict[str, np.ndarray]] = {"q": {}, "qd": {}, "joint_torque": {}}
    for number, body in enumerate(robot.actuated):
        limits, pace = body.joint.limits, 0.5 + 0.1 * number
        middle, reach = (limits.lower + limits.upper) / 2, 0.3 * (limits.upper - limits.lower)
        name = body.joint.name
        rows["q"][name] = middle + reach * np.sin(pace * stamps)
        rows["qd"][name] = reach * pace * np.cos(pace * stamps)
        rows["joint_torque"][name] = 10 * np.sin(2 * pace * stamps) + rng.normal(size=BLOCK)
    for channel, values in rows.items():
        columns.update({f"{channel}[{name}]": row for name, row in values.items()})
    return pl.DataFrame(columns)


def stream_one(path: Path) -> None:
    """Stream, filter and decimate a log; print rows, seconds and the most resident memory as JSON."""
    robot = load_robot("franka_panda")
    start = time.perf_counter()
    stream = stream_recording(robot, path, block_rows=BLOCK)
    smooth, decimator = LowPassStream(low_pass(RATE, 10.0)), Decimator(RATE, 100)
    rows = retained = 0
    with ProgressBar("reading, filtering, decimating") as progress:
        for block in stream:
            rows += block.samples
            retained += decimator.push(smooth.push(np.vstack([block.q, block.torques[0].values]))).shape[1]
            progress(stream.bytes_done, stream.bytes_total)
        retained += decimator.push(smooth.flush()).shape[1] + decimator.flush().shape[1]
    seconds = time.perf_counter() - start
    megabytes = most_resident_megabytes()
    print(json.dumps({"rows": rows, "kept": retained, "seconds": seconds, "megabytes": megabytes}))


if __name__ == "__main__":
    stream_one(Path(sys.argv[1]))
