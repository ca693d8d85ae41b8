"""``steelyard compare``: parameters of runs, published tables and robot files side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..errors import EstimateError
from ..files import require_files, write_aside
from ..plain_data import json_text, plain
from ..text import for_terminal
from .options import OUTPUT, Json, Out, Quiet, quietly
from .output import Column, Screen, short_names

if TYPE_CHECKING:
    from ..identification import TorqueDifference
    from ..judge import ComparedRun, ComparedSummary, Comparison

_LONGEST_HEADING = 16

_ALL = "all base parameters, with the values of the full model; --essential compares those of the reduced one"
_ESSENTIAL = "essential parameters, with their values in the reduced model"


@dataclass(frozen=True)
class _FileTorques:
    """Torques of a robot file beside those of a run, and what a reader must know of the file."""

    file: str
    run: str
    joints: Sequence[TorqueDifference]
    notes: Sequence[str]


def compare(
    *runs: Annotated[str, Parameter(help="Run folders, names of published tables, or robots (name or file).")],
    essential: Annotated[bool, Parameter(help="Compare essential parameters only, of the reduced model.")] = False,
    csv: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write the table as CSV.")] = None,
    latex: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write the table as LaTeX.")] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the parameters of runs, or of a run with a robot file: differences in per cent and in sigmas."""
    from ..judge import compare_parameters, published_names, to_csv, to_latex
    from ..robot import catalogue_names
    from ..run import RunFolder, hashes_of

    if len(runs) < 2:
        raise EstimateError(
            f"compare needs two runs or more, got {len(runs)}; name run folders, a robot file, or published tables: "
            f"{', '.join(published_names())}"
        )
    require_files(*(Path(name) for name in runs if name not in (*published_names(), *catalogue_names())))
    with quietly(quiet), RunFolder(out, "compare") as saved:
        compared, torques = _compared(runs, essential)
        comparison = compare_parameters(compared)
        for path, text in ((csv, to_csv), (latex, to_latex)):
            if path is not None:
                write_aside(path, text(comparison))
        inputs = hashes_of(*(Path(name) if _is_robot(name) else Path(name) / "result.json" for name in runs))
        content = _comparison_to_json(comparison, torques)
        report = partial(_report, comparison, torques, _ESSENTIAL if essential else _ALL)
        content = saved.save({"runs": list(runs), "essential": essential}, inputs, content, report=report)
        print(json_text("compare", content)) if json else _print(comparison, torques)


def _is_robot(name: str) -> bool:
    """Return whether a name is that of a catalogue arm or of a robot file, and not of a run folder."""
    from ..robot import catalogue_names
    from ..robot.load import READERS

    if Path(name).is_dir():
        return False
    return name in catalogue_names() or Path(name).suffix.lower() in READERS


def _compared(names: Sequence[str], essential: bool) -> tuple[list[ComparedRun], list[_FileTorques]]:
    """Return everything named as parameters; robot files with the model of the first run, and their torques on it."""
    robots = [name for name in names if _is_robot(name)]
    if not robots:
        return [_compared_run(name, essential) for name in names], []
    from ..identification import file_reference, load_run, torque_differences
    from ..judge import published_names
    from ..robot import load_robot

    folders = [name for name in names if name not in robots and (Path(name).exists() or name not in published_names())]
    if not folders:
        raise EstimateError(
            f"robot '{robots[0]}' is compared with a run of identify, whose model says what its parameters are; name a "
            "run folder too"
        )
    run = load_run(folders[0])
    references = {name: file_reference(run, load_robot(name), name) for name in robots}
    compared = [
        references[name].to_compare(name) if name in references else _compared_run(name, essential) for name in names
    ]
    values = run.essential if essential else run.estimate
    torques = [
        _FileTorques(name, folders[0], torque_differences(run, values, one), one.notes)
        for name, one in references.items()
    ]
    return compared, torques


def _compared_run(name: str, essential: bool) -> ComparedRun:
    """Return a published table or a run folder as parameters by name."""
    from ..identification import read_identified
    from ..judge import ComparedRun, ComparedValue, published_names, published_run

    if name in published_names() and not Path(name).exists():
        return published_run(name)
    content = read_identified(Path(name))
    value, sigma = ("value", "sigma") if essential else ("full_value", "full_sigma")
    parameters = {
        row["name"]: ComparedValue(row[value], row[sigma], row["unit"], row["regrouping"])
        for row in content["parameters"]
        if row[sigma] is not None
    }
    return ComparedRun(name, parameters, robot=content.get("robot", ""))


