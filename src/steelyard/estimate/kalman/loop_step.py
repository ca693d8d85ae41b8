"""The whole filter step in symbols, for the compiled time loop: predict, observe, correct.

The errors of state and free parameters are known by the root of their information, ``R = [R_xx R_xp; 0 R_pp]`` with
``|R e|^2`` the exponent of their density (Bierman's square-root information filter, parameters as biases). A step is
one triangularisation: with ``x' = F x + F_p p + G s w``, w white of variance 1, and innovation ``v = H x' + s_v u``::

    [ I                                          ]      w
    [ -R_xx F^-1 G s  R_xx F^-1  R_xp - R_xx F^-1 F_p  0 ]      x'
    [ 0               H / s_v    0           v / s_v ]      p

The rows of w are left behind, those of x' are the new ``R_xx R_xp``, what is left over goes into ``R_pp``. The
parameters have no noise of their own, so R_pp is touched by this one merge alone. The root is never squared: its
covariance ``R^-1 R^-T`` is positive definite whatever the rounding.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...observe import coupled_motors
from .arm_graph import ArmGraph
from .discrete import FRACTIONS, Integrator, discrete_step, step_derivative
from .divergence import LARGEST, LOST, RELATIVE_PIVOT, Trouble
from .state import Shape
from .triangles import absorbed, back_substituted, orthogonal_solution, triangularised

SLOW_NOISE = 30.0
"""Factor on the deviation of a joint's torque noise where the joint stands still or turns back within a step: the
direction of its friction is not known then, as rows of least squares near standstill are left out."""


def loop_step(graph: ArmGraph, shape: Shape, integrator: Integrator, free: list[int], *, measured: bool) -> ca.Function:
    """Return ``(state, input, parameters) -> (next state, output)`` of one filter step.

    Derivatives are taken along the measured motion, which is then part of the input, or along the predicted one. The
    predicted acceleration ``M^-1 (tau - N)`` holds the noise of the very torque whose error its regressor is to
    explain, and the errors of the parameters; estimates are biased by the square of both. Along the measured motion
    the innovation, seen as a torque, is linear in the parameters, whatever they are. That motion says then too which
    way friction points, and who stands still.

    Input: torque (n), observed (m), and of the measured motion positions in the middle of the step (n), velocities
    before and after it (2n) and accelerations in the middle (n). Parameters: those of :attr:`.Shape.given`; free
    parameters among them are not read. Output, of the state before the step: x (2n), free parameters (f) and their
    standard deviations (f).
    """
    state = ca.SX.sym("state", shape.bounds[-1])
    motion = shape.joints if measured else 0
    given = ca.SX.sym("given", shape.joints + shape.observed + 4 * motion)
    fixed = ca.SX.sym("fixed", sum(shape.given))
    x, values, *roots, tally = ca.vertsplit(state, shape.bounds)
    R_xx, R_xp, R_pp = _matrices(shape, roots)
    chi, noise, deviation, bound, dt, width, standstill, least = ca.vertsplit(fixed, _bounds(shape.given))
    chi = ca.SX(chi)
    chi[free] = values
    _, _, q, speed, later, qdd = ca.vertsplit(given, _bounds((shape.joints, shape.observed, *4 * (motion,))))
    speed = speed if measured else x[: shape.joints]
    turn = (speed if graph.held else ca.SX.ones(shape.joints)) / width
    step = discrete_step(graph, integrator, dt, x, given[: shape.joints], chi, turn)
    later = later if measured else step.following[: shape.joints]
    noise = _unsure(shape, graph.coupling, noise, (speed, later), standstill)
    innovation = given[shape.joints : shape.joints + shape.observed] - observed_part(step.following, shape)
    derivative = step.derivative
    if measured:
        stages = [ca.repmat(part, 1, len(FRACTIONS[integrator])) for part in (q, (speed + later) / 2, qdd)]
        derivative = step_derivative(graph, integrator, dt, stages, chi, turn)
    stack = _stack(shape, derivative, (R_xx, R_xp), noise, deviation, innovation)
    found = triangularised(stack, shape.noises + shape.states)
    kept = found[shape.noises : shape.noises + shape.states, shape.noises :]
    spill = found[shape.noises + shape.states :, shape.noises + shape.states :]
    corner = ca.blockcat([[R_pp, ca.SX(shape.free, 1)], [ca.SX(1, shape.free), ca.SX(1, 1)]])
    merged = absorbed(corner, spill)
    squared = merged[-1, -1] ** 2
    dp = back_substituted(merged[:-1, :-1], merged[:-1, -1])
    new_xx, new_xp = kept[:, : shape.states], kept[:, shape.states : -1]
    dx = back_substituted(new_xx, kept[:, -1] - ca.mtimes(new_xp, dp))
    following, updated = step.following + dx, values + dp
    is_possible = _possible(step.pivots, least)
    told = _tally(tally, squared, bound, is_possible, innovation[-shape.joints :], ca.vertcat(following, updated))
    roots = [_upper(new_xx), ca.vec(ca.densify(new_xp)), _upper(merged[:-1, :-1])]
    sigma = ca.sqrt(ca.sum2(back_substituted(R_pp, ca.SX.eye(shape.free)) ** 2))
    outputs = [ca.vertcat(following, updated, *roots, told), ca.vertcat(x, values, sigma)]
    return ca.Function("filter_step", [state, given, fixed], [ca.densify(ca.cse(part)) for part in outputs])


def observed_part(x: ca.SX, shape: Shape) -> ca.SX:
    """Return what is observed of x: positions, or velocities and positions."""
    return x[shape.states - shape.observed :]


def _stack(
    shape: Shape, derivative: ca.SX, roots: tuple[ca.SX, ca.SX], noise: ca.SX, deviation: ca.SX, innovation: ca.SX
) -> ca.SX:
    states, observed = shape.states, shape.observed
    F, by_torque, by_values = (
        derivative[:, :states], derivative[:, states : states + shape.joints], derivative[:, states + shape.joints :],
    )  # fmt: skip
    G = by_torque if shape.noises == shape.joints else ca.SX.eye(states)
    turned = orthogonal_solution(F, ca.horzcat(ca.mtimes(G, ca.diag(noise)), ca.SX.eye(states), by_values))
    moved = ca.mtimes(roots[0], turned)
    before, middle, after = (
        -moved[:, : shape.noises], moved[:, shape.noises : shape.noises + states], moved[:, shape.noises + states :],
    )  # fmt: skip
    H = ca.horzcat(ca.SX(observed, states - observed), ca.diag(1 / deviation))
    return ca.blockcat([
        [ca.SX.eye(shape.noises), ca.SX(shape.noises, states), ca.SX(shape.noises, shape.free), ca.SX(shape.noises, 1)],
        [before, middle, roots[1] - after, ca.SX(states, 1)],
        [ca.SX(observed, shape.noises), H, ca.SX(observed, shape.free), innovation / deviation],
    ])  # fmt: skip


def _unsure(shape: Shape, coupling: np.ndarray, noise: ca.SX, speeds: tuple[ca.SX, ca.SX], standstill: ca.SX) -> ca.SX:
    """Return the deviations of the noise, larger for the torques of joints that stand still or turn back.

    Velocities are those before the step and after it; coupled motors count for both joints they turn with.
    """
    if shape.noises != shape.joints:
        return noise
    before, after = speeds
    is_slow = _slow(before, after, standstill)
    of_motors = _slow(ca.mtimes(ca.DM(coupling), before), ca.mtimes(ca.DM(coupling), after), standstill)
    for motor, other in coupled_motors(coupling):
        for joint in (motor, other):
            is_slow[joint] = ca.logic_or(is_slow[joint], of_motors[motor])
    return noise * ca.if_else(is_slow, SLOW_NOISE, 1.0)


def _slow(v: ca.SX, w: ca.SX, standstill: ca.SX) -> ca.SX:
    """Return what stands still at velocities v or w, or turns back between them."""
    return ca.logic_or(ca.fmin(ca.fabs(v), ca.fabs(w)) < standstill, ca.logic_and(v * w < 0, standstill > 0))


def _possible(pivots: ca.SX, least: ca.SX) -> ca.SX:
    """Return whether the inertia matrix is that of a possible arm at the first stage, and not singular at any."""
    # A comparison with a value that is no number is false, and so is its opposite: ask for what must hold.
    is_regular = ca.mmin(pivots) > RELATIVE_PIVOT * ca.mmax(ca.fabs(pivots))
    return ca.logic_and(is_regular, ca.mmin(pivots[: least.shape[0]] - least) >= 0)


def _tally(tally: ca.SX, squared: ca.SX, bound: ca.SX, possible: ca.SX, innovation: ca.SX, result: ca.SX) -> ca.SX:
    steps, total, inside, first, reason, moved = ca.vertsplit(tally)
    finite = ca.sumsqr(result) < LARGEST
    near = ca.mmax(ca.fabs(innovation)) < LOST
    trouble = ca.if_else(
        possible, ca.if_else(near, ca.if_else(finite, 0, Trouble.STATE), Trouble.LOST), Trouble.INERTIA
    )
    is_new = ca.logic_and(first < 0, trouble > 0)
    return ca.vertcat(
        steps + 1,
        total + squared,
        inside + (squared <= bound),
        ca.if_else(is_new, steps, first),
        ca.if_else(is_new, trouble, reason),
        moved,
    )


def _matrices(shape: Shape, roots: list[ca.SX]) -> tuple[ca.SX, ca.SX, ca.SX]:
    return (
        _triangle(roots[0], shape.states),
        ca.reshape(roots[1], shape.states, shape.free),
        _triangle(roots[2], shape.free),
    )


def _triangle(entries: ca.SX, size: int) -> ca.SX:
    return ca.SX(ca.Sparsity.upper(size), entries)


def _upper(matrix: ca.SX) -> ca.SX:
    """Return the entries on and above the diagonal, column by column."""
    size = matrix.shape[0]
    return ca.vertcat(*(matrix[row, column] for column in range(size) for row in range(column + 1)))


def _bounds(parts: tuple[int, ...]) -> list[int]:
    return [0, *np.cumsum(parts).tolist()]
