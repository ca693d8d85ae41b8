"""Values that the authors of the real recordings published, beside ours of the same quantities.

A published sum of standard parameters is compared with the same sum of ours, whatever either side regroups: it is a sum
of base parameters if it is identifiable at all. Sigmas are those of the plain model with all its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.real_scoring import UR10E_GAINS
from steelyard.identification import SavedRun
from steelyard.model import BaseParameters
from steelyard.observe import Equations
from steelyard.robot import Robot, load_robot

ROUNDED = 0.01
"""Published coefficients have three digits: by how much a sum may miss the identifiable ones, relative to its size."""


@dataclass(frozen=True)
class PublishedValue:
    """A published value and ours.

    Attributes:
        name: What it is, in the names of the product where there is one.
        published: The authors' value.
        published_sigma: Its standard deviation; NaN if none was published.
        value: Ours.
        sigma: Its standard deviation.
    """

    name: str
    published: float
    published_sigma: float
    value: float
    sigma: float

    @property
    def sigmas_apart(self) -> float:
        """Difference in standard deviations of both together."""
        return (self.value - self.published) / float(np.hypot(self.sigma, np.nan_to_num(self.published_sigma)))


@dataclass(frozen=True)
class PublishedSum:
    """A published sum of standard parameters: the coefficient of each, and its value."""

    name: str
    coefficients: Mapping[str, float]
    value: float
    sigma: float = np.nan


def compared(sums: Iterator[PublishedSum], run: SavedRun, equations: Equations) -> tuple[PublishedValue, ...]:
    """Return ours beside every published sum that the data of a run determine."""
    names, base = equations.model.names, equations.base
    known = [k for k, one in enumerate(base.base) if one.column in run.estimate.columns]
    columns = [run.estimate.columns.index(base.base[k].column) for k in known]
    regrouping, found = base.regrouping[known], []
    for one in sums:
        if not set(one.coefficients) <= set(names):
            continue
        wanted = np.zeros(len(names))
        wanted[[names.index(name) for name in one.coefficients]] = list(one.coefficients.values())
        weights = np.linalg.lstsq(regrouping.T, wanted, rcond=None)[0]
        if np.linalg.norm(regrouping.T @ weights - wanted) > ROUNDED * np.linalg.norm(wanted):
            continue
        covariance = run.estimate.covariance[np.ix_(columns, columns)]
        value, sigma = weights @ run.estimate.values[columns], np.sqrt(weights @ covariance @ weights)
        found.append(PublishedValue(one.name, one.value, one.sigma, float(value), float(sigma)))
    return tuple(found)


def _numbers_and_text(line: str, count: int) -> tuple[str, list[float]]:
    """Return the text of a line and the numbers at its end."""
    words = re.sub(r"\s*×\s*10", "e", line.replace("\u2212", "-")).split()
    return " ".join(words[:-count]), [float(word) if word != "----" else np.nan for word in words[-count:]]


_TERM = re.compile(r"([+-]?)(\d+\.\d+)?(J\d[xyz]{2}|c\d[xyz]m\d|m\d)")
_BRACKET = re.compile(r"([+-]?\d+\.\d+)\(([^)]*)\)")


def _standard_sum(text: str) -> dict[str, float]:
    """Return the coefficients of a sum such as ``J2xx-J2yy +0.632c3z m3 +0.1067 (m3 +m4)``, by our names."""
    flat = re.sub(r"J([xyz]{2})(\d)", r"J\2\1", text.replace(" ", ""))
    flat = _BRACKET.sub(lambda found: "".join(f"{float(found[1]):+}{name}" for name in found[2].split("+")), flat)
    terms: dict[str, float] = {}
    for sign, size, symbol in _TERM.findall(flat):
        if symbol[0] == "J":
            name = f"{symbol[2:].upper()}{symbol[1]}"
        else:
            name = f"M{symbol[2].upper()}{symbol[1]}" if symbol[0] == "c" else f"M{symbol[1]}"
        terms[name] = terms.get(name, 0.0) + float(f"{sign}{size or 1}")
    return terms


FRANKA_FRICTION = {"fv": "Fvl", "fc": "Fcl", "fo": "offl"}


def panda_values(root: Path) -> Iterator[PublishedSum]:
    """Yield Table III of Gaz et al.: least squares on this very trajectory, sigmas in per cent."""
    lines = (root / "franka_panda_gaz" / "published_tables.txt").read_text(encoding="utf-8").splitlines()
    for line in lines[lines.index("TABLE III") + 1 : lines.index("TABLE IV")]:
        if line[:2] in FRANKA_FRICTION:
            text, (value, percent, _) = _numbers_and_text(line, 3)
            name = FRANKA_FRICTION[text[:2]] + text[3]
            yield PublishedSum(name, {name: 1.0}, value, abs(value) * percent / 100)
        else:
            text, (_, _, _, value, percent, _) = _numbers_and_text(line, 6)
            yield PublishedSum(text.replace(" ", ""), _standard_sum(text), value, abs(value) * percent / 100)


def tx40_values(root: Path) -> Iterator[PublishedSum]:
    """Yield the reference of FIGAROH's example."""
    text = (root / "staubli_tx40" / "TX40_config.yaml").read_text()
    for key, ours in {"fv": "Fvm", "fs": "Fcm", "Ia": "Ia", "offset": "offm"}.items():
        listed = re.search(rf"^\s*(?:- )?{key} : \[(.*)\]", text, re.MULTILINE)
        assert listed, key
        for joint, value in enumerate(listed[1].split(","), 1):
            yield PublishedSum(f"{ours}{joint}", {f"{ours}{joint}": 1.0}, float(value))
    for key, ours in {"Iam6": "Iac6", "fvm6": "Fvc6", "fsm6": "Fcc6"}.items():
        single = re.search(rf"{key} : ([\d.]+)", text)
        assert single, key
        yield PublishedSum(ours, {ours: 1.0}, float(single[1]))


