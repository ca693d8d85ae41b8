"""Many experiments of one arm, each fitted on its own: what they share is made once, and filters run side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import SteelyardError
from ..estimate import Estimated, Evidence
from ..estimators import ESTIMATORS
from ..observe import Equations, ResolvedPreparation, resolve_preparation
from ..progress import silent
from ..recording import Recording
from ..robot import Robot
from .fitting import (
    Fitted,
    PreparedRows,
    Prior,
    completed,
    estimated_fit,
    evidence_of,
    fit_arm,
    method_inputs,
    prepare_rows,
    sources_of,
)
from .inputs import labels_of
from .settings import Settings

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class _Begun:
    """An experiment up to where its method begins."""

    resolved: ResolvedPreparation
    prepared: PreparedRows
    evidence: Evidence
    own: Any
    prior: Prior


def fit_arms(
    robot: Robot,
    experiments: Sequence[Sequence[Recording]],
    settings: Settings,
    equations: Equations,
    resolved: ResolvedPreparation | None = None,
) -> list[Fitted | SteelyardError]:
    """Fit many experiments of an arm, each on its own: the same numbers as :func:`fit_arm` gives for each alone.

    Args:
        robot: The arm.
        experiments: The recordings of each experiment, one a seed for instance.
        settings: Choices for all of them.
        equations: Equations of the arm with these choices.
        resolved: Filters and decimation, if all experiments have the very same motion; None finds them for each.

    Returns:
        For each experiment what :func:`fit_arm` returns, or the error that it raises.
    """
    if not ESTIMATORS[settings.method].many:
        return [
            _tried(lambda own=own: fit_arm(robot, own, settings, equations=equations, resolved=resolved))
            for own in experiments
        ]
    begun = [_tried(lambda own=own: _begun(own, settings, equations, resolved)) for own in experiments]
    found = iter(_found([one for one in begun if isinstance(one, _Begun)], settings))
    return [one if isinstance(one, SteelyardError) else _ended(one, next(found), settings) for one in begun]


def _begun(
    recordings: Sequence[Recording], settings: Settings, equations: Equations, resolved: ResolvedPreparation | None
) -> _Begun:
    resolved = resolved or resolve_preparation(settings.preparation, recordings)
    labelled = tuple(zip(labels_of(recordings), recordings, strict=True))
    prepared = prepare_rows(sources_of(labelled, equations, resolved), equations, settings)
    return _Begun(resolved, prepared, evidence_of(prepared), *method_inputs(equations, settings))


def _found(begun: Sequence[_Begun], settings: Settings) -> Sequence[Estimated | SteelyardError]:
    if not begun:
        return []
    estimator, own, prior = ESTIMATORS[settings.method], begun[0].own, begun[0].prior
    together = estimator.load_many()
    found = _tried(lambda: together([one.evidence for one in begun], own, prior))
    if not isinstance(found, SteelyardError):
        return found
    # One of them cannot be estimated at all: each alone says why.
    alone = estimator.load()
    return [_tried(lambda one=one: alone(one.evidence, own, prior, silent)) for one in begun]


def _ended(begun: _Begun, found: Estimated | SteelyardError, settings: Settings) -> Fitted | SteelyardError:
    if isinstance(found, SteelyardError):
        return found
    prepared = begun.prepared
    fit = _tried(lambda: completed(estimated_fit(prepared, begun.evidence, found), prepared, settings))
    return fit if isinstance(fit, SteelyardError) else Fitted(prepared.equations, begun.resolved, prepared.sources, fit)


def _tried(make: Callable[[], _T]) -> _T | SteelyardError:
    try:
        return make()
    except SteelyardError as error:
        return error
