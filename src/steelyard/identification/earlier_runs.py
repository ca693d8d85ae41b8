"""Earlier runs as further rows of an estimate.

The weighted triangle of a run stands for all its recordings: payloads and later data join it without reading them.

Friction in proportion to the load of the gears, gains, zeros and a tilted base multiply a payload's parameters, so
that they are not linear beside them. Their columns are those of the payload of the fit before: a few fits converge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..effects import EFFECTS
from ..errors import EstimateError, ObservationError
from ..estimate import Estimate, System, group_of, independent
from ..observe import (
    Equations,
    Fingerprint,
    Observations,
    RowSource,
    equations_of,
    merge_observations,
    merged_triangle,
    row_source,
)
from ..verdict import Reason
from .fitting import ArmFit, fit_sources
from .inputs import PASSES, inertias_of, payload_part, without_payload_part
from .payload_body import COLUMNS
from .run_files import SavedRun
from .settings import FACTOR_METHODS, Settings


def check_joinable(method: str) -> None:
    """Raise an EstimateError unless earlier runs can be counted with a method's estimate."""
    if method not in FACTOR_METHODS:
        raise EstimateError(
            f"earlier runs count as rows, and method '{method}' is not made of rows alone; give all recordings at once "
            f"and leave --add out, or choose --method {', '.join(FACTOR_METHODS)}"
        )


def as_earlier(settings: Settings, runs: Sequence[SavedRun]) -> Settings:
    """Return settings with the constants of friction, and instead of a choice effects and cut-off, of the first run.

    Rows count together only if their columns mean the same. Sign width and delay that a run had estimated count too.

    Raises:
        EstimateError: If nonlinear parameters are to be estimated.
    """
    if settings.nonlinear:
        raise EstimateError(
            f"nonlinear parameters ({', '.join(settings.nonlinear)}) with earlier runs: their rows count with the "
            "constants of those runs; leave --nonlinear out, or give all recordings at once and leave --add out"
        )
    earlier, effects = runs[0].choices, tuple(runs[0].content["effects"])
    if earlier.nonlinear:
        delay = settings.preparation.delay or earlier.preparation.delay
        settings = replace(
            settings,
            sign_width=settings.sign_width or earlier.sign_width,
            preparation=replace(settings.preparation, delay=delay),
        )
    prepared = settings.preparation
    prepared = replace(prepared, cutoff=prepared.cutoff or earlier.preparation.cutoff)
    # The payload of this run may be another one: it is found anew.
    constants = None if earlier.friction is None else without_payload_part(earlier.friction)
    return replace(
        settings,
        friction=settings.friction or constants,
        preparation=prepared,
        effects=effects if settings.chooses_effects else settings.effects,
        select=False,
    )


def run_rows(run: SavedRun, names: Sequence[str], *, keep_payload: bool = False) -> np.ndarray:
    """Return what a run knows as weighted rows (k, c + 1) in other columns.

    Columns of the run's payload are projected out unless they are to stay: the information on the others remains.

    Raises:
        EstimateError: If the run knows a parameter of the arm that is not among the columns.
    """
    known = run.estimate
    gone = [] if keep_payload else [name for name in known.columns if name in COLUMNS]
    others = [name for name in known.columns if name not in gone]
    missing = [name for name in others if name not in names]
    if missing:
        raise EstimateError(
            f"the run knows {', '.join(missing[:4])}, which this robot's model has not; is it another arm?"
        )
    order = [known.columns.index(name) for name in [*gone, *others]]
    triangle = np.asarray(np.linalg.qr(known.system.triangle[:, [*order, -1]], mode="r"))
    part = triangle[len(gone) : len(gone) + len(others), len(gone) : -1]
    # Sigmas that were widened, for a small sample or correlated noise, count in full; values stay.
    widened = part / known.widening[order][len(gone) :]
    rows = np.zeros((len(part), len(names) + 1))
    rows[:, [list(names).index(name) for name in others]] = widened
    rows[:, -1] = widened @ known.full_values(tuple(others))
    return rows


def joined(fit: ArmFit, rows: np.ndarray, equations: Equations) -> Estimate:
    """Return the estimate from the rows of a fit and further weighted rows (k, c + 1), over all columns.

    Columns that are not identifiable from the fit's recordings alone are tried again with the further rows.
    """
    names, new = equations.names, fit.estimate
    weights = {group: 1 / deviation for group, deviation in new.deviations.items()}
    factors = [factor for factor in fit.used.factors if group_of(factor) in weights]
    # What correlated noise, or estimating it, costs: the median over the parameters.
    gain = float(np.median(new.widening))
    triangle, count = merged_triangle(factors, names, lambda factor: weights[group_of(factor)] / gain)
    stacked = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
    system = independent(System(names, stacked, count))
    freedom = np.full(len(system.columns), float(np.median(new.freedom)))
    return Estimate(new.method, system, system.values, system.inverse, new.covariance_kind, freedom, new.deviations)


