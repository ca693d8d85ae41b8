"""Drive gains that were found, joint by joint, as plain data and as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..distributions import t_ppf
from ..plain_data import plain
from ..recording import DriveGains
from ..recording.gains import ASSUMED_SIGMA
from ..robot import Robot
from ..text import html_table, short_repr
from ..verdict import Reason, Verdict, verdict_to_json

KNOWN, WEAK = 0.03, ASSUMED_SIGMA
"""Relative sigmas up to which a gain is known, or weakly known; beyond, a published one is better."""


@dataclass(frozen=True, eq=False)
class FrictionModel:
    """Gains that one law of friction gives.

    Attributes:
        name: The law, in words.
        effects: Effects of the model.
        gains: The gains (n,).
        relative_sigma: Their relative sigmas from blocks of time (n,).
        cross_validation: Squared error of blocks predicted from the others, over that of the plain model.
    """

    __repr__ = short_repr

    name: str
    effects: tuple[str, ...]
    gains: np.ndarray
    relative_sigma: np.ndarray
    cross_validation: float


@dataclass(frozen=True, eq=False)
class GainsFound:
    """Gains with what they rest on.

    Attributes:
        gains: The gains with the covariance of their relative errors: of blocks of time and of friction models.
        nominal: The gains as given before; None for currents of which none were.
        models: What every law of friction gives; the chosen one has the smallest error of left-out blocks.
        chosen: Number of the chosen one.
        by_blocks: Relative sigmas from blocks of time (n,).
        by_models: Relative sigmas from the spread over laws of friction (n,).
        blocks: Blocks of time, recordings together.
        weight: Rms of the torque by which the payload's weight loads each joint (n,) [N m or N].
        mass: The known mass [kg].
        known: Names of the payload's parameters that were known.
        payload_link: The link that carries it.
        recordings: Labels of the recordings, and whether they carry the payload.
        verdict: Whether mass and centre can be what was given, and how many gains are known.
        robot: The arm.
    """

    __repr__ = short_repr

    gains: DriveGains
    nominal: DriveGains | None
    models: tuple[FrictionModel, ...]
    chosen: int
    by_blocks: np.ndarray
    by_models: np.ndarray
    blocks: int
    weight: np.ndarray
    mass: float
    known: tuple[str, ...]
    payload_link: str
    recordings: tuple[tuple[str, bool], ...]
    verdict: Verdict
    robot: Robot

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What a reader must know, with remedies: those of the verdict."""
        return self.verdict.reasons

    @property
    def grades(self) -> tuple[str, ...]:
        """``known``, ``weak`` or ``unknown``, joint by joint; an unknown one is the nominal gain.

        ``doubtful`` in place of known and weak where the verdict is poor: a sigma says how well gains agree with the
        given mass and centre, not whether these are right.
        """
        sigma, doubtful = np.hypot(self.by_blocks, self.by_models), self.verdict.grade == "poor"
        known, weak = ("doubtful", "doubtful") if doubtful else ("known", "weak")
        return tuple(known if one <= KNOWN else weak if one <= WEAK else "unknown" for one in sigma)

    @property
    def interval(self) -> np.ndarray:
        """Lower and upper ends of the 95 % intervals (n, 2)."""
        half = float(t_ppf(0.975, self.blocks - 1)) * self.gains.relative_sigma
        return self.gains.values[:, None] * np.exp(np.column_stack([-half, half]))

    def to_json(self) -> dict[str, Any]:
        """Return the gains as plain data."""
        gains, variance = self.gains, np.maximum(self.by_blocks**2 + self.by_models**2, 1e-300)
        rows = [
            {
                "joint": joint, "gain": gains.values[j], "sigma": gains.sigma[j],
                "relative_sigma_percent": 100 * gains.relative_sigma[j], "interval_95": self.interval[j],
                "share_of_friction_models": self.by_models[j] ** 2 / variance[j],
                "share_of_blocks": self.by_blocks[j] ** 2 / variance[j],
                "nominal": None if self.nominal is None else self.nominal.values[j],
                "payload_weight_rms": self.weight[j], "grade": self.grades[j],
            }
            for j, joint in enumerate(gains.joints)
        ]  # fmt: skip
        models = [
            {
                "name": one.name, "effects": list(one.effects), "gains": one.gains,
                "relative_sigma_percent": 100 * one.relative_sigma, "cross_validation": one.cross_validation,
                "chosen": number == self.chosen,
            }
            for number, one in enumerate(self.models)
        ]  # fmt: skip
        return plain(
            {
                "robot": self.robot.name, "kind": gains.kind, "unit": gains.unit, "joints": rows, "models": models,
                "relative_covariance": gains.covariance, "blocks": self.blocks, "mass": self.mass,
                "known": list(self.known), "payload_link": self.payload_link,
                "recordings": [{"label": label, "loaded": loaded} for label, loaded in self.recordings],
                "reasons": [{"text": one.text, "remedy": one.remedy} for one in self.reasons],
                "verdict": verdict_to_json(self.verdict),
            }
        )  # fmt: skip

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document."""
        from ..report import DataTable, Page, PageSection, page_html

        columns = ["joint", f"gain [{self.gains.unit}]", "sigma", "from", "to", "grade"]
        rows = [[*row[:3], *row[3], row[4]] for row in self._rows()]
        caption = (
            "Joint side, 95 % intervals. Sigmas are those of a jackknife over blocks of time and of the spread over "
            "laws of friction."
        )
        others = [[one.name, *map(float, one.gains), one.cross_validation] for one in self.models]
        compared = DataTable(
            "models", ["friction", *self.gains.joints, "left-out error"], others,
            "Gains by law of friction, and the squared error of left-out blocks over that of the plain model.",
        )  # fmt: skip
        text = f"From {len(self.recordings)} recordings, with a payload of {self.mass:.4g} kg."
        sections = [
            PageSection("The gains", [DataTable("gains", columns, rows, caption)], text),
            PageSection("Laws of friction", [compared], f"Chosen: {self.models[self.chosen].name}."),
        ]
        page = Page(f"Drive gains of {self.robot.name}", text, sections, self.verdict, provenance=provenance or {})
        return page_html(page)

    def _repr_html_(self) -> str:
        """Return the gains as notebooks show them."""
        rows = [[*row[:3], f"{row[3][0]:.4g} to {row[3][1]:.4g}", row[4]] for row in self._rows()]
        return html_table(("joint", f"gain [{self.gains.unit}]", "sigma", "95 %", "grade"), rows)

    def _rows(self) -> Iterator[tuple[str, float, float, list[float], str]]:
        gains, ends = self.gains, self.interval.tolist()
        for j, joint in enumerate(gains.joints):
            yield joint, float(gains.values[j]), float(gains.sigma[j]), ends[j], self.grades[j]
