"""P4, Swevers et al. 1997: optimal excitation, and estimation with noise on positions, on a KUKA IR 361."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..motion import FourierSeries, Trajectory
from ..progress import Progress, Stage, no_stages
from .claim import Claim, PaperResult, PaperTable, same, table, within
from .designs import (
    CONSTRAINT_COLUMNS,
    Arm,
    Designed,
    constraint_rows,
    count_within_limits,
    designed,
    part_of,
    with_starts,
)
from .figures import p4_motion_figure
from .p4_bench import (
    C1,
    C2,
    POSITION_VARIANCE,
    SPRING,
    first_criterion,
    noisy_covariance,
    p4_arm,
    with_joint_scaled,
)
from .p4_estimation import estimation
from .p4_iterated import DesignIteration, iterated_claims, iterated_design, iterated_table

TITLE = "Swevers, Ganseman, Tukel, De Schutter & Van Brussel 1997: optimal robot excitation, KUKA IR 361"
STARTS = 16
SMALLER = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""Parts to which the motion of axis 1 is made smaller."""

_CONDITIONS = {C1: 4.15, C2: 5.94}
_WITH_SPRING = {C1: 47.3, C2: 111.7}
SPRING_ORDER, SPRING_GROWTH = (1.2, 4.0), (1.3, 4.0)
"""Expected of motions designed for spring and offsets: c1 of c2's over that of c1's, and growth by them."""

SPREAD = {"order": "1.85 to 1.88", "growth": "2.0 to 2.1"}
"""What searches from several seeds end with."""

_NAMES = {C1: "c1, condition number", C2: "c2, determinant"}


@dataclass(frozen=True, eq=False)
class Designs4:
    """The motions of P4.

    Attributes:
        arm: The arm with 21 unknowns.
        motions: The best motion by criterion.
        sprung: The arm with spring and offsets unknown too.
        resprung: The best motion by criterion for that.
        iterations: The iterated design.
    """

    arm: Arm
    motions: dict[str, Designed]
    sprung: Arm
    resprung: dict[str, Designed]
    iterations: list[DesignIteration]


