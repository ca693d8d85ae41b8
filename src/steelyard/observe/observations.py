"""Observations: recordings of any length as triangular factors, with a fingerprint of what their rows mean.

Factors of another arm, other unknowns, another filter or other units cannot be merged. In a file, observations are one
``.npz`` without pickled objects, written aside and then renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..archive import ArchiveError, read_arrays
from ..effects import EFFECTS
from ..errors import ObservationError
from ..files import opened_aside
from ..model import Model
from ..model.terms import PAYLOAD_NAMES, payload_link
from ..progress import Progress, silent
from ..robot import Robot, transform_from_placement
from ..text import short_repr
from .equations import Equations
from .factor import Factor, reduced_source
from .preparation import ResolvedPreparation
from .rows import RowSource
from .runs import Whitening


@dataclass(frozen=True)
class Fingerprint:
    """What must be equal for factors to be merged.

    Attributes:
        robot: Name of the robot; for reading only, two names of one geometry do mix.
        geometry: SHA-256 of the kinematic tree: parents, placements, axes, kinds, mimics, gravity, couplings.
        unknowns: Effects and regrouping behind the column names, as text and SHA-256.
        filter: What samples went through, as text.
        units: Torque kinds and the units of their rows.
    """

    robot: str
    geometry: str
    unknowns: str
    filter: str
    units: str


def fingerprint_of(equations: Equations, resolved: ResolvedPreparation) -> Fingerprint:
    """Return the fingerprint of rows."""
    robot = equations.model.robot
    return Fingerprint(robot.name, geometry_hash(robot), _unknowns(equations), resolved.filter_text, _units(equations))


def check_same(first: Fingerprint, other: Fingerprint) -> None:
    """Raise an ObservationError that says what differs, with both values."""
    for field in fields(Fingerprint):
        ours, theirs = getattr(first, field.name), getattr(other, field.name)
        if field.name != "robot" and ours != theirs:
            raise ObservationError(
                f"observations of different {field.name} cannot be merged: '{_short(ours)}' ({first.robot}) and "
                f"'{_short(theirs)}' ({other.robot}); reduce the recordings again with one robot, model and preparation"
            )


def _short(text: str) -> str:
    return text[:12] if len(text) == 64 and " " not in text else text


def geometry_hash(robot: Robot) -> str:
    """Return the SHA-256 of what moves how: not of inertias, limits or known values."""
    lines = [f"gravity {_numbers(np.array(robot.gravity))}", f"payload on {payload_link(robot)}"]
    for body in robot.bodies:
        rotation, translation = transform_from_placement(body.placement)
        lines.append(
            f"{body.number} {body.parent} {body.joint.name} {body.joint.kind} {_numbers(np.array(body.joint.axis))} "
            f"{_numbers(rotation)} {_numbers(translation)}"
        )
    follow, shift = robot.coupling()
    lines += [_numbers(follow), _numbers(shift), _numbers(robot.motor_coupling())]
    # Torques of balancers are subtracted from what was measured: rows with another balancer are not the same.
    number_of = {body.joint.name: body.number for body in robot.bodies}
    lines += [f"{one!r} {robot.values[f'Sb{number_of[one.joint]}']!r}" for one in robot.balancers]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _numbers(values: np.ndarray) -> str:
    """Return numbers as text, rounded where two ways to compute the same arm may differ."""
    return " ".join(f"{value:.9g}" for value in (np.round(values, 10) + 0.0).ravel())


@lru_cache(maxsize=8)
def _unknowns(equations: Equations) -> str:
    """Return what the columns mean: those of the arm alone, so that rows without and with payload mix."""
    model, base = equations.model, equations.base
    is_arm = np.array([parameter.effect != "payload" for parameter in model.parameters])
    own = [k for k, column in enumerate(base.base_columns) if is_arm[column]]
    regrouping = base.regrouping[own][:, is_arm]
    # In rows of a loaded arm alone, the last links' parameters hold the payload.
    payload = "regrouped" if model.payload == "loaded" else "apart"
    digest = hashlib.sha256(_numbers(np.round(regrouping, 6)).encode()).hexdigest()[:12]
    effects = " ".join(model.chosen_effects)
    constants = _constants(model)
    return f"{effects}; payload {payload}; sign width {model.sign_width:g}; regrouping {digest}{constants}"


def _constants(model: Model) -> str:
    """Return the constants on which columns of friction depend, as text; empty if there are none."""
    effects = [EFFECTS[name] for name in model.effects]
    friction, found = model.friction, ""
    for key in ("dahl", "stribeck"):
        used = [getattr(friction, key)[one.element] for one in effects if one.law == key]
        found += f"; {key} {_numbers(np.array(used))}" if used else ""
    if any(one.needs_inertias for one in effects):
        known = friction.inertias or model.robot.parameters
        # A payload's are left out: rows without and with it, or with another, mix.
        lines = [f"{name} {known[name]:.9g}" for name in sorted(known) if name not in PAYLOAD_NAMES]
        found += f"; inertias {hashlib.sha256(' '.join(lines).encode()).hexdigest()[:12]}"
    return found


def _units(equations: Equations) -> str:
    units = {"revolute": "N m", "prismatic": "N"}
    robot = equations.model.robot
    return ", ".join(f"{kind} {joint} [{units[robot.joint(joint).kind]}]" for kind, joint in equations.kinds_joints)


@dataclass(frozen=True)
class RecordingInfo:
    """Which recording factors came from.

    Attributes:
        label: Its label.
        sha256: SHA-256 of its files, or of its arrays.
        payload: Name of the payload it carried, None if none.
        samples: Samples that became rows, before decimation.
    """

    label: str
    sha256: tuple[str, ...]
    payload: str | None
    samples: int


@dataclass(frozen=True, eq=False)
class Observations:
    """All that least squares needs of some recordings.

    Attributes:
        fingerprint: What must be equal for factors to be merged.
        factors: The factors, by recording, equation and block of time.
        recordings: The recordings they came from.
    """

    __repr__ = short_repr

    fingerprint: Fingerprint
    factors: tuple[Factor, ...]
    recordings: tuple[RecordingInfo, ...]


def reduce_rows(
    sources: Sequence[RowSource],
    whitening: Whitening | None = None,
    blocks: int = 20,
    threads: int = 1,
    progress: Progress = silent,
) -> Observations:
    """Reduce the rows of recordings to factors, one for each recording, equation and block of time.

    Args:
        sources: The rows of each recording.
        whitening: How rows are whitened; not at all by default.
        blocks: Blocks of time of each recording; between this many and twice as many come out.
        threads: Threads that share the recordings, or the equations of a single one; the result is the same.
        progress: Progress callback, counting recordings.

    Raises:
        ObservationError: If there is nothing to reduce, a label or a recording comes twice, or rows do not belong
            together.
    """
    _check_sources(sources, blocks, threads)
    fingerprints = [fingerprint_of(source.equations, source.resolved) for source in sources]
    for other in fingerprints[1:]:
        check_same(fingerprints[0], other)
    factors = _all_factors(sources, whitening, blocks, threads, progress)
    recordings = tuple(RecordingInfo(s.label, s.sha256, s.payload, s.samples) for s in sources)
    _check_distinct(recordings)
    return Observations(fingerprints[0], factors, recordings)


def _check_sources(sources: Sequence[RowSource], blocks: int, threads: int) -> None:
    if not sources:
        raise ObservationError("no recording is left to reduce; give at least one")
    for word, value in (("blocks", blocks), ("threads", threads)):
        if int(value) != value or value < 1:
            raise ObservationError(f"{word}: got {value}, allowed are whole numbers from 1 on")


def _all_factors(
    sources: Sequence[RowSource], whitening: Whitening | None, blocks: int, threads: int, progress: Progress
) -> tuple[Factor, ...]:
    lock = threading.Lock()

    def report() -> None:
        with lock:
            progress(sum(source.read for source in sources), len(sources))

    if threads == 1:
        parts = [reduced_source(source, whitening, blocks, None, report) for source in sources]
    else:
        with ThreadPoolExecutor(threads, "steelyard-reduce") as pool:
            if len(sources) == 1:
                parts = [reduced_source(sources[0], whitening, blocks, pool, report)]
            else:
                parts = list(pool.map(lambda source: reduced_source(source, whitening, blocks, None, report), sources))
    return tuple(factor for part in parts for factor in part)


def merge_observations(*observations: Observations) -> Observations:
    """Return observations together, factor by factor.

    Raises:
        ObservationError: If geometry, unknowns, filter or units differ, or a recording or a label comes twice.
    """
    if not observations:
        raise ObservationError("no observations are given; at least one is needed")
    for other in observations[1:]:
        check_same(observations[0].fingerprint, other.fingerprint)
    recordings = tuple(info for part in observations for info in part.recordings)
    _check_distinct(recordings)
    factors = tuple(factor for part in observations for factor in part.factors)
    return Observations(observations[0].fingerprint, factors, recordings)


def _check_distinct(recordings: Sequence[RecordingInfo]) -> None:
    labels: set[str] = set()
    label_of: dict[tuple[str, ...], str] = {}
    for info in recordings:
        content = tuple(sorted(info.sha256))
        if any(content) and content in label_of:
            raise ObservationError(
                f"recordings '{label_of[content]}' and '{info.label}' are the same data (SHA-256 {content[0][:9]}...); "
                "each counts once, leave one away"
            )
        if info.label in labels:
            raise ObservationError(f"two recordings have the label '{info.label}'; give each its own")
        labels.add(info.label)
        label_of[content] = info.label


SCHEMA = 1

_BROKEN = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


def save_observations(path: str | os.PathLike[str], observations: Observations) -> None:
    """Write observations to a file; a kill leaves the old file or the new one."""
    columns = list(dict.fromkeys(factor.columns for factor in observations.factors))
    place = {names: k for k, names in enumerate(columns)}
    document = {
        "schema": SCHEMA,
        "fingerprint": asdict(observations.fingerprint),
        "recordings": [asdict(info) for info in observations.recordings],
        "columns": columns,
        "factors": [[f.recording, f.kind, f.joint, f.block, place[f.columns], f.rows] for f in observations.factors],
    }
    triangles = [factor.triangle[np.triu_indices(len(factor.triangle))] for factor in observations.factors]
    with opened_aside(Path(path)) as file:
        np.savez(file, document=np.array(json.dumps(document)), triangles=np.concatenate([np.empty(0), *triangles]))


def load_observations(path: str | os.PathLike[str]) -> Observations:
    """Read observations from a file.

    Raises:
        ObservationError: If the file is missing, broken, or not one of observations.
    """
    try:
        arrays = read_arrays(Path(path))
        document, numbers = json.loads(str(arrays["document"])), arrays["triangles"]
        if document["schema"] != SCHEMA:
            raise ObservationError(
                f"'{path}' is of schema {document['schema']}, this version reads {SCHEMA}; reduce the recordings again"
            )
        return _observations(document, numbers)
    except ArchiveError as error:
        raise ObservationError(f"cannot read observations '{path}': {error}; reduce the recordings again") from error
    except _BROKEN as error:
        raise ObservationError(
            f"'{path}' does not hold observations, or is damaged ({type(error).__name__}); reduce the recordings again"
        ) from error


def _observations(document: dict[str, Any], numbers: np.ndarray) -> Observations:
    columns = [tuple(str(name) for name in names) for names in document["columns"]]
    factors, first = [], 0
    for recording, kind, joint, block, place, rows in document["factors"]:
        size = len(columns[place]) + 1
        last = first + size * (size + 1) // 2
        triangle = np.zeros((size, size))
        triangle[np.triu_indices(size)] = numbers[first:last]
        triangle.setflags(write=False)
        factors.append(Factor(recording, kind, joint, int(block), columns[place], triangle, int(rows)))
        first = last
    if first != len(numbers) or not np.isfinite(numbers).all():
        raise ValueError("triangles do not fit")
    recordings = tuple(RecordingInfo(**{**part, "sha256": tuple(part["sha256"])}) for part in document["recordings"])
    return Observations(Fingerprint(**document["fingerprint"]), tuple(factors), recordings)
