"""Arms, evidence and noise for the tests of the Kalman filter."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np

import independent
from arms import arm
from steelyard.estimate import with_correlated_noise
from steelyard.estimate.evidence import Evidence
from steelyard.model import build_model
from steelyard.observe import Preparation, equations_of, resolve_preparation
from steelyard.papers.fits import paper_fit
from steelyard.papers.p1_motion import CASES, NAMES, scara_equations, scara_run
from steelyard.simulation import SimulatedRun, recording_of


@cache
def run_of_scara(seeds: int) -> SimulatedRun:
    return scara_run(range(seeds), 1.0)


@cache
def equations_of_scara():
    return scara_equations()


def evidence_of(recordings, equations, preparation: Preparation) -> Evidence:
    """Return the evidence of recordings by label."""
    resolved = resolve_preparation(preparation, list(recordings.values()))
    fit = paper_fit(recordings, equations, resolved)
    noise = with_correlated_noise(fit.sources, fit.estimate).noise
    return Evidence(fit.sources, equations, fit.estimate, noise)


@cache
def scara_evidence(seed: int, seeds: int = 4) -> Evidence:
    return evidence_of({"run": recording_of(run_of_scara(seeds), seed)}, equations_of_scara(), CASES["full"])


def paper_prior(values, variances) -> dict[str, tuple[float, float]]:
    """Return a prior by column from values and variances in the order of P1's parameters."""
    return {
        column: (value / scale, float(np.sqrt(variance)) / scale)
        for (column, scale), value, variance in zip(NAMES.values(), values, variances, strict=True)
    }


@cache
def friction_model(name: str):
    """Return a model of an arm's links and friction with all its standard parameters, and values of them."""
    model = build_model(arm(name), ["inertia", "Fvm", "Fcm"], measured="motor")
    inertias = np.concatenate([np.array(body.inertia) for body in model.robot.bodies])
    joints = len(model.robot.actuated)
    return model, np.concatenate([inertias, np.linspace(0.1, 0.4, joints), np.linspace(0.5, 0.2, joints)])


def acceleration(name: str, q, qd, tau, values, width: float) -> np.ndarray:
    """Return qdd by a second statement of the physics; arguments may be complex."""
    robot = friction_model(name)[0].robot
    joints, links = len(robot.actuated), 10 * len(robot.bodies)
    viscous, coulomb = values[links : links + joints], values[links + joints :]
    return independent.forward_dynamics(
        robot, q, qd, tau - viscous * qd - coulomb * np.tanh(qd / width), values[:links]
    )


def stepped(name: str, x, tau, values, width: float, dt: float, integrator: str) -> np.ndarray:
    """Return [qd; q] after a step, likewise."""
    n = len(tau)

    def slope(at):
        return np.concatenate([acceleration(name, at[n:], at[:n], tau, values, width), at[:n]])

    first = slope(x)
    if integrator == "euler":
        return x + dt * first
    second = slope(x + dt / 2 * first)
    third = slope(x + dt / 2 * second)
    return x + dt / 6 * (first + 2 * second + 2 * third + slope(x + dt * third))


def numbers(expression: ca.DM) -> np.ndarray:
    return np.asarray(expression)


equations_of_model = cache(equations_of)
