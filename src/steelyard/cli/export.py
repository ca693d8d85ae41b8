"""``steelyard export``: an identified arm, a payload or a calibration as files that other programs load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from ..files import require_files
from ..plain_data import json_text
from .options import OUTPUT, Json, Quiet, quietly
from .output import Column, Screen

if TYPE_CHECKING:
    from ..export import ExportedFile, ExportResult

_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")
"""A number with a decimal point; not a part of a name or a version."""

_SAMPLE = re.compile(r"_sample_\d+\.")

FORMATS, CHOICES = Group("Formats", sort_key=1), Group("Choices", sort_key=2)


def export(
    run: Annotated[Path, Parameter(help="Folder of a run of identify, payload, calibrate or demo.")],
    /,
    *,
    urdf: Annotated[bool, Parameter(group=FORMATS, help="URDF: the robot's own file, edited, or a new one.")] = False,
    mjcf: Annotated[
        bool, Parameter(group=FORMATS, help="MJCF (MuJoCo): the robot's own file, edited, or a new one.")
    ] = False,
    c: Annotated[bool, Parameter(name="--c", group=FORMATS, help="C99 functions without dependencies.")] = False,
    casadi: Annotated[bool, Parameter(group=FORMATS, help="CasADi functions.")] = False,
    numpy: Annotated[bool, Parameter(group=FORMATS, help="A Python module that needs NumPy alone.")] = False,
    yaml: Annotated[bool, Parameter(group=FORMATS, help="Parameters with sigmas and sources, as YAML.")] = False,
    parameters: Annotated[
        bool, Parameter(name="--parameters-json", group=FORMATS, help="The same as a JSON file.")
    ] = False,
    latex: Annotated[bool, Parameter(group=FORMATS, help="Parameters with sigmas as a LaTeX table.")] = False,
    payload: Annotated[
        Literal["ur", "franka", "franka_desk", "kuka", "ros2"] | None,
        Parameter(group=FORMATS, help="The payload as a controller takes it."),
    ] = None,
    samples: Annotated[
        int, Parameter(group=CHOICES, help="Number of models drawn from the posterior, as URDF or MJCF; default: none.")
    ] = 0,
    seed: Annotated[int | None, Parameter(group=CHOICES, help="Of the samples; default: 0.")] = None,
    side: Annotated[
        Literal["motor", "joint"] | None,
        Parameter(group=CHOICES, help="Torques of generated code: of the motors, or at the joints; default: motor."),
    ] = None,
    new_file: Annotated[
        bool, Parameter(group=CHOICES, negative="", help="Write a new URDF or MJCF; default: edit the robot's own.")
    ] = False,
    calibration: Annotated[
        Path | None, Parameter(group=CHOICES, help="Run of calibrate whose joint origins go into the URDF.")
    ] = None,
    payload_frame: Annotated[
        str | None, Parameter(group=CHOICES, help="Link that is the controller's flange; default: by its name.")
    ] = None,
    without_inertia: Annotated[
        bool, Parameter(group=CHOICES, negative="", help="Write the payload's mass and centre alone (ur, ros2).")
    ] = False,
    tool: Annotated[int | None, Parameter(group=CHOICES, help="Number of the tool (kuka); default: 1.")] = None,
    robot: Annotated[str | None, Parameter(group=CHOICES, help="The run's robot file, if it has moved.")] = None,
    force: Annotated[
        bool, Parameter(group=CHOICES, help="Write files despite a poor verdict, impossible links or a failed check.")
    ] = False,
    out: Annotated[Path | None, Parameter(group=OUTPUT, help="Folder for the files; default: that of the run.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write an identified arm for a controller, planner or simulator, loaded again and compared before it is saved."""
    from ..export import export_model

    require_files(run, calibration)
    flags = {
        "urdf": urdf, "mjcf": mjcf, "c": c, "casadi": casadi, "numpy": numpy, "yaml": yaml, "json": parameters,
        "latex": latex,
    }  # fmt: skip
    chosen = [name for name, wanted in flags.items() if wanted]
    given: dict[str, Any] = {
        "side": side, "new_file": new_file or None, "frame": payload_frame,
        "inertia": False if without_inertia else None, "tool": tool,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    with quietly(quiet):
        found = export_model(
            run, chosen if chosen or payload else None, out, payload=payload, samples=samples, seed=seed,
            calibration=calibration, robot=robot, force=force, **options,
        )  # fmt: skip
        print(json_text("export", found.to_json())) if json else _print(found)


def _print(found: ExportResult) -> None:
    screen = Screen()
    folder = found.paths[0].parent if found.paths else Path()
    screen.line((found.robot, "bold"), f": {len(found.paths)} file(s)")
    if any(file.comparisons for file in found.files):
        screen.line("loaded again: largest difference of torques, relative to the largest torque of the joint")
    _print_files(screen, found.files)
    for note in _notes(found):
        screen.line(f"note: {note}", style="dim")
    if found.paths:
        screen.line(f"saved: {folder}", always=True)


def _print_files(screen: Screen, files: Sequence[ExportedFile]) -> None:
    """Print names of files and differences of torques: as a table, or in lines of their own where names are long."""
    figures = [{one.program: f"{one.largest:.0e}" if one.states else "-" for one in file.comparisons} for file in files]
    programs = list(dict.fromkeys(program for row in figures for program in row))
    if not programs:
        for file in files:
            screen.line(file.name)
        return
    headings = [Column(program.replace(" ", "\n", 1)) for program in programs]
    room = screen.width - sum(2 + max(map(len, column.heading.split("\n"))) for column in headings)
    if all(len(file.name) <= room for file in files):
        rows = [
            [file.name, *(row.get(program, "") for program in programs)]
            for file, row in zip(files, figures, strict=True)
        ]
        screen.table([Column("file", "key"), *headings], rows)
        return
    for file, row in zip(files, figures, strict=True):
        screen.line(file.name)
        if row:
            screen.line(f"  {', '.join(f'{program}: {figure}' for program, figure in row.items())}")


def _notes(found: ExportResult) -> Iterator[str]:
    """Yield the notes on all files with numbers of four digits; of notes that differ in numbers only, the first.

    The files of samples have the same notes with other numbers, which stand in the files themselves; a note that only
    samples have names the first of them.
    """
    failed = [(one, file) for file in found.files for one in file.comparisons if one.reason]
    reasons = [f"{one.program}, {file.name}: {one.reason}" for one, file in failed]
    known = set()
    of_files = [(note, file.name) for file in found.files for note in file.notes]
    for note, name in (*((note, "") for note in found.notes), *of_files, *((reason, "") for reason in reasons)):
        subject = _subject(note)
        if subject not in known:
            known.add(subject)
            shown = _NUMBER.sub(lambda number: f"{float(number.group()):.4g}", note)
            yield f"{shown} ({name})" if _SAMPLE.search(name) else shown


def _subject(note: str) -> str:
    """Return what a note is about: itself without numbers, of what a file cannot hold without the joints too.

    A joint is listed there if its value is not zero, which some samples have and others have not.
    """
    heading, listed, _ = note.partition("): ")
    return heading if listed and note.startswith("not in the file: ") else _NUMBER.sub("", note)
