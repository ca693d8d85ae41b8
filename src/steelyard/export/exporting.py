"""Runs as files for other programs: an identified arm, draws from its posterior, a payload, a calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ExportError
from ..identification import (
    Identification,
    RunLike,
    SavedRun,
    load_run,
    robot_of_run,
)
from ..identification.consistent import inertia_prior
from ..identification.prediction import equations_of_run, model_of_run
from ..robot import AnyRobot, XmlDocument
from ..run import read_result
from ..text import for_terminal, short_repr
from . import EXPORTS
from .identified import FORCED, ExportedFile, IdentifiedArm, write_files
from .payload_formats import PAYLOAD_FORMATS, export_payload
from .requests import (
    SAMPLED,
    arm_cautions,
    check_options,
    check_run,
    check_samples,
    checked_formats,
    format_flag,
    refuse_error,
    refuse_poor,
    refuse_without_effect,
)

if TYPE_CHECKING:
    from ..calibration.application.saved import SavedCalibration

RUNS = ("identify", "demo", "payload", "calibrate")
"""Commands whose runs can be exported."""

CALIBRATED = ("urdf", "yaml")
"""Formats of a calibration."""


@dataclass(frozen=True)
class ExportResult:
    """Files that were written.

    Attributes:
        robot: Name of the robot.
        files: What was written, with notes and comparisons.
        paths: Where.
        notes: What holds for all of them.
    """

    __repr__ = short_repr

    robot: str
    files: tuple[ExportedFile, ...]
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``--json``."""
        return {
            "robot": self.robot,
            "files": [
                {
                    "path": str(path),
                    "notes": list(file.notes),
                    "comparisons": [
                        {
                            "program": one.program, "states": one.states, "joint": one.joint,
                            "largest_relative_difference": None if np.isnan(one.largest) else one.largest,
                            "reason": one.reason,
                        }
                        for one in file.comparisons
                    ],
                }
                for path, file in zip(self.paths, self.files, strict=True)
            ],
            "notes": list(self.notes),
        }  # fmt: skip


def identified_arm(run: RunLike | Identification, robot: AnyRobot | None = None) -> IdentifiedArm:
    """Return the physically consistent arm that a run found.

    Args:
        run: An identification, a run, or its folder.
        robot: The run's robot, or its file if that has moved; None: as the run names it.

    Raises:
        ExportError: If the run has base parameters only.
        EstimateError: If the robot file is not here or has changed since.
    """
    if isinstance(run, Identification):
        if run.standard is None:
            raise _base_only()
        standard = run.standard
        sigmas = dict(zip(standard.names, standard.sigma.tolist(), strict=True))
        sources = dict(zip(standard.names, standard.sources, strict=True))
        return IdentifiedArm(standard.robot, standard.model, sigmas, sources)
    run = load_run(run)
    rows = run.content.get("standard_parameters", "none of this version")
    if rows is None:
        raise _base_only()
    if not isinstance(rows, list):
        raise ExportError(
            f"'{run.folder}' is a run of an earlier version, without consistent parameters; run identify again"
        )
    check_run(run.content, run.folder)
    model = model_of_run(run, robot_of_run(run.content, robot))
    if tuple(row["name"] for row in rows) != model.names:
        raise ExportError(f"the standard parameters of '{run.folder}' are not those of its model; run identify again")
    values = {row["name"]: float(row["value"]) for row in rows}
    sigmas = {row["name"]: float("nan") if row["sigma"] is None else float(row["sigma"]) for row in rows}
    sources = {row["name"]: str(row["source"]) for row in rows}
    return _with_values(IdentifiedArm(model.robot, model, sigmas, sources, run.content["provenance"]["run"]), values)


def _with_values(arm: IdentifiedArm, values: dict[str, float]) -> IdentifiedArm:
    return replace(arm, robot=arm.model.identified_robot(values))


def _base_only() -> ExportError:
    return ExportError(
        "the run has base parameters only: its model has no link inertias; identify with --effects inertia,... for an "
        "arm that can be exported"
    )


