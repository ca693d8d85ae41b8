"""An identification as plain data: the content of ``result.json`` and of ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..estimate import Estimate
from ..judge import Evaluation, Plausibility
from ..plain_data import plain
from ..verdict import verdict_to_json
from .result import Identification, PayloadBody


def identification_to_json(found: Identification) -> dict[str, Any]:
    """Return an identification as plain data: the content of its ``result.json``."""
    model = found.equations.model
    return plain(
        {
            "robot": model.robot.name,
            "torque": model.measured,
            "payload_model": model.payload,
            "gravity": list(model.robot.gravity),
            "effects": list(model.effects),
            "method": found.estimate.method,
            "options": found.settings.of_method,
            "covariance": found.estimate.covariance_kind,
            "verdict": verdict_to_json(found.verdict),
            "plausibility": _plausibility(found.plausibility),
            "parameters": _parameters(found),
            "fit": evaluation_to_json(found.fit_error),
            "validation": {
                **evaluation_to_json(found.unseen_error),
                "held_out": found.held_out or None,
                "relative_error_percent_of_all_parameters": found.unseen_error_of_all.relative_percent,
            },
            "condition_number": found.condition,
            "payload": None if found.payload is None else payload_to_json(found.payload),
            "preparation": _preparation(found),
            "noise": _noise(found),
            "tests": found.tests,
            "reduction": _reduction(found),
            "repeatability": _repeatability(found),
            "bias": _bias(found),
            "history": _history(found),
            "endogeneity": _endogeneity(found),
            "recordings": found.training,
            "notes": list(found.notes),
            "findings": found.findings,
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


def payload_to_json(body: PayloadBody) -> dict[str, Any]:
    """Return mass, centre and inertia with their sigmas."""
    return {
        "mass": body.mass[0],
        "mass_sigma": body.mass[1],
        "centre": body.centre,
        "centre_sigma": body.centre_sigma,
        "inertia": body.inertia,
        "inertia_sigma": body.inertia_sigma,
        "inertia_at_centre": body.inertia_at_centre,
        "inertia_at_centre_sigma": body.inertia_at_centre_sigma,
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


def _history(found: Identification) -> dict[str, Any] | None:
    history, names = found.fit.detail and found.fit.detail.history, found.equations.base.name_of
    return history and {
        "instants": len(history.time),
        "from": history.time[0],
        "to": history.time[-1],
        "settled_after": {
            names[column]: history.converged_after(column, last)
            for column, last in zip(history.columns, history.values[:, -1], strict=True)
        },
    }


def _endogeneity(found: Identification) -> dict[str, Any] | None:
    test = found.fit.detail and found.fit.detail.endogeneity
    return test and {
        "statistic": test.statistic,
        "freedom": test.freedom,
        "p": test.p,
        "worst": found.equations.base.name_of[test.worst],
        "worst_in_sigmas": test.worst_z,
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
