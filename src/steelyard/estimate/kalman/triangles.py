"""Orthogonal triangularisation written in symbols, for states small enough to be compiled whole."""

from __future__ import annotations

import casadi as ca


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
