"""A payload as part of the load: effects in proportion to the torques of an arm need those of what it carries.

Friction in proportion to the load of the gears, gains, zeros and a tilted base multiply the payload's parameters, so
that they are not linear beside them. Their columns are those of the payload of the fit before: a few fits converge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..effects import EFFECTS
from ..estimate import Estimate
from ..observe import RowSource, equations_of, row_source
from ..verdict import Reason
from .earlier_runs import joined, run_rows
from .fitting import ArmFit, fit_sources
from .inputs import PASSES, inertias_of, payload_part
from .settings import Settings

if TYPE_CHECKING:
    from .run_files import SavedRun


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
