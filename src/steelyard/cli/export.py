"""``steelyard export``: an identified arm, a payload or a calibration as files that other programs load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from ..files import require_files
from ..plain_data import json_text
from .options import OUTPUT, Json, Quiet, quietly
from .output import Column, Part, Screen

if TYPE_CHECKING:
    from ..export import ExportResult

FORMATS, CHOICES = Group("Formats", sort_key=1), Group("Choices", sort_key=2)


def export(
    run: Annotated[Path, Parameter(help="Folder of a run of identify, payload, calibrate or demo.")],
    /,
    *,
    urdf: Annotated[bool, Parameter(group=FORMATS, help="URDF: the robot's own file, edited, or a new one.")] = False,
    mjcf: Annotated[bool, Parameter(group=FORMATS, help="MJCF of MuJoCo: likewise.")] = False,
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
        Parameter(group=FORMATS, help="The payload in the words of a controller."),
    ] = None,
    samples: Annotated[
        int, Parameter(group=CHOICES, help="Further arms drawn from the posterior, as URDF or MJCF; default: none.")
    ] = 0,
    seed: Annotated[int, Parameter(group=CHOICES, help="Of the samples; default: 0.")] = 0,
    side: Annotated[
        Literal["motor", "joint"],
        Parameter(group=CHOICES, help="Torques of generated code: of the motors, or at the joints; default: motor."),
    ] = "motor",
    calibration: Annotated[
        Path | None, Parameter(group=CHOICES, help="Run of calibrate whose joint origins go into the URDF.")
    ] = None,
    payload_frame: Annotated[
        str | None, Parameter(group=CHOICES, help="Link that is the controller's flange; default: by its name.")
    ] = None,
    without_inertia: Annotated[
        bool, Parameter(group=CHOICES, help="Write the payload's mass and centre alone (ur, ros2).")
    ] = False,
    tool: Annotated[int, Parameter(group=CHOICES, help="Number of the tool (kuka); default: 1.")] = 1,
    robot: Annotated[str | None, Parameter(group=CHOICES, help="The run's robot file, if it has moved.")] = None,
    force: Annotated[
        bool, Parameter(group=CHOICES, help="Write files although something speaks against them.")
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
    if not chosen and payload is None:
        chosen = ["urdf"]
    options: dict[str, Any] = {"side": side, "frame": payload_frame, "inertia": not without_inertia, "tool": tool}
    with quietly(quiet):
        found = export_model(
            run, chosen, out, payload=payload, samples=samples, seed=seed, calibration=calibration, robot=robot,
            force=force, **options,
        )  # fmt: skip
        print(json_text("export", found.to_json())) if json else _print(found)


def _print(found: ExportResult) -> None:
    screen = Screen()
    screen.line((found.robot, "bold"), f": {len(found.paths)} file(s)")
    rows: list[list[Part]] = []
    for path, file in zip(found.paths, found.files, strict=True):
        checks = ", ".join(
            f"{one.program} {one.largest:.0e}" if one.states else f"{one.program}: {one.reason}"
            for one in file.comparisons
        )
        rows.append([str(path), checks])
    screen.table([Column("file", "text"), Column("loaded again by, largest relative torque difference", "text")], rows)
    for note in dict.fromkeys([*found.notes, *(note for file in found.files for note in file.notes)]):
        screen.line(f"note: {note}", style="dim")
    if found.paths:
        screen.line(f"saved: {found.paths[0].parent}", always=True)