def sampled_arms(run: RunLike, count: int, seed: int = 0, robot: AnyRobot | None = None) -> list[IdentifiedArm]:
    """Return physically consistent arms drawn from the posterior of a run, for domain randomisation.

    Args:
        run: The run, or its folder.
        count: How many.
        seed: Of the draws.
        robot: The run's robot, or its file if that has moved.
    """
    from ..consistency import StandardProblem

    if count < 1:
        raise ExportError(f"samples: got {count}, allowed is 1 or more")
    run = load_run(run)
    arm = identified_arm(run, robot)
    equations = equations_of_run(run, robot_of_run(run.content, robot))
    choices, used = run.choices, run.content["consistency"]["prior"]
    # That the robot's own inertias were the prior may have been said by a flag or a set-up.
    trusted = replace(equations.model.robot, inertia_source="cad")
    prior = None if used is None else inertia_prior(trusted, choices)[0]
    problem = StandardProblem(equations, run.estimate, choices.consistency, prior)
    centre = np.array([row["value"] for row in run.content["standard_parameters"]])
    drawn = problem.draws(centre, None if used is None else float(used["deviation"]), count, seed)
    return [_with_values(arm, dict(zip(problem.names, values.tolist(), strict=True))) for values in drawn]


def export_model(
    run: RunLike | Identification,
    formats: Sequence[str] | None = None,
    out: str | Path | None = None,
    *,
    payload: str | None = None,
    samples: int = 0,
    seed: int | None = None,
    calibration: str | Path | None = None,
    robot: AnyRobot | None = None,
    force: bool = False,
    **options: Any,
) -> ExportResult:
    """Write an identified arm, a payload or a calibration for other programs.

    Args:
        run: An identification; or a run of ``identify``, ``payload``, ``calibrate`` or ``demo``, or its folder.
        formats: Names in ``EXPORTS``; a calibration has ``urdf`` and ``yaml``, a run of ``payload`` none. None: URDF.
        out: Folder for the files; None: that of the run.
        payload: A format of payloads, one of ``PAYLOAD_FORMATS``: the payload is written too.
        samples: Further arms drawn from the posterior, as URDF or MJCF.
        seed: Of these; None: 0.
        calibration: Folder of a ``calibrate`` run of the same robot, whose joint origins go into the URDF.
        robot: The run's robot, or its file if that has moved.
        force: Write files although something speaks against them: a poor verdict, impossible links, other torques.
        options: Of the formats: ``side`` (``motor`` or ``joint``) and ``parameters`` of code, ``new_file`` of URDF and
            MJCF (whether a new file is written where the robot's own could be edited), ``frame``, ``inertia`` and
            ``tool`` of payloads.

    Raises:
        ExportError: If something speaks against a file and it is not forced, a format is unknown, or an option has no
            effect on what is written.

    Example:
        >>> written = steelyard.export_model("my_run", ["urdf", "yaml"], "exported")  # a run of steelyard identify
        >>> [path.name for path in written.paths]
        ['scara_2r.urdf', 'scara_2r.yaml']
    """
    folder = _folder(run, out)
    saved = isinstance(run, Identification | SavedRun)
    command = "identify" if saved else read_result(Path(run), RUNS, ExportError)["command"]
    chosen = checked_formats(formats, payload, () if command == "payload" else ("urdf",))
    check_options(options, chosen, payload)
    if not saved and command in ("calibrate", "payload"):
        refuse_without_effect(command, samples=samples, seed=seed, calibration=calibration)
        if command == "calibrate":
            refuse_without_effect(command, payload=payload, **{"new-file": options.get("new_file")})
            return _export_calibration(Path(run), chosen, folder, robot, force=force)
        return _export_payload_run(Path(run), chosen, payload, folder, robot, options, force=force)
    check_samples(samples, seed, chosen)
    if not isinstance(run, Identification):
        run = load_run(run)
        check_run(run.content, run.folder)
    elif samples or payload is not None:
        what = "samples" if samples else "a payload"
        raise ExportError(f"{what} of an identification need a saved run; save it with steelyard.save_run")
    content = run.to_json() if isinstance(run, Identification) else run.content
    cautions = (
        *refuse_poor(content["verdict"], "the run", "identify", force=force),
        *refuse_error(content, force=force),
        *arm_cautions(content),
    )
    return _export_arm(
        run, chosen, folder, payload, (samples, seed or 0), calibration, robot, cautions, {**options, "force": force}
    )