def with_earlier_runs(fit: ArmFit, equations: Equations, runs: Sequence[SavedRun]) -> Estimate:
    """Return the estimate of a fit together with what earlier runs knew.

    Raises:
        ObservationError: If a run is one of another geometry, filter, units or unknowns, or a recording comes twice.
        EstimateError: If a run has no factors.
    """
    merged = fit.observations
    rows = []
    carried = {info.payload for info in merged.recordings} - {None}
    for run in runs:
        earlier = _observations(run)
        _check_addable(run, merged.fingerprint, earlier.fingerprint)
        merged = merge_observations(merged, earlier)
        same_payload = carried == {info.payload for info in earlier.recordings} - {None}
        rows.append(run_rows(run, equations.names, keep_payload=same_payload))
    return joined(fit, np.vstack(rows), equations)


def _check_addable(run: SavedRun, here: Fingerprint, there: Fingerprint) -> None:
    """Refuse a run whose rows do not fit, and say with which options they would.

    Raises:
        ObservationError: If they do not.
    """
    content, settings = run.content, run.choices
    preparation = content["preparation"]
    cutoff, gravity = preparation["cutoff"], [float(part) for part in content.get("gravity") or ()]
    of_run = f"--gravity {','.join(map(repr, gravity))}, or set gravity = {gravity} under [identify]"
    remedies = {
        "geometry": "give the robot file and --lock of that run, and identify with "
        f"{of_run if gravity else 'its --gravity'}",
        "unknowns": f"identify with --effects {','.join(content['effects'])} --sign-width {settings.sign_width:g}",
        "filter": f"identify with {'' if cutoff is None else f'--cutoff {cutoff!r} '}--decimation "
        f"{preparation['decimation']} --velocity {preparation['velocity']}, from logs of its rate",
        "units": f"identify with --torque {content['torque']}",
    }
    for name, remedy in remedies.items():
        ours, theirs = getattr(here, name), getattr(there, name)
        if ours != theirs:
            values = "" if name == "geometry" else f" ('{theirs}', here '{ours}')"
            raise ObservationError(
                f"run '{run.folder}' cannot be added, because of other {name}{values}; {remedy}, or leave --add out "
                "and give all recordings at once"
            )


def _observations(run: SavedRun) -> Observations:
    """Return the factors of a run; recordings carry the run's name, so that two runs may have a ``log`` each."""
    found = run.observations
    prefix = run.folder.name
    factors = tuple(replace(factor, recording=f"{prefix}/{factor.recording}") for factor in found.factors)
    recordings = tuple(replace(info, label=f"{prefix}/{info.label}") for info in found.recordings)
    return Observations(found.fingerprint, factors, recordings)


def fit_with_load(
    sources: Sequence[RowSource], run: SavedRun, settings: Settings
) -> tuple[Sequence[RowSource], ArmFit, Estimate]:
    """Return rows of loaded recordings, their fit, and the estimate of it together with the run of the arm.

    With effects in proportion to torques, the rows are made again with the payload that was found. The arm's part of
    the load stays that of its run.

    Args:
        sources: Rows of the loaded recordings, without the payload in their load.
        run: The run of the arm.
        settings: The choices of the fit.
    """
    again = PASSES if sources[0].equations.model.dependent_effects else 0
    found = _fitted(sources, run, settings)
    for _ in range(again):
        sources = _with_load(sources, found[1])
        found = _fitted(sources, run, settings)
    return sources, *found


def _fitted(sources: Sequence[RowSource], run: SavedRun, settings: Settings) -> tuple[ArmFit, Estimate]:
    equations = sources[0].equations
    fit = fit_sources(sources, equations, settings)
    return fit, joined(fit, run_rows(run, equations.names), equations)


def _with_load(sources: Sequence[RowSource], estimate: Estimate) -> list[RowSource]:
    """Return the same rows with the payload of an estimate in their load."""
    equations = sources[0].equations
    model = equations.model
    known = model.friction.inertias or model.robot.parameters
    carrying = model.with_inertias({**known, **payload_part(inertias_of(model, estimate))})
    again = equations_of(carrying, equations.base)
    return [row_source(one.recording, again, one.resolved, one.label) for one in sources]


def reasons_of_load(run: SavedRun) -> Iterator[Reason]:
    """Yield that loaded recordings of a run were fitted with the load of the arm alone, as runs of before were."""
    content, friction = run.content, run.choices.friction
    dependent = [name for name in content["effects"] if EFFECTS[name.rstrip("0123456789")].needs_inertias]
    if content["payload_model"] != "paired" or not dependent:
        return
    if friction is None or not payload_part(friction.inertias):
        text = f"the run of the arm has loaded recordings, in which its effect '{dependent[0]}' ignores the payload"
        yield Reason(f"{text}: arm and payload are biased", "identify the arm again", "payload")


def arm_agreement(before: Estimate, after: Estimate) -> float:
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
