"""Coverage where the model lacks an effect: formal intervals, and those widened by what parts of the data show.

The simulated arm has one effect more than the model that is fitted (``none``: not), on all joints:

- ``load``: friction of 10 % of the load (Fgm);
- ``load 5 %``: half of that;
- ``dahl``: half of the Coulomb friction turns over a length of 0.01 rad (Fd3m);
- ``stribeck``: friction at low speed, 0.3 of the Coulomb friction, velocity 0.1 rad/s (Fs3m);
- ``tilt``: a base tilted by 1 degree (UR10e only: first moments of the planar arm turn with it).

The model is the plain one. Every seed has motions of its own: ``moves`` through random points, or ``fourier`` of 20 s
with 6 harmonics; one recording, or three of different motions. Torques have white noise of 2 % of their size; ``slow``:
of a correlation time of 0.05 s. Positions are exact, the plant is ideal.

Parameters that keep their meaning are base parameters of links and drive inertias (effects ``inertia`` and ``Ia``):
friction and offsets take the missing effect over by definition, and are not counted. Sizes: 100 seeds of the SCARA in a
vertical plane, 20 of the UR10e, for each case. Wanted: widened 95 % intervals cover at least 85 % where an effect is
missing; without one they cover 93 to 97 %, and are wider than the formal ones by at most 10 % on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import add

import numpy as np
from scipy.signal import lfilter

from benchmarks.coverage_arms import joints_of, p1_moves, ur_moves
from steelyard.identification import Settings
from steelyard.identification.fitting import Fitted, fit_arm
from steelyard.identification.widened import state_sums, widening_of
from steelyard.judge import MotionExtent, Widening, residual_runs
from steelyard.model import build_model
from steelyard.motion import Trajectory, fourier
from steelyard.observe import Equations, equations_of
from steelyard.recording import Recording
from steelyard.robot import Robot, load_robot
from steelyard.simulation import Experiment, recording_of, simulate

MISSING_SEEDS = {"scara_2r": 100, "ur10e": 20}
RATE, NOISE, CORRELATION_TIME = 100.0, 0.02, 0.05
TILT = np.radians(1.0)
MEANINGFUL = ("inertia", "Ia")
LEAST, CLEAN, WIDEST = 0.85, (0.93, 0.97), 1.10
SETTINGS = Settings(method="gls")


@dataclass(frozen=True)
class MissingCase:
    """An arm with an effect that its model lacks.

    Attributes:
        robot: Name in the catalogue.
        effect: What the model lacks; ``none`` if nothing.
        motion: ``moves`` or ``fourier``.
        recordings: How many.
        noise: ``white`` or ``slow``.
    """

    robot: str
    effect: str
    motion: str
    recordings: int
    noise: str = "white"

    @property
    def name(self) -> str:
        """What tables call it."""
        clean = f" {self.noise}" if self.noise != "white" else ""
        return f"{self.robot}, {self.effect}{clean}, {self.motion}, {self.recordings}"


EFFECTS = {
    "scara_2r": ("none", "load", "load 5 %", "dahl", "stribeck"),
    "ur10e": ("none", "load", "dahl", "stribeck", "tilt"),
}
CASES = tuple(
    MissingCase(robot, effect, motion, count, noise)
    for robot, effects in EFFECTS.items()
    for effect in effects
    for noise in (("white", "slow") if effect == "none" else ("white",))
    for motion in ("moves", "fourier")
    for count in (1, 3)
)


@dataclass(frozen=True, eq=False)
class MissingOutcome:
    """What one seed gave, of the parameters that keep their meaning.

    Attributes:
        seed: The seed.
        columns: Their names.
        formal: Whether the interval of the noise model holds the truth (c,).
        widened: Whether the widened interval does (c,).
        factor: Width of the latter over that of the former (c,).
    """

    seed: int
    columns: tuple[str, ...]
    formal: np.ndarray
    widened: np.ndarray
    factor: np.ndarray


@lru_cache(maxsize=2)
def described_arm(name: str) -> tuple[Robot, Equations]:
    """Return the arm as the identification knows it; the SCARA stands upright, so that gravity loads it."""
    robot = load_robot(name)
    robot = robot.with_gravity((0.0, -9.81, 0.0)) if name == "scara_2r" else robot
    return robot, equations_of(build_model(robot))


def simulated_arm(robot: Robot, effect: str) -> Robot:
    """Return the arm with the effect."""
    values, numbers = dict(robot.values), [body.number for body in robot.actuated]
    if effect.startswith("load"):
        values |= {f"Fgm{k}": 0.05 if "5 %" in effect else 0.1 for k in numbers}
    elif effect == "dahl":
        values |= {f"Fd3m{k}": 0.5 * values[f"Fcm{k}"] for k in numbers}
        values |= {f"Fcm{k}": 0.5 * values[f"Fcm{k}"] for k in numbers}
    elif effect == "stribeck":
        values |= {f"Fs3m{k}": 0.3 * values[f"Fcm{k}"] for k in numbers}
    arm = replace(robot, values=values)
    if effect == "tilt":
        down = np.array(robot.gravity)
        x, y, z = np.cos(TILT) * down + np.sin(TILT) * np.roll(down, -1)
        arm = arm.with_gravity((float(x), float(y), float(z)))
    return arm


def _motion(robot: Robot, case: MissingCase, number: int) -> Trajectory:
    if case.motion == "moves":
        return (p1_moves if case.robot == "scara_2r" else ur_moves)(robot, number)
    rng, joints = np.random.default_rng(number), joints_of(robot)
    sin, cos = rng.uniform(-1, 1, (2, len(joints), 6)) / np.arange(1, 7)
    return fourier(rng.uniform(-0.5, 0.5, len(joints)), sin, cos, 20.0, joints)


def _recorded(robot: Robot, case: MissingCase, number: int) -> Recording:
    experiment = Experiment(record_rate=RATE, plant="ideal", saturate=False)
    clean = recording_of(simulate(robot, _motion(robot, case, number), experiment, [0]))
    channel, rng = clean.torques[0], np.random.default_rng([number, 1])
    pole = np.exp(-1 / (RATE * CORRELATION_TIME)) if case.noise == "slow" else 0.0
    noise = lfilter([np.sqrt(1 - pole**2)], [1, -pole], rng.standard_normal(channel.values.shape), axis=1)
    size = NOISE * np.sqrt((channel.values**2).mean(axis=1, keepdims=True))
    return replace(clean, torques=(replace(channel, values=channel.values + size * noise), *clean.torques[1:]))


def widening(fitted: Fitted, recordings: Sequence[Recording]) -> Widening:
    """Return the widened intervals of a fit."""
    fit, sources = fitted.fit, fitted.sources
    extent = reduce(add, [MotionExtent.of(one.q, one.qd, one.qdd) for source in sources for one in source])
    states = state_sums(fit, fitted.equations, extent, SETTINGS)
    assert states is not None
    for source in sources:
        residual_runs(source, fit.estimate, states.take)
    labelled = [(source.label, one) for source, one in zip(sources, recordings, strict=True)]
    return widening_of(fit, fit.estimate, states, labelled, fitted.equations)


def missing_outcome(case: MissingCase, seed: int) -> MissingOutcome:
    """Identify one simulated arm."""
    robot, equations = described_arm(case.robot)
    arm = simulated_arm(robot, case.effect)
    numbers = [1000 * (seed + 1) + k for k in range(case.recordings)]
    recordings = [_recorded(arm, case, number) for number in numbers]
    fitted = fit_arm(robot, recordings, SETTINGS, equations=equations)
    estimate, wide = fitted.fit.estimate, widening(fitted, recordings)
    values = equations.base.regrouping @ [arm.parameters.get(one, 0.0) for one in equations.model.names]
    true = dict(zip(equations.names, values, strict=True))
    effects = {one.name: one.effect for one in equations.model.parameters}
    own = [k for k, name in enumerate(estimate.columns) if effects[name] in MEANINGFUL]
    columns = tuple(estimate.columns[k] for k in own)
    error = np.abs(estimate.values[own] - [true[name] for name in columns])
    formal, widest = estimate.half_width()[own], wide.half_width()[own]
    return MissingOutcome(seed, columns, error <= formal, error <= widest, widest / formal)


def missing_outcomes(name: str, seeds: Sequence[int]) -> list[MissingOutcome]:
    """Return the outcomes of some seeds of a case, given by its name."""
    case = next(one for one in CASES if one.name == name)
    return [missing_outcome(case, seed) for seed in seeds]


def print_missing(name: str, outcomes: Sequence[MissingOutcome]) -> None:
    """Print what both intervals cover, over all parameters and of the worst one, and how much wider one is."""
    clean = ", none" in name
    formal, wide = ([float(np.mean(getattr(one, what))) for one in outcomes] for what in ("formal", "widened"))
    factor, worst = float(np.mean(np.concatenate([one.factor for one in outcomes]))), _worst(outcomes)
    covered = float(np.mean(wide))
    holds = CLEAN[0] <= covered <= CLEAN[1] and factor <= WIDEST if clean else covered >= LEAST
    print(
        f"  {name + ':':38} formal {100 * np.mean(formal):5.1f} %  widened {100 * covered:5.1f} %  x {factor:.2f}  "
        f"least {100 * worst[1]:3.0f} % ({worst[0]})  {'holds' if holds else 'MISSES'}"
    )


def _worst(outcomes: Sequence[MissingOutcome]) -> tuple[str, float]:
    """Return the parameter that widened intervals cover least, and how often."""
    hits: dict[str, list[bool]] = {}
    for one in outcomes:
        for column, hit in zip(one.columns, one.widened, strict=True):
            hits.setdefault(column, []).append(bool(hit))
    return min(((column, float(np.mean(found))) for column, found in hits.items()), key=lambda at: at[1])
