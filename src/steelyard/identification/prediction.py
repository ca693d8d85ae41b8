"""Torques of an identified model along recordings, with the filters of its run and beside the measured ones.

The model is the one that was judged: the essential parameters. Torques are predicted at the full rate from positions
that went through the run's low-pass; errors are those of a validation (:func:`steelyard.judge.evaluate`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..distributions import t_ppf
from ..errors import EstimateError
from ..estimate import Estimate
from ..files import opened_aside
from ..judge import Evaluation, combined, evaluate
from ..model import Model, build_model
from ..observe import (
    Equations,
    Preparation,
    RowSource,
    equations_of,
    geometry_hash,
    is_recorded,
    prepared_blocks,
    resolve_preparation,
    row_source,
)
from ..observe.reading import check_joints
from ..plain_data import plain
from ..progress import Progress, silent
from ..recording import Recording, RecordingsLike, load_recordings
from ..robot import AnyRobot, Robot
from ..text import short_repr
from .inputs import arm_of, labels_of, without_locked
from .payload_gains import gains_of_run, with_run_gains
from .run_files import RunLike, SavedRun, load_run, robot_of_run

if TYPE_CHECKING:
    import polars

LEVEL = 0.95
"""Of the band about a predicted torque."""


@dataclass(frozen=True, eq=False)
class PredictedBlock:
    """Predicted torques of neighbouring samples.

    Attributes:
        recording: Label of the recording.
        time: Times (k,) [s].
        torque: Predicted torque of every equation (E, k) [N m or N].
        half_width: Half the width of its 95 % band (E, k), from the covariance of the parameters: the torque's noise
            and what the model lacks are not in it.
        measured: Measured torque as recorded (E, k), NaN where none was.
        moving: Whether the joint moves at standstill speed or faster (E, k); friction is undetermined where it does
            not, and those samples count in no figure.
    """

    recording: str
    time: np.ndarray
    torque: np.ndarray
    half_width: np.ndarray
    measured: np.ndarray
    moving: np.ndarray


@dataclass(frozen=True, eq=False)
class TorquePrediction:
    """Torques of an identified arm along recordings. They are computed block by block, whenever they are asked for.

    Attributes:
        equations: Equations of the run: torque kind and joint of every row.
        estimate: Parameters of the judged model.
        sources: The recordings, prepared as those of the run.
        error: Errors against the measured torques; None if no recording has any.
        notes: What a reader should know, a sentence each.

    Example:
        >>> steelyard.predict("my_run", "log.npz").to_frame().columns[:3]
        ['time', 'predicted_motor[joint_1]', 'band_motor[joint_1]']
    """

    __repr__ = short_repr

    equations: Equations
    estimate: Estimate
    sources: tuple[RowSource, ...]
    error: Evaluation | None
    notes: tuple[str, ...]

    def blocks(self) -> Iterator[PredictedBlock]:
        """Yield the torques, block by block; memory does not grow with the recordings."""
        for source in self.sources:
            yield from self._of(source)

    def _of(self, source: RowSource) -> Iterator[PredictedBlock]:
        equations, estimate = self.equations, self.estimate
        rows = equations.compiled(source.loaded)
        place = {name: k for k, name in enumerate(estimate.columns)}
        index = [[place[name] for name in columns if name in place] for columns in rows.columns]
        used = [[k for k, name in enumerate(columns) if name in place] for columns in rows.columns]
        width = float(t_ppf(0.5 + LEVEL / 2, float(np.median(estimate.freedom))))
        unknown = [not is_recorded(source.template, kind) for kind, _ in equations.kinds_joints]
        for block in prepared_blocks(source, rests=True):
            regressors = [one[mine] for one, mine in zip(rows.function(*block.motion), used, strict=True)]
            pairs = list(zip(regressors, index, strict=True))
            torque = np.array([estimate.values[mine] @ w for w, mine in pairs])
            variance = [np.einsum("ij,ij->j", w, estimate.covariance[np.ix_(mine, mine)] @ w) for w, mine in pairs]
            known = equations.known_torque(block.q)
            torque, measured = torque + known, block.y + known
            measured[unknown] = np.nan
            half = width * np.sqrt(np.maximum(variance, 0.0))
            yield PredictedBlock(source.label, block.time, torque, half, measured, block.moving[equations.joint_index])

    def to_frame(self) -> polars.DataFrame:
        """Return all samples as a frame: a row a sample, columns as :meth:`write_csv` names them."""
        import polars

        return polars.concat([self._frame(block) for block in self.blocks()])

    def write_csv(self, path: str | os.PathLike[str], progress: Progress = silent) -> Path:
        """Write all samples as CSV, and return the path.

        Columns: ``recording`` where there are several, ``time``, and for every equation, ``KIND`` being ``motor``,
        ``joint`` or ``difference``: ``predicted_KIND[JOINT]``, ``band_KIND[JOINT]`` (half the width of the 95 % band),
        and where the torque was recorded ``measured_KIND[JOINT]`` and ``error_KIND[JOINT]`` (measured less predicted);
        ``moving[JOINT]`` is 0 near standstill. SI units, joint side.

        Args:
            path: The file; it is written aside and renamed.
            progress: Progress callback, counting recordings.

        Raises:
            FileError: If it cannot be written.
        """
        target = Path(path)
        with opened_aside(target) as file:
            first = True
            for done, source in enumerate(self.sources, 1):
                for block in self._of(source):
                    file.write(self._frame(block).write_csv(include_header=first).encode())
                    first = False
                progress(done, len(self.sources))
        return target

    def _frame(self, block: PredictedBlock) -> polars.DataFrame:
        import polars  # imported when used: most commands write no table

        columns: dict[str, Any] = {}
        if len(self.sources) > 1:
            columns["recording"] = [block.recording] * len(block.time)
        columns["time"] = block.time
        recorded = [any(is_recorded(one.template, kind) for one in self.sources) for kind, _ in self._rows]
        for e, (kind, joint) in enumerate(self._rows):
            columns[f"predicted_{kind}[{joint}]"] = block.torque[e]
            columns[f"band_{kind}[{joint}]"] = block.half_width[e]
            if recorded[e]:
                columns[f"measured_{kind}[{joint}]"] = block.measured[e]
                columns[f"error_{kind}[{joint}]"] = block.measured[e] - block.torque[e]
        for e, (_, joint) in enumerate(self._rows):
            columns[f"moving[{joint}]"] = block.moving[e].astype(np.int8)
        return polars.DataFrame(columns, nan_to_null=True)

    @property
    def _rows(self) -> tuple[tuple[str, str], ...]:
        return self.equations.kinds_joints

    def to_json(self) -> dict[str, Any]:
        """Return the errors of every joint and of all together, and the notes."""
        error = self.error
        return plain(
            {
                "robot": self.equations.model.robot.name,
                "recordings": [source.label for source in self.sources],
                "relative_error_percent": None if error is None else error.relative_percent,
                "evaluation_cutoff": None if error is None else error.cutoff,
                "joints": [
                    {
                        "name": joint.joint, "kind": joint.kind, "unit": joint.unit, "torque_rms": joint.torque_rms,
                        "rms": joint.rms, "relative_error_percent": joint.relative_percent, "maximum": joint.maximum,
                        "standstill_rms": joint.standstill_rms,
                    }
                    for joint in (() if error is None else error.joints)
                ],
                "notes": list(self.notes),
            }
        )  # fmt: skip


def predict(
    run: RunLike, recordings: RecordingsLike, robot: AnyRobot | None = None, *, progress: Progress = silent
) -> TorquePrediction:
    """Predict the torques of an identified arm along recordings, and compare them with measured ones where there are.

    Filters are those of the run. On a recording that the run was validated with, the errors are those it reported.

    Args:
        run: The run that identified the arm, or its folder.
        recordings: Recordings, or the paths of their logs; they need no torques.
        robot: The run's robot, or its file if that has moved; None: as the run names it.
        progress: Progress callback, counting recordings.

    Raises:
        EstimateError: If the robot is not the run's, or a recording carries another payload than the run knows.
        ObservationError: If a recording is one of other joints, or too short for the filters.

    Example:
        >>> prediction = steelyard.predict("my_run", "log.npz")  # a folder of steelyard identify --out my_run
        >>> prediction.error.relative_percent < 1, prediction.write_csv("torques.csv").name
        (True, 'torques.csv')
    """
    run = load_run(run)
    arm = robot_of_run(run.content, robot)
    equations = equations_of_run(run, arm)
    given = load_recordings(arm, recordings)
    if not given:
        raise EstimateError("no recording is given; give at least one log to predict along")
    lock = run.choices.lock
    moving = [(label, without_locked(one, label, lock)) for label, one in zip(labels_of(given), given, strict=True)]
    gains = gains_of_run(run.content)
    labelled = [(label, with_run_gains(one, gains, label, may_differ=True)) for label, one in moving]
    for label, one in labelled:
        check_joints(one, equations.joints, label)
    resolved = resolve_preparation(_preparation(run), [one for _, one in labelled])
    sources = tuple(row_source(one, equations, resolved, label, 0, partial=True) for label, one in labelled)
    notes = [note for label, one in labelled for note in _notes(run, label, one)]
    errors = []
    for done, source in enumerate(sources, 1):
        errors += _error(source, run)
        progress(done, len(sources))
    alike = [one for one in errors if _rows_of(one) == _rows_of(errors[0])]
    if len(alike) < len(errors):
        raise EstimateError("the recordings differ in which torques they have; predict along one kind at a time")
    return TorquePrediction(equations, run.essential, sources, combined(errors) if errors else None, tuple(notes))


def model_of_run(run: SavedRun, robot: Robot) -> Model:
    """Return the model of a run, for its robot.

    Raises:
        EstimateError: If the robot moves otherwise than that of the run.
    """
    content, settings = run.content, run.choices
    arm = arm_of(robot, settings)
    if geometry_hash(arm) != run.observations.fingerprint.geometry:
        raise EstimateError(
            f"robot '{robot.name}' is not the arm of the run: joints, geometry or gravity differ; give the robot file "
            "that was identified, or identify again"
        )
    return build_model(
        arm, content["effects"], content["torque"], content["payload_model"], settings.sign_width, settings.friction,
    )  # fmt: skip


def equations_of_run(run: SavedRun, robot: Robot) -> Equations:
    """Return the equations that a run was fitted with, for its robot.

    Raises:
        EstimateError: If the robot moves otherwise than that of the run.
    """
    content, model = run.content, model_of_run(run, robot)
    fitted = {(joint["kind"], joint["name"]) for joint in content["fit"]["joints"]}
    equations = equations_of(model, without=[row for row in model.rows if row not in fitted])
    missing = [name for name in run.estimate.columns if name not in equations.names]
    if missing:
        raise EstimateError(f"the run knows {', '.join(missing[:4])}, which the model has not; identify the arm again")
    return equations


def _preparation(run: SavedRun) -> Preparation:
    """Return the run's preparation with all that was found from its recordings."""
    found, chosen = run.content["preparation"], run.choices.preparation
    speeds = tuple(float(speed) for speed in found["standstill"].values())
    return replace(
        chosen, rate=found["rate"], cutoff=found["cutoff"], decimation=found["decimation"], standstill=speeds
    )


