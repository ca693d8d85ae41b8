"""The identified arm as one that can exist: which prior it gets, and how it predicts unseen motion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..estimate import Estimate
from ..judge import Evaluation, LeftOutBlocks
from ..observe import Equations
from ..robot import Robot, load_robot
from ..verdict import Reason, first_named
from .settings import Settings

if TYPE_CHECKING:
    from ..consistency import StandardParameters

TRUSTED_SOURCES = ("cad", "vendor")
"""Inertias that are a prior by default; those identified from recordings would count the same data twice."""

COSTLY = 1.1
"""A consistent arm whose error on unseen motion is so many times that of free parameters is worth a sentence."""

WORSE = 1.5
"""From this factor on, and beyond a good error, it is a reason to doubt the data or the model."""


def inertia_prior(robot: Robot, settings: Settings) -> tuple[Robot | None, str]:
    """Return the robot whose inertias are the prior, None if there is none, and a note on it.

    Raises:
        RobotError: If the file of the prior cannot be read.
    """
    chosen = settings.consistency.prior
    if chosen == "none":
        return None, "no prior: --no-prior"
    if chosen != "auto":
        prior = load_robot(chosen)
        held = prior.with_locked(settings.lock) if settings.lock else prior
        return held, f"prior: link inertias of '{chosen}'"
    if "inertias" not in robot.carries:
        return None, "no prior: the robot file has no link inertias; give some with --prior FILE"
    if robot.inertia_source in TRUSTED_SOURCES:
        return (
            robot,
            f"prior: link inertias of the robot file ({robot.inertia_source}); --no-prior leaves it out",
        )
    if robot.inertia_source == "identified":
        return None, "no prior: the robot file's inertias were identified from recordings"
    return None, (
        "no prior: the source of the robot file's inertias is unknown; if they are CAD or vendor values, say so with "
        "--inertia-source cad"
    )  # fmt: skip


def consistent_parameters(
    equations: Equations, estimate: Estimate, settings: Settings, left_out: LeftOutBlocks
) -> tuple[StandardParameters | None, str]:
    """Return the consistent standard parameters of an estimate, and a note on their prior.

    Raises:
        EstimateError: If bounds contradict each other, or the prior is one of another arm.
    """
    if "inertia" not in equations.model.effects:
        return None, "no standard parameters: the model has no link inertias"
    from ..consistency import standard_parameters

    prior, note = inertia_prior(equations.model.robot, settings)
    found = standard_parameters(equations, estimate, settings.consistency, prior=prior, origin=note, left_out=left_out)
    return found, note


def prior_reasons(found: StandardParameters | None) -> Iterator[Reason]:
    """Yield which links' prior the data contradict: it still decides what the data do not show."""
    if found is None or found.prior is None or not found.prior.disagreements:
        return
    named = first_named([one.text for one in found.prior.disagreements])
    yield Reason(
        f"the prior contradicts the data on {named}: what the data do not show of the arm comes from it",
        "check the units (kg, m) and frames of the prior's inertias, and whether it is the file of this arm; or leave "
        "it out (--no-prior)",
        "prior",
        "fair",
        "plausible",
    )


def consistency_reasons(
    found: StandardParameters | None, free: Evaluation, consistent: Evaluation | None, good: float
) -> Iterator[Reason]:
    """Yield what consistency costs, where it costs much.

    Args:
        found: The consistent parameters.
        free: Errors of all base parameters on unseen motion.
        consistent: Errors of the consistent arm.
        good: Relative error [%] that counts as good.
    """
    if found is None or consistent is None:
        return
    before, after = free.relative_percent, consistent.relative_percent
    if not after > COSTLY * before:
        return
    held = [*found.edges, *found.zeros, *found.active]
    named = f", held by {first_named(held)}" if held else ""
    yield Reason(
        f"as an arm that can exist the model predicts unseen motion to {after:.3g} %, against {before:.3g} % of free "
        f"parameters{named}: these absorb what no rigid arm does",
        "add the effects that the residuals point to, or check signs, units and the robot file",
        "consistency",
        "fair" if after > WORSE * before and after > good else None,
        "plausible",
    )


def evaluation_to_json(error: Evaluation) -> dict[str, Any]:
    """Return the errors of every joint and of all together."""
    return {
        "relative_error_percent": error.relative_percent,
        "evaluation_cutoff": error.cutoff,
        "joints": [
            {
                "name": joint.joint, "kind": joint.kind, "unit": joint.unit, "rms": joint.rms,
                "relative_error_percent": joint.relative_percent, "maximum": joint.maximum,
                "durbin_watson": joint.durbin_watson, "expected_durbin_watson": joint.expected_durbin_watson,
                "noise_ratio": joint.noise_ratio, "standstill_rms": joint.standstill_rms,
            }
            for joint in error.joints
        ],
    }  # fmt: skip


def standard_to_json(found: StandardParameters) -> list[dict[str, Any]]:
    """Return every standard parameter of the consistent arm, with where it comes from and the robot file's value."""
    file = found.model.robot.parameters
    rows = []
    for k, parameter in enumerate(found.model.parameters):
        value, sigma, known = float(found.values[k]), float(found.sigma[k]), file.get(parameter.name)
        far = None if known is None or not sigma > 0 else (value - known) / sigma
        rows.append(
            {
                "name": parameter.name, "value": value, "sigma": sigma, "unit": parameter.unit, "link": parameter.link,
                "joint": parameter.joint, "source": found.sources[k], "data_share": float(found.share[k]),
                "reference": float(found.reference[k]), "file_value": known, "difference_in_sigmas": far,
            }
        )  # fmt: skip
    return rows


def consistency_to_json(found: StandardParameters | None, error: Evaluation | None) -> dict[str, Any] | None:
    """Return the prior, what holds the consistent arm, and how it predicts; None if there is none."""
    return found and {
        "prior": found.prior,
        "misfit": found.misfit,
        "links_at_edge": list(found.edges),
        "held_at_zero": list(found.zeros),
        "active_bounds": list(found.active),
        "mended_references": list(found.mended),
        "sigmas_by": found.sigmas_by,
        "validation": None if error is None else evaluation_to_json(error),
    }
