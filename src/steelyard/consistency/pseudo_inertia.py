"""Pseudo-inertias of links in units of a reference body, and the distance of one body from another.

A body can exist exactly if its 4x4 pseudo-inertia J is positive semi-definite. Written as ``J = A X A^T`` with
``A A^T = J_0``, that of a reference body, X is the identity for the reference, whatever its mass and size; its ten
entries (``svec``: upper triangle by columns, off-diagonal entries times sqrt 2) are unknowns of similar size. The
divergence ``d(X) = tr X - log det X - 4`` of Lee and Wensing (2018) does not depend on frames and units; near the
reference it is half the square of ``||X - I||``: a weight ``1 / s^2`` stands for a relative deviation s of the
reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..robot import Robot, parameters_from_centre, pseudo_inertia, transform_from_placement

ENTRIES = tuple((i, j) for j in range(4) for i in range(j + 1))
"""Places of the upper triangle, by columns."""

IDENTITY = np.array([float(i == j) for i, j in ENTRIES])
LEAST = 1e-3
"""Eigenvalues of a reference below this part of its largest, in units of its own mass and size, are raised to it."""

_USUAL_MASS = 25.0
"""Mass of all moving links over the cube of the reach [kg/m^3], for arms without inertias in their file."""


def svec(matrix: np.ndarray) -> np.ndarray:
    """Return the upper triangle of a symmetric matrix, by columns, as a vector of the same norm."""
    size = len(matrix)
    return np.array([matrix[i, j] * (1.0 if i == j else np.sqrt(2)) for j in range(size) for i in range(j + 1)])


def smat(vector: np.ndarray) -> np.ndarray:
    """Return the symmetric 4x4 matrix of a vector (10,)."""
    matrix = np.zeros((4, 4))
    for value, (i, j) in zip(vector, ENTRIES, strict=True):
        matrix[i, j] = matrix[j, i] = value if i == j else value / np.sqrt(2)
    return matrix


_FROM_PARAMETERS = np.column_stack([svec(pseudo_inertia(unit)) for unit in np.eye(10)])
_TO_PARAMETERS = np.linalg.inv(_FROM_PARAMETERS)


@dataclass(frozen=True, eq=False)
class ReferenceBody:
    """A body in whose units another is written.

    Attributes:
        parameters: Its ten parameters (10,), made those of a real body if they were not.
        root: A (4, 4), with ``A A^T`` its pseudo-inertia.
        raised: Whether the parameters had to be changed to be those of a real body.
    """

    parameters: np.ndarray
    root: np.ndarray
    raised: bool = False

    @property
    def to_parameters(self) -> np.ndarray:
        """Matrix (10, 10) from ``svec X`` to the ten parameters."""
        return _TO_PARAMETERS @ np.column_stack([svec(self.root @ smat(unit) @ self.root.T) for unit in np.eye(10)])

    def in_units(self, parameters: np.ndarray) -> np.ndarray:
        """Return X (4, 4) of a body with ten parameters."""
        left = np.linalg.solve(self.root, pseudo_inertia(parameters))
        return np.linalg.solve(self.root, left.T).T


def reference_body(parameters: np.ndarray) -> ReferenceBody:
    """Return the reference of ten parameters; of those that no body can have, the nearest that one can.

    Nearest in the Frobenius norm of the pseudo-inertia in units of its own mass and radius of gyration.
    """
    pseudo = pseudo_inertia(parameters)
    radius = np.trace(pseudo[:3, :3])
    mass = pseudo[3, 3]
    if not (radius > 0 and mass > 0):
        raise ValueError("a reference body needs a positive mass and size")
    scale = np.sqrt(np.array([radius, radius, radius, mass]))
    sizes, axes = np.linalg.eigh(pseudo / np.outer(scale, scale))
    raised = bool(sizes[0] < LEAST * sizes[-1])
    sizes = np.maximum(sizes, LEAST * sizes[-1])
    root = scale[:, None] * axes * np.sqrt(sizes)
    mended = _TO_PARAMETERS @ svec(root @ root.T) if raised else np.asarray(parameters, float)
    return ReferenceBody(mended, root, raised)


def divergence(matrix: np.ndarray) -> float:
    """Return ``tr X - log det X - 4``, 0 for the identity."""
    return float(np.trace(matrix) - np.linalg.slogdet(matrix)[1] - 4)


def divergence_hessian(matrix: np.ndarray) -> np.ndarray:
    """Return the second derivative (10, 10) of the divergence by ``svec X``."""
    inverse = np.linalg.inv(matrix)
    return np.column_stack([svec(inverse @ smat(unit) @ inverse) for unit in np.eye(10)])


FARTHEST = 6.0
"""Largest logarithm of a drawn body's size over its reference: beyond it the matrix soon has no inverse in numbers."""


def random_bodies(deviation: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` matrices X (count, 4, 4) about the identity, ``exp S`` with S symmetric and Gaussian.

    Deviations that data of wrong units ask for would draw bodies of any size: eigenvalues of S end at ``FARTHEST``.
    """
    vectors = deviation * rng.standard_normal((count, 10))
    found = []
    for vector in vectors:
        sizes, axes = np.linalg.eigh(smat(vector))
        found.append((axes * np.exp(np.clip(sizes, -FARTHEST, FARTHEST))) @ axes.T)
    return np.array(found)


def usual_links(robot: Robot) -> dict[str, np.ndarray]:
    """Return ten parameters of links of usual build, by link: rods from joint to joint that share the arm's mass."""
    spans = {}
    for body in robot.bodies:
        ends = [transform_from_placement(o.placement)[1] for o in robot.bodies if o.parent == body.number]
        spans[body.link] = max(ends, key=lambda end: float(end @ end), default=np.zeros(3))
    reach = max(sum(float(np.linalg.norm(span)) for span in spans.values()), 0.1)
    mass = _USUAL_MASS * reach**3 / len(spans)
    found = {}
    for link, span in spans.items():
        radius = 0.1 * reach
        rod = mass * (radius**2 * np.eye(3) / 2 + (float(span @ span) * np.eye(3) - np.outer(span, span)) / 12)
        found[link] = parameters_from_centre(mass, span / 2, rod)
    return found