def _notes(run: SavedRun, label: str, recording: Recording) -> Iterator[str]:
    """Yield what is missing in a recording, or in the run; refuse a payload that is not the run's."""
    known = sorted({one["payload"] for one in run.content["recordings"]} - {None})
    if recording.payload is not None and recording.payload not in known:
        if known:
            raise EstimateError(
                f"recording '{label}' carries payload '{recording.payload}', the run knows '{known[0]}': its torques "
                "cannot be predicted; predict along a recording with that payload, or none"
            )
        yield (
            f"recording '{label}' carries payload '{recording.payload}', the arm of the run none: torques are those of "
            "the arm alone"
        )
    kinds = dict.fromkeys(joint["kind"] for joint in run.content["fit"]["joints"])
    yield from (f"recording '{label}': {one.text}" for one in recording.findings if one.severity == "bad")
    missing = [kind for kind in kinds if not is_recorded(recording, kind)]
    if missing:
        yield f"recording '{label}' has no {' and '.join(missing)} torque: nothing to compare with"


def _error(source: RowSource, run: SavedRun) -> Sequence[Evaluation]:
    """Return the errors of the equations whose torque was recorded, if there are any."""
    equations = source.equations
    missing = [row for row in equations.kinds_joints if not is_recorded(source.template, row[0])]
    if len(missing) == len(equations.kinds_joints):
        return []
    if missing:
        known = set(equations.kinds_joints) - set(missing)
        without = [row for row in equations.model.rows if row not in known]
        measured = equations_of(equations.model, equations.base, without)
        source = row_source(source.recording, measured, source.resolved, source.label, 0)
    return [evaluate(source, run.essential, None, run.choices.evaluation_cutoff, decimated=False)]


def _rows_of(evaluation: Evaluation) -> list[tuple[str, str]]:
    return [(joint.kind, joint.joint) for joint in evaluation.joints]
