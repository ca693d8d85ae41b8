"""Angles of robot files: those that mean a right angle become exactly one, so that zeros drop out."""

from __future__ import annotations

import math

from ..errors import RobotError
from .placement import RIGHT_ANGLE_ROUNDING, Vector3

# A tolerance above this would bend real geometry [rad].
LARGEST_TOLERANCE = 0.01

# Changes up to this are the rounding of a file that writes ten digits or more; not worth a note [rad].
SILENT_CHANGE = 1e-9

# An axis shorter than this has no direction.
SHORTEST_AXIS = 1e-9


def radians_from_degrees(degrees: float) -> float:
    """Return the angle [rad]; a multiple of 90 degrees gives the same multiple of pi/2."""
    if degrees % 90 == 0:
        return round(degrees / 90) * math.pi / 2
    return math.radians(degrees)


class RightAngles:
    """Takes angles near a multiple of 90 degrees as exact ones and remembers where it did."""

    def __init__(self, tolerance: float) -> None:
        if not (math.isfinite(tolerance) and 0 <= tolerance <= LARGEST_TOLERANCE):
            raise RobotError(
                f"right_angle_tolerance is {tolerance}; allowed 0 (read literally) to {LARGEST_TOLERANCE} rad"
            )
        self.tolerance = max(tolerance, RIGHT_ANGLE_ROUNDING)
        self._changes: dict[str, float] = {}

    def angle(self, value: float, where: str) -> float:
        """Return the angle, or the multiple of pi/2 it lies next to."""
        exact = round(value / (math.pi / 2)) * math.pi / 2
        change = abs(value - exact)
        if change > self.tolerance:
            return value
        self._remember(change, where)
        return exact

    def direction(self, vector: Vector3, where: str) -> Vector3:
        """Return the unit vector; components within the tolerance of zero become zero."""
        length = math.hypot(*vector)
        if length < SHORTEST_AXIS:
            raise RobotError(f"{where}: axis {vector} has no direction; give a vector such as 0 0 1")
        unit = [component / length for component in vector]
        kept = [0.0 if abs(component) <= self.tolerance else component for component in unit]
        if kept == unit:
            return (unit[0], unit[1], unit[2])
        self._remember(max(abs(a - b) for a, b in zip(unit, kept, strict=True)), where)
        length = math.hypot(*kept)
        return (kept[0] / length, kept[1] / length, kept[2] / length)

    def notes(self) -> list[str]:
        """Return at most one note, which names every place where an angle was changed."""
        if not self._changes:
            return []
        places = ", ".join(self._changes)
        largest = max(self._changes.values())
        return [f"angles taken as exact right angles (largest change {largest:.1e} rad): {places}"]

    def _remember(self, change: float, where: str) -> None:
        if change > SILENT_CHANGE:
            self._changes[where] = max(change, self._changes.get(where, 0.0))
