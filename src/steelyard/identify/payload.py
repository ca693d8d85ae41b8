"""What is it holding: the payload when the arm is known from an earlier run.

The run's weighted triangle stands for all its rows. Rows of the new, loaded recordings are put beside it, arm
columns and
payload columns together, so that the payload's covariance contains the arm's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from ..errors import EstimateError
from ..estimate import Estimate, GlsFit, NoiseModel, System, cell_of, generalised, independent, weighted
from ..judge import Reason
from ..model import build_model
from ..observe import (
    Equations,
    RowSource,
    equations_of,
    merged_triangle,
    reduce_rows,
    row_source,
    settle,
)
from ..recording import Recording
from ..robot import Robot
from .inputs import labels_of
from .payload_body import COLUMNS, PayloadBody, payload_body
from .run_files import SavedRun
from .settings import Settings, settings_from_table

ENOUGH = 20.0
"""A mass or moment with a larger relative sigma [%] is not known."""


@dataclass(frozen=True, eq=False)
class PayloadFound:
    """A payload with what it rests on.

    Attributes:
        body: Mass, centre, inertia, with the arm's uncertainty in theirs.
        estimate: Arm and payload together.
        noise: Noise of the loaded recordings.
        enough: Whether the motion showed mass and centre to 20 % or a centimetre.
        agreement: How far the arm's own parameters had to move, chi-square over their number; 1 is what chance gives.
        reasons: What a reader must know, with remedies.
    """

    body: PayloadBody
    estimate: Estimate
    noise: NoiseModel
    enough: bool
    agreement: float
    reasons: tuple[Reason, ...]


def settings_of_run(run: SavedRun) -> Settings:
    """Return the settings a run was made with."""
    kept = {key: value for key, value in run.settings.items() if key not in ("robot", "logs", "recordings")}
    return settings_from_table(kept)


def identify_payload(robot: Robot, run: SavedRun, recordings: Sequence[Recording], threads: int = 1) -> PayloadFound:
    """Find the payload that the arm carries in recordings.

    Args:
        robot: The arm of the run.
        run: The run that identified it, without payload or with another one.
        recordings: Recordings with the payload.
        threads: Threads that share the reduction.

    Raises:
        EstimateError: If no recording is given, or the run was one of a loaded arm alone.
    """
    if run.content["payload_model"] == "loaded":
        raise EstimateError(
            "the run was identified from loaded recordings alone: its arm already contains a payload; identify the arm "
            "without payload first"
        )
    sources = _sources(robot, run, recordings)
    equations = sources[0].equations
    observations = reduce_rows(sources, threads=threads)
    arm = _arm_rows(run.estimate, equations.names)
    plain = weighted(observations, equations.names)
    fit = generalised(sources, plain, threads=threads)
    estimate = _joined(fit, arm, equations)
    body = payload_body(estimate)
    if body is None:
        raise EstimateError(
            "the payload's mass has no effect in these recordings: gravity must act on it while it moves; record "
            "motion of the wrist in several postures"
        )
    agreement = _agreement(run.estimate, estimate)
    enough = _is_enough(body)
    return PayloadFound(body, estimate, fit.noise, enough, agreement, tuple(_reasons(body, enough, agreement)))


def _sources(robot: Robot, run: SavedRun, recordings: Sequence[Recording]) -> list[RowSource]:
    if not recordings:
        raise EstimateError("no recording is given; give at least one log made with the payload")
    content = run.content
    model = build_model(robot, content["effects"], content["torque"], "paired", settings_of_run(run).sign_width)
    equations = equations_of(model)
    settled = settle(settings_of_run(run).preparation, recordings)
    labels = labels_of(recordings)
    return [
        row_source(_as_loaded(recording), equations, settled, label)
        for label, recording in zip(labels, recordings, strict=True)
    ]


def _as_loaded(recording: Recording) -> Recording:
    """Return the recording as one with a payload, whether its log says so or not: the command says so."""
    return recording if recording.payload is not None else replace(recording, payload="payload")


def _arm_rows(arm: Estimate, names: Sequence[str]) -> np.ndarray:
    """Return the run's triangle as equations in the columns of arm and payload; the run's own payload is projected out.

    Rows that hold nothing but the run's payload go; what its arm columns say remains.
    """
    own = [name for name in arm.columns if name in COLUMNS]
    others = [name for name in arm.columns if name not in COLUMNS]
    missing = [name for name in others if name not in names]
    if missing:
        raise EstimateError(
            f"the run knows {', '.join(missing[:4])}, which this robot's model has not; is it another arm?"
        )
    order = [arm.columns.index(name) for name in [*own, *others]]
    # Sigmas that were widened for a small sample or another covariance count in full.
    scale = _widening(arm)[order]
    triangle = np.asarray(np.linalg.qr(arm.system.triangle[:, [*order, -1]], mode="r"))
    part = triangle[len(own) : len(own) + len(others), len(own) :]
    rows = np.zeros((len(part), len(names) + 1))
    factors = 1 / scale[len(own) :]
    rows[:, [list(names).index(name) for name in others]] = part[:, :-1] * factors
    rows[:, -1] = part[:, -1] - part[:, :-1] @ _values(arm, others) + part[:, :-1] * factors @ _values(arm, others)
    return rows


def _widening(arm: Estimate) -> np.ndarray:
    return np.maximum(arm.sigma / np.sqrt(np.diag(arm.system.inverse)), 1.0)


def _values(arm: Estimate, names: Sequence[str]) -> np.ndarray:
    return arm.full_values(tuple(names))


def _joined(fit: GlsFit, arm_rows: np.ndarray, equations: Equations) -> Estimate:
    """Return arm and payload from the new rows and the run's; alone, loaded rows could not tell one from the other."""
    names, new = equations.names, fit.estimate
    weights = {cell: 1 / deviation for cell, deviation in new.deviations.items()}
    factors = [factor for factor in fit.whitened.factors if cell_of(factor) in weights]
    # What estimating the noise of the new rows costs, the median over their parameters.
    gain = float(np.median(np.maximum(new.sigma / np.sqrt(np.diag(new.system.inverse)), 1.0)))
    triangle, rows = merged_triangle(factors, names, lambda factor: weights[cell_of(factor)] / gain)
    stacked = np.asarray(np.linalg.qr(np.vstack([triangle, arm_rows]), mode="r"))
    system = independent(System(names, stacked, rows))
    freedom = np.full(len(system.columns), float(np.median(new.freedom)))
    return Estimate("gls", system, system.values, system.inverse, "model", freedom, new.deviations)


