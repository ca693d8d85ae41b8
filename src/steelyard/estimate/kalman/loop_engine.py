"""Filters of small arms: the whole step (predict, observe, correct) is compiled, one column for each run.

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

from ...kernel import compile_loop
from ...observe import coupled_motors
from .discrete import FRACTIONS, Integrator, discrete_step, step_derivative
from .dynamics import ArmGraph
from .state import LARGEST, LOST, RELATIVE_PIVOT, Shape, Trouble


def triangularised(stack: ca.SX, columns: int) -> ca.SX:
    """Return ``Q^T A`` whose first columns are upper triangular: Householder's reflections, one a column.

    A column must not vanish; those of an information root never do.
    """
    result = ca.SX(stack)
    for k in range(columns):
        result[k:, k:] = _reflected(result[k:, k:])
    return ca.sparsify(result)


def absorbed(triangle: ca.SX, rows: ca.SX) -> ca.SX:
    """Return the triangle of ``[triangle; rows]``: each reflection touches one row of the triangle and the new rows."""
    upper, below = ca.SX(triangle), ca.SX(rows)
    for k in range(upper.shape[0]):
        both = _reflected(ca.vertcat(upper[k, k:], below[:, k:]))
        upper[k, k:], below[:, k:] = both[0, :], both[1:, :]
    return ca.sparsify(upper)


def orthogonal_solution(A: ca.SX, right: ca.SX) -> ca.SX:
    """Return ``A^-1 B`` by reflections: no pivot is needed."""
    size = A.shape[0]
    stack = triangularised(ca.horzcat(A, right), size)
    return back_substituted(stack[:, :size], stack[:, size:])


def back_substituted(triangle: ca.SX, right: ca.SX) -> ca.SX:
    """Return ``R^-1 B`` of an upper triangle."""
    size = triangle.shape[0]
    rows: list[ca.SX] = [ca.SX()] * size
    for k in reversed(range(size)):
        rest = right[k, :]
        for j in range(k + 1, size):
            rest = rest - triangle[k, j] * rows[j]
        rows[k] = rest / triangle[k, k]
    return ca.vertcat(*rows)


def _reflected(block: ca.SX) -> ca.SX:
    """Return a block whose first column is turned onto its first row."""
    head = block[:, 0]
    if head[1:, 0].nnz() == 0:
        return block
    size = ca.sqrt(ca.sumsqr(head))
    first = block[0, 0]
    v = ca.vertcat(first + ca.if_else(first < 0, -size, size), head[1:, 0])
    rest = block[:, 1:]
    scale = 1 / (size * (size + ca.fabs(first)))
    turned = rest - ca.mtimes(v, scale * ca.mtimes(v.T, rest))
    column = ca.vertcat(ca.if_else(first < 0, size, -size), ca.SX(block.shape[0] - 1, 1))
    return ca.horzcat(column, turned)


SLOW_NOISE = 30.0
"""Factor on the deviation of a joint's torque noise where the joint stands still or turns back within a step: the
direction of its friction is not known then, as rows of least squares near standstill are left out."""


def loop_step(graph: ArmGraph, shape: Shape, integrator: Integrator, free: list[int], *, measured: bool) -> ca.Function:
    """Return ``(state, input, parameters) -> (next state, output)`` of one filter step.

    Derivatives are taken along the measured motion, which is then part of the input, or along the predicted one. The
    predicted acceleration ``M^-1 (tau - N)`` holds the noise of the very torque whose error its regressor is to
    explain, and the errors of the parameters; estimates are biased by the square of both. Along the measured motion
    the innovation, expressed as a torque, is linear in the parameters, whatever they are. That motion also gives the
    direction of friction and the joints that stand still.

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
    R_xx, R_pp = _triangle(roots[0], shape.states), _triangle(roots[2], shape.free)
    R_xp = ca.reshape(roots[1], shape.states, shape.free)
    chi, noise, deviation, bound, dt, width, standstill, least = ca.vertsplit(fixed, _bounds(shape.given))
    chi = ca.SX(chi)
    chi[free] = values
    _, _, q, speed, later, qdd = ca.vertsplit(given, _bounds((shape.joints, shape.observed, *4 * (motion,))))
    speed = speed if measured else x[: shape.joints]
    turn = (speed if graph.held else ca.SX.ones(shape.joints)) / width
    after, derivative, pivots = discrete_step(graph, integrator, dt, x, given[: shape.joints], chi, turn)
    later = later if measured else after[: shape.joints]
    noise = _unsure(shape, graph.coupling, noise, (speed, later), standstill)
    innovation = given[shape.joints : shape.joints + shape.observed] - after[shape.states - shape.observed :]
    if measured:
        stages = [ca.repmat(part, 1, len(FRACTIONS[integrator])) for part in (q, (speed + later) / 2, qdd)]
        derivative = step_derivative(graph, integrator, dt, stages, chi, turn)
    stack = _stack(shape, derivative, (R_xx, R_xp), noise, deviation, innovation)
    found = triangularised(stack, shape.noises + shape.states)
    rows = found[shape.noises : shape.noises + shape.states, shape.noises :]
    spill = found[shape.noises + shape.states :, shape.noises + shape.states :]
    corner = ca.blockcat([[R_pp, ca.SX(shape.free, 1)], [ca.SX(1, shape.free), ca.SX(1, 1)]])
    merged = absorbed(corner, spill)
    squared = merged[-1, -1] ** 2
    dp = back_substituted(merged[:-1, :-1], merged[:-1, -1])
    new_xx, new_xp = rows[:, : shape.states], rows[:, shape.states : -1]
    dx = back_substituted(new_xx, rows[:, -1] - ca.mtimes(new_xp, dp))
    following, updated = after + dx, values + dp
    is_possible = _possible(pivots, least)
    counted = _tally(tally, squared, bound, is_possible, innovation[-shape.joints :], ca.vertcat(following, updated))
    roots = [_upper(new_xx), ca.vec(ca.densify(new_xp)), _upper(merged[:-1, :-1])]
    sigma = ca.sqrt(ca.sum2(back_substituted(R_pp, ca.SX.eye(shape.free)) ** 2))
    outputs = [ca.vertcat(following, updated, *roots, counted), ca.vertcat(x, values, sigma)]
    return ca.Function("filter_step", [state, given, fixed], [ca.densify(ca.cse(part)) for part in outputs])


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
    first, reason = ca.if_else(is_new, steps, first), ca.if_else(is_new, trouble, reason)
    return ca.vertcat(steps + 1, total + squared, inside + (squared <= bound), first, reason, moved)


