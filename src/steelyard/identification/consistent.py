"""The identified arm as one that can exist: which prior it gets, and how it predicts unseen motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..estimate import Estimate
from ..judge import Evaluation, LeftOutBlocks, Pattern
from ..observe import Equations
from ..robot import Robot, load_robot
from ..verdict import Reason, first_named
from .settings import Settings

if TYPE_CHECKING:
    from ..consistency import PriorUsed, StandardParameters

TRUSTED_SOURCES = ("cad", "vendor")
"""Inertias that are a prior by default; those identified from recordings would count the same data twice."""

COSTLY = 1.1
"""A consistent arm whose error on unseen motion is so many times that of free parameters is worth a sentence."""

WORSE = 1.5
"""From this factor on, and beyond a good error, it is a reason to doubt the data or the model."""

FAR_WORSE, SMALL = 3.0, 0.2
"""From this factor on the user's bounds or prior cost too much for a good arm, unless the error is below this part of a
good one."""


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
    lacking = [body.link for body in robot.bodies if body.inertia is None]
    if len(lacking) == len(robot.bodies):
        return None, "no prior: the robot file has no link inertias; give some with --prior FILE"
    if robot.inertia_source in TRUSTED_SOURCES:
        named = first_named([f"'{link}'" for link in lacking])
        # To ROS and its programs a link of a URDF without <inertial> has no mass; other files have left it out.
        if lacking and not robot.file.lower().endswith(".urdf"):
            return None, (
                f"no prior: the robot file has no inertia of {named}; give one there (all 0 for a link without mass), "
                "or the inertias of all links with --prior FILE"
            )
        held = f", which has no <inertial> of {named}: without mass" if lacking else ""
        return (
            _with_massless(robot, lacking),
            f"prior: link inertias of the robot file ({robot.inertia_source}){held}; --no-prior leaves it out",
        )
    if robot.inertia_source == "identified":
        return None, "no prior: the robot file's inertias were identified from recordings"
    return None, (
        "no prior: the source of the robot file's inertias is unknown; if they are CAD or vendor values, say so with "
        "--inertia-source cad"
    )  # fmt: skip


def _with_massless(robot: Robot, names: Sequence[str]) -> Robot:
    """Return the robot with some of its links without mass."""
    links = [replace(link, inertia=(0.0,) * 10) if link.name in names else link for link in robot.links]
    return replace(robot, links=tuple(links)) if names else robot


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
    if prior is None and settings.consistency.deviation is not None:
        note += "; its deviation has no effect"
    if found.prior is not None and found.prior.chosen and found.prior.contradicted:
        links = first_named([f"'{link}'" for link in found.prior.contradicted])
        note += f"; its deviation is {found.prior.deviation:g}, which explains how far the data draw {links} from it"
    return found, note


def prior_reasons(found: StandardParameters | None) -> Iterator[Reason]:
    """Yield which links' prior the data contradict: it still decides what the data do not show."""
    if found is None or found.prior is None:
        return
    prior, narrow = found.prior, ""
    given = {} if prior.chosen else prior.contradicted
    needed = max([prior.factor_deviation, *given.values()])
    if not needed:
        return
    if prior.deviation < needed:
        narrow = (
            f", and with the given deviation of {prior.deviation:g} (the difference is one of {needed:.2g}) sigmas "
            "and intervals are too narrow, those of these links most of all"
        )
    yield Reason(
        f"the prior contradicts the data on {_contradicted(prior)}: what the data do not show of the arm comes from it"
        f"{narrow}",
        f"{'' if prior.common_factor is None else 'check the scale and unit of the torques (motor constants, gears); '}"
        "check the units (kg, m) and frames of the prior's inertias, and whether it is the file of this arm; check the "
        "mounting (identify with --gravity X, or set gravity = [...] under [identify]) and the signs and units of "
        "torques and positions, which change what the data find; or leave the prior out (--no-prior)",
        "prior",
        "fair",
        "plausible",
    )


def _contradicted(prior: PriorUsed) -> str:
    """Return the links whose prior the data contradict, and by which factors."""
    from ..consistency.agreement import factor_text

    links = [one.text for one in prior.disagreements]
    if prior.common_factor is not None:
        alike = f"all links alike ({factor_text(prior.common_factor)}; a scale or unit of the torques may be wrong)"
        return f"{alike}, most clearly {first_named(links)}" if links else alike
    if not links:
        links = [f"'{link}'" for link in prior.contradicted]
    return first_named(links)


def massless_reasons(found: StandardParameters | None) -> Iterator[Reason]:
    """Yield which links have a mass by the data, though the robot file declares them without."""
    if found is None or not found.released:
        return
    named = first_named([f"'{link}'" for link in found.released])
    yield Reason(
        f"the data contradict the robot file, which declares {named} without mass: it is identified as the others are",
        "give its mass and inertia in the robot file; or hold it without mass (pinned in [identify.consistency])",
        "mass",
    )


def mass_reasons(found: StandardParameters | None, patterns: Sequence[Pattern] = ()) -> Iterator[Reason]:
    """Yield which links the parameters of best fit make far heavier than such an arm's are.

    Args:
        found: The consistent parameters.
        patterns: Patterns in the residuals, the strongest first: their remedy is the first one.
    """
    if found is None or not found.implausible:
        return
    named = [
        f"'{link}' {mass:.2g} kg (plausible: up to {most:.2g} kg)" for link, (mass, most) in found.implausible.items()
    ]
    shown = f"what the residuals show comes first: {patterns[0].remedy}. Then " if patterns else ""
    yield Reason(
        f"the parameters that fit best are those of a far too heavy arm: {first_named(named)}; its standard parameters "
        "are not those of the arm",
        f"{shown}add the effect that bears its weight (spring: name the joint under springs in the robot file), give "
        "bounds of mass ([identify.consistency]) or a prior (--prior), and check signs and the mounting",
        "mass",
        "fair",
        "plausible",
    )


