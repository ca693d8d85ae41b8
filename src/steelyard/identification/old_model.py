"""Is an identified model still valid on a new log, and if not, what has changed: a load, friction, a drive's gain?

Torques are predicted with the model of the run; each explanation gives the new rows further columns beside it, and the
one that explains most of the residuals is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import EstimateError
from ..judge import Evaluation
from ..observe import reduce_rows
from ..progress import Progress, silent
from ..recording import Recording, RecordingsLike
from ..robot import AnyRobot
from ..text import short_repr
from ..verdict import first_named
from .findings import Diagnosed
from .prediction import TorquePrediction, predict
from .run_files import RunLike, load_run

CHANGED, FAR = 1.5, 3.0
"""A joint whose error is so many times that of the run's validation: changed, and no longer described."""
SMALL_ERROR = 2.0
"""Errors below this part of a joint's torque are small whatever they were [%]."""
SIMPLER = 0.02
"""A gain or friction is taken for a change if it explains as much as a load but for this part."""
NAMED = 0.3
"""Least part of the squared residuals that a named change explains."""


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """How a model of an earlier run describes new recordings.

    Attributes:
        prediction: Predicted torques and their errors.
        then_percent: Relative error of the run's own validation [%].
        findings: What has changed, the worst first; one line that it is valid where nothing has.
    """

    __repr__ = short_repr

    prediction: TorquePrediction
    then_percent: float
    findings: tuple[Diagnosed, ...]

    @property
    def is_judged(self) -> bool:
        """Whether the recordings can judge a model: a joint moves, and their checks found nothing bad."""
        error = self.prediction.error
        moves = error is not None and bool(np.isfinite(error.relative_percent))
        return moves and not any(_bad_logs(self.prediction))

    @property
    def is_valid(self) -> bool:
        """Whether the model still holds."""
        return all(one.severity == "info" for one in self.findings)


def check_model(
    run: RunLike, recordings: RecordingsLike, robot: AnyRobot | None = None, *, progress: Progress = silent
) -> ModelCheck:
    """Return whether the model of a run still describes recordings, and what has changed.

    Args:
        run: The run, or its folder.
        recordings: New recordings with torques, or the paths of their logs.
        robot: The run's robot file, if it has moved.
        progress: Progress callback, counting recordings.

    Raises:
        SteelyardError: If the recordings are not of this arm, or have no torques.

    Example:
        >>> steelyard.check_model("my_run", "log.npz").is_valid
        True
    """
    known = load_run(run)
    prediction = predict(known, recordings, robot, progress=progress)
    error = prediction.error
    if error is None:
        raise EstimateError("the recordings have no torques: a model cannot be checked on them; record torques too")
    then = known.content["validation"]
    worse = list(_worse_joints(error, then))
    found = [*_bad_logs(prediction), *worse, *(_causes(prediction) if worse else ())]
    if not np.isfinite(error.relative_percent):
        text = "the model cannot be judged on these recordings: no joint moves at standstill speed or faster in them"
        found.append(Diagnosed("not_judged", "bad", text, "record a motion; check stamps and units of the positions"))
    elif not found:
        text = (
            f"the model still holds: error {error.relative_percent:.3g} %, {then['relative_error_percent']:.3g} % when "
            "it was identified"
        )
        found = [Diagnosed("model_valid", "info", text, "", value=error.relative_percent, unit="%")]
    order = ("bad", "warning", "info")
    found.sort(key=lambda one: order.index(one.severity))
    return ModelCheck(prediction, float(then["relative_error_percent"]), tuple(found))


def _bad_logs(prediction: TorquePrediction) -> Iterator[Diagnosed]:
    """Yield what the checks of the logs call bad: a model cannot be judged by them."""
    for source in prediction.sources:
        read = source.recording if isinstance(source.recording, Recording) else source.recording.result
        for one in () if read is None else read.findings:
            if one.severity == "bad":
                text = f"the log cannot judge a model: {one.text}"
                yield Diagnosed(one.kind, "bad", text, one.remedy, one.joint, source.label)


def _worse_joints(error: Evaluation, then: dict[str, object]) -> Iterator[Diagnosed]:
    before = {(one["kind"], one["name"]): one for one in then["joints"]}  # type: ignore[attr-defined]
    for joint in error.joints:
        earlier = before.get((joint.kind, joint.joint))
        rms = None if earlier is None else earlier["rms"]
        if not rms or not np.isfinite(joint.rms):
            continue
        ratio = joint.rms / rms
        if ratio > CHANGED and joint.relative_percent > SMALL_ERROR:
            yield Diagnosed(
                "model_outdated", "bad" if ratio > FAR else "warning",
                f"the {joint.kind} torque of {joint.joint} is predicted to {joint.rms:.3g} rms "
                f"({joint.relative_percent:.3g} %), {ratio:.2g} times the error when the model was identified",
                "see what has changed below, and identify again", joint.joint, value=ratio, unit="1",
            )  # fmt: skip