def _triangle(entries: ca.SX, size: int) -> ca.SX:
    return ca.SX(ca.Sparsity.upper(size), entries)


def _upper(matrix: ca.SX) -> ca.SX:
    """Return the entries on and above the diagonal, column by column."""
    size = matrix.shape[0]
    return ca.vertcat(*(matrix[row, column] for column in range(size) for row in range(column + 1)))


def _bounds(parts: tuple[int, ...]) -> list[int]:
    return [0, *np.cumsum(parts).tolist()]


class LoopEngine:
    """Advances any number of filters at once.

    Args:
        graph: The arm.
        shape: Sizes of the filter.
        integrator: How a step in time is taken.
        free: Which parameters are estimated.
        measured: Whether derivatives are taken along the measured motion, see :func:`.loop_step`.
    """

    def __init__(
        self, graph: ArmGraph, shape: Shape, integrator: Integrator, free: tuple[int, ...], *, measured: bool
    ) -> None:
        self._loop = compile_loop(loop_step(graph, shape, integrator, list(free), measured=measured))

    def advance(
        self, vectors: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take T steps of C filters.

        Args:
            vectors: State vectors (size, C).
            given: Torque over the step, what is observed after it, and the measured motion if derivatives are taken
                along it, see :func:`.loop_step` (T, n + m + 4n, C).
            fixed: What is the same at every step, :attr:`.Shape.given` (k, C).
            before: Steps taken since instants were first recorded.
            stride: Every how many steps the state before the step is recorded.

        Returns:
            The state vectors after, and what was recorded (K, 2n + 2f, C).
        """
        lead = min(-before % stride, len(given))
        main = (len(given) - lead) // stride * stride
        recorded = []
        for first, last, every in (
            (0, lead, lead + 1), (lead, lead + main, stride), (lead + main, lead + main + 1, 1),
            (lead + main + 1, len(given), stride),
        ):  # fmt: skip
            part = given[first:last]
            if len(part):
                vectors, instants = self._loop(vectors, part, fixed, record_every=every)
                recorded.append(instants)
        return vectors, np.concatenate(recorded) if recorded else np.zeros((0, self._loop.n_outputs, vectors.shape[1]))
