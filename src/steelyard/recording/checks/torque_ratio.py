"""Motor torques against joint torques of the same log: are both on the joint side?

Over the whole log ``s = sum(m j) / sum(m^2)`` of the torques about their means; where they follow each other, a
factor far from 1 is a gear, a unit or a sign.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..record import Finding
from ..samples import Samples
from .subject import Subject

FACTOR = 3.0
"""Friction and rotor inertia do not make motor torques differ more than this from joint torques."""
FOLLOWS, SAME, OPPOSITE = 0.2, 0.99, -0.9
"""Correlations from which a factor speaks. Joint torques above motor torques need little: friction and rotors only add
to what a motor has to do. Motor torques above joint torques may be friction, unless both are the same signal."""
NEAR_A_GEAR = 0.25


class TorqueRatio:
    """Keeps sums of both torques and of their products."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        kinds = subject.kinds
        self._motor = kinds.index("motor_torque") if "motor_torque" in kinds else None
        self._joint = kinds.index("joint_torque") if "joint_torque" in kinds else None
        self._sums = np.zeros((5, len(subject.joints)))
        self._count = 0

    def take(self, block: Samples, fresh: int) -> None:
        """Add the products of a block."""
        if self._motor is None or self._joint is None:
            return
        m, j = block.channels[self._motor][:, fresh:], block.channels[self._joint][:, fresh:]
        self._sums += np.array([part.sum(axis=1) for part in (m, j, m * m, m * j, j * j)])
        self._count += m.shape[1]

    def findings(self) -> Iterator[Finding]:
        """Yield joints whose motor torque is a multiple of their joint torque."""
        if self._count < 2 or self._motor is None:
            return
        m, j, mm, mj, jj = self._sums / self._count
        mm, mj, jj = mm - m * m, mj - m * j, jj - j * j
        for row, joint in enumerate(self._subject.joints):
            if mm[row] <= 0 or jj[row] <= 0:
                continue
            correlation = mj[row] / np.sqrt(mm[row] * jj[row])
            ratio = float(np.sqrt(jj[row] / mm[row]) * np.sign(mj[row]))
            if _speaks(ratio, float(correlation)):
                yield self._finding(row, joint, ratio, float(correlation))

    def _finding(self, row: int, joint: str, ratio: float, correlation: float) -> Finding:
        gear, size = abs(float(self._subject.gears[row])), abs(ratio)
        if size > FACTOR:
            known = f", whose ratio is {gear:g}" if abs(size / gear - 1) < NEAR_A_GEAR else ""
            words = f"; motor torque seems to be before the gears{known}"
            remedy = 'declare side = "motor" for the motor torque in [recording], and gear_ratio if the robot has none'
        else:
            words = "; one of them is in another unit or on another side" if size < 1 / FACTOR else ""
            remedy = "check unit, side and sign of both torques in the table [recording] of a file for --config"
        words += "; their signs are opposite" if ratio < 0 else ""
        text = f"joint torque of {joint} is {ratio:.3g} times its motor torque (correlation {correlation:.2f}){words}"
        values = {"ratio": ratio, "correlation": correlation}
        channel = self._subject.labels[self._motor or 0]
        return Finding("torque_ratio", "warning", text, channel, joint, values=values, remedy=remedy)


def _speaks(ratio: float, correlation: float) -> bool:
    """Return whether a factor between motor and joint torque says that one of them is not what it is declared as."""
    if ratio < 0:
        return correlation <= OPPOSITE
    return (ratio > FACTOR and correlation >= FOLLOWS) or (ratio < 1 / FACTOR and correlation >= SAME)
