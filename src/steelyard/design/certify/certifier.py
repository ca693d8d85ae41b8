"""Everything that a motion must keep, ready to be certified for one motion after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...motion import MotionLimits, Trajectory
from ...text import short_repr
from .certificate import Bounder, Certificate, certify, joint_findings
from .space_bounds import SpaceBounder, SpaceGraph
from .spans import breaks
from .torque_bounds import TorqueBounder
from .torque_graph import TorqueGraph


@dataclass(frozen=True, eq=False)
class Certifier:
    """Limits and what is needed to bound them over continuous time.

    Attributes:
        limits: Limits of the joints.
        torques: Torques of each run of the motion, and what is added to their names.
        torque_limits: Limits of the torques (n,), infinite where there is none.
        space: The rules about points of the arm; None if there are none.
    """

    __repr__ = short_repr

    limits: MotionLimits
    torques: tuple[tuple[TorqueGraph, str], ...]
    torque_limits: np.ndarray
    space: SpaceGraph | None

    def __call__(self, trajectory: Trajectory, *, decide: bool = False) -> Certificate:
        """Return what the motion reaches at its worst; with ``decide`` only whether it is allowed, which is cheaper."""
        bounders: list[Bounder] = [
            TorqueBounder(graph, trajectory, self.torque_limits, ending) for graph, ending in self.torques
        ]
        if self.space is not None:
            bounders.append(SpaceBounder(self.space, trajectory))
        joints = Certificate(joint_findings(trajectory, self.limits))
        return joints + certify(bounders, breaks(trajectory), decide=decide)
