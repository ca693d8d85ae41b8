"""Trees of datasets, as HDF5 and MAT files hold them: which of them are the columns of one recording."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..errors import TableError, nearest_match, one_line
from ..verdict import first_named
from .table import check_width, expanded_names, samples_last

WHOLE_FILE = "/"
"""As a group: all of the file, without the question whether it holds several recordings."""
_LEAST_SAMPLES = 10
_LEAST_PART = 0.1
"""Datasets of fewer samples than this part of the longest are no other recording."""
_SHOWN = 40


@dataclass(frozen=True)
class Dataset:
    """A dataset that may be columns.

    Attributes:
        path: Its groups and name, joined by ``/``.
        shape: Lengths of its axes.
        size: Bytes of an entry.
        text: Whether it holds texts.
        fields: Numeric fields of a compound dataset with their widths, 0 for a single number.
        chunks: Lengths of the axes of the pieces in which it is packed; empty if it is not.
    """

    path: str
    shape: tuple[int, ...]
    size: int
    text: bool
    fields: tuple[tuple[str, int], ...]
    chunks: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where a column is: dataset, field (None if not compound), axis of the samples and place across it."""

    dataset: Dataset
    field: str | None
    axis: int
    across: int


@dataclass(frozen=True)
class SampledColumns:
    """The columns of a recording.

    Attributes:
        places: Where each column is, by name.
        texts: Datasets of texts that are as long, by name.
        samples: Number of samples.
        remark: What is left out; empty if nothing is.
        deep: Which datasets have three and more dimensions, and what to do about it; empty if none has.
    """

    places: Mapping[str, Place]
    texts: Mapping[str, Dataset]
    samples: int
    remark: str
    deep: str = ""


@dataclass(frozen=True)
class DatasetTree:
    """All that may be columns in a file.

    Attributes:
        path: What messages call the file.
        datasets: The datasets; those of texts have one dimension.
        groups: Paths of the groups.
        skipped: How many objects are left out by reason.
        dotted: Whether names are joined by points instead of slashes.
        reversed_axes: Whether the axes of arrays are in reverse order.
        deep: Shapes of datasets of three and more dimensions, which are no columns, by path.
    """

    path: str
    datasets: Sequence[Dataset]
    groups: Sequence[str]
    skipped: Mapping[str, int]
    dotted: bool = False
    reversed_axes: bool = False
    deep: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def sampled_columns(tree: DatasetTree, group: str | None) -> SampledColumns:
    """Return the datasets of a file that are as long as the longest axis.

    Args:
        tree: All datasets.
        group: The group to read; None for the file, if it holds one recording.
    """
    chosen, within = _in_group(tree, group)
    numeric = [dataset for dataset in chosen if not dataset.text]
    if not numeric:
        deep = _deep_text(tree)
        found = f"there are no columns in it; {deep}" if deep else "there are no numbers in it"
        raise TableError(f"{tree.path}: {found}; datasets of samples are expected")
    if group != WHOLE_FILE:
        _refuse_several(tree, numeric)
    samples = max(max(dataset.shape) for dataset in numeric)
    places: dict[str, Place] = {}
    for dataset in numeric:
        if samples in dataset.shape:
            places |= _places(tree, dataset, samples, within)
            check_width(len(places), tree.path)
    texts = {_name(tree, d.path, within): d for d in chosen if d.text and d.shape == (samples,)}
    other = [_name(tree, d.path, within)[:_SHOWN] for d in numeric if samples not in d.shape]
    return SampledColumns(places, texts, samples, _remark(other, tree.skipped, samples), _deep_text(tree))


def _in_group(tree: DatasetTree, group: str | None) -> tuple[list[Dataset], str]:
    """Return the datasets of the chosen group (or the chosen compound dataset), and the path they are named from."""
    within = (group or "").replace("." if tree.dotted else "/", "/").strip("/")
    if not within:
        return list(tree.datasets), ""
    chosen = [one for one in tree.datasets if one.path == within or one.path.startswith(within + "/")]
    if not chosen:
        known = [name[:_SHOWN] for name in tree.groups]
        listed = f"groups: {first_named(known)}" if known else "it has none"
        raise TableError(f"{tree.path}: no group '{within}' with datasets; {listed}{nearest_match(within, known)}")
    return chosen, within


