"""The result of an identification, and its content as plain data: that of ``result.json`` and of ``--json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate
from ..judge import (
    LACKS,
    Bias,
    Disagreement,
    Evaluation,
    JointTests,
    Plausibility,
    Reduction,
    Repeatability,
    UnseenPattern,
    Widening,
)
from ..observe import Equations, ResolvedPreparation, RowSource
from ..plain_data import frame_of, plain
from ..robot import Robot
from ..text import html_table, short_repr
from ..verdict import Verdict, verdict_to_json
from .consistent import consistency_to_json, evaluation_to_json, standard_to_json, validation_to_json
from .figures import plot_friction, plot_parameters, plot_residuals, plot_torques, to_html
from .findings import LogFinding
from .fitting import ArmFit, endogeneity_to_json, history_to_json
from .nonlinear import NonlinearParameter
from .payload_body import PayloadBody, payload_to_json
from .payload_gains import gains_used
from .selection import Selection
from .settings import Settings
from .widened import sigma_to_json, widening_to_json

if TYPE_CHECKING:
    import polars

    from ..consistency import StandardParameters


@dataclass(frozen=True)
class ConditionNumbers:
    """Condition numbers of W: as it is, with columns at unit length, with rows weighted by their noise (P1.4)."""

    raw: float
    normalised: float
    weighted: float


@dataclass(frozen=True)
class Trained:
    """A recording that was fitted.

    Attributes:
        label: Its label.
        files: Its files and their SHA-256.
        payload: Name of the payload it carries, None if none.
        samples: Samples used.
        masked: Part of the samples left out near standstill, of the joint where most were.
        notes: What was done to it.
    """

    label: str
    files: tuple[tuple[str, str], ...]
    payload: str | None
    samples: int
    masked: float
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Identification:
    """An identified arm.

    Attributes:
        settings: What was chosen.
        equations: Model, base parameters and rows.
        resolved: Filters and decimation, with their reasons.
        fit: Estimate of all base parameters, its factors and noise model.
        reduction: Essential parameters.
        condition: Condition numbers.
        training: The recordings that were fitted.
        held_out: Part of each recording that was held out, 0 if unseen recordings were given.
        fit_error: Errors on the recordings fitted, with the essential parameters.
        unseen_error: Errors on unseen recordings, with the essential parameters.
        unseen_error_of_all: The same with all base parameters.
        tests: Residual tests of every equation.
        repeatability: Recordings fitted alone against all of them; None for a single one.
        bias: Bias by position errors and filter; None if it was not requested.
        payload: The payload's body, if one was carried and is identifiable.
        standard: All standard parameters of a physically consistent arm; None if the model has no link inertias.
        standard_error: Errors of that arm on unseen recordings.
        plausibility: Evidence for or against a physically possible arm.
        verdict: Whether the result can be trusted.
        notes: Further notes.
        findings: Findings of the checks of the logs, training and validation, the worst first.
        disagreement: Which recording is not of the same arm as the others, and what explains it; None if they agree.
        sources: Rows of the recordings that were fitted; figures are drawn from them.
        unseen: Rows of the recordings that were not.
        selection: How effects beyond the plain ones were chosen; None if none were to be.
        widening: Intervals of the essential parameters that allow for model error; None if the method has none.
        unseen_patterns: What residuals of unseen motion depend on, and those of the fit not, or clearly less.
        nonlinear: Stribeck velocities, Dahl lengths, sign width and delay, if they were to be estimated.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> run = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100))
        >>> settings = steelyard.Settings(method="wls", reduction="none", bias_repeats=0)
        >>> found = steelyard.identify("scara_2r", steelyard.recording_of(run), settings=settings)
        >>> found.to_frame().shape, round(found.values()["ZZ2"], 3)
        ((8, 14), 0.064)
    """

    __repr__ = short_repr

    settings: Settings
    equations: Equations
    resolved: ResolvedPreparation
    fit: ArmFit
    reduction: Reduction
    condition: ConditionNumbers
    training: tuple[Trained, ...]
    held_out: float
    fit_error: Evaluation
    unseen_error: Evaluation
    unseen_error_of_all: Evaluation
    tests: tuple[JointTests, ...]
    repeatability: Repeatability | None
    bias: Bias | None
    payload: PayloadBody | None
    standard: StandardParameters | None
    standard_error: Evaluation | None
    plausibility: Plausibility
    verdict: Verdict
    notes: tuple[str, ...]
    findings: tuple[LogFinding, ...] = ()
    disagreement: Disagreement | None = None
    sources: tuple[RowSource, ...] = ()
    unseen: tuple[RowSource, ...] = ()
    selection: Selection | None = None
    widening: Widening | None = None
    unseen_patterns: tuple[UnseenPattern, ...] = ()
    nonlinear: tuple[NonlinearParameter, ...] = ()

    plot_torques = plot_torques
    plot_residuals = plot_residuals
    plot_parameters = plot_parameters
    plot_friction = plot_friction
    to_html = to_html

    @property
    def estimate(self) -> Estimate:
        """All base parameters that the data excite."""
        return self.fit.estimate

    @property
    def essential(self) -> Estimate:
        """The essential parameters, refitted; their intervals are after selection."""
        return self.reduction.estimate

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without what a run folder adds."""
        return _content(self)

    def to_frame(self) -> polars.DataFrame:
        """Return the parameters as a frame: name, value, sigma, unit and more, a row each."""
        return frame_of(self.to_json()["parameters"])

    def _repr_html_(self) -> str:
        """Return verdict and parameters as notebooks show them."""
        columns = ("name", "value", "sigma", "relative_sigma_percent", "unit", "caution")
        rows = [[one[column] for column in columns] for one in self.to_json()["parameters"] if one["essential"]]
        table = html_table(("parameter", "value", "sigma", "sigma [%]", "unit", "caution"), rows)
        return self.verdict._repr_html_() + table

    @property
    def robot(self) -> Robot:
        """The identified arm: the robot with physically consistent parameters in place of its file's.

        Raises:
            EstimateError: If the model has no link inertias, so that there are none.
        """
        if self.standard is None:
            raise EstimateError("the model has no link inertias: there is no arm to export; add effect 'inertia'")
        return self.standard.robot

    def marks(self) -> dict[str, str]:
        """Return a caution beside each parameter that needs one, by column: biased, lacking an effect, in time."""
        found: dict[str, str] = {}
        if self.bias is not None:
            exposed = () if self.bias.delays.has_common else self.bias.exposed
            found |= {**dict.fromkeys(exposed, "if in time"), **dict.fromkeys(self.bias.named, "biased")}
        limit = self.settings.thresholds.pattern / 100
        strong = {test.joint for test in self.tests if test.largest_share > limit}
        owners = {parameter.name: parameter.joint for parameter in self.equations.model.parameters}
        return found | {name: LACKS for name in self.estimate.columns if owners[name] in strong}

    def values(self) -> dict[str, float]:
        """Return the value of every essential parameter by its base name: those of the model that was judged."""
        return self._by_name(self.essential.values)

    def sigmas(self) -> dict[str, float]:
        """Return the standard deviation of every essential parameter by its base name."""
        return self._by_name(self.essential.sigma)

    def _by_name(self, numbers: np.ndarray) -> dict[str, float]:
        names = self.equations.base.name_of
        return {names[c]: float(number) for c, number in zip(self.essential.columns, numbers, strict=True)}