def _comparison_to_json(comparison: Comparison, torques: Sequence[_FileTorques]) -> dict[str, Any]:
    def each(records: Sequence[object], name: str) -> list[Any]:
        return [getattr(record, name, None) for record in records]

    return plain(
        {
            "runs": comparison.runs,
            "warnings": comparison.warnings,
            "parameters": [
                {
                    "name": row.name,
                    "unit": row.unit,
                    "values": each(row.values, "value"),
                    "sigmas": each(row.values, "sigma"),
                    "differences": each(row.differences, "absolute"),
                    "differences_percent": each(row.differences, "percent"),
                    "differences_in_sigmas": each(row.differences, "sigmas"),
                }
                for row in comparison.rows
            ],
            "summaries": [
                {
                    "run": one.name, "compared": one.compared, "with_sigma": one.with_sigma,
                    "within_two_sigmas": one.within, "largest_in_sigmas": one.largest_sigmas,
                    "largest_in_percent": one.largest_percent, "near_zero": one.near_zero,
                }
                for one in comparison.summaries
            ],
            "torques": [
                {
                    "file": one.file, "run": one.run, "notes": one.notes,
                    "relative_difference_percent": _percent(one.joints, "difference"),
                    "run_error_percent": _percent(one.joints, "run_error"),
                    "file_error_percent": _percent(one.joints, "file_error"),
                    "random_states_difference_percent": _state_percent(one.joints),
                    "joints": [
                        {
                            "name": joint.joint, "kind": joint.kind, "unit": joint.unit, "torque_rms": joint.torque,
                            "difference_rms": joint.difference, "run_error_rms": joint.run_error,
                            "file_error_rms": joint.file_error, "lacking_rms": joint.lacking,
                            "random_states_torque_rms": joint.state_torque,
                            "random_states_difference_rms": joint.state_difference,
                        }
                        for joint in one.joints
                    ],
                }
                for one in torques
            ],
        }
    )  # fmt: skip


def _percent(joints: Sequence[TorqueDifference], what: str) -> float | None:
    """Return a size relative to the measured torques of all joints [%]; that of the worse unit, never N with N m."""
    found = []
    for unit in dict.fromkeys(joint.unit for joint in joints):
        mine = [joint for joint in joints if joint.unit == unit]
        torque = sum(joint.rows * joint.torque**2 for joint in mine)
        size = sum(joint.rows * getattr(joint, what) ** 2 for joint in mine)
        found += [100 * (size / torque) ** 0.5] if torque > 0 else []
    return max(found, default=None)


def _state_percent(joints: Sequence[TorqueDifference]) -> float | None:
    """Return the difference at random states relative to the file's torque there [%]; None without such states."""
    known = [
        replace(joint, rows=1, torque=joint.state_torque, difference=joint.state_difference)
        for joint in joints
        if joint.state_torque is not None and joint.state_difference is not None
    ]
    return _percent(known, "difference")


def _report(
    comparison: Comparison, torques: Sequence[_FileTorques], compared: str, provenance: Mapping[str, str]
) -> str:
    from ..report import DataTable, PageSection, page_html
    from ..report.comparison import comparison_page

    columns = ["joint", "torque", "measured", "difference", "difference [%]", "run error", "file error", "unit"]
    sections = []
    for number, one in enumerate((one for one in torques if one.joints), 1):
        rows = [
            [joint.joint, joint.kind, joint.torque, joint.difference,
             100 * joint.difference / joint.torque if joint.torque > 0 else None, joint.run_error, joint.file_error,
             joint.unit]
            for joint in one.joints
        ]  # fmt: skip
        caption = (
            f"Torques of {one.file} and of {one.run} on the rows of the run, rms: {one.file} differs by "
            f"{_percent(one.joints, 'difference') or 0:.3g} % of the measured torque; error "
            f"{_percent(one.joints, 'file_error') or 0:.3g} % with {one.file}, "
            f"{_percent(one.joints, 'run_error') or 0:.3g} % with the run."
        )
        table = DataTable(f"torques-{number}", columns, rows, caption, digits=3)
        sections.append(PageSection("Torques", [table], points=one.notes))
    summaries = [_sentence(one, comparison.runs[0]) for one in comparison.summaries]
    names = _headings(comparison.runs)
    return page_html(comparison_page(comparison, names, provenance, compared, summaries, sections))


