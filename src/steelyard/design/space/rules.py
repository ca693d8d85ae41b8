"""Rules on where the arm may be: a clearance for each posture, its gradient, and how fast it can change.

A rule sees the places of a few points of the arm. Its clearance is zero or more where it is kept. Between instants
nothing is known but how far each point can have moved: ``slack`` turns those distances into the most by which the
clearance can have changed, so that a certificate can decide an interval from its middle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from ...errors import DesignError, nearest_match
from .regions import Region, Vector3

Keep = Literal["keep_in", "keep_out"]
KEEPS = ("keep_in", "keep_out")


@final
@dataclass(frozen=True)
class ArmPoint:
    """A point fixed to a link.

    Attributes:
        link: Name of the link.
        offset: The point in the link's frame [m].
    """

    link: str
    offset: Vector3 = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not (len(self.offset) == 3 and np.isfinite(self.offset).all()):
            raise DesignError(f"point on link '{self.link}' is {self.offset}; three finite numbers are expected")


class SpaceRule(ABC):
    """A rule on the places of a few points of the arm.

    Attributes:
        name: What messages call it.
        points: The k points it sees.
    """

    name: str

    @property
    @abstractmethod
    def points(self) -> tuple[ArmPoint, ...]:
        """The points of the arm on which the rule depends."""

    @abstractmethod
    def clearance(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the clearance [m] (N,), >= 0 where the rule is kept, and its gradient by the places (k, 3, N).

        Where the clearance has a kink, the gradient is that of one of its sides.

        Args:
            places: The points in the base frame (k, 3, N) [m].
        """

    @abstractmethod
    def slack(self, radii: np.ndarray) -> np.ndarray:
        """Return the most by which the clearance changes (N,) if each point moves by at most its radius.

        Args:
            radii: Distances (k, N) [m].
        """


@final
@dataclass(frozen=True)
class PointRule(SpaceRule):
    """One point of the arm stays inside a region, or outside of it.

    With the face functions f of the region, negative inside, the clearance is ``min(-f) - margin`` for ``keep_in`` and
    ``max(f) - margin`` for ``keep_out``.

    Attributes:
        name: What messages call it.
        point: The point of the arm.
        region: Where it must be, or must not be.
        keep: ``keep_in`` or ``keep_out``.
        margin: Distance from the region's boundary that is kept besides [m].
    """

    name: str
    point: ArmPoint
    region: Region
    keep: Keep = "keep_in"
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.keep not in KEEPS:
            raise DesignError(
                f"rule '{self.name}': keep is '{self.keep}'; allowed: {', '.join(KEEPS)}"
                f"{nearest_match(str(self.keep), KEEPS)}"
            )
        check_margin(self.margin, self.name)

    @property
    def points(self) -> tuple[ArmPoint, ...]:
        """The one point."""
        return (self.point,)

    def clearance(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the clearance (N,) and its gradient (1, 3, N) for places (1, 3, N)."""
        faces, gradients = self.region.faces(np.asarray(places, dtype=float)[0])
        largest = faces.argmax(axis=0)  # the face that decides both ways: min(-f) = -max(f)
        value = np.take_along_axis(faces, largest[None], axis=0)[0]
        gradient = np.take_along_axis(gradients, largest[None, None], axis=0)
        sign = 1.0 if self.keep == "keep_out" else -1.0
        return sign * value - self.margin, sign * gradient

    def slack(self, radii: np.ndarray) -> np.ndarray:
        """Return the point's own radius (N,): face functions change by no more than the point moves."""
        return np.asarray(radii, dtype=float)[0]


def check_margin(margin: float, name: str) -> None:
    """Refuse a margin that is negative or not finite."""
    if not (np.isfinite(margin) and margin >= 0):
        raise DesignError(f"rule '{name}': margin is {margin:g} m; allowed is 0 or more")