def _export_arm(
    run: SavedRun | Identification, formats: Sequence[str], folder: Path, payload: str | None,
    samples: tuple[int, int], calibration: str | Path | None, robot: AnyRobot | None, cautions: tuple[str, ...],
    options: dict[str, Any],
) -> ExportResult:  # fmt: skip
    """Write an identified arm, draws from its posterior (number and seed) and its payload."""
    arm = replace(identified_arm(run, robot), cautions=cautions)
    origins = _origins(calibration, formats)
    files = [file for name in formats for file in _built(name, arm, origins, options)]
    notes = [*arm.heading, *_forced(files)]
    if isinstance(run, SavedRun):
        count, seed = samples
        if count:
            drawn = [replace(one, cautions=cautions) for one in sampled_arms(run, count, seed, robot)]
            written = list(_sample_files(drawn, formats, options))
            files += written
            notes.append(f"{count} samples drawn from the posterior with seed {seed}")
            odd = {file.name: forced for file in written for forced in _forced([file])[:1]}
            if odd:
                name, reason = next(iter(odd.items()))
                notes.append(f"{len(odd)} of the samples' files are forced; the first is {name}, {reason}")
            rows = run.content["standard_parameters"]
            if open_ones := sum(row["source"] == "reference" for row in rows):
                notes.append(
                    f"{open_ones} of {len(rows)} parameters are not determined by the data and have no prior (source "
                    "'reference'): their samples do not show how uncertain they are; --prior FILE would"
                )
        if payload is not None:
            files.append(_payload_file(run.folder, payload, robot, options, cautions))
    return _written(arm.robot.name, files, folder, arm.model.robot.file, notes)


def _forced(files: Iterable[ExportedFile]) -> list[str]:
    """Return the reasons why files are forced."""
    return list(dict.fromkeys(note for file in files for note in file.notes if note.startswith(FORCED)))


def _folder(run: RunLike | Identification, out: str | Path | None) -> Path:
    if out is not None:
        return Path(out)
    if isinstance(run, Identification):
        raise ExportError("an identification that is not saved has no folder; give out=FOLDER")
    return run.folder if isinstance(run, SavedRun) else Path(run)


def _built(
    name: str, arm: IdentifiedArm, origins: dict[str, Any] | None, options: dict[str, Any]
) -> tuple[ExportedFile, ...]:
    own = {**options, "origins": origins} if name == "urdf" and origins else options
    return EXPORTS[name].build(arm, **own)


def _sample_files(
    arms: Sequence[IdentifiedArm], formats: Sequence[str], options: dict[str, Any]
) -> Iterable[ExportedFile]:
    chosen = [name for name in formats if name in SAMPLED]
    digits = max(3, len(str(len(arms))))
    for number, arm in enumerate(arms, 1):
        for name in chosen:
            for file in EXPORTS[name].build(arm, **options):
                path = Path(file.name)
                numbered = path.with_name(f"{path.stem}_sample_{number:0{digits}d}{path.suffix}")
                yield replace(file, name=str(numbered))


def _payload_file(
    folder: Path, form: str, robot: AnyRobot | None, options: dict[str, Any], cautions: Sequence[str]
) -> ExportedFile:
    from ..identification import read_payload

    found = read_payload(folder)
    arm = robot_of_run(found.content, robot).with_locked(found.lock)
    own = {name: options[name] for name in ("frame", "inertia", "tool") if name in options}
    return export_payload(found.body, arm, form, **own, run=found.content["provenance"]["run"], cautions=cautions)


