"""How long a command takes before it works: imports, then tracing and compiling a 7-joint arm and a 30-joint chain."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from benchmarks.chains import chain
from steelyard.kernel import compile_batch
from steelyard.kernel.lower import made_code
from steelyard.physics import inertial_regressor_function
from steelyard.robot import Robot, load_robot


def seconds_to_build(robot: Robot) -> tuple[float, float, int]:
    """Return CPU seconds of tracing and of compiling a regressor, and its number of instructions."""
    made_code.clear()
    start = time.process_time()
    function = inertial_regressor_function(robot)
    traced = time.process_time()
    compile_batch(function)
    return traced - start, time.process_time() - traced, function.n_instructions()


def seconds_to_import(statement: str) -> float:
    """Return CPU seconds of a Python that runs one statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_imports() -> None:
    """Print what the imports of ``identify`` cost beside what it does not import, best of five in turns."""
    packages = ("steelyard.cli.identify, steelyard.identification", "numpy", "scipy.signal, scipy.stats")
    identify, numpy, scipy = (f"import {names}" for names in packages)
    rounds = [{statement: seconds_to_import(statement) for statement in (identify, numpy, scipy)} for _ in range(6)]
    best = {statement: min(seconds[statement] for seconds in rounds[1:]) for statement in rounds[0]}
    print("start of a command, CPU time, best of five")
    print(
        f"  {identify}: {best[identify]:.2f} s, {best[identify] / best[numpy]:.1f} times 'import numpy', "
        f"{best[identify] / best[scipy]:.2f} times '{scipy}'  (wanted: below 1)"
    )


def run() -> None:
    """Print import times, then trace and compile times, best of three."""
    print_imports()
    cases = {"7-joint arm (kuka_lwr4)": (load_robot("kuka_lwr4"), 1.0), "30-joint chain": (chain(30), 6.0)}
    print("trace and compile of the regressor, CPU time, best of three")
    for name, (robot, wanted) in cases.items():
        trace, build, size = min((seconds_to_build(robot) for _ in range(3)), key=lambda row: row[0] + row[1])
        print(
            f"  {name:26s} {size:6d} instructions  trace {trace:.2f} s  compile {build:.2f} s  "
            f"together {trace + build:.2f} s  (wanted: {wanted:.1f})"
        )
