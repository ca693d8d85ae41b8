"""Periodic experiments for tests of maximum likelihood: P1's arm written out by hand, and P4's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from arms import arm
from steelyard.estimate.likelihood import LikelihoodProblem, LikelihoodRun, motion_basis, torque_functions
from steelyard.model import build_model
from steelyard.observe import Equations, equations_of
from steelyard.papers.p4_bench import DURATION, HARMONICS, RATE, TORQUE_VARIANCE, p4_arm

LENGTH = 0.5
WIDTH = 0.05
SCARA = np.array([3.42, 0.064, 0.262, 0.03, 0.07, 0.015, 0.58, 0.156])
"""ZZ1R, ZZ2, MX2, MY2, Fvm1, Fvm2, Fcm1, Fcm2."""


@cache
def scara_equations(width: float = WIDTH) -> Equations:
    return equations_of(build_model(arm("scara_2r"), sign_width=width))


def scara_torques(motion, theta, width=WIDTH):
    """Return torques (2, N) of P1's equations (P1.9); motion and parameters may be complex."""
    (q1, q2), (v1, v2), (a1, a2) = motion
    zz1, zz2, mx, my, fv1, fv2, fc1, fc2 = theta
    lx, ly, cosine, sine = LENGTH * mx, LENGTH * my, np.cos(q2), np.sin(q2)
    del q1
    first = (
        a1 * zz1 + v1 * fv1 + np.tanh(v1 / width) * fc1 + (a1 + a2) * zz2
        + ((2 * a1 + a2) * cosine - v2 * (2 * v1 + v2) * sine) * lx
        - ((2 * a1 + a2) * sine + v2 * (2 * v1 + v2) * cosine) * ly
    )  # fmt: skip
    second = (
        (a1 + a2) * zz2 + (a1 * cosine + v1**2 * sine) * lx + (v1**2 * cosine - a1 * sine) * ly
        + v2 * fv2 + np.tanh(v2 / width) * fc2
    )  # fmt: skip
    return np.stack([first, second])


def scara_motion(count=80, lines=2, period=2.0):
    """Return coefficients (2, m) and basis (3, m, N) of one period."""
    rng = np.random.default_rng(5)
    basis = motion_basis(np.arange(count) * period / count, period, range(1, lines + 1))
    return rng.uniform(-0.6, 0.6, (2, 2 * lines + 1)), basis


def scara_problem(seed, position=1e-2, torque=(0.5, 0.05), count=80, noise=1.0, equations=None):
    """Return a problem of P1's arm: position and torque are the deviations, noise how much of them there is."""
    coefficients, basis = scara_motion(count)
    motion = coefficients @ basis
    rng = np.random.default_rng(seed)
    q = motion[0] + noise * position * rng.standard_normal(motion[0].shape)
    y = scara_torques(motion, SCARA) + noise * np.array(torque)[:, None] * rng.standard_normal((2, count))
    equations = scara_equations() if equations is None else equations
    return LikelihoodProblem(
        equations, equations.names, (LikelihoodRun(q, y, basis, np.full(2, position), np.array(torque)),)
    )


@dataclass(frozen=True, eq=False)
class P4:
    equations: Equations
    theta: np.ndarray
    deviation: np.ndarray
    coefficients: np.ndarray
    basis: np.ndarray
    motion: np.ndarray
    torques: np.ndarray


@cache
def p4() -> P4:
    """Return P4's arm on a random motion within its limits."""
    given = p4_arm()
    equations, limits = equations_of(given.model), given.limits.motion
    truth = equations.base_values(dict(given.known.values))
    theta = np.array([truth[name] for name in equations.names])
    basis = motion_basis(np.arange(round(DURATION * RATE)) / RATE, DURATION, range(1, HARMONICS + 1))
    coefficients = np.random.default_rng(0).standard_normal((3, basis.shape[1]))
    coefficients[:, 0] = 0
    half = (limits.upper - limits.lower) / 2
    reached = np.abs(coefficients @ basis).max(axis=2)
    coefficients *= 0.95 * np.min([half, limits.velocity, limits.acceleration] / reached, axis=0)[:, None]
    coefficients[:, 0] = (limits.upper + limits.lower) / 2
    motion = coefficients @ basis
    torques = torque_functions(equations, equations.names).torques(motion, motion[1], theta)
    return P4(equations, theta, np.sqrt(TORQUE_VARIANCE), coefficients, basis, motion, torques)


def p4_problem(seed, position, *, known=None, noise=1.0):
    """Return a problem of P4's arm; known is the deviation of positions that is given, the true one if not given."""
    arm4, rng = p4(), np.random.default_rng(seed)
    q = arm4.motion[0] + noise * position * rng.standard_normal(arm4.motion[0].shape)
    y = arm4.torques + noise * arm4.deviation[:, None] * rng.standard_normal(arm4.torques.shape)
    given = np.full(3, position if known is None else known)
    return LikelihoodProblem(
        arm4.equations, arm4.equations.names, (LikelihoodRun(q, y, arm4.basis, given, arm4.deviation),)
    )
