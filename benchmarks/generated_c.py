"""Generated C beside Pinocchio's C++: time of one inverse-dynamics call, in turns, and what the files cost.

Both are called from a loop in a compiled program over the same states, with the same compiler and flags; the arm has no
friction, which Pinocchio does not know. Pinocchio's headers come with its wheel, Eigen's with CasADi's. Where they are
missing or do not compile, the only figure is that of Pinocchio called from Python, less the time of the same bound call
on a model without joints, which is the price of the binding.

The two do not promise the same: Pinocchio reads any arm at run time, generated code is for one arm. Code that is
generated with Pinocchio (by CppADCodeGen or CasADi) is not measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import casadi
import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

from benchmarks.chains import chain
from benchmarks.timing import Timing, ratio, round_robin
from steelyard.export import IdentifiedArm, write_files
from steelyard.export.c_code import c_files
from steelyard.model import build_model, random_motion
from steelyard.robot import Robot, inertia_from_parameters, load_robot, transform_from_placement

STATES, ROUNDS = 256, 9
_PYTHON_REPEATS = 50
FLAGS = ("-O3", "-DNDEBUG")

_OURS = """#include "%(stem)s.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double motion[%(states)d][3][%(macro)s_JOINTS];
int main(int count, char **words)
{
    const int repeats = count > 1 ? atoi(words[1]) : 1;
    double tau[%(macro)s_JOINTS], sum = 0.0;
    FILE *file = fopen("motion.txt", "r");
    if (!file) return 1;
    for (int s = 0; s < %(states)d; ++s)
        for (int part = 0; part < 3; ++part)
            for (int j = 0; j < %(macro)s_JOINTS; ++j)
                if (fscanf(file, "%%lf", &motion[s][part][j]) != 1) return 1;
    const clock_t start = clock();
    for (int k = 0; k < repeats; ++k)
        for (int s = 0; s < %(states)d; ++s) {
            %(stem)s_inverse_dynamics(motion[s][0], motion[s][1], motion[s][2], tau);
            sum += tau[0];
        }
    printf("%%.9g\\n", (double)(clock() - start) / CLOCKS_PER_SEC / repeats / %(states)d);
    for (int j = 0; j < %(macro)s_JOINTS; ++j) printf("%%.17g\\n", tau[j]);
    return sum != sum;
}
"""

_THEIRS = """#include <pinocchio/algorithm/rnea.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
int main(int count, char **words)
{
    const int repeats = count > 1 ? std::atoi(words[1]) : 1;
    std::ifstream bodies("bodies.txt"), motion("motion.txt");
    int joints, states;
    double p[12], b[10];
    pinocchio::Model model;
    bodies >> joints >> states >> p[0] >> p[1] >> p[2];
    model.gravity.linear() << p[0], p[1], p[2];
    for (int j = 0; j < joints; ++j) {
        for (double &number : p) bodies >> number;
        for (double &number : b) bodies >> number;
        Eigen::Matrix3d turn, inertia;
        turn << p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8];
        inertia << b[4], b[5], b[6], b[5], b[7], b[8], b[6], b[8], b[9];
        const pinocchio::SE3 place(turn, Eigen::Vector3d(p[9], p[10], p[11]));
        const auto joint = model.addJoint(j, pinocchio::JointModelRZ(), place, std::to_string(j));
        const pinocchio::Inertia body(b[0], Eigen::Vector3d(b[1], b[2], b[3]), inertia);
        model.appendBodyToJoint(joint, body, pinocchio::SE3::Identity());
    }
    pinocchio::Data data(model);
    std::vector<Eigen::VectorXd> state(3 * states, Eigen::VectorXd(joints));
    for (auto &vector : state)
        for (int j = 0; j < joints; ++j) motion >> vector[j];
    double sum = 0.0;
    const std::clock_t start = std::clock();
    for (int k = 0; k < repeats; ++k)
        for (int s = 0; s < states; ++s)
            sum += pinocchio::rnea(model, data, state[3 * s], state[3 * s + 1], state[3 * s + 2])[0];
    std::printf("%.9g\\n", double(std::clock() - start) / CLOCKS_PER_SEC / repeats / states);
    for (int j = 0; j < joints; ++j) std::printf("%.17g\\n", data.tau[j]);
    return sum != sum;
}
"""

# What Pinocchio's own build files define for programs that include its headers.
_DEFINITIONS = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)  # fmt: skip


def arm_of(robot: Robot) -> IdentifiedArm:
    """Return the arm with its inertias alone; links without one get a body of their own."""
    slender = (0.02, 0.001, 0.0, 0.03, 0.002, 0.025, 0.05, 0.02, 0.1, 1.5)
    known = {
        f"{symbol}{body.number}": value
        for body in robot.bodies
        if body.inertia is None
        for symbol, value in zip(("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"), slender, strict=True)
    }
    return IdentifiedArm(robot.with_parameters(known), build_model(robot, ["inertia"]))


def write_states(robot: Robot, motion: tuple[np.ndarray, ...], folder: Path) -> None:
    """Write bodies and states as numbers in text files."""
    lines = [[len(robot.bodies), STATES, *robot.gravity]]
    for body in robot.bodies:
        rotation, translation = transform_from_placement(body.placement)
        inertia, moment, mass = inertia_from_parameters(np.array(body.inertia))
        centre = moment / mass
        inertia = inertia - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        lines.append([*rotation.ravel(), *translation, mass, *centre, *inertia[np.triu_indices(3)]])
    (folder / "bodies.txt").write_text("\n".join(" ".join(f"{number:.17g}" for number in line) for line in lines))
    states = np.stack(motion).transpose(2, 0, 1).ravel()
    (folder / "motion.txt").write_text(" ".join(f"{number:.17g}" for number in states))


def compiled(command: list[str], folder: Path) -> float | None:
    """Run a compiler; return its CPU seconds, or None if it failed."""
    start = os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    end = os.times()
    seconds = end.children_user + end.children_system - start.children_user - start.children_system
    return seconds if done.returncode == 0 else None


def called(program: str, folder: Path, repeats: int) -> tuple[float, np.ndarray]:
    """Return seconds of a call, and the torques of the last state."""
    command = [str(folder / program), str(repeats)]
    lines = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.split()
    return float(lines[0]), np.array([float(line) for line in lines[1:]])


def in_turns(programs: list[str], folder: Path, repeats: int) -> tuple[dict[str, Timing], dict[str, np.ndarray]]:
    """Return seconds of a call of each program, which take turns, and their torques."""
    rounds = [{program: called(program, folder, repeats) for program in programs} for _ in range(ROUNDS)]
    times = {program: Timing(tuple(one[program][0] for one in rounds)) for program in programs}
    return times, {program: rounds[-1][program][1] for program in programs}


def pinocchio_from_python(robot: Robot, motion: tuple[np.ndarray, ...]) -> Timing:
    """Return seconds of ``pin.rnea`` called from Python, less those of the same call on a model without joints."""
    model, empty = pin.Model(), pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    for number, body in enumerate(robot.bodies):
        rotation, translation = transform_from_placement(body.placement)
        model.addJoint(number, pin.JointModelRZ(), pin.SE3(rotation, translation), body.joint.name)
        inertia = pin.Inertia(1.0, np.array([0.1, 0.0, 0.0]), np.diag([0.01, 0.02, 0.02]))
        model.appendBodyToJoint(number + 1, inertia, pin.SE3.Identity())
    rows = [list(np.ascontiguousarray(part.T)) for part in motion]
    nothing = [[np.zeros(0)] * STATES] * 3

    def loop(one: pin.Model, states: list[list[np.ndarray]]) -> Callable[[], None]:
        data = one.createData()

        def run() -> None:
            for _ in range(_PYTHON_REPEATS):
                for q, qd, qdd in zip(*states, strict=True):
                    pin.rnea(one, data, q, qd, qdd)

        return run

    both = round_robin({"full": loop(model, rows), "empty": loop(empty, nothing)}, ROUNDS)
    pairs = zip(both["full"].seconds, both["empty"].seconds, strict=True)
    return Timing(tuple((full - empty) / STATES / _PYTHON_REPEATS for full, empty in pairs))


def include_folders() -> list[str]:
    """Return the folders of Pinocchio's, Boost's and Eigen's headers, as they lie in the wheels."""
    site = Path(casadi.__file__).parents[1]
    return [f"-I{site / 'cmeel.prefix' / 'include'}", f"-I{site / 'casadi' / 'include' / 'eigen3'}"]


