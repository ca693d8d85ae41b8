"""How long tracing and compiling takes: a 7-joint arm and a 30-joint chain."""

from __future__ import annotations

import time

from benchmarks.chains import chain
from steelyard.kernel import compile_batch
from steelyard.physics import inertial_regressor_function
from steelyard.robot import Robot, load_robot


def seconds_to_build(robot: Robot) -> tuple[float, float, int]:
    """Return CPU seconds of tracing and of compiling a regressor, and its number of instructions."""
    start = time.process_time()
    function = inertial_regressor_function(robot)
    traced = time.process_time()
    compile_batch(function)
    return traced - start, time.process_time() - traced, function.n_instructions()


def run() -> None:
    """Print trace and compile times, best of three."""
    cases = {"7-joint arm (kuka_lwr4)": (load_robot("kuka_lwr4"), 1.0), "30-joint chain": (chain(30), 6.0)}
    print("trace and compile of the regressor, CPU time, best of three")
    for name, (robot, wanted) in cases.items():
        trace, build, size = min((seconds_to_build(robot) for _ in range(3)), key=lambda row: row[0] + row[1])
        print(
            f"  {name:26s} {size:6d} instructions  trace {trace:.2f} s  compile {build:.2f} s  "
            f"together {trace + build:.2f} s  (wanted: {wanted:.1f})"
        )
