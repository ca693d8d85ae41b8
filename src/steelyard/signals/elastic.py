"""Joints that give: the joint's position from the motor's position and the joint torque (P5.8)."""

from __future__ import annotations

import numpy as np

from ..errors import SignalError
from .checks import as_rows


def joint_positions(motor_positions: np.ndarray, joint_torques: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """Return joint positions ``qa = q - tau_l / k`` (n, N).

    Args:
        motor_positions: Motor positions on the joint side (n, N) [rad or m].
        joint_torques: Joint torques (n, N) [N m or N].
        stiffness: Stiffness of each joint (n,) [N m/rad or N/m]; infinite for a rigid joint.

    Raises:
        SignalError: If the arrays do not fit or a stiffness is not above 0.
    """
    positions = as_rows(motor_positions, "motor positions")
    torques = as_rows(joint_torques, "joint torques")
    if torques.shape != positions.shape:
        raise SignalError(
            f"joint torques: got shape {torques.shape}, allowed is that of the positions {positions.shape}"
        )
    stiffness = np.asarray(stiffness, dtype=np.float64)
    if stiffness.shape != (len(positions),):
        raise SignalError(f"stiffness: got shape {stiffness.shape}, allowed is one for each of {len(positions)} joints")
    bad = np.flatnonzero(~(stiffness > 0))
    if len(bad):
        raise SignalError(f"stiffness of joint {bad[0] + 1}: got {stiffness[bad[0]]}, allowed are numbers above 0")
    return positions - torques / stiffness[:, None]
