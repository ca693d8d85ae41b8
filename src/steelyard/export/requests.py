"""What is asked of an export, checked before anything is computed: formats, options, and verdicts of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ExportError, nearest_match
from ..identification.consistent import WORSE
from ..run import LARGEST_VALUE
from ..verdict import deciding_reason
from . import EXPORTS
from .payload_formats import PAYLOAD_FORMATS

WORST_ERROR = 5.0
"""An arm with a larger error on unseen motion [%], and ``WORSE`` times that of free parameters, is refused."""

SAMPLED = ("urdf", "mjcf")
"""Formats in which draws from the posterior are written."""

_FLAGS = {
    "side": "--side", "parameters": "parameters", "new_file": "--new-file", "frame": "--payload-frame",
    "inertia": "--without-inertia", "tool": "--tool",
}  # fmt: skip
"""Options of the formats, as messages name them."""


def format_flag(name: str) -> str:
    """Return the flag of a format."""
    return "--parameters-json" if name == "json" else f"--{name}"


def checked_formats(formats: Sequence[str] | None, payload: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the formats, each once.

    Raises:
        ExportError: If it is no list of known names, or nothing is to be written.
    """
    if formats is None:
        return default
    if isinstance(formats, str):
        raise ExportError(f"formats: got '{formats}', allowed is a list of names, such as ['urdf']")
    for name in formats:
        if name not in EXPORTS:
            raise ExportError(f"format '{name}'; allowed: {', '.join(EXPORTS)}{nearest_match(name, EXPORTS)}")
    if not formats and payload is None:
        raise ExportError(f"no format is given; allowed: {', '.join(EXPORTS)}, or payload={'|'.join(PAYLOAD_FORMATS)}")
    return tuple(dict.fromkeys(formats))


def check_options(options: Mapping[str, Any], formats: Sequence[str], payload: str | None) -> None:
    """Refuse options that no format knows, and those without effect on what is written.

    Raises:
        ExportError: If there is such an option, or the format of the payload is unknown.
    """
    if payload is not None and payload not in PAYLOAD_FORMATS:
        allowed = ", ".join(PAYLOAD_FORMATS)
        raise ExportError(f"payload format '{payload}'; allowed: {allowed}{nearest_match(payload, PAYLOAD_FORMATS)}")
    for name, value in options.items():
        if name not in _FLAGS:
            raise ExportError(f"option '{name}'; allowed: {', '.join(_FLAGS)}{nearest_match(name, _FLAGS)}")
        users = list(_users(name))
        written = [*(format_flag(one) for one in formats), *([f"--payload {payload}"] if payload else [])]
        if not set(users) & set(written) and not (name == "inertia" and value):
            raise ExportError(
                f"{_FLAGS[name]} has no effect on {' '.join(written) or 'this run'}: it is for {', '.join(users)}; add "
                "one of these, or leave it out"
            )


def _users(option: str) -> Iterator[str]:
    """Yield the formats that an option is for, as flags."""
    yield from (format_flag(one.name) for one in EXPORTS.values() if option in one.options)
    for one in PAYLOAD_FORMATS.values():
        if option == "frame" or (option == "tool" and one.name == "kuka") or (
            option == "inertia" and not one.needs_inertia
        ):  # fmt: skip
            yield f"--payload {one.name}"


def check_samples(samples: int, seed: int | None, formats: Sequence[str]) -> None:
    """Refuse a number of samples that is none, formats that have no samples, and a seed of nothing.

    Raises:
        ExportError: If there is one of these.
    """
    if samples < 0:
        raise ExportError(f"--samples: got {samples}, allowed is 1 or more, or 0 for none")
    if samples and not set(formats) & set(SAMPLED):
        raise ExportError("--samples are written as URDF or MJCF; add --urdf or --mjcf")
    if seed is not None and not samples:
        raise ExportError("--seed is that of --samples, and there are none; add --samples N, or leave it out")


def refuse_without_effect(command: str, **given: object) -> None:
    """Refuse what a run of this command cannot use.

    Raises:
        ExportError: If something is given.
    """
    for name, value in given.items():
        if value:
            raise ExportError(
                f"--{name} has no effect on a run of {command}: it is for runs of identify; leave it out, or give such "
                "a run"
            )


