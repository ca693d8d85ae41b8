"""Does the simulated arm move as the real one? Positions apart, against what noise and disturbances explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import SimulationError
from ...observe import RowSource, prepared_blocks
from ..evidence import Evidence
from .rounds import Settled

LARGE = 3.0
"""Positions farther apart than this many times what noise explains are not those of the same controller."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far simulated positions are from the recorded ones.

    Attributes:
        joints: Names of the joints.
        apart: Root mean square of the difference (n,) [rad or m].
        explained: That of what the noise of the positions, and the torques that the model does not explain, would
            bring about (n,).
        units: Unit of each joint's position.
        has_reference: Whether the commanded positions are known.
    """

    joints: tuple[str, ...]
    apart: np.ndarray
    explained: np.ndarray
    units: tuple[str, ...]
    has_reference: bool

    @property
    def ratios(self) -> np.ndarray:
        """How many times what noise explains the positions are apart (n,)."""
        return self.apart / np.maximum(self.explained, 1e-300)

    def note(self) -> str:
        """Return a sentence, which is a warning where the controller cannot be the real one."""
        worst = int(np.argmax(self.ratios))
        ratio = self.ratios[worst]
        told = (
            f"simulated positions differ from the recorded ones by {self.apart[worst]:.2g} {self.units[worst]} rms on "
            f"{self.joints[worst]}, {ratio:.{0 if ratio >= 10 else 1}f} times what noise explains"
        )
        if ratio <= LARGE:
            return told
        if self.has_reference:
            return f"{told}: the simulated controller is not the real one; give control, kp, kd"
        return (
            f"{told}: without a recorded reference the simulated arm should keep to the measured positions, and this "
            "controller does not; declare a reference channel, or simulate control computed_torque"
        )


def agreement_notes(evidence: Evidence, found: Settled) -> tuple[str, ...]:
    """Return what to say of how the simulated arm moves, a sentence."""
    try:
        return (agreement_of(evidence, found).note(),)
    except SimulationError:
        return ("the simulated arm loses the motion if the torques that the model does not explain push it",)


def agreement_of(evidence: Evidence, found: Settled) -> Agreement:
    """Compare the motion that was simulated last with the recorded one.

    What noise explains: the recorded positions' own noise, and the difference that the residual torques
    ``y - W x``, as a disturbance of the motors, make in the same simulation.

    Args:
        evidence: The real recordings.
        found: What the rounds ended with.
    """
    residuals = [residual_torques(source, evidence.columns, found.solved.values) for source in evidence.sources]
    apart, pushed = found.motion.differences(found.simulated, found.twins.simulated, residuals)
    noise = evidence.sources[0].settled.signal_noise[: len(apart)]
    explained = np.hypot(noise, pushed)
    bodies = evidence.equations.model.robot.actuated
    units = tuple("m" if body.joint.kind == "prismatic" else "rad" for body in bodies)
    return Agreement(evidence.equations.joints, apart, explained, units, found.motion.has_reference)


def residual_torques(
    source: RowSource, columns: Sequence[str], values: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield times (m,) and the torques that would explain what the model does not (n, m), before decimation."""
    known = dict(zip(columns, values.tolist(), strict=True))
    compiled = source.equations.compiled(source.loaded)
    weights = [np.array([known.get(name, 0.0) for name in felt]) for felt in compiled.columns]
    equations_each = len(weights) / len(source.equations.joints)
    for block in prepared_blocks(source):
        rows = compiled.function(block.q, block.qd, block.qdd)
        left = np.zeros_like(block.q)
        for e, joint in enumerate(source.equations.joint_index):
            left[joint] += (weights[e] @ rows[e] - block.y[e]) / equations_each
        yield block.time, left
