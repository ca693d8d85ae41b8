"""A model told as plain data: what ``steelyard model --json`` prints and what a run folder keeps."""

from __future__ import annotations

from typing import Any

from .base import base_parameters
from .identifiability import identifiability
from .model import Model


def summarise_model(model: Model) -> dict[str, Any]:
    """Return counts, parameters, base parameters and identifiability of a model, ready for JSON.

    Example:
        >>> steelyard.summarise_model(steelyard.build_model("scara_2r"))["counts"]
        {'standard': 24, 'without_effect': 15, 'regrouped': 1, 'base': 8}
    """
    base = base_parameters(model)
    seen = identifiability(model, base)
    return {
        "robot": model.robot.name,
        "source": model.robot.source,
        "gravity": list(model.robot.gravity),
        "torque": model.measured,
        "payload": model.payload,
        "payload_link": model.payload_link if model.payload != "none" else None,
        "effects": list(model.effects),
        "sign_width": model.sign_width,
        "counts": {
            "standard": len(model.parameters),
            "without_effect": len(base.without_effect),
            "regrouped": len(base.regrouped),
            "base": len(base.base),
        },
        "standard": list(model.names),
        "base": [{"name": b.name, "unit": b.unit, "regrouping": dict(b.regrouping), "text": b.text} for b in base.base],
        "names": {str(body.number): {"joint": body.joint.name, "link": body.link} for body in model.robot.bodies},
        "parameters": [
            {
                "name": p.name,
                "unit": p.unit,
                "joint": p.joint or None,
                "link": p.link,
                "effect": p.effect,
                "side": p.side,
                "status": s.status,
                "base": list(s.base),
                "reason": s.reason or None,
            }
            for p, s in zip(model.parameters, seen, strict=True)
        ],
        "notes": list(model.robot.notes),
    }
