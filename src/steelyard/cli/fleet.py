"""``steelyard fleet``: many units of an arm and their logs over time, on this machine or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..errors import ConfigError
from ..plain_data import json_text
from ..text import counted
from .identify import PreparationOptions, settings_table
from .options import DATA, DEFAULT_MODEL, OUTPUT, Json, ModelOptions, Quiet, given, quietly
from .output import Column, Screen, Timing, print_message

if TYPE_CHECKING:
    from ..fleet import FleetResult, RobotFleet

_PREPARATION = PreparationOptions()
MOST_LEFT_OUT, MOST_VARYING = 10, 12
"""Rows of tables that are printed; the files of the run have all."""
LEAST_PERCENT = 0.001
"""Smaller variation is printed as 0."""
FEWEST_UNITS = 3
"""Of fewer it is not printed how they vary."""
CERTAIN = 4.0
"""Slopes beyond so many sigmas are printed."""
_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9}


def fleet(
    manifest: Annotated[
        Path, Parameter(help="CSV with columns robot, serial, date, files, payload, config; or TOML: see the docs.")
    ],
    /,
    *,
    model: ModelOptions = DEFAULT_MODEL,
    preparation: PreparationOptions = _PREPARATION,
    root: Annotated[
        Path | None, Parameter(group=DATA, help="Folder where the manifest's paths start; default: its own.")
    ] = None,
    false_alarms: Annotated[
        float, Parameter(group=DATA, help="Chance that a fleet without changes raises any alarm; default: 0.05.")
    ] = 0.05,
    scheduler: Annotated[
        str | None, Parameter(group=DATA, help="Address of a Dask scheduler, tcp://HOST:PORT; default: this machine.")
    ] = None,
    workers: Annotated[
        int | None, Parameter(group=DATA, help="Local worker processes; the result is the same. Default: all cores.")
    ] = None,
    memory: Annotated[
        str | None, Parameter(group=DATA, help="Most memory of each local worker, such as 2GB; default: no limit.")
    ] = None,
    out: Annotated[
        Path, Parameter(name="--out", group=OUTPUT, help="Folder of the fleet; what is there is not read again.")
    ] = Path("fleet"),
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Identify a fleet: the common arm, how its units vary, which one has changed since when."""
    from ..files import require_files

    require_files(manifest)
    flags = given(model, preparation)
    if flags.pop("payload", None):
        raise ConfigError("--payload: payloads of a fleet are in the manifest's column payload")
    with quietly(quiet):
        table = {key: value for key, value in settings_table(flags, None).items() if key != "threads"}
        limit = None if memory is None else _bytes(memory)
        where = (scheduler, (os.cpu_count() or 1) if workers is None else workers, limit)
        return _run(manifest, root, table, false_alarms, where, out, json)


def _bytes(text: str) -> int:
    """Return the bytes that a text such as 2GB means.

    Raises:
        ConfigError: If it means none.
    """
    for unit, factor in _UNITS.items():
        number = text.lower().removesuffix(unit).strip()
        if text.lower().endswith(unit) and number.replace(".", "", 1).isdigit():
            return int(float(number) * factor)
    raise ConfigError(f"--memory is '{text}'; allowed: a number with its unit, such as 500MB or 2GB")


def _run(
    path: Path,
    root: Path | None,
    table: Mapping[str, Any],
    false_alarms: float,
    where: tuple[str | None, int, int | None],
    out: Path,
    json: bool,
) -> int:
    """Read the logs, compare the units, print and save; return 0: findings are no failure of the work."""
    from ..fleet import identify_fleet, read_manifest
    from ..run import RunFolder, hashes_of

    manifest, timing = read_manifest(path, root), Timing()
    scheduler, workers, memory = where
    with RunFolder(out, "fleet") as saved:
        try:
            found = identify_fleet(
                manifest, out, table, workers=workers, scheduler=scheduler, memory=memory, false_alarms=false_alarms,
                stage=timing.stage,
            )  # fmt: skip
        except KeyboardInterrupt:
            print_message(f"logs that were read are kept in '{out}': the same command goes on from there")
            raise
        timing.finish()
        settings = {"manifest": str(path), "false_alarms": false_alarms, **table}
        content = saved.save(
            settings, hashes_of(path), found.to_json(), lambda folder, _: found.write_tables(folder), timing.seconds,
            found.to_html,
        )  # fmt: skip
        if json:
            print(json_text("fleet", content))
        else:
            print_fleet(found, saved.place)
    return 0