def _print(comparison: Comparison, torques: Sequence[_FileTorques] = ()) -> None:
    screen = Screen()
    for warning in (*comparison.warnings, *(note for one in torques for note in one.notes)):
        screen.line(f"warning: {warning}", style="yellow")
    names = _headings(comparison.runs)
    columns = [Column("parameter", "key"), Column("unit", "key"), *(Column(name) for name in names)]
    for name in names[1:]:
        columns += [Column(f"{name}\n%"), Column(f"{name}\nsigmas")]
    rows = []
    for row in comparison.rows:
        cells = ["" if value is None else f"{value.value:.4g}" for value in row.values]
        for difference in row.differences:
            cells += [_number(difference and difference.percent), _number(difference and difference.sigmas)]
        rows.append([row.name, row.unit, *cells])
    screen.table(columns, rows)
    for one in torques:
        _print_torques(screen, one)
    for one in comparison.summaries:
        screen.line(_sentence(one, comparison.runs[0]), always=True)
    for one in (one for one in torques if one.joints):
        shares = [_percent(one.joints, what) or 0.0 for what in ("difference", "run_error", "file_error")]
        screen.line(
            f"torques on the rows of {one.run}: {one.file} differs by {shares[0]:.3g} % of the measured torque; error "
            f"{shares[2]:.3g} % with {one.file}, {shares[1]:.3g} % with the run",
            always=True,
        )
        whole = _state_percent(one.joints)
        if whole is not None:
            screen.line(
                f"torques at random states, with the effects that the run lacks: {one.file} differs by {whole:.3g} % "
                "of its torque",
                always=True,
            )


def _print_torques(screen: Screen, one: _FileTorques) -> None:
    if not one.joints:
        return
    screen.line()
    screen.line(
        f"torques of {one.file} and of {one.run} on the rows of the run, rms [N m or N]: measured, difference of the "
        "two, errors of each"
    )
    columns = [Column("joint", "key"), Column("torque", "key")]
    columns += [Column(heading) for heading in ("measured", "difference", "%", "run error", "file error")]
    rows = [
        [
            joint.joint, joint.kind, f"{joint.torque:.3g}", f"{joint.difference:.3g}",
            f"{100 * joint.difference / joint.torque:.1f}" if joint.torque > 0 else "", f"{joint.run_error:.3g}",
            f"{joint.file_error:.3g}",
        ]
        for joint in one.joints
    ]  # fmt: skip
    screen.table(columns, rows)
    lacking = [joint for joint in one.joints if joint.state_torque is not None]
    if lacking:
        screen.line()
        screen.line(
            f"at random states within the limits of the joints, rms [N m or N]: torque of {one.file} with all its "
            "effects, difference from the run, torque of the effects that the run lacks"
        )
        columns = [Column("joint", "key"), Column("torque", "key")]
        columns += [Column(heading) for heading in ("file", "difference", "lacking")]
        cells = [(joint.state_torque, joint.state_difference, joint.lacking) for joint in lacking]
        rows = [
            [joint.joint, joint.kind, *(f"{value:.3g}" for value in values)]
            for joint, values in zip(lacking, cells, strict=True)
        ]
        screen.table(columns, rows)
    screen.line()


def _headings(runs: Sequence[str]) -> list[str]:
    """Return short names of runs: those of their folders, unless two are called alike."""
    last = [Path(name).name or name for name in runs]
    names = last if len(set(last)) == len(last) else list(runs)
    short = short_names([for_terminal(name) for name in names], _LONGEST_HEADING)
    return [short[for_terminal(name)] for name in names]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def _sentence(one: ComparedSummary, reference: str) -> str:
    sentence = f"{one.name} against {reference}: {one.compared} parameters compared"
    if one.largest_sigmas:
        name, size = one.largest_sigmas
        sentence += f", {one.within} of {one.with_sigma} within two sigmas, most: {name} {size:+.1f} sigmas"
    if one.largest_percent:
        name, size = one.largest_percent
        sentence += f"; largest in per cent: {name} {size:+.0f} %"
    if one.near_zero:
        sentence += f" ({one.near_zero} left out, whose sigma is as large as the value)"
    return sentence