def compare(robot: Robot, folder: Path, *, has_headers: bool) -> None:
    """Print size, compile time and time of a call of one arm, beside Pinocchio's."""
    arm = arm_of(robot)
    start = time.process_time()
    files = c_files(arm)
    generated = time.process_time() - start
    stem, joints = Path(files[0].name).stem, len(robot.bodies)
    write_files(files, folder)
    motion = random_motion(robot, STATES, np.random.default_rng(0))
    write_states(arm.robot, motion, folder)
    (folder / "ours.c").write_text(_OURS % {"stem": stem, "macro": stem.upper(), "states": STATES})
    build = compiled(["cc", "-std=c99", *FLAGS, "-c", f"{stem}.c", "-o", "arm.o"], folder)
    compiled(["cc", "-std=c99", *FLAGS, "ours.c", "arm.o", "-o", "ours", "-lm"], folder)
    print(
        f"  {robot.name}, {joints} joints: {len(files[1].content) / 1e3:.0f} kB of C written in {generated:.2f} s, "
        f"compiled in {build:.1f} s (all six functions)"
    )
    times, torques = in_turns(["ours", "theirs"] if has_headers else ["ours"], folder, max(1, 4000 // joints))
    bound = pinocchio_from_python(robot, motion)
    print(f"    one inverse-dynamics call, generated C          {1e9 * times['ours'].median:7.0f} ns")
    if has_headers:
        off = np.abs(torques["ours"] - torques["theirs"]).max() / np.abs(torques["theirs"]).max()
        print(f"    pinocchio::rnea in a C++ loop                   {1e9 * times['theirs'].median:7.0f} ns")
        print(f"      the same torques to {off:.1e}; times faster than it: {ratio(times['theirs'], times['ours'])}")
    print(f"    pin.rnea from Python less a call without joints {1e9 * bound.median:7.0f} ns")
    print(f"      times faster than it: {ratio(bound, times['ours'])}")


def run() -> None:
    """Print the comparison for 2, 6, 7 and 30 joints."""
    if shutil.which("cc") is None:
        print("no C compiler (cc) on this machine: nothing to measure")
        return
    print(f"generated C and Pinocchio {pin.__version__}, flags {' '.join(FLAGS)}, CPU time, {ROUNDS} rounds in turns")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "theirs.cpp").write_text(_THEIRS)
        command = ["g++", "-std=c++17", *FLAGS, *_DEFINITIONS, *include_folders(), "theirs.cpp", "-o", "theirs"]
        has_headers = shutil.which("g++") is not None and compiled(command, folder) is not None
        if not has_headers:
            print("  Pinocchio's headers do not compile here: only its Python call is measured")
        for robot in (load_robot("scara_2r"), load_robot("staubli_tx40"), load_robot("kuka_lwr4"), chain(30)):
            compare(robot, folder, has_headers=has_headers)
