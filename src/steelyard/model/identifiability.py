"""Identifiability of standard parameters (alone, combined, without effect and why), and models as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np

from ..physics import jacobian_function, pose_function
from ..robot import Body, Robot
from .base import BaseParameters, base_parameters, random_motion
from .model import Model
from .terms.term import Parameter

Status = Literal["alone", "combined", "without effect"]
_STILL = 1e-9


@dataclass(frozen=True)
class Identifiability:
    """How far one standard parameter is identifiable.

    Attributes:
        name: The standard parameter.
        status: ``alone``, ``combined`` with others, or ``without effect``.
        base: Names of the base parameters it enters.
        reason: For a parameter without effect, why; else empty.

    Example:
        >>> model = steelyard.build_model("scara_2r")
        >>> first = steelyard.identifiability(model, steelyard.base_parameters(model))[0]
        >>> first.name, first.status
        ('XX1', 'without effect')
    """

    name: str
    status: Status
    base: tuple[str, ...]
    reason: str


def identifiability(model: Model, base: BaseParameters) -> tuple[Identifiability, ...]:
    """Return for every standard parameter whether it is identifiable alone, in combination, or not at all.

    Example:
        >>> model = steelyard.build_model("scara_2r")
        >>> entries = steelyard.identifiability(model, steelyard.base_parameters(model))
        >>> {entry.name: entry.status for entry in entries if entry.name in ("ZZ1", "ZZ2", "M1")}
        {'ZZ1': 'combined', 'M1': 'without effect', 'ZZ2': 'alone'}
    """
    freedoms = {body.number: _BodyFreedom(model.robot, body) for body in model.robot.bodies}
    without_effect = set(base.without_effect)
    result = []
    for column, parameter in enumerate(model.parameters):
        if parameter.name in without_effect:
            reason = _why_without_effect(model, parameter, freedoms)
            result.append(Identifiability(parameter.name, "without effect", (), reason))
            continue
        rows = np.flatnonzero(base.regrouping[:, column])
        into = tuple(base.base[row].name for row in rows)
        alone = len(rows) == 1 and len(base.base[rows[0]].regrouping) == 1
        result.append(Identifiability(parameter.name, "alone" if alone else "combined", into, ""))
    return tuple(result)


def _why_without_effect(model: Model, parameter: Parameter, freedoms: dict[int, _BodyFreedom]) -> str:
    if model.measured == "joint" and parameter.side == "motor":
        return "acts on the motor side of the gears, which a joint torque sensor does not measure"
    if model.measured == "difference" and parameter.side == "link":
        return "acts alike on motor and joint torque, and cancels in their difference"
    if parameter.effect not in ("inertia", "payload"):
        return "no measured torque depends on it"
    number = parameter.number or model.robot.frame(model.payload_link).body
    who = "the payload" if parameter.effect == "payload" else f"link {parameter.number}"
    return freedoms[number].why_without_effect(parameter.symbol, who)


@dataclass(frozen=True)
class _BodyFreedom:
    """How a body can move at all, judged on a few random postures."""

    robot: Robot
    body: Body

    @cached_property
    def _velocities(self) -> tuple[np.ndarray, np.ndarray]:
        """Angular velocities in the body frame and velocities of its origin (3, postures * na), unit joint rates."""
        q, _, _ = random_motion(self.robot, 5, np.random.default_rng(0))
        jacobian = jacobian_function(self.robot, self.body.link)
        pose = pose_function(self.robot, self.body.link)
        nothing = ca.DM(0, 1)
        angular, linear = [], []
        for posture in q.T:
            columns = np.array(jacobian(posture, nothing))
            angular.append(np.array(pose(posture, nothing))[:, :3].T @ columns[3:])
            linear.append(columns[:3])
        return np.hstack(angular), np.hstack(linear)

    @property
    def turns(self) -> int:
        """Number of independent axes the body turns about, in its own frame."""
        return int(np.linalg.matrix_rank(self._velocities[0], tol=_STILL))

    @property
    def axis(self) -> np.ndarray:
        """Direction of the first axis of turning, in the body's frame (3,)."""
        return np.linalg.svd(self._velocities[0])[0][:, 0]

    @property
    def origin_rests(self) -> bool:
        """True if no joint moves the origin of the body's frame."""
        return bool(np.abs(self._velocities[1]).max() < _STILL)

    @cached_property
    def lifted(self) -> np.ndarray:
        """Which directions of the body's frame (3,) the joints lift or lower."""
        q, _, _ = random_motion(self.robot, 5, np.random.default_rng(1))
        pose = pose_function(self.robot, self.body.link)
        gravity = np.array(self.robot.gravity)
        heights = np.array([gravity @ np.array(pose(posture, ca.DM(0, 1)))[:, :3] for posture in q.T])
        return np.ptp(heights, axis=0) > _STILL

    def why_without_effect(self, symbol: str, who: str) -> str:
        """Return the reason why a parameter of this body has no effect."""
        if symbol == "M" and self.origin_rests:
            return f"the origin of the frame of {who} never moves, so the base carries its mass"
        if symbol in ("MX", "MY", "MZ"):
            return self._why_first_moment(symbol, who)
        if self.turns == 0:
            return f"{who} never turns, it only slides: how its mass is distributed has no effect"
        if self.turns == 1:
            about, nonzero = self._only_axis()
            return f"{who} turns only about {about}: of its inertia only {nonzero} has an effect"
        return "no torque of this model depends on it"

    def _why_first_moment(self, symbol: str, who: str) -> str:
        if self.turns == 0:
            return f"{who} never turns, it only slides: where its centre of mass is does not matter"
        if self.origin_rests and not self.lifted["XYZ".index(symbol[1])]:
            return (
                f"the origin of the frame of {who} never moves, so its first moments act through gravity only, "
                "and the joints never lift this one"
            )
        return f"{who} turns only about {self._only_axis()[0]}, and a first moment along that axis has no effect"

    def _only_axis(self) -> tuple[str, str]:
        """Name the axis a body turns about, and the inertia that acts about it."""
        main = int(np.argmax(np.abs(self.axis)))
        if abs(self.axis[main]) > 1 - _STILL:
            return f"its {'xyz'[main]} axis", "XYZ"[main] * 2
        return "one axis", "the moment about that axis"


def summarise_model(model: Model) -> dict[str, Any]:
    """Return counts, parameters, base parameters and identifiability of a model, ready for JSON.

    Example:
        >>> steelyard.summarise_model(steelyard.build_model("scara_2r"))["counts"]
        {'standard': 24, 'without_effect': 15, 'regrouped': 1, 'base': 8}
    """
    base = base_parameters(model)
    statuses = identifiability(model, base)
    return {
        "robot": model.robot.name,
        "source": model.robot.source,
        "inertia_source": model.robot.inertia_source,
        **({"balancers": model.robot.balancers_to_json} if model.robot.balancers else {}),
        "gravity": list(model.robot.gravity),
        "torque": model.measured,
        "payload": model.payload,
        "payload_link": model.payload_link if model.payload != "none" else None,
        "effects": list(model.chosen_effects),
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
            for p, s in zip(model.parameters, statuses, strict=True)
        ],
        "notes": list(model.robot.notes),
    }