def _agreement(before: Estimate, after: Estimate) -> float:
    """Return how far the arm moved, squared and in units of what it may: ``d^T (C_before - C_after)^+ d / rank``."""
    shared = [name for name in before.columns if name in after.columns and name not in COLUMNS]
    old = [before.columns.index(name) for name in shared]
    new = [after.columns.index(name) for name in shared]
    change = after.values[new] - before.values[old]
    gained = before.covariance[np.ix_(old, old)] - after.covariance[np.ix_(new, new)]
    scale = np.sqrt(np.diag(before.covariance)[old])
    values, vectors = np.linalg.eigh(gained / np.outer(scale, scale))
    known = values > 1e-6
    if not known.any():
        return 1.0
    along = vectors[:, known].T @ (change / scale)
    return float(np.mean(along**2 / values[known]))


def _is_enough(body: PayloadBody) -> bool:
    mass, sigma = body.mass
    if not (mass > 0 and 100 * sigma / mass <= ENOUGH and body.centre_sigma is not None):
        return False
    return bool(np.all(body.centre_sigma <= 0.01))


def _reasons(body: PayloadBody, enough: bool, agreement: float) -> list[Reason]:
    found = []
    mass, sigma = body.mass
    if abs(mass) < stats.norm.ppf(0.99865) * sigma:
        found.append(
            Reason(
                f"the mass comes out as {mass:.3g} +- {sigma:.2g} kg: no payload is seen",
                "check that the arm really carried it in these recordings",
                "payload",
            )
        )
    if not enough:
        found.append(
            Reason(
                "the motion was not enough: mass or centre are known to worse than 20 % or a centimetre",
                "turn the wrist so that gravity pulls on the payload from several sides, and record longer",
                "payload",
            )
        )
    if agreement > 2:
        found.append(
            Reason(
                f"the arm itself behaves otherwise than in its run (its parameters moved by {np.sqrt(agreement):.1f} "
                "times "
                "what chance explains): friction changes with temperature and day, and leaks into the payload",
                "identify the arm without payload on the same day, warmed up alike",
                "agreement",
            )
        )
    return found
