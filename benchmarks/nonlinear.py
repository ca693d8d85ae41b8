"""Stribeck velocity, Dahl length, sign width and delay on simulated arms: bias, and what 95 % intervals hold.

    python -m benchmarks.nonlinear [--arms scara_2r ur10e] [--cases friction delay width all] [--noises white slow]
                                   [--seeds 40] [--first 0] [--method gls]

Planted, stated before measuring: ``friction``: half of the Coulomb friction more at low speed, Stribeck velocity 0.07
rad/s, and as much again with a Dahl length of 0.006 rad; ``delay``: torques late by 4 ms; ``width``: dry friction turns
over 0.05 rad/s; ``all``: friction and delay together. The model begins with the catalogue's constants, 0.1 rad/s, 0.01
rad, the exact sign and no delay. Noise is 2 % of each joint's torque, white, or ``slow`` with a correlation time of
50 ms; every seed has a motion of its own, 20 s. Printed for each constant: mean error over its standard error, spread
over sigma, how many 95 % intervals hold the truth, how often it was called not identifiable; for the linear parameters
how many intervals hold the truth, with the uncertainty of the constants and with the constants held.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter

from steelyard.effects import FrictionConstants
from steelyard.estimate import Estimate
from steelyard.identification import Settings
from steelyard.identification.fitting import fit_sources
from steelyard.identification.inputs import sources_of
from steelyard.identification.nonlinear import estimate_nonlinear
from steelyard.model import build_model
from steelyard.motion import fourier
from steelyard.observe import Equations, equations_of, resolve_preparation
from steelyard.recording import Recording
from steelyard.robot import Robot, load_robot
from steelyard.simulation import Experiment, recording_of, simulate

TRUTH = {"stribeck3": 0.07, "dahl3": 0.006, "delay": 0.004, "sign_width": 0.05}
CASES = {
    "friction": ("stribeck", "dahl"), "delay": ("delay",), "width": ("sign_width",),
    "all": ("stribeck", "dahl", "delay"),
}  # fmt: skip
NOISE, CORRELATION_TIME, RATE, SECONDS = 0.02, 0.05, 200.0, 20.0


@dataclass(frozen=True)
class Outcome:
    """What one seed gave.

    Attributes:
        values: Value, sigma and whether the interval holds the truth, by constant; only those found.
        joint: Whether intervals of the linear parameters hold the truth.
        held: The same with the constants held at what was found.
    """

    values: dict[str, tuple[float, float, bool]]
    joint: list[bool]
    held: list[bool]


def planted_arm(name: str, case: str) -> tuple[Robot, Robot]:
    """Return the arm that is simulated, and the one that the identification is given."""
    robot = load_robot(name)
    described = robot.with_gravity((0.0, -9.81, 0.0)) if name == "scara_2r" else robot
    values, numbers = dict(described.values), [body.number for body in robot.actuated]
    if "stribeck" in CASES[case]:
        values |= {f"{symbol}{k}": 0.5 * values[f"Fcm{k}"] for k in numbers for symbol in ("Fs3m", "Fd3m")}
    usual = FrictionConstants()
    velocities, lengths = list(usual.stribeck), list(usual.dahl)
    velocities[2], lengths[2] = TRUTH["stribeck3"], TRUTH["dahl3"]
    friction = replace(usual, stribeck=tuple(velocities), dahl=tuple(lengths))
    return replace(described, values=values, friction=friction), described


def recorded(robot: Robot, case: str, seed: int, noise: str) -> Recording:
    """Return a recording of a random motion."""
    rng, joints = np.random.default_rng(seed), list(robot.joint_names)
    sin, cos = rng.uniform(-1, 1, (2, len(joints), 6)) / np.arange(1, 7)
    motion = fourier(rng.uniform(-0.5, 0.5, len(joints)), sin, cos, SECONDS, joints)
    width = TRUTH["sign_width"] if "sign_width" in CASES[case] else None
    experiment = Experiment(record_rate=RATE, plant="ideal", saturate=False, sign_width=width)
    clean = recording_of(simulate(robot, motion, experiment, [seed]))
    channel, time = clean.torques[0], clean.time
    torque = channel.values
    if "delay" in CASES[case]:
        torque = CubicSpline(time, torque, axis=1)(time - TRUTH["delay"])
    pole = np.exp(-1 / (RATE * CORRELATION_TIME)) if noise == "slow" else 0.0
    coloured = lfilter([np.sqrt(1 - pole**2)], [1, -pole], rng.standard_normal(torque.shape), axis=1)
    size = NOISE * np.sqrt((channel.values**2).mean(axis=1, keepdims=True))
    return replace(clean, torques=(replace(channel, values=torque + size * coloured), *clean.torques[1:]))


def covered(equations: Equations, estimate: Estimate, simulated: Robot) -> list[bool]:
    """Return whether the interval of each linear parameter holds its true value."""
    standard = [simulated.parameters.get(name, 0.0) for name in equations.model.names]
    true = dict(zip(equations.names, equations.base.regrouping @ standard, strict=True))
    numbers = zip(estimate.columns, estimate.values, estimate.half_width(), strict=True)
    return [bool(abs(value - true[name]) < half) for name, value, half in numbers]


def outcome(name: str, case: str, noise: str, seed: int, method: str) -> Outcome:
    """Identify one simulated arm."""
    simulated, described = planted_arm(name, case)
    recordings = [("log", recorded(simulated, case, seed, noise))]
    settings = Settings(nonlinear=CASES[case], method=method, covariance="model")
    resolved = resolve_preparation(settings.preparation, [recordings[0][1]])
    model = build_model(described, ("+Fs3m", "+Fd3m") if "stribeck" in CASES[case] else None)
    found = estimate_nonlinear(model, recordings, resolved, settings)
    equations = equations_of(found.model)
    fit = found.completed(fit_sources(sources_of(recordings, equations, found.resolved), equations, settings))
    values = {
        one.name: (one.value, one.sigma, one.interval_95[0] < TRUTH[one.name] < one.interval_95[1])
        for one in found.parameters
        if one.value is not None and one.sigma is not None and one.interval_95 is not None
    }
    held = fit.constants_held or fit.estimate
    return Outcome(values, covered(equations, fit.estimate, simulated), covered(equations, held, simulated))


def print_case(title: str, outcomes: Sequence[Outcome]) -> None:
    """Print the rows of one case."""
    names = sorted({name for one in outcomes for name in one.values})
    for name in names:
        found = [one.values[name] for one in outcomes if name in one.values]
        errors, sigmas = np.array([value for value, *_ in found]) - TRUTH[name], np.array([s for _, s, _ in found])
        bias = errors.mean() / (errors.std(ddof=1) / np.sqrt(len(errors)))
        print(
            f"{title:28} {name:11} {TRUTH[name]:8.4g} {TRUTH[name] + errors.mean():9.4g} {bias:6.1f} "
            f"{np.sqrt((errors**2).mean()) / np.sqrt((sigmas**2).mean()):7.2f} "
            f"{100 * np.mean([inside for *_, inside in found]):8.0f} {len(outcomes) - len(found):5}"
        )
    joint, held = ([hit for one in outcomes for hit in getattr(one, kind)] for kind in ("joint", "held"))
    print(
        f"{title:28} linear: {100 * np.mean(joint):.1f} % inside ({100 * np.mean(held):.1f} % with constants held)",
        flush=True,
    )


def run(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear")
    parser.add_argument("--arms", nargs="+", default=["scara_2r"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--noises", nargs="+", default=["white", "slow"], choices=["white", "slow"])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--method", default="gls", choices=["gls", "wls", "iterated", "ols"])
    chosen = parser.parse_args(list(arguments))
    print(
        f"{'arm, case, noise':28} {'constant':11} {'truth':>8} {'mean':>9} {'bias':>6} {'spread':>7} {'inside':>8} lost"
    )
    for name in chosen.arms:
        for case in chosen.cases:
            for noise in chosen.noises:
                seeds = range(chosen.first, chosen.first + chosen.seeds)
                outcomes = [outcome(name, case, noise, seed, chosen.method) for seed in seeds]
                print_case(f"{name} {case} {noise}", outcomes)


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