def check_run(content: Mapping[str, Any], folder: Path) -> None:
    """Refuse a run of identify that lacks what exports read of it: it was written by something else.

    Raises:
        ExportError: If it does.
    """
    rows, verdict, arm = (content.get(key) for key in ("standard_parameters", "verdict", "consistency"))
    texts = {"reasons": ("text", "about"), "criteria": ("name", "question")}
    whole = (
        isinstance(verdict, dict)
        and isinstance(verdict.get("grade"), str)
        and all(_are_rows(verdict.get(key), names) for key, names in texts.items())
        and all("grade" in row for row in verdict["criteria"])  # null where a row was not judged
        and (rows is None or (_are_standard(rows) and _is_arm(arm, content.get("validation"))))
    )
    if not whole:
        raise ExportError(f"'{folder}' has a verdict or standard parameters that cannot be read; run identify again")


def _are_rows(rows: Any, texts: Sequence[str], numbers: Sequence[str] = ()) -> bool:
    """Return whether this is a list of rows with these texts and numbers, which may be null."""
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(isinstance(row.get(key), str) for key in texts)
        and all(key in row and _is_number(row[key]) for key in numbers)
        for row in rows
    )


def _are_standard(rows: Any) -> bool:
    """Return whether these are rows of standard parameters."""
    return _are_rows(rows, ("name", "source"), ("value", "sigma")) and all(row["value"] is not None for row in rows)


def _is_arm(found: Any, unseen: Any) -> bool:
    """Return whether this describes how a consistent arm was found, and errors on unseen motion to compare it with."""
    if (
        not isinstance(found, dict)
        or not found.keys() >= {"prior", "validation"}
        or not all(
            isinstance(found.get(key), list) and all(isinstance(one, str) for one in found[key])
            for key in ("active_bounds", "links_at_edge")
        )
    ):
        return False
    prior, error = found["prior"], found["validation"]
    if prior is not None and not (_are_rows([prior], ("origin",), ("deviation",)) and prior["deviation"] is not None):
        return False
    free = ("relative_error_percent_of_all_parameters",)
    return error is None or (_are_rows([error], (), ("relative_error_percent",)) and _are_rows([unseen], (), free))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and abs(value) < LARGEST_VALUE)


CAUTIONS = ("mass", "prior", "consistency")
"""What reasons of a verdict are about that speak against the arm as other programs load it."""


def arm_cautions(content: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a run's verdict that speak against its consistent arm, a sentence each."""
    found = [f"caution: {one['text']}" for one in content["verdict"]["reasons"] if one["about"] in CAUTIONS]
    arm = content.get("consistency")
    if arm and arm["links_at_edge"] and not arm["prior"]:
        links = ", ".join(arm["links_at_edge"])
        found.append(
            f"caution: at the edge of what a body can be: {links}; what the data do not show of them (mass, centre, "
            "inertia) is a guess, and with it torques under another gravity"
        )
    return found


def refuse_poor(verdict: Mapping[str, Any], what: str, command: str, *, force: bool) -> list[str]:
    """Refuse a result whose verdict is poor: other programs would load it without its verdict.

    Args:
        verdict: The verdict, as JSON.
        what: What was judged.
        command: The command that finds it, for the remedy.
        force: Whether it is written all the same.

    Returns:
        A note on a result that is poor and forced.

    Raises:
        ExportError: If it is poor and not forced; the message has the reason that makes it so.
    """
    if verdict["grade"] != "poor":
        return []
    reason = deciding_reason(verdict)
    text = f"the verdict of {what} is poor{': ' if reason else ''}{reason}"
    if not force:
        raise ExportError(f"{text}; correct that and run {command} again, or write the files with --force")
    return [f"forced: {text}"]


def refuse_error(content: Mapping[str, Any], *, force: bool) -> list[str]:
    """Refuse an arm that predicts much worse than free parameters: bounds or a prior contradict the data.

    Returns:
        A note on an arm that does and is forced.

    Raises:
        ExportError: If it does and is not forced.
    """
    found = content.get("consistency")
    if not found or not found["validation"]:
        return []
    error = found["validation"]["relative_error_percent"]
    free = content["validation"]["relative_error_percent_of_all_parameters"]
    if error is None or free is None or error <= max(WORST_ERROR, WORSE * free):
        return []
    held = [*found["active_bounds"], *([found["prior"]["origin"]] if found["prior"] else [])]
    cause = f" ({'; '.join(held)})" if held else ""
    text = (
        f"the consistent arm predicts unseen motion to {error:.3g} %, free parameters to {free:.3g} %: bounds, prior "
        f"or model contradict the data{cause}"
    )
    if not force:
        raise ExportError(f"{text}; correct them and identify again, or write them with --force")
    return [f"forced: {text}"]
