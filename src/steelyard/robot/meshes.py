"""Vertices of mesh files (STL, OBJ, COLLADA): as much of a mesh as bounding it needs, read without trust."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import RobotError
from .checks import LARGEST_NUMBER
from .collada import collada_vertices
from .files import content_of

LARGEST_MESH = 100_000_000
"""More bytes than this are no collision mesh."""

STL_HEADER, STL_TRIANGLE = 84, 50
STL_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)
OBJ_VERTEX = re.compile(rb"^[ \t]*v[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)


def read_vertices(path: Path) -> np.ndarray:
    """Return the vertices of a mesh file (N, 3), in the file's axes, COLLADA files in metres.

    Raises:
        RobotError: If the file cannot be read, is too large, of another kind, or holds no finite vertices.
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise RobotError(f"kind of mesh file '{suffix}' is not read; allowed: {', '.join(READERS)}")
    try:
        vertices = READERS[suffix](content_of(path, LARGEST_MESH))
    except RobotError as error:
        # The advice after the semicolon is for robot files.
        raise RobotError(str(error).split(";")[0]) from error
    if not len(vertices):
        raise RobotError("no vertices found")
    if not (np.abs(vertices) <= LARGEST_NUMBER).all():
        raise RobotError(f"a vertex is not finite or beyond {LARGEST_NUMBER:g}")
    return vertices


def stl_vertices(data: bytes) -> np.ndarray:
    """Return the corners of an STL file's triangles, binary or text (N, 3)."""
    triangles = int.from_bytes(data[STL_HEADER - 4 : STL_HEADER], "little") if len(data) >= STL_HEADER else 0
    expected = STL_HEADER + STL_TRIANGLE * triangles
    is_text = data.lstrip()[:5].lower() == b"solid" and len(data) != expected
    if is_text:
        return _numbers(STL_VERTEX.findall(data))
    if len(data) < expected or not triangles:
        raise RobotError(f"not an STL file ({len(data)} bytes do not hold the {triangles} triangles announced)")
    rows = np.frombuffer(data, np.uint8, STL_TRIANGLE * triangles, STL_HEADER).reshape(triangles, STL_TRIANGLE)
    return np.ascontiguousarray(rows[:, 12:48]).view("<f4").reshape(-1, 3).astype(float)


def obj_vertices(data: bytes) -> np.ndarray:
    """Return the vertices of a Wavefront OBJ file (N, 3)."""
    return _numbers(OBJ_VERTEX.findall(data))


def _numbers(words: list[tuple[bytes, ...]]) -> np.ndarray:
    try:
        return np.array([[float(word) for word in row] for row in words]).reshape(-1, 3)
    except ValueError as error:
        raise RobotError(f"a vertex is no three numbers ({error})") from error


READERS: dict[str, Callable[[bytes], np.ndarray]] = {
    ".stl": stl_vertices,
    ".obj": obj_vertices,
    ".dae": collada_vertices,
}
