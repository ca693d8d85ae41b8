"""Points that bound collision shapes: vertices of mesh files (STL, OBJ, COLLADA), read without trust, and corners.

Geometries of a COLLADA file are put where its scene places them, in metres. The file's unit is applied, its up axis is
not, as robot descriptions use these files.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..configuration import LARGEST_NUMBER
from ..errors import RobotError
from ..files import too_large
from .files import LARGEST_FILE, content_of, parse_xml_safely
from .parts import BoxShape, CapsuleShape, MeshShape, Shape, SphereShape
from .placement import rotation_about_axis, transform_from_placement

# Nodes that draw in other nodes can multiply: no collision mesh has more of either.
MOST_PARTS = 10_000
MOST_VERTICES = 10_000_000
DEEPEST_NODE = 50
MOST_OFFSETS = 100


def collada_vertices(data: bytes) -> np.ndarray:
    """Return the vertices of every geometry that the scene shows (N, 3) [m]."""
    if len(data) > LARGEST_FILE:
        raise RobotError(too_large(LARGEST_FILE))
    root = parse_xml_safely(data).getroot()
    by_id = {element.get("id"): element for element in root.iter("{*}geometry", "{*}node")}
    unit = root.find("{*}asset/{*}unit")
    metre = _floats("1" if unit is None else unit.get("meter", "1"), "unit", 1)[0]
    points: dict[str, np.ndarray] = {}
    placed, total = [np.zeros((0, 3))], 0
    for geometry, transform in _instances(root, by_id):
        if geometry not in points:
            points[geometry] = _positions(by_id[geometry])
        total += len(points[geometry])
        if total > MOST_VERTICES:
            raise RobotError(f"the scene has more than {MOST_VERTICES} vertices")
        placed.append(points[geometry] @ transform[:3, :3].T + transform[:3, 3])
    return np.concatenate(placed) * metre


def _instances(root: etree._Element, by_id: Mapping[str, etree._Element]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the geometries shown, each with its transform (4, 4) into the scene."""
    stack = [
        (node, np.eye(4), 0)
        for scene in root.iterfind("{*}library_visual_scenes/{*}visual_scene")
        for node in scene.iterchildren("{*}node")
    ]
    parts = 0
    while stack:
        node, outer, depth = stack.pop()
        parts += 1
        if depth > DEEPEST_NODE or parts > MOST_PARTS:
            raise RobotError(f"the scene is nested more than {DEEPEST_NODE} deep or has more than {MOST_PARTS} parts")
        transform = outer @ _node_transform(node)
        stack += [(inner, transform, depth + 1) for inner in node.iterchildren("{*}node")]
        for instance in node.iterchildren("{*}instance_node", "{*}instance_geometry"):
            target = (instance.get("url") or "").removeprefix("#")
            if target not in by_id:
                continue  # drawn in from another file, or of a kind without vertices
            if etree.QName(instance).localname == "instance_geometry":
                yield target, transform
            else:
                stack.append((by_id[target], transform, depth + 1))


def _node_transform(node: etree._Element) -> np.ndarray:
    """Return the product of a node's matrices, translations, rotations and scales, in their order (4, 4)."""
    total = np.eye(4)
    for part in node.iterchildren("{*}matrix", "{*}translate", "{*}rotate", "{*}scale"):
        kind, step = etree.QName(part).localname, np.eye(4)
        numbers = _floats(part.text or "", kind, {"matrix": 16, "rotate": 4}.get(kind, 3))
        if kind == "matrix":
            step = numbers.reshape(4, 4)
        elif kind == "translate":
            step[:3, 3] = numbers
        elif kind == "scale":
            step[:3, :3] = np.diag(numbers)
        elif numbers[:3].any():
            x, y, z = (float(value) for value in numbers[:3] / np.linalg.norm(numbers[:3]))
            step[:3, :3] = rotation_about_axis((x, y, z), float(np.radians(numbers[3])))
        total = total @ step
    return total


def _positions(geometry: etree._Element) -> np.ndarray:
    """Return the positions of a geometry's vertices (N, 3), in the geometry's axes; those no face uses are left out."""
    arrays = {source.get("id"): source.find("{*}float_array") for source in geometry.iter("{*}source")}
    found = [np.zeros((0, 3))]
    for vertices in geometry.iter("{*}vertices"):
        entry = vertices.find("{*}input[@semantic='POSITION']")
        array = None if entry is None else arrays.get((entry.get("source") or "").removeprefix("#"))
        numbers = _floats("" if array is None else array.text or "", "float_array")
        if len(numbers) % 3:
            raise RobotError(f"<float_array> of positions has {len(numbers)} numbers, no multiple of three")
        positions = numbers.reshape(-1, 3)
        used = _used(geometry, vertices.get("id", ""))
        # Files cut from a larger model keep all its positions and use a few of them.
        found.append(positions[used[used < len(positions)]] if len(used) else positions)
    return np.concatenate(found)