def _content(found: Identification) -> dict[str, Any]:
    """Return the content of ``result.json``."""
    model = found.equations.model
    return plain(
        {
            "robot": model.robot.name,
            "torque": model.measured,
            "payload_model": model.payload,
            "gravity": list(model.robot.gravity),
            "effects": list(model.chosen_effects),
            "method": found.estimate.method,
            "options": found.settings.of_method,
            "covariance": found.estimate.covariance_kind,
            "robust": None if found.fit.robust is None else found.fit.robust.to_json(),
            "verdict": verdict_to_json(found.verdict),
            "plausibility": _plausibility(found.plausibility),
            "parameters": _parameters(found),
            "nonlinear": found.nonlinear,
            "standard_parameters": None if found.standard is None else standard_to_json(found.standard),
            "consistency": consistency_to_json(found.standard, found.standard_error),
            "fit": evaluation_to_json(found.fit_error),
            "validation": validation_to_json(found.unseen_error, found.held_out, found.unseen_error_of_all),
            "condition_number": found.condition,
            "payload": None if found.payload is None else payload_to_json(found.payload),
            "gains": [one.to_json() for one in gains_used(found.sources)] if found.sources else None,
            "preparation": _preparation(found),
            "noise": _noise(found),
            "tests": found.tests,
            "reduction": _reduction(found),
            "repeatability": _repeatability(found),
            "bias": _bias(found),
            "history": history_to_json(found.fit, found.equations.base.name_of),
            "endogeneity": endogeneity_to_json(found.fit, found.equations.base.name_of),
            "recordings": found.training,
            "notes": list(found.notes),
            "findings": found.findings,
            "selection": None if found.selection is None else found.selection.to_json(),
            "widening": widening_to_json(found.widening, found.equations.base.name_of),
            "unseen_patterns": found.unseen_patterns,
        }
    )


def _plausibility(found: Plausibility) -> dict[str, Any]:
    """Return the evidence for or against a physically possible arm."""
    effort, worst = found.effort, found.worst_joint
    return {
        "impossible": found.impossible,
        "hidden_joints": list(found.hidden),
        "largest_torque_over_limit": None if effort is None else {"joint": effort[0], "ratio": effort[1]},
        "size_over_robot_file": found.scale,
        "scales": found.scales,
        "heaviness": found.heaviness,
        "worst_joint": None if worst is None else {"name": worst[0], "relative_error_percent": worst[1]},
    }