@dataclass(frozen=True)
class CostCause:
    """What the user gave that makes the consistent arm predict worse than free parameters.

    Attributes:
        text: What it is.
        remedy: What to do about it.
        without: Relative error [%] on unseen motion of a consistent arm without it.
    """

    text: str
    remedy: str
    without: float


def is_costly(free: Evaluation, consistent: Evaluation | None) -> bool:
    """Return whether the consistent arm predicts worse than free parameters by more than chance."""
    return consistent is not None and consistent.relative_percent > COSTLY * free.relative_percent


def cost_cause(
    found: StandardParameters,
    equations: Equations,
    estimate: Estimate,
    settings: Settings,
    error: Callable[[Estimate], float],
) -> CostCause | None:
    """Return whether the user's bounds, or the prior, cost most of the error; None if it is consistency itself.

    Args:
        found: The consistent parameters.
        equations: Model and base parameters.
        estimate: The estimate of the data alone.
        settings: Bounds and prior.
        error: Relative error [%] of an estimate on unseen motion.
    """
    from ..consistency import standard_parameters

    prior = None if found.prior is None else inertia_prior(equations.model.robot, settings)[0]
    bounds = (*found.active, *(f"link '{link}' pinned" for link in settings.consistency.pinned))
    # The deviation stays as it was found: whether another one would do is not the question.
    given = replace(settings.consistency, draws=2, deviation=None if found.prior is None else found.prior.deviation)
    free = replace(given, mass={}, centre={}, centre_in_shape=(), total_mass=None, pinned=())
    named = f"the bounds that you gave ({'; '.join(bounds)})"
    trials = [(named, "widen or leave out these bounds ([identify.consistency])", free, prior)] if bounds else []
    if prior is not None:
        remedy = "check the prior, give it a larger deviation (--prior-deviation) or leave it out (--no-prior)"
        trials.append(("the prior", remedy, given, None))
    if len(trials) == 2:
        trials.append((f"{named} and the prior", "leave out the bounds or the prior (--no-prior)", free, None))
    before, after = error(estimate), error(found.base)
    for text, remedy, chosen, drawn_to in trials:
        without = error(standard_parameters(equations, estimate, chosen, prior=drawn_to).base)
        if after - without > (after - before) / 2:
            return CostCause(text, remedy, without)
    return None


def consistency_reasons(
    found: StandardParameters | None,
    free: Evaluation,
    consistent: Evaluation | None,
    good: float,
    cause: CostCause | None = None,
) -> Iterator[Reason]:
    """Yield what consistency costs, where it costs much.

    Args:
        found: The consistent parameters.
        free: Errors of all base parameters on unseen motion.
        consistent: Errors of the consistent arm.
        good: Relative error [%] that counts as good.
        cause: The user's bounds or prior, if these are what costs it.
    """
    if found is None or consistent is None or not is_costly(free, consistent):
        return
    before, after = free.relative_percent, consistent.relative_percent
    if cause is None:
        held = [*found.edges, *found.zeros, *found.active]
        named = f", held by {first_named(held)}" if held else ""
        why = f"{named}: these absorb what no rigid arm does"
        remedy = "add the effects that the residuals point to, or check signs, units and the robot file"
    else:
        why, remedy = f": by {cause.text}; without, it is {cause.without:.3g} %", cause.remedy
    too_costly = cause is not None and after > FAR_WORSE * before and after > SMALL * good
    yield Reason(
        f"as an arm that can exist the model predicts unseen motion to {after:.3g} %, against {before:.3g} % of free "
        f"parameters{why}",
        remedy,
        "consistency",
        "fair" if too_costly or (after > WORSE * before and after > good) else None,
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


def validation_to_json(error: Evaluation, held_out: float, of_all: Evaluation) -> dict[str, Any]:
    """Return the errors on unseen motion, of all recordings together and of each apart.

    Args:
        error: Errors of the essential parameters.
        held_out: Part of each recording that was held out; 0 if unseen recordings were given.
        of_all: Errors of all base parameters.
    """
    return {
        **evaluation_to_json(error),
        "relative_error_percent_all_rows": error.relative_percent_all_rows,
        "standstill_percent": error.standstill_percent,
        "recordings": [
            {
                "label": one.label, "relative_error_percent": one.relative_percent,
                "relative_error_percent_all_rows": one.relative_percent_all_rows,
                "standstill_percent": one.standstill_percent,
                "joints": [
                    {"name": joint.joint, "kind": joint.kind, "relative_error_percent": joint.relative_percent}
                    for joint in one.joints
                ],
            }
            for one in error.parts
        ],
        "held_out": held_out or None,
        "relative_error_percent_of_all_parameters": of_all.relative_percent,
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
        "implausible_masses": [
            {"link": link, "mass": mass, "largest_plausible": most} for link, (mass, most) in found.implausible.items()
        ],
        "massless_links": list(found.massless),
        "released_links": list(found.released),
        "mended_references": list(found.mended),
        "sigmas_by": found.sigmas_by,
        "validation": None if error is None else evaluation_to_json(error),
    }