def ur10e_values(root: Path) -> Iterator[PublishedSum]:
    """Yield the authors' friction, brought from their drive gains to those used here: currents were measured."""
    text = (root / "ur10e" / "ref" / "UR10E_parameters.txt").read_text(encoding="utf-8")
    rows = {name: np.array(re.split(r"\s+", numbers.strip()), dtype=float) for name, numbers in re.findall(
        r"^(\w+) = \[([^\]]*)\]", text, re.MULTILINE)}  # fmt: skip
    friction = rows["pi_frcn"].reshape(6, 3) * (UR10E_GAINS / rows["drvGains"])[:, None]
    for joint, values in enumerate(friction, 1):
        for name, value in zip(("Fvm", "Fcm", "offm"), values.tolist(), strict=True):
            yield PublishedSum(f"{name}{joint}", {f"{name}{joint}": 1.0}, value)


def _of_robot_file(robot: Robot, base: BaseParameters) -> Iterator[PublishedSum]:
    """Yield the base parameters of links as a robot file has them."""
    for one in base.base:
        if all(name in robot.parameters for name in one.regrouping):
            value = sum(part * robot.parameters[name] for name, part in one.regrouping.items())
            yield PublishedSum(one.name, one.regrouping, value)


def lwr4_values(root: Path, base: BaseParameters) -> Iterator[PublishedSum]:
    """Yield the base parameters of the arm that FloBaRoID's authors identified."""
    return _of_robot_file(load_robot(root / "kuka_lwr4" / "kuka_lwr4_identified.urdf"), base)


def airbot_values(root: Path, base: BaseParameters) -> Iterator[PublishedSum]:
    """Yield the base parameters of the vendor's file."""
    return _of_robot_file(load_robot(root / "airbot_play" / "airbot_play_v3_0_gripper.urdf"), base)


SOURCES: dict[str, tuple[str, Callable[[Path, BaseParameters], Iterator[PublishedSum]]]] = {
    "panda": ("Gaz et al., Table III, least squares on the whole trajectory", lambda root, _: panda_values(root)),
    "tx40": ("FIGAROH's TX40_config.yaml", lambda root, _: tx40_values(root)),
    "ur10e": ("UR10E_parameters.txt, friction at our drive gains", lambda root, _: ur10e_values(root)),
    "lwr4_2+3": ("kuka_lwr4_identified.urdf (FloBaRoID, 2017)", lwr4_values),
    "airbot": ("the vendor's URDF, nothing measured", airbot_values),
}
"""By case: where values come from, and a function of the data folder and base parameters that yields them."""