def _parameters(found: Identification) -> list[dict[str, Any]]:
    """Return the judged model by base parameter: one left out is 0 in it; the full set stands beside it."""
    judged, every, marks = _by_name(found.essential), _by_name(found.estimate), found.marks()
    rows = []
    for base in found.equations.base.base:
        is_known, is_essential = base.column in every, base.column in judged
        own = judged.get(base.column, {**_NO_VALUE, "value": 0.0} if is_known else _NO_VALUE)
        full = every.get(base.column, _NO_VALUE)
        rows.append(
            {
                "name": base.name, **own, "unit": base.unit, "essential": is_essential, "excited": is_known,
                "caution": marks.get(base.column), "regrouping": base.text,
                **sigma_to_json(found.widening, base.column, own["value"]),
                **{f"full_{key}": value for key, value in full.items()},
            }
        )  # fmt: skip
    return rows


_NO_VALUE: dict[str, Any] = {"value": None, "sigma": None, "relative_sigma_percent": None, "interval_95": None}


def _by_name(estimate: Estimate) -> dict[str, dict[str, Any]]:
    numbers = zip(estimate.values, estimate.sigma, estimate.relative_sigma, estimate.half_width(), strict=True)
    return {
        name: {
            "value": float(value), "sigma": float(sigma), "relative_sigma_percent": float(relative),
            "interval_95": [float(value - half), float(value + half)],
        }
        for name, (value, sigma, relative, half) in zip(estimate.columns, numbers, strict=True)
    }  # fmt: skip


def _preparation(found: Identification) -> dict[str, Any]:
    resolved = found.resolved
    return {
        "rate": resolved.rate,
        "cutoff": resolved.cutoff,
        "decimation": resolved.decimation,
        "decimated_rate": resolved.rate / resolved.decimation,
        "noise_gain": resolved.decimation_filter.noise_gain(),
        "velocity": resolved.chosen.velocity,
        "delay": resolved.chosen.delay,
        "joint_delays": dict(resolved.chosen.joint_delays) or None,
        "standstill": dict(zip(resolved.joints, resolved.standstill, strict=True)),
        "filter": resolved.filter_text,
        "reasons": list(resolved.reasons),
    }


def _noise(found: Identification) -> list[dict[str, Any]]:
    noise = found.fit.noise
    return [
        {
            "kind": kind,
            "joint": joint,
            "coefficients": noise.coefficients[kind, joint],
            "lag_one": noise.lag_one((kind, joint)),
            "deviations": {group[0]: size for group, size in noise.deviations.items() if group[1:] == (kind, joint)},
        }
        for kind, joint in noise.coefficients
    ]


def _reduction(found: Identification) -> dict[str, Any]:
    reduction, names = found.reduction, found.equations.base.name_of
    return {
        "rule": reduction.rule,
        "threshold": reduction.threshold,
        "essential": len(reduction.estimate.columns),
        "protected": [names[name] for name in reduction.protected],
        "steps": [{**asdict(step), "name": names[step.name]} for step in reduction.steps],
        "after_selection": bool(reduction.steps),
        "stopped": reduction.stopped,
    }


def _repeatability(found: Identification) -> dict[str, Any] | None:
    agreed = found.repeatability
    return agreed and {
        "spread": agreed.spread,
        "recordings": agreed.recordings,
        "compared": agreed.compared,
        "worst": {
            "parameter": found.equations.base.name_of[agreed.worst_column],
            "recording": agreed.worst_recording,
            "in_sigmas": agreed.worst_z,
        },
        "disagreement": _disagreement(found),
    }


def _disagreement(found: Identification) -> dict[str, Any] | None:
    differs, names = found.disagreement, found.equations.base.name_of
    return differs and {
        "recording": differs.recording,
        "cause": differs.cause,
        "text": differs.text,
        "remedy": differs.remedy,
        "parameters": [names[column] for column in differs.columns],
        "explained": differs.explained,
    }


def _bias(found: Identification) -> dict[str, Any] | None:
    bias, names = found.bias, found.equations.base.name_of
    if bias is None:
        return None
    delays = bias.delays
    by_parameter = {
        "over_sigma": bias.over_sigma, "by_position_errors": bias.noise, "by_filter": bias.filter,
        "by_delay": delays.bias,
    }  # fmt: skip
    columns = [names[column] for column in bias.columns]
    return {
        "named": [names[column] for column in bias.named],
        "exposed_to_delay": [names[column] for column in bias.exposed],
        **{key: dict(zip(columns, values, strict=True)) for key, values in by_parameter.items()},
        "common_delay": delays.common[0],
        "common_delay_sigma": delays.common[1],
        "delays": [
            {"kind": kind, "joint": joint, "delay": delay, "sigma": sigma}
            for (kind, joint), delay, sigma in zip(delays.equations, delays.delay, delays.sigma, strict=True)
        ],
    }