def p4(seeds: int | None = None, threads: int = 1, stage: Stage = no_stages, *, starts: int = STARTS) -> PaperResult:
    """Reproduce P4: its excitation, its Monte-Carlo study, maximum likelihood and its experiment.

    Args:
        seeds: Runs that maximum likelihood is tried on; None: 60.
        threads: Threads that share the searches; the result is the same.
        stage: Called with the stage name; returns a progress callback.
        starts: Random motions that each search starts from.
    """
    arm, sprung = p4_arm(), p4_arm(SPRING)
    motions = _both(arm, starts, threads, stage("criteria c1 and c2"))
    resprung = _both(sprung, starts, threads, stage("with spring and offsets"))
    iterations = iterated_design(arm, max(1, starts // 4), threads, stage("iterated design"))
    found = Designs4(arm, motions, sprung, resprung, iterations)
    estimated = estimation(arm, _motions(motions), sprung, _motions(resprung), seeds, threads, stage)
    claims = [
        *_criteria_claims(found), *_size_claims(found), *_spring_claims(found), *_noise_claims(found),
        *estimated.claims,
    ]  # fmt: skip
    tables = (
        _sigma_table(found), _size_table(found), _spring_table(found), iterated_table(found.iterations),
        table("Constraints nearest to their limits", CONSTRAINT_COLUMNS, constraint_rows(_labelled(motions))),
        *estimated.tables,
    )  # fmt: skip
    figures = [
        p4_motion_figure(number, _NAMES[criterion], motions[criterion]) for number, criterion in ((2, C1), (3, C2))
    ]
    return PaperResult(
        "P4", TITLE, tuple(claims), tables, (*_notes(starts), *estimated.notes),
        figures=(*figures, *estimated.figures),
    )  # fmt: skip


def _motions(designs: dict[str, Designed]) -> dict[str, Trajectory]:
    return {criterion: each.trajectory for criterion, each in designs.items()}


def _both(arm: Arm, starts: int, threads: int, stage_progress: Progress) -> dict[str, Designed]:
    found = {}
    for place, criterion in enumerate((C1, C2)):
        settings = replace(with_starts(arm.settings, starts, threads), criterion=criterion)
        found[criterion] = designed(arm.ready(settings), settings, part_of(stage_progress, place, 2))
    return found


def _labelled(motions: dict[str, Designed]) -> dict[str, Designed]:
    return {_NAMES[criterion]: each for criterion, each in motions.items()}


def _criteria_claims(found: Designs4) -> Iterator[Claim]:
    first, second = found.motions[C1], found.motions[C2]
    everything = [*found.motions.items(), *((f"{name}, spring", each) for name, each in found.resprung.items())]
    yield same(
        "base parameters; with spring and offsets", "21; not said", _counts(found), "21; 24",
        "the spring's two parameters act like the first moments of link 2 and are regrouped with them: three offsets "
        "are what the experiment adds",
        fails_if="the model regroups otherwise, or the spring's law is not that of a gravity torque",
    )  # fmt: skip
    yield same(
        "motions whose limits all hold at every instant, of those designed", "continuous functions",
        count_within_limits(dict(everything)), "4 of 4",
        fails_if="a designed motion breaks a limit between grid instants",
    )  # fmt: skip
    yield within(
        "c1: condition number, rows over noise, columns at unit length", _CONDITIONS[C1], first.value, 1.0, 3.9,
        f"starts {first.spread}", why="reference 2.9 to 3.9; several seeds: 2.75 to 2.96", claimed=(1.0, 4.15),
        fails_if="the search by c1 stalls, or rows and columns are not weighted by noise and length",
    )  # fmt: skip
    yield within(
        "c2: log10 det of the covariance", "far smaller than with c1", second.value, -np.inf, -55.0,
        f"c1's motion has {first.figures.log10_det_covariance:.1f}", why="reference -55; several seeds: -56.9 to -56.5",
        fails_if="the search by c2 stalls, or noise, rate or duration are not the paper's",
    )  # fmt: skip
    yield within(
        "condition number of c2's motion, as of c1", _CONDITIONS[C2],
        first_criterion(found.arm.ready(found.arm.settings), second.trajectory), 4.0, 8.0,
        why="reference 5.4 to 6.4; several seeds: 4.5 to 5.3",
        fails_if="a D-optimal motion is also the best by c1, or c1 is computed from other rows",
    )  # fmt: skip
    smaller = int((second.figures.sigma < first.figures.sigma).sum())
    yield within(
        "sigmas that are smaller with c2, of 21", "most", float(smaller), 12.0, 21.0,
        why="reference 15; several seeds: 14 to 16", claimed=(11.0, 21.0),
        fails_if="the motion with the smallest condition number has the smaller sigmas",
    )  # fmt: skip


def _counts(found: Designs4) -> str:
    return f"{len(found.motions[C1].figures.sigma)}; {len(found.resprung[C1].figures.sigma)}"


def _size_claims(found: Designs4) -> Iterator[Claim]:
    rows = _sizes(found)
    (_, whole, det), (factor, small, small_det) = rows[0], rows[2]
    yield within(
        f"c1 of its best motion with axis 1 moving {factor:g} of what it did, over c1", "not said",
        small / whole, 0.5, 2.0,
        f"c1 goes from {whole:.2f} to {small:.2f}, log10 det of the covariance from {det:.1f} to {small_det:.1f}: the "
        "condition number is independent of size. Where axis 1 moves little, all columns that its torque alone shows "
        "shrink alike, and columns at unit length hide it: a search by c1 may end in a tiny motion, none by c2 does",
        why="it hardly changes; several seeds: 0.98 to 1.57",
        fails_if="c1 depends on the size of a motion",
    )  # fmt: skip
    yield within(
        "the same: log10 det of the covariance lost", "not said", small_det - det, 5.0, np.inf,
        why="several seeds: 8.3 to 11.8 decades",
        fails_if="the determinant does not depend on the size of a motion either",
    )  # fmt: skip


def _sizes(found: Designs4) -> list[tuple[float, float, float]]:
    """Return c1 and log10 det of c1's best motion with axis 1 moving less and less."""
    ready = found.arm.ready(found.arm.settings)
    forecast = ready.forecast()
    motion = cast(FourierSeries, found.motions[C1].trajectory)
    rows = []
    for factor in SMALLER:
        smaller = with_joint_scaled(motion, 0, factor)
        rows.append((factor, first_criterion(ready, smaller), float(forecast(smaller).log10_det_covariance)))
    return rows


def _spring_claims(found: Designs4) -> Iterator[Claim]:
    ready, plain = found.sprung.ready(found.sprung.settings), found.arm.ready(found.arm.settings)
    without = {each: first_criterion(plain, found.motions[each].trajectory) for each in (C1, C2)}
    taken_over = {each: first_criterion(ready, found.motions[each].trajectory) for each in (C1, C2)}
    designed_for = {each: first_criterion(ready, found.resprung[each].trajectory) for each in (C1, C2)}
    return spring_claims(without, taken_over, designed_for)


def spring_claims(
    without: dict[str, float], taken_over: dict[str, float], designed_for: dict[str, float]
) -> Iterator[Claim]:
    """Return the claims on spring and offsets from condition numbers by criterion.

    Args:
        without: Of the motions designed without them, spring and offsets known.
        taken_over: Of the same motions, spring and offsets unknown.
        designed_for: Of motions designed for spring and offsets.
    """
    yield within(
        "with spring and offsets: condition number of c2's motion over that of c1's, both designed for them",
        round(_WITH_SPRING[C2] / _WITH_SPRING[C1], 2), designed_for[C2] / designed_for[C1], *SPRING_ORDER,
        f"with spring and offsets {designed_for[C1]:.1f} (c1; paper 47.3) and {designed_for[C2]:.1f} (c2; paper "
        "111.7), in the paper's order; its sizes hang on the spring's law and the limits, which are lost. The motions "
        f"designed without them have {taken_over[C1]:.1f} and {taken_over[C2]:.1f}, in the other order",
        why=f"searches from several seeds: {SPREAD['order']}", claimed=(1.0, np.inf),
        fails_if="the search by c1 finds no smaller condition number than c2's motion has",
    )  # fmt: skip
    growth = {each: designed_for[each] / without[each] for each in (C1, C2)}
    yield within(
        "spring and offsets: by how much they raise the condition number of a motion designed for them, smaller of "
        "c1's and c2's", round(_WITH_SPRING[C1] / _CONDITIONS[C1], 1), min(growth.values()), *SPRING_GROWTH,
        f"raised {growth[C1]:.1f} times (c1) and {growth[C2]:.1f} times (c2): significantly higher, as the paper says, "
        "not by its 11 and 19 times. Here the spring's two parameters are regrouped with first moments, and offsets "
        "alone are added, which are hard to distinguish from gravity",
        why=f"searches from several seeds: {SPREAD['growth']}", claimed=(1.3, np.inf),
        fails_if="offsets are as identifiable as the rest, or the motions are not designed for them",
    )  # fmt: skip


def _noise_claims(found: Designs4) -> Iterator[Claim]:
    deviations = np.sqrt(POSITION_VARIANCE)
    ready, values = found.arm.ready(found.arm.settings), dict(found.arm.known.values)
    growth = 0.0
    for each in found.motions.values():
        bound = np.sqrt(np.diag(noisy_covariance(ready, each.trajectory, values, deviations)))
        growth = max(growth, float((bound / each.figures.sigma - 1).max()))
    yield within(
        "Cramer-Rao bound with position noise: largest growth of a sigma, both motions", "small", growth, 0.0, 1e-4,
        "position noise of 3 to 5e-5 rad does not matter: weighted least squares is as good as maximum likelihood",
        why="reference: estimates differ by under 1e-4 sigma", claimed=(0.0, 0.01),
        fails_if="position noise matters beside torque noise",
    )  # fmt: skip
    yield from iterated_claims(found.iterations)


def _sigma_table(found: Designs4) -> PaperTable:
    first, second = (found.motions[criterion].figures for criterion in (C1, C2))
    rows = [
        [name, float(a), float(b), float(a / b)]
        for name, a, b in zip(first.names, first.sigma, second.sigma, strict=True)
    ]
    return table("Sigmas by criterion", ["parameter", "c1", "c2", "c1 over c2"], rows)


def _size_table(found: Designs4) -> PaperTable:
    headings = ["part of axis 1's motion", "c1", "log10 det of the covariance"]
    return table(
        "The condition number is independent of size: c1's best motion, axis 1 moving less", headings, _sizes(found)
    )


def _spring_table(found: Designs4) -> PaperTable:
    ready, rows = found.sprung.ready(found.sprung.settings), []
    for criterion, printed in _WITH_SPRING.items():
        without, again = found.motions[criterion], found.resprung[criterion]
        rows.append(
            [_NAMES[criterion], printed, first_criterion(ready, without.trajectory),
             first_criterion(ready, again.trajectory), float(again.figures.log10_det_covariance)]
        )  # fmt: skip
    headings = ["criterion", "paper", "motion designed without", "designed with", "its log10 det of the covariance"]
    return table("Condition number with spring and offsets", headings, rows)


def _notes(starts: int) -> tuple[str, ...]:
    return (
        f"5 harmonics, 10 s, 1500 samples, torque noise variances 25, 26, 10; {starts} starts a search; the tool at "
        "least 0.8 m high, and not both within 0.7 m of axis 1 and below 1.8 m, proven at every instant",
        "limits, inertias, friction and spring are assumed: the paper's tables are lost",
    )
