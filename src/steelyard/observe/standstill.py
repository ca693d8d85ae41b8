"""Which joints move: near standstill friction is neither Coulomb's nor viscous."""

from __future__ import annotations

import numpy as np


def moving_joints(qd: np.ndarray, standstill: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """Return which joints move at standstill speed or faster (n, N).

    A motor that turns with two joints has friction in the equations of both, whose direction is that of the motor:
    where it stands still, neither counts as moving.

    Args:
        qd: Velocities (n, N) [rad/s or m/s].
        standstill: Speed of each joint, and of the motor that is named after it (n,).
        coupling: C (n, n) with ``q_motor = C q``, see :meth:`steelyard.robot.Robot.motor_coupling`.
    """
    moving = np.abs(qd) >= standstill[:, None]
    for motor, other in coupled_motors(coupling):
        turns = np.abs(coupling[motor] @ qd) >= standstill[motor]
        moving[motor] &= turns
        moving[other] &= turns
    return moving


def coupled_motors(coupling: np.ndarray) -> list[tuple[int, int]]:
    """Return the coupled motors, each with the joint other than its own that it turns with, as rows of C."""
    rows, columns = np.nonzero(coupling - np.diag(np.diag(coupling)))
    return list(zip(rows.tolist(), columns.tolist(), strict=True))
