"""Objectives of the search: one criterion, or the attainment of several goals at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, final

import numpy as np

from ..errors import DesignError
from .criteria import NEED_PRIOR, Criterion, Weighting
from .information import Unknowns

GOAL_SHARPNESS = 40.0
"""Goals are compared in parts of a goal, a few hundredths apart: their maximum is sharper than that of eigenvalues."""


class View(Protocol):
    """Information and torques of a motion on the grid."""

    def information(self, weighting: Weighting) -> np.ndarray:
        """Return the information matrix (c, c), with that of earlier recordings."""
        ...

    def torques(self) -> np.ndarray:
        """Return the torques (n, N) of the run with payload, or of the only run."""
        ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """Value and gradient of an objective.

    Attributes:
        value: What is minimised.
        by_information: Gradient by each information matrix (c, c).
        by_torque: Gradient by the torques (n, N); None if it does not depend on them.
    """

    value: float
    by_information: Mapping[Weighting, np.ndarray] = field(default_factory=dict)
    by_torque: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """A function to minimise. Subclasses are final."""

    @abstractmethod
    def smooth(self, view: View, sharpness: float) -> Outcome:
        """Return the smooth value with its gradient."""

    @abstractmethod
    def exact(self, view: View) -> float:
        """Return the reported value."""


@final
@dataclass(frozen=True, eq=False)
class ByCriterion(Objective):
    """One criterion of the information matrix.

    Attributes:
        criterion: The criterion.
        scale: What the columns are multiplied by (c,); zero leaves one out.
    """

    criterion: Criterion
    scale: np.ndarray

    def smooth(self, view: View, sharpness: float) -> Outcome:
        """Return the criterion's smooth logarithm."""
        whole = view.information(self.criterion.weighting)
        value, by_scaled = self.criterion.log_value(self._scaled(whole), sharpness)
        if self._is_plain:
            return Outcome(value, {self.criterion.weighting: by_scaled})
        there, products = self._there
        gradient = np.zeros_like(whole)
        gradient[there] = by_scaled * products
        return Outcome(value, {self.criterion.weighting: gradient})

    def exact(self, view: View) -> float:
        """Return the criterion itself."""
        return self.criterion.exact(self._scaled(view.information(self.criterion.weighting)))

    def _scaled(self, information: np.ndarray) -> np.ndarray:
        if self._is_plain:
            return information
        there, products = self._there
        return information[there] * products

    @cached_property
    def _is_plain(self) -> bool:
        return bool((self.scale == 1.0).all())

    @cached_property
    def _there(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Where the columns that count lie in the matrix, and the products of their scales."""
        there = np.flatnonzero(self.scale)
        return np.ix_(there, there), np.outer(self.scale[there], self.scale[there])


@final
@dataclass(frozen=True, eq=False)
class Goal:
    """A figure and what is wanted of it.

    Attributes:
        name: Of the figure.
        wanted: The goal, above 0.
        criterion: The criterion, if it is one.
        joint: Row of the joint, if the figure is ``mean(limit - |tau|)``.
        limit: That joint's torque limit.
    """

    name: str
    wanted: float
    criterion: ByCriterion | None = None
    joint: int = 0
    limit: float = 0.0

    def figure(self, view: View) -> float:
        """Return the figure itself."""
        if self.criterion is not None:
            return self.criterion.exact(view)
        return float(self.limit - np.abs(view.torques()[self.joint]).mean())


@final
@dataclass(frozen=True, eq=False)
class GoalAttainment(Objective):
    """``min gamma`` with ``F_i - gamma |goal_i| <= goal_i``: the largest relative miss (P2.4, optimisation B).

    Attributes:
        goals: The goals.
    """

    goals: tuple[Goal, ...]

    def smooth(self, view: View, sharpness: float) -> Outcome:
        """Return the smooth largest relative miss."""
        parts = [self._miss(goal, view, sharpness) for goal in self.goals]
        misses = np.array([part.value for part in parts])
        steep = GOAL_SHARPNESS * sharpness
        shares = np.exp(steep * (misses - misses.max()))
        value = float(misses.max() + np.log(shares.sum()) / steep)
        shares = shares / shares.sum()
        by_information: dict[Weighting, np.ndarray] = {}
        by_torque = None
        for share, part in zip(shares, parts, strict=True):
            for weighting, gradient in part.by_information.items():
                by_information[weighting] = by_information.get(weighting, 0.0) + share * gradient
            if part.by_torque is not None:
                by_torque = share * part.by_torque + (0.0 if by_torque is None else by_torque)
        return Outcome(value, by_information, by_torque)

    def exact(self, view: View) -> float:
        """Return gamma."""
        return max((goal.figure(view) - goal.wanted) / goal.wanted for goal in self.goals)

    def _miss(self, goal: Goal, view: View, sharpness: float) -> Outcome:
        if goal.criterion is not None:
            log = goal.criterion.smooth(view, sharpness)
            size = np.exp(log.value) / goal.wanted
            return Outcome(float(size - 1.0), {w: size * g for w, g in log.by_information.items()})
        torques = view.torques()
        seeds = np.zeros_like(torques)
        seeds[goal.joint] = -np.sign(torques[goal.joint]) / (torques.shape[1] * goal.wanted)
        return Outcome((goal.figure(view) - goal.wanted) / goal.wanted, {}, seeds)


def by_criterion(chosen: Criterion, unknowns: Unknowns) -> ByCriterion:
    """Return the objective of one criterion, columns scaled by the parameters where it is about their sizes.

    Raises:
        DesignError: If it needs sizes of parameters and none are known, or unweighted rows although there is
            information of earlier recordings.
    """
    if chosen.weighting == "none" and unknowns.earlier is not None:
        raise DesignError(
            f"criterion '{chosen.name}' needs unweighted rows, earlier recordings are known by their information "
            "only; choose condition_weighted or d"
        )
    if chosen.name not in NEED_PRIOR:
        return ByCriterion(chosen, np.ones(len(unknowns.columns)))
    sizes = np.abs(np.nan_to_num(unknowns.values))
    if not sizes.any():
        raise DesignError(
            f"criterion '{chosen.name}' compares sigmas with the parameters' sizes, and none are known; give a robot "
            "with values, or a run by --after"
        )
    return ByCriterion(chosen, sizes)