def _causes(prediction: TorquePrediction) -> Iterator[Diagnosed]:
    """Yield the change that explains most of the residuals."""
    residuals = _Residuals(prediction)
    trials = [residuals.load(), *(one for key in residuals.rows for one in residuals.of_joint(key))]
    share, best = max(trials, key=lambda one: one[0])
    if share >= NAMED:
        yield best
    elif len(residuals.rows) > 1:
        yield Diagnosed(
            "unexplained", "info",
            f"no single change explains the residuals, largest on {first_named(residuals.worst)}: neither a load, nor "
            "friction or the gain of one joint",
            "steelyard check ROBOT LOG looks for other faults of this log",
        )  # fmt: skip


class _Residuals:
    """What a model leaves of new recordings, by equation, and the part that a change explains."""

    def __init__(self, prediction: TorquePrediction) -> None:
        self._prediction, estimate = prediction, prediction.estimate
        self._values = dict(zip(estimate.columns, estimate.values, strict=True))
        self._columns: dict[tuple[str, str], tuple[str, ...]] = {}
        stacked: dict[tuple[str, str], list[np.ndarray]] = {}
        for one in reduce_rows(prediction.sources).factors:
            key = (one.kind, one.joint)
            if self._columns.setdefault(key, one.columns) == one.columns:
                stacked.setdefault(key, []).append(one.triangle)
        self.rows = {key: np.vstack(parts) for key, parts in stacked.items()}
        sizes = {key: float(np.sqrt(np.mean(part[:, -1] ** 2))) for key, part in self.rows.items()}
        self._weights = {key: 1 / max(size, 1e-300) for key, size in sizes.items()}
        self._model = {
            key: part[:, :-1] @ [self._values.get(name, 0.0) for name in self._columns[key]]
            for key, part in self.rows.items()
        }
        self._left = {key: part[:, -1] - self._model[key] for key, part in self.rows.items()}
        self._total = sum(self._weights[key] ** 2 * float(one @ one) for key, one in self._left.items())

    @property
    def worst(self) -> list[str]:
        """Joints, those with the largest residuals first."""
        sizes = {key: self._weights[key] * float(np.linalg.norm(one)) for key, one in self._left.items()}
        return [joint for _, joint in sorted(sizes, key=lambda key: -sizes[key])]

    def load(self) -> tuple[float, Diagnosed]:
        """Return a load at the end of the arm; ten unknowns count for a little less than one."""
        span = self._prediction.equations.payload_span
        share, found = self._explained(
            {key: part[:, :-1] @ span(self._columns[key]) for key, part in self.rows.items()}
        )
        mass = float(found[-1])
        what = f"{mass:.2g} kg more" if mass >= 0 else f"{-mass:.2g} kg less"
        return share - SIMPLER, Diagnosed(
            "payload_changed", "warning",
            f"the arm carries {what} at its end than when it was identified: this explains {100 * share:.0f} % of the "
            "residuals", "mount what it carried then, or identify the load: steelyard payload", value=mass, unit="kg",
        )  # fmt: skip

    def of_joint(self, key: tuple[str, str]) -> Iterator[tuple[float, Diagnosed]]:
        """Yield the gain of an equation's torque, and friction of its joint."""
        kind, joint = key
        share, found = self._explained({key: self._model[key][:, None]})
        gain = 1 + float(found[0])
        yield share, Diagnosed(
            "gain_changed", "warning",
            f"the {kind} torque of {joint} is {gain:.3g} times the model's: this explains {100 * share:.0f} % of the "
            "residuals", f"check gain, unit and sensor of {joint}", joint, value=gain, unit="1",
        )  # fmt: skip
        own = [k for k, name in enumerate(self._columns[key]) if _is_friction(self._prediction, name, joint)]
        if not own:
            return
        rows = self.rows[key][:, own]
        share, found = self._explained({key: rows})
        friction = rows @ [self._values.get(self._columns[key][k], 0.0) for k in own]
        change = float(np.linalg.norm(friction + rows @ found) / max(np.linalg.norm(friction), 1e-300))
        yield share, Diagnosed(
            "friction_changed", "warning",
            f"friction of {joint} is {change:.3g} times that of the model: this explains {100 * share:.0f} % of the "
            "residuals", "warm the arm up as it was then, look after its gear, or identify again", joint, value=change,
            unit="1",
        )  # fmt: skip

    def _explained(self, further: dict[tuple[str, str], np.ndarray]) -> tuple[float, np.ndarray]:
        """Return the part of all squares that further columns of some equations explain, and their values."""
        w = np.vstack([self._weights[key] * part for key, part in further.items()])
        r = np.concatenate([self._weights[key] * self._left[key] for key in further])
        found = np.linalg.lstsq(w, r, rcond=1e-9)[0]
        rest = r - w @ found
        return (float(r @ r) - float(rest @ rest)) / max(self._total, 1e-300), found


def _is_friction(prediction: TorquePrediction, name: str, joint: str) -> bool:
    own = {one.name: one for one in prediction.equations.model.parameters}.get(name)
    return own is not None and own.joint == joint and own.effect.startswith("F")
