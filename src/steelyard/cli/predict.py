"""``steelyard predict``: torques of an identified model along a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ..errors import EstimateError
from ..files import require_files
from ..plain_data import json_text
from .options import OUTPUT, Config, Json, Quiet, Root, Table, in_folder, quietly
from .output import Column, Part, ProgressBar, Screen

if TYPE_CHECKING:
    from ..identification import TorquePrediction


def predict(
    run: Annotated[Path, Parameter(help="Folder of the identify run of the arm.")],
    /,
    *logs: Annotated[Path, Parameter(help="Recordings along which torques are predicted; they need no torques.")],
    robot: Annotated[str | None, Parameter(help="The run's robot file, if it has moved.")] = None,
    config: Config = None,
    table: Table = "recording",
    root: Root = None,
    out: Annotated[Path | None, Parameter(group=OUTPUT, help="CSV file for the torques of every sample.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the torques of an identified arm along logs: a CSV file, and the error of every joint."""
    from ..identification import predict
    from .logs import run_and_recordings

    require_files(run, *in_folder(root, logs), config)
    if out is not None and out.suffix.lower() != ".csv":
        raise EstimateError(f"--out {out}: torques are written as CSV; name a file that ends with .csv")
    with quietly(quiet):
        known, arm, recordings = run_and_recordings(run, robot, logs, config, table, root)
        with ProgressBar("predicting") as progress:
            found = predict(known, recordings, arm, progress=progress)
        if out is not None:
            with ProgressBar("writing") as progress:
                found.write_csv(out, progress)
        if json:
            print(json_text("predict", {**found.to_json(), "file": None if out is None else str(out)}))
        else:
            print_prediction(found, out)


def print_prediction(found: TorquePrediction, out: Path | None) -> None:
    """Print the errors of every joint, notes, and where the torques were written."""
    screen = Screen()
    model, error = found.equations.model, found.error
    screen.line(
        (model.robot.name, "bold"),
        f"  measured torque: {model.measured}, payload: {model.payload}, {len(found.sources)} recording(s), "
        f"{len(found.estimate.columns)} parameters",
    )
    for note in found.notes:
        screen.line(f"note: {note}", style="yellow")
    if error is not None:
        screen.line(
            f"torque errors below {error.cutoff:.3g} Hz: rms of the measured torque and of the error [N m or N], per "
            "cent of the torque, largest, and rms near standstill, which counts in no other"
        )
        columns = [Column("joint", "key"), Column("torque", "key")]
        columns += [Column(heading) for heading in ("measured", "error", "%", "max", "standstill")]
        rows: list[list[Part]] = [
            [joint.joint, joint.kind, *(_figure(value) for value in (
                joint.torque_rms, joint.rms, joint.relative_percent, joint.maximum, joint.standstill_rms
            ))]
            for joint in error.joints
        ]  # fmt: skip
        screen.table(columns, rows)
        is_known = error.relative_percent == error.relative_percent
        figure = f"relative error {error.relative_percent:.2f} %" if is_known else "no relative error: no joint moves"
        screen.line(figure, always=True)
    if out is not None:
        screen.line(f"saved: {out}", always=True)


def _figure(value: float) -> str:
    return f"{value:.3g}" if value == value else ""