def _refuse_several(tree: DatasetTree, datasets: Sequence[Dataset]) -> None:
    """Refuse a file with several recordings: groups side by side that differ in samples, or hold the same names."""
    by_group = _side_by_side(datasets)
    lengths = {group: max(max(one.shape) for one in inside) for group, inside in by_group.items()}
    plausible = [group for group, length in lengths.items() if _width(by_group[group], length) > 1]
    names = [{one.path.removeprefix(group) for one in by_group[group]} for group in plausible]
    same = any(first == second for first, second in pairwise(names))
    if len({lengths[group] for group in plausible}) > 1 or same:
        shown = {group: _name(tree, group, "")[:_SHOWN] for group in plausible}
        listed = first_named([f"{shown[group]} ({lengths[group]} samples)" for group in plausible])
        raise TableError(
            f'{tree.path}: holds several recordings: {listed}; choose one with group = "{shown[plausible[0]]}" in '
            f'[recording] (init: --group), or all of the file with group = "{WHOLE_FILE}"'
        )


def _side_by_side(datasets: Sequence[Dataset]) -> dict[str, list[Dataset]]:
    """Return long datasets by the groups in which their paths part; none where one is beside these groups."""
    least = max(_LEAST_SAMPLES, _LEAST_PART * max(max(dataset.shape) for dataset in datasets))
    long = [dataset for dataset in datasets if max(dataset.shape) >= least]
    parts = [dataset.path.split("/")[:-1] for dataset in long]
    common = 0
    while parts and all(groups[common : common + 1] == parts[0][common : common + 1] != [] for groups in parts):
        common += 1
    if any(len(groups) == common for groups in parts):
        return {}
    by_group: dict[str, list[Dataset]] = {}
    for dataset, groups in zip(long, parts, strict=True):
        by_group.setdefault("/".join(groups[: common + 1]), []).append(dataset)
    return by_group


def _width(datasets: Sequence[Dataset], length: int) -> int:
    """Return the number of columns that datasets of a number of samples make."""
    fitting = [dataset for dataset in datasets if length in dataset.shape]
    return sum(len(dataset.fields) or math.prod(dataset.shape) // length for dataset in fitting)


def _places(tree: DatasetTree, dataset: Dataset, samples: int, within: str) -> dict[str, Place]:
    name = _name(tree, dataset.path, within)
    if dataset.fields:
        found = {}
        for field, width in dataset.fields if len(dataset.shape) == 1 else ():
            check_width(width, tree.path)
            own = _printable(field if dataset.path == within else f"{name}/{field}")
            names = expanded_names(own, width) if width > 1 else [own]
            found |= {one: Place(dataset, field, 0, place) for place, one in enumerate(names)}
        return found
    if len(dataset.shape) == 1:
        return {name: Place(dataset, None, 0, 0)}
    shape = dataset.shape[::-1] if tree.reversed_axes else dataset.shape
    last = samples_last(shape, samples, None) != tree.reversed_axes
    width = dataset.shape[0] if last else dataset.shape[1]
    check_width(width, tree.path)
    names = expanded_names(name, width) if width > 1 else [name]
    return {one: Place(dataset, None, int(last), place) for place, one in enumerate(names)}


def _name(tree: DatasetTree, path: str, within: str) -> str:
    name = path.removeprefix(within).strip("/") or path.rpartition("/")[2]
    return _printable(name.replace("/", ".") if tree.dotted else name)


def _printable(name: str) -> str:
    # A damaged name can hold halves of letters that nothing can print.
    return name.encode("utf-8", "replace").decode()


def _deep_text(tree: DatasetTree) -> str:
    """Return which datasets have too many dimensions for columns, and what to do about it."""
    if not tree.deep:
        return ""
    shapes = [f"{_name(tree, path, '')[:_SHOWN]} ({' x '.join(map(str, tree.deep[path]))})" for path in tree.deep]
    return one_line(
        f"of three and more dimensions, and so left out: {first_named(shapes, most=4)}; if these are episodes of one "
        "length, write each to a file of its own (samples x joints)"
    )


def _remark(other: list[str], skipped: Mapping[str, int], samples: int) -> str:
    parts = [f"{len(other)} of other lengths than {samples} ({first_named(other, most=4)})"] if other else []
    parts += [f"{count} {why}" for why, count in skipped.items() if why != "links"]
    text = f"datasets left out: {'; '.join(parts)}" if parts else ""
    links = f"{skipped['links']} links are not followed" if skipped.get("links") else ""
    return one_line("; ".join(part for part in (text, links) if part))
