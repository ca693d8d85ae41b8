"""Simulated experiment of P2 and P5: an LWR4+ through random points, without and with a payload.

A payload needs a run without it: on the loaded run alone its mass column is a combination of other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ..estimate import stacked_system
from ..model import build_model
from ..motion import Trajectory, limits_of, random_points, trapezoidal, trapezoidal_profile
from ..observe import Equations, Observations, equations_of, merged_triangle
from ..progress import Progress, silent
from ..recording import Recording
from ..robot import Robot, load_robot
from ..simulation import Experiment, Noise, SimulatedRun, recording_of, simulate
from .claim import Claim, near, printed, same

POINTS, MOVE = 44, 2.0
"""Random points between start and stop, and the duration of each move [s]: 45 moves, 90 s."""

MODELS = {"A": "motor", "B": "joint", "C": "both", "D": "difference"}
"""P5's models by the torques they use; P2's models 1, 2 and 3 are B, C and D."""

STIFFNESS = (10_000.0,) * 5 + (7_500.0,) * 2
"""Of the joints [N m/rad] (P5, appendix 2)."""

NOISE_BAND = 50.0
MOTOR_NOISE = (18.6, 30.2, 13.9, 16.2, 9.28, 6.96, 6.96)
JOINT_NOISE = (5.7, 11.4, 4.56, 5.7, 1.71, 1.71, 0.684)
"""Standard deviations of the torques' noise [N m], white up to the band [Hz]."""

EXPERIMENT = Experiment(
    encoder_quantum=1e-5,
    motor_noise=Noise("band_limited", MOTOR_NOISE, NOISE_BAND),
    joint_noise=Noise("band_limited", JOINT_NOISE, NOISE_BAND),
    saturate=False,
)
# Runs of one seed must not share their noise.
_SEEDS_APART = 10_000


@dataclass(frozen=True)
class PaperMotion:
    """A motion to simulate: its label, the payload carried, and the seed of its points."""

    label: str
    payload: str | None
    points: int


WITHOUT = PaperMotion("without payload", None, 10)


def with_payload(payload: str) -> PaperMotion:
    """Return the motion with a payload of the catalogue."""
    return PaperMotion("with payload", payload, 11)


@dataclass(frozen=True, eq=False)
class Prototype:
    """An arm with one simulated run for each motion; seeds differ in noise alone.

    Attributes:
        robot: The arm.
        motions: The motions.
        runs: The simulated run of each motion.
    """

    robot: Robot
    motions: tuple[PaperMotion, ...]
    runs: tuple[SimulatedRun, ...]

    @property
    def truth(self) -> dict[str, float]:
        """True standard parameters by name, those of the payload included."""
        return {name: value for run in self.runs for name, value in run.truth.items()}

    def recordings(self, seed: int, stiffness: tuple[float, ...] | None = None) -> dict[str, Recording]:
        """Return the recordings of one seed by label; with a stiffness, positions are those of the motors."""
        found = {}
        for place, (motion, run) in enumerate(zip(self.motions, self.runs, strict=True)):
            experiment = replace(run.experiment, stiffness=stiffness)
            noisy = replace(run, experiment=experiment, seeds=(seed + _SEEDS_APART * place,))
            found[motion.label] = recording_of(noisy)
        return found


def prototype(
    motions: Sequence[PaperMotion],
    *,
    robot: Robot | None = None,
    plant_rate: float | None = None,
    threads: int = 1,
    progress: Progress = silent,
) -> Prototype:
    """Simulate the motions, each once: torques are noisy in the recording only, so that all seeds move alike.

    Args:
        motions: What to simulate.
        robot: The arm; None for the catalogue's LWR4+.
        plant_rate: Rate of the integrator [Hz]; None for ten times the controller's.
        threads: Motions simulated at once.
        progress: Progress callback, called with done and total.
    """
    robot = robot or load_robot("kuka_lwr4")
    parts = [0.0] * len(motions)

    def one(place: int) -> SimulatedRun:
        def stage_progress(done: float, total: float) -> None:
            parts[place] = done / total
            progress(sum(parts), len(parts))

        experiment = replace(EXPERIMENT, payload=motions[place].payload, plant_rate=plant_rate)
        return simulate(robot, _trajectory(robot, motions[place]), experiment, progress=stage_progress)

    with ThreadPoolExecutor(threads, "steelyard-papers") as pool:
        return Prototype(robot, tuple(motions), tuple(pool.map(one, range(len(motions)))))


