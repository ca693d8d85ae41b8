"""The 7-joint regressor against Pinocchio's ``computeJointTorqueRegressor`` called from a Python loop."""

from __future__ import annotations

import os
import platform
import time

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

from benchmarks.timing import ratio, round_robin
from steelyard.kernel import compile_batch, host_target
from steelyard.model import random_motion
from steelyard.physics import inertial_regressor_function
from steelyard.robot import Robot, load_robot, transform_from_placement

SAMPLES = 100_000
IN_CACHE = 256


def pinocchio_model(robot: Robot) -> pin.Model:
    """Return the robot's kinematics in Pinocchio with z-axis joints, its fastest kind."""
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    parent = 0
    for body in robot.bodies:
        rotation, translation = transform_from_placement(body.placement)
        parent = model.addJoint(parent, pin.JointModelRZ(), pin.SE3(rotation, translation), body.joint.name)
    return model


def run() -> None:
    """Print the ratios, one thread each, CPU time; then wall time on two threads."""
    robot = load_robot("kuka_lwr4")
    kernel = compile_batch(inertial_regressor_function(robot))
    q, qd, qdd = random_motion(robot, SAMPLES, np.random.default_rng(0))
    rows = [np.ascontiguousarray(part.T) for part in (q, qd, qdd)]
    model = pinocchio_model(robot)
    data = model.createData()
    theirs = np.empty((SAMPLES, 7, 70))
    ours = kernel.dense(q, qd, qdd)
    small = [np.ascontiguousarray(part[:, :IN_CACHE]) for part in (q, qd, qdd)]
    outputs = kernel(*small)
    repeats = SAMPLES // IN_CACHE + 1
    bound = kernel.bind(small, outputs)

    def in_a_python_loop(store: np.ndarray) -> None:
        for k in range(SAMPLES):
            store[k] = pin.computeJointTorqueRegressor(model, data, rows[0][k], rows[1][k], rows[2][k])

    def in_cache() -> None:
        for _ in range(repeats):
            bound()

    times = round_robin(
        {
            "pinocchio": lambda: in_a_python_loop(theirs),
            "dense": lambda: kernel.dense(q, qd, qdd, out=ours),
            "cache": in_cache,
            "pinocchio fresh": lambda: in_a_python_loop(np.empty_like(theirs)),
            "dense fresh": lambda: kernel.dense(q, qd, qdd),
        }
    )
    per_sample = {name: 1e6 * times[name].median / SAMPLES for name in ("pinocchio", "dense")}
    per_sample["cache"] = 1e6 * times["cache"].median / (repeats * IN_CACHE)
    target = host_target()
    print(f"processor {target.cpu} ({platform.machine()}), {target.lanes} lanes of doubles, FMA: {target.fma}")
    print(f"7-joint regressor, {SAMPLES} samples, one thread, CPU time, {len(times['cache'].seconds)} rounds in turns")
    print(f"  Pinocchio in a Python loop, stored densely  {per_sample['pinocchio']:.3f} us a sample")
    print(f"  ours, dense (7, 70, N)                      {per_sample['dense']:.3f} us a sample")
    print(f"  ours, non-zeros, in cache                   {per_sample['cache']:.3f} us a sample")
    print(f"  dense: times faster than Pinocchio          {ratio(times['pinocchio'], times['dense'])}  (wanted: 10)")
    print(f"  dense, both into fresh memory: times faster {ratio(times['pinocchio fresh'], times['dense fresh'])}")
    in_cache_ratio = ratio(times["pinocchio"], times["cache"], work=repeats * IN_CACHE / SAMPLES)
    print(f"  in cache: times faster than Pinocchio       {in_cache_ratio}  (wanted: 25)")
    _print_threads(kernel, (q, qd, qdd))


def _print_threads(kernel, motion) -> None:
    out = kernel(*motion)
    wall = round_robin(
        {f"{count}": lambda count=count: kernel(*motion, out=out, threads=count) for count in (1, 2)},
        clock=time.perf_counter,
    )
    print(
        f"  two threads: times faster than one          {ratio(wall['1'], wall['2'])}  "
        f"({os.cpu_count()} cores, wall time)"
    )