def _used(geometry: etree._Element, vertices: str) -> np.ndarray:
    """Return the numbers of the vertices that faces use."""
    found = [np.zeros(0, dtype=np.int64)]
    for entry in geometry.iterfind(".//{*}input[@semantic='VERTEX']"):
        faces = entry.getparent()
        if (entry.get("source") or "").removeprefix("#") != vertices or faces is None:
            continue
        offsets = _floats(" ".join(other.get("offset", "0") for other in faces.iterchildren("{*}input")), "input")
        stride = int(offsets.clip(0, MOST_OFFSETS).max(initial=0)) + 1
        first = int(_floats(entry.get("offset", "0"), "input", 1)[0])
        for indices in faces.iter("{*}p"):
            found.append(_floats(indices.text or "", "p")[max(first, 0) :: stride].clip(0).astype(np.int64))
    return np.unique(np.concatenate(found))


def _floats(text: str, what: str, count: int | None = None) -> np.ndarray:
    try:
        numbers = np.array(text.split(), dtype=float)
    except ValueError as error:
        raise RobotError(f"<{what}>: {error}") from error
    if count is not None and len(numbers) != count:
        raise RobotError(f"<{what}> has {len(numbers)} numbers, {count} are expected")
    if not (np.abs(numbers) <= LARGEST_NUMBER).all():
        raise RobotError(f"<{what}>: a number is not finite or beyond {LARGEST_NUMBER:g}")
    return numbers


LARGEST_MESH = 100_000_000
"""More bytes than this are no collision mesh."""

STL_HEADER, STL_TRIANGLE = 84, 50
STL_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)
OBJ_VERTEX = re.compile(rb"^[ \t]*v[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)


def read_vertices(path: Path) -> np.ndarray:
    """Return the vertices of a mesh file (N, 3), in the file's axes, COLLADA files in metres.

    Raises:
        RobotError: If the file cannot be read, is too large, of another kind, or holds no finite vertices.

    Example:
        >>> from pathlib import Path
        >>> from steelyard.robot import read_vertices
        >>> size = Path("hand.obj").write_text("v 0.1 0 0")
        >>> read_vertices(Path("hand.obj")).shape
        (1, 3)
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise RobotError(f"kind of mesh file '{suffix}' is not read; allowed: {', '.join(READERS)}")
    try:
        vertices = READERS[suffix](content_of(path, LARGEST_MESH))
    except RobotError as error:
        # The remedy after the semicolon is for robot files.
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


def _numbers(rows: list[tuple[bytes, ...]]) -> np.ndarray:
    try:
        return np.array([[float(entry) for entry in row] for row in rows]).reshape(-1, 3)
    except ValueError as error:
        raise RobotError(f"a vertex is no three numbers ({error})") from error


READERS: dict[str, Callable[[bytes], np.ndarray]] = {
    ".stl": stl_vertices,
    ".obj": obj_vertices,
    ".dae": collada_vertices,
}


def shape_points(shape: Shape) -> np.ndarray:
    """Return points (n, 3) in the link's frame whose convex hull contains a shape.

    Vertices of a mesh; corners of a box, or of the box around a round shape.

    Raises:
        RobotError: If the file of a mesh was not found or cannot be read.

    Example:
        >>> from steelyard.robot import BoxShape, origin_placement, shape_points
        >>> shape_points(BoxShape(origin_placement((0, 0, 0.5), (0, 0, 0)), (0.2, 0.2, 1.0))).max(axis=0).tolist()
        [0.1, 0.1, 1.0]
    """
    rotation, translation = transform_from_placement(shape.placement)
    return _own_points(shape) @ rotation.T + translation


def _own_points(shape: Shape) -> np.ndarray:
    if isinstance(shape, MeshShape):
        return _mesh_vertices(shape)
    if isinstance(shape, BoxShape):
        size = shape.size
    else:
        wide = 2 * shape.radius
        ends = wide if isinstance(shape, CapsuleShape | SphereShape) else 0.0
        size = (wide, wide, ends + (0.0 if isinstance(shape, SphereShape) else shape.length))
    return np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * np.array(size)


def _mesh_vertices(shape: MeshShape) -> np.ndarray:
    if shape.path is None:
        raise RobotError(f"mesh file '{shape.name}' is not found beside the robot's file or its packages")
    try:
        return read_vertices(shape.path) * np.array(shape.scale)
    except RobotError as error:
        raise RobotError(f"mesh file '{shape.name}' is not read ({error})") from error