def _export_payload_run(
    folder: Path, formats: Sequence[str], form: str | None, out: Path, robot: AnyRobot | None, options: dict[str, Any],
    *, force: bool,
) -> ExportResult:  # fmt: skip
    if form is None or formats:
        flags = f", not with {' '.join(map(format_flag, formats))}" if formats else ""
        raise ExportError(
            f"'{folder}' is a run of payload, which has no arm; name a format of payloads with --payload{flags}: "
            f"{', '.join(PAYLOAD_FORMATS)}"
        )
    content = read_result(folder, ("payload",), ExportError)
    arm, notes = content.get("arm_verdict"), []
    if arm is not None:
        what = f"the run of the arm, '{content['provenance']['settings']['run']}',"
        notes += refuse_poor(arm, what, "identify", force=force)
    reasons = [{"text": one["text"], "about": ""} for one in content.get("reasons", [])]
    own = content.get("verdict") or {"grade": "poor" if reasons else "good", "criteria": [], "reasons": reasons}
    link = content.get("payload_link")
    what = f"the payload on link '{link}'" if link else "the payload"
    notes += refuse_poor(own, what, "payload", force=force)
    file = _payload_file(folder, form, robot, options, notes)
    return _written(file.name.rpartition(".")[0], [file], out, "", notes)


def _origins(calibration: str | Path | None, formats: Sequence[str]) -> dict[str, Any] | None:
    """Return the calibrated joint origins of a run."""
    if calibration is None:
        return None
    from ..calibration.application.exports import calibrated_origins

    if "urdf" not in formats:
        raise ExportError("--calibration changes joint origins of a URDF; add --urdf")
    return calibrated_origins(_calibration(Path(calibration), None).arm)


def _calibration(folder: Path, robot: AnyRobot | None) -> SavedCalibration:
    from ..calibration.application.saved import read_calibration

    return read_calibration(folder, None if robot is None else str(robot))


def _export_calibration(
    folder: Path, formats: Sequence[str], out: Path, robot: AnyRobot | None, *, force: bool
) -> ExportResult:
    """Write a calibration as ``calibrate --export`` does."""
    from ..calibration.application.exports import calibration_yaml, edited_urdf

    unknown = [name for name in formats if name not in CALIBRATED]
    if unknown:
        raise ExportError(
            f"'{folder}' is a run of calibrate: it is written as {' and '.join(CALIBRATED)}, not as {unknown[0]}"
        )
    found = _calibration(folder, robot)
    notes = refuse_poor(found.content["verdict"], "the run", "calibrate", force=force)
    files = []
    if "urdf" in formats:
        if Path(found.robot_name).suffix.lower() not in (".urdf", ".xml"):
            raise ExportError(f"the robot '{found.robot_name}' is no URDF file; take --yaml")
        edit = edited_urdf(Path(found.robot_name), found.arm)
        content = XmlDocument(edit.content).edited("\n".join(notes)) if notes else edit.content
        files.append(ExportedFile("calibrated.urdf", content, edit.notes))
    if "yaml" in formats:
        head = "".join(f"# {for_terminal(line)}\n" for line in (f"run {found.content['provenance']['run']}", *notes))
        text = f"{head}{calibration_yaml(found.arm)}"
        files.append(ExportedFile("calibration.yaml", text.encode("utf-8")))
    return _written(found.arm.robot.name, files, out, found.robot_name, notes)


def _written(
    robot: str, files: Sequence[ExportedFile], folder: Path, source: str, notes: Sequence[str]
) -> ExportResult:
    """Write files; the file that the robot was read from is not overwritten."""
    own = Path(source).resolve() if source else None
    for file in files:
        if own is not None and (folder / file.name).resolve() == own:
            raise ExportError(f"'{folder / file.name}' is the file that the robot was read from; give another --out")
    try:
        paths = write_files(files, folder)
    except OSError as error:
        raise ExportError(f"cannot write to '{folder}': {error.strerror or error}; give another --out") from error
    return ExportResult(robot, tuple(files), tuple(paths), tuple(notes))