def _trajectory(robot: Robot, motion: PaperMotion) -> Trajectory:
    rng = np.random.default_rng(motion.points)
    points = random_points(
        limits_of(robot), POINTS, MOVE, trapezoidal_profile(), rng, range_fraction=0.9, speed_fraction=0.95
    )
    return trapezoidal(points, MOVE, [body.joint.name for body in robot.actuated])


def lwr4_equations(robot: Robot, model: str, payload: str = "paired") -> Equations:
    """Return the equations of model A, B, C or D; the difference of torques does not depend on a payload."""
    return equations_of(build_model(robot, measured=MODELS[model], payload="none" if model == "D" else payload))


COMBINATION = {"XX2": 0.16, "ZZ2": 0.16, "MY2": 0.4, "XX4": 0.1521, "ZZ4": 0.1521, "MY4": -0.39}
"""Of the column of ML on loaded rows, from r3^2, r3, r5^2 and -r5."""


def essential_49(equations: Equations) -> list[str]:
    """Return the columns of P2's 49 essential parameters, the payload's mass last."""
    columns = set(equations.names)
    return [name for name in printed("p2_lwr4") if name in columns]


def loaded_part(observations: Observations, label: str) -> Observations:
    """Return the observations of one recording."""
    return replace(
        observations,
        factors=tuple(factor for factor in observations.factors if factor.recording == label),
        recordings=tuple(info for info in observations.recordings if info.label == label),
    )


def mass_column(observations: Observations, columns: Sequence[str]) -> dict[str, float]:
    """Return the coefficients that give the column ML from the others, by least squares; zeros left out."""
    triangle, _ = merged_triangle(observations.factors, list(columns))
    others = [k for k, name in enumerate(columns) if name != "ML"]
    target = triangle[:, list(columns).index("ML")]
    weights = np.linalg.lstsq(triangle[:, others], target, rcond=None)[0]
    found = {columns[k]: float(weight) for k, weight in zip(others, weights, strict=True)}
    return {name: weight for name, weight in found.items() if abs(weight) > 1e-7}


def two_data_set_claims(observations: Observations, equations: Equations, label: str) -> list[Claim]:
    """Return the claims that the payload is not identifiable from the loaded run alone, from model C's observations.

    Args:
        observations: Factors of both runs.
        equations: Model C with payload columns.
        label: Label of the loaded run.
    """
    columns = essential_49(equations)
    both = stacked_system(observations, columns)
    loaded = loaded_part(observations, label)
    alone = stacked_system(loaded, columns)
    found = mass_column(loaded, columns)
    off = max(abs(found.get(name, 0.0) - COMBINATION.get(name, 0.0)) for name in {**found, **COMBINATION})
    text = " + ".join(f"{weight:.4g} {name}" for name, weight in found.items()).replace("+ -", "- ")
    return [
        same(
            "columns of the 49 essential parameters that depend on others: both runs, loaded run alone",
            "not said", f"{', '.join(both.dropped) or 'none'}; {', '.join(alone.dropped) or 'none'}", "none; MZL, ML",
            "two data sets are needed, without and with the payload; 'related to experiments with the payload "
            "attached' (P2) is not enough. On loaded rows the column of MZL is that of MY6",
            fails_if="the loaded run alone has full rank, or both runs together do not",
        ),
        near(
            "largest error of the combination that gives the column ML on loaded rows", "not said", off, 0.0, 1e-6,
            f"ML = {text}", why="0.16 (XX2 + ZZ2) + 0.4 MY2 + 0.1521 (XX4 + ZZ4) - 0.39 MY4",
            fails_if="the payload's column is built with a wrong lever or sign",
        ),
    ]  # fmt: skip