def print_fleet(found: FleetResult, out: Path | None) -> None:
    """Print what was found, what is left out, and how units vary."""
    screen = Screen()
    units = sum(len(robot.serials) for robot in found.robots)
    screen.line(
        f"{counted(len(found.logs), 'log')} of {counted(units, 'unit')} ({found.read} read now, "
        f"{len(found.logs) - found.read} known), {len(found.broken)} left out",
        always=True,
    )
    if found.findings:
        screen.line()
    for one in found.findings:
        screen.line(f"- {one.text}; {one.remedy}", always=True)
    if not found.findings:
        screen.line("nothing found: no change, and no unit unlike the others, that could not be chance", always=True)
    if found.broken:
        screen.line()
        _print_left_out(screen, found)
    for robot in found.robots:
        screen.line()
        _print_variation(screen, robot)
        _print_slopes(screen, robot)
    for note in found.notes:
        screen.line(f"note: {note}", style="dim")
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}, report.html, *.parquet", always=True)


def _print_left_out(screen: Screen, found: FleetResult) -> None:
    rows = [[log.serial, f"{log.date:%Y-%m-%d}", one.reason] for log, one in found.broken[:MOST_LEFT_OUT]]
    columns = [Column("unit", "key"), Column("date", "word"), Column("left out because", "text")]
    more = len(found.broken) - MOST_LEFT_OUT
    screen.table(columns, rows, title="left out" + (f", {more} more in runs.parquet" if more > 0 else ""))


def _print_variation(screen: Screen, robot: RobotFleet) -> None:
    rows = [list(row) for row in _variation(robot)]
    columns = [Column("parameter", "key"), *map(Column, ("common", "sigma", "units %", "from", "to", "logs %"))]
    title = (
        f"{robot.robot}: {len(robot.serials)} units; the common arm, and standard deviations of units from it and of "
        f"logs from their units in per cent of it, {len(rows)} of {len(robot.parameters)} parameters, those that vary "
        "most beyond doubt first"
    )
    screen.table(columns, rows, title=title)


def _print_slopes(screen: Screen, robot: RobotFleet) -> None:
    """Print the friction that depends on temperature beyond doubt."""
    rows = [
        [one.name, f"{one.slope:+.3g}", f"{one.sigma:.2g}", f"{abs(one.slope / one.sigma):.3g}"]
        for one in sorted(robot.slopes, key=lambda one: -abs(one.slope / one.sigma))
        if abs(one.slope) > CERTAIN * one.sigma
    ]
    if rows:
        screen.line()
        columns = [Column("parameter", "key"), *map(Column, ("per deg C", "sigma", "sigmas"))]
        screen.table(columns, rows[:MOST_VARYING], title=f"{robot.robot}: friction that depends on temperature")


def _variation(robot: RobotFleet) -> Iterator[tuple[str, ...]]:
    import numpy as np

    fit, (low, high) = robot.hierarchy, robot.hierarchy.variance_interval()
    size, sigma = np.abs(fit.common), np.sqrt(np.diagonal(fit.common_covariance))
    for k in robot.varying[:MOST_VARYING]:
        percent = [100 * np.sqrt(one[k]) / size[k] for one in (fit.between_units, low, high, fit.between_logs)]
        parts = ["0" if part < LEAST_PERCENT else f"{part:.2g}" for part in percent]
        if len(robot.serials) < FEWEST_UNITS:
            parts[:3] = ["-"] * 3
        yield robot.parameters[k].name, f"{fit.common[k]:.4g}", f"{sigma[k]:.2g}", *parts
