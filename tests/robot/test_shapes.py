"""Collision shapes of URDFs and the vertices of their meshes: read, found, or left out with a reason."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import RobotError
from steelyard.robot import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    MeshShape,
    Robot,
    SphereShape,
    read_urdf,
    read_vertices,
    transform_from_placement,
)

TETRAHEDRON = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])
FACES = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))


def urdf(*collisions: str) -> bytes:
    return (
        '<robot name="arm"><link name="base"/><link name="hand">'
        + "".join(f"<collision>{inside}</collision>" for inside in collisions)
        + '</link><joint name="turn" type="continuous"><parent link="base"/><child link="hand"/></joint></robot>'
    ).encode()


def geometry(inside: str) -> str:
    return f"<geometry>{inside}</geometry>"


def shapes_of(robot: Robot):
    return {link.name: link.shapes for link in robot.links}["hand"]


def binary_stl(vertices: np.ndarray = TETRAHEDRON, header: bytes = b"") -> bytes:
    rows = b"".join(struct.pack("<12fH", *np.zeros(3), *vertices[list(face)].ravel(), 0) for face in FACES)
    return header.ljust(80, b"\0") + struct.pack("<I", len(FACES)) + rows


def text_stl() -> bytes:
    corners = [
        "facet normal 0 0 0\nouter loop\n"
        + "\n".join("vertex {} {} {:e}".format(*TETRAHEDRON[corner]) for corner in face)
        + "\nendloop\nendfacet"
        for face in FACES
    ]
    return ("solid thing\n" + "\n".join(corners) + "\nendsolid").encode()


def collada(
    nodes: str = '<node><instance_geometry url="#g"/></node>',
    unit: str = "",
    positions: str = "0 0 0  1 0 0  0 2 0  0 0 3  9 9 9",
    faces: str = '<triangles count="4"><input semantic="VERTEX" source="#v" offset="1"/>'
    '<input semantic="NORMAL" source="#n" offset="0"/><p>0 0 0 1 0 2 0 0 0 1 0 3 0 0 0 2 0 3</p></triangles>',
    libraries: str = "",
) -> bytes:
    return f"""<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"><asset>{unit}<up_axis>Y_UP</up_axis></asset>
      <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array id="pa" count="15">{positions}</float_array></source>
        <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{faces}
      </mesh></geometry></library_geometries>
      {libraries}<library_visual_scenes><visual_scene id="s">{nodes}</visual_scene></library_visual_scenes>
      </COLLADA>""".encode()


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def corner_set(vertices: np.ndarray) -> set[tuple[float, ...]]:
    return {tuple(row) for row in np.round(vertices, 9)}


def test_each_shape_is_kept_with_its_measures_and_its_placement():
    origin = '<origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/>'
    robot = read_urdf(
        urdf(
            origin + geometry('<sphere radius="0.1"/>'),
            geometry('<cylinder radius="0.1" length="0.5"/>'),
            geometry('<capsule radius="0.2" length="0.6"/>'),
            geometry('<box size="1 2 3"/>'),
            geometry('<mesh filename="a.stl" scale="0.001 0.001 -0.001"/>'),
        )
    )
    sphere, cylinder, capsule, box, mesh = shapes_of(robot)
    assert isinstance(sphere, SphereShape)
    assert sphere.radius == 0.1
    rotation, translation = transform_from_placement(sphere.placement)
    np.testing.assert_allclose(rotation @ [1, 0, 0], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(translation, [0.1, 0.2, 0.3])
    assert isinstance(cylinder, CylinderShape)
    assert (cylinder.radius, cylinder.length) == (0.1, 0.5)
    assert isinstance(capsule, CapsuleShape)
    assert (capsule.radius, capsule.length) == (0.2, 0.6)
    assert isinstance(box, BoxShape)
    assert box.size == (1, 2, 3)
    assert isinstance(mesh, MeshShape)
    assert (mesh.name, mesh.path, mesh.scale) == ("a.stl", None, (0.001, 0.001, -0.001))
    assert robot.notes == ()


@pytest.mark.parametrize(
    ("inside", "reason"),
    {
        "no geometry": ("", "0 elements in its <geometry>"),
        "an empty geometry": (geometry(""), "0 elements"),
        "two shapes in one": (geometry('<sphere radius="1"/><sphere radius="1"/>'), "2 elements"),
        "an unknown shape": (geometry('<spere radius="1"/>'), "did you mean 'sphere'"),
        "no radius": (geometry("<sphere/>"), "no attribute 'radius'"),
        "a negative radius": (geometry('<sphere radius="-1"/>'), "zero or positive"),
        "a radius that is a word": (geometry('<sphere radius="big"/>'), "allowed: a number"),
        "a radius that is nan": (geometry('<sphere radius="nan"/>'), "finite"),
        "an infinite length": (geometry('<cylinder radius="1" length="inf"/>'), "finite"),
        "a box with two sides": (geometry('<box size="1 2"/>'), "three numbers"),
        "a mesh without a file": (geometry("<mesh/>"), "no attribute 'filename'"),
        "a mesh with an empty name": (geometry('<mesh filename=" "/>'), "0 letters"),
        "a mesh name beyond all measure": (geometry(f'<mesh filename="{"a" * 9000}"/>'), "9000 letters"),
        "a scale of one number": (geometry('<mesh filename="a.stl" scale="2"/>'), "three numbers"),
        "a broken origin": ('<origin xyz="0 0"/>' + geometry('<sphere radius="1"/>'), "three numbers"),
    }.values(),
)
def test_a_broken_shape_is_left_out_with_a_note_and_the_robot_stays_readable(inside, reason):
    robot = read_urdf(urdf(inside, geometry('<sphere radius="0.3"/>')))
    assert [type(shape) for shape in shapes_of(robot)] == [SphereShape]
    assert len(robot.notes) == 1
    assert robot.notes[0].startswith("link 'hand': a collision shape is left out: ")
    assert reason in robot.notes[0]


def test_many_broken_shapes_of_a_link_give_one_note():
    robot = read_urdf(urdf(*[geometry("<sphere/>")] * 300))
    assert shapes_of(robot) == ()
    assert len(robot.notes) == 1
    assert "300 collision shapes are left out" in robot.notes[0]


@pytest.mark.parametrize(
    "name",
    [
        "part.stl",
        "package://pkg/urdf/part.stl",
        "package:///pkg/urdf/part.stl",
        "../urdf/part.stl",
        "file://{folder}/part.stl",
    ],
)
def test_meshes_are_found_beside_the_file_in_their_package_and_by_absolute_name(tmp_path, name):
    mesh = written(tmp_path / "pkg/urdf", "part.stl", binary_stl())
    text = urdf(geometry(f'<mesh filename="{name.format(folder=mesh.parent)}"/>'))
    robot = read_urdf(written(tmp_path / "pkg/urdf", "arm.urdf", text))
    shape = shapes_of(robot)[0]
    assert isinstance(shape, MeshShape)
    assert shape.path is not None
    assert shape.path.samefile(mesh)


@pytest.mark.parametrize(
    "name", ["gone.stl", "package://other/part.stl", "http://host/part.stl", "model://part.stl", ".", "/"]
)
def test_a_mesh_that_is_nowhere_has_no_path(tmp_path, name):
    robot = read_urdf(written(tmp_path, "arm.urdf", urdf(geometry(f'<mesh filename="{name}"/>'))))
    assert [shape.path for shape in shapes_of(robot) if isinstance(shape, MeshShape)] == [None]


def test_a_description_in_bytes_finds_no_relative_mesh(tmp_path, monkeypatch):
    written(tmp_path, "part.stl", binary_stl())
    monkeypatch.chdir(tmp_path)
    assert [s.path for s in shapes_of(read_urdf(urdf(geometry('<mesh filename="part.stl"/>'))))] == [None]  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "content"),
    {
        "binary STL": ("a.stl", binary_stl()),
        "binary STL that begins as text does": ("a.STL", binary_stl(header=b"solid thing")),
        "binary STL with bytes after it": ("a.stl", binary_stl() + b"more"),
        "text STL": ("a.stl", text_stl()),
        "OBJ": ("a.obj", b"# comment\nv 0 0 0\nv 1 0 0 1.0\nvn 5 5 5\nvt 7 7\n v 0 2 0\nv\t0 0 3\nf 1 2 3\n"),
        "COLLADA": ("a.dae", collada()),
    }.values(),
)
def test_vertices_are_read_from_every_kind_of_mesh(tmp_path, name, content):
    assert corner_set(read_vertices(written(tmp_path, name, content))) == corner_set(TETRAHEDRON)


def test_a_collada_scene_is_placed_by_its_nodes_and_measured_in_its_unit(tmp_path):
    nodes = """<node><translate>10 0 0</translate><rotate>0 0 1 90</rotate><scale>1 1 2</scale>
      <node><matrix>1 0 0 0 0 1 0 0 0 0 1 5 0 0 0 1</matrix><instance_node url="#shared"/></node></node>"""
    shared = '<library_nodes><node id="shared"><instance_geometry url="#g"/></node></library_nodes>'
    data = collada(nodes, '<unit meter="0.01"/>', libraries=shared)
    expected = 0.01 * np.array([[10 - y, x, 2 * (z + 5)] for x, y, z in TETRAHEDRON])
    assert corner_set(read_vertices(written(tmp_path, "a.dae", data))) == corner_set(expected)


def test_a_collada_geometry_without_faces_gives_all_its_positions(tmp_path):
    assert len(read_vertices(written(tmp_path, "a.dae", collada(faces="")))) == 5


DOUBLING = "".join(
    f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>' for k in range(40)
)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    {
        "an unknown kind": ("a.mesh", b"x", "kind of mesh file '.mesh'"),
        "an empty file": ("a.stl", b"", "empty"),
        "a short STL": ("a.stl", b"\0" * 90, "not an STL file"),
        "an STL that promises more than it holds": ("a.stl", binary_stl()[:-1], "do not hold"),
        "a text STL with a word for a number": ("a.stl", b"solid\nvertex 1 2 x", "no three numbers"),
        "a text STL without vertices": ("a.stl", b"solid nothing\nendsolid", "no vertices"),
        "an STL with a vertex that is nan": ("a.stl", binary_stl(TETRAHEDRON * np.nan), "not finite"),
        "an OBJ without vertices": ("a.obj", b"f 1 2 3", "no vertices"),
        "an OBJ with an infinite vertex": ("a.obj", b"v 1 2 inf", "not finite"),
        "COLLADA that is no XML": ("a.dae", b"<COLLADA>", "not XML"),
        "COLLADA with a document type": ("a.dae", b"<!DOCTYPE a><COLLADA/>", "DOCTYPE"),
        "COLLADA without a scene": ("a.dae", collada(nodes=""), "no vertices"),
        "COLLADA with an odd number of coordinates": ("a.dae", collada(positions="1 2"), "multiple of three"),
        "COLLADA with a word for a number": ("a.dae", collada(positions="1 2 x"), "could not convert"),
        "COLLADA with an empty unit": ("a.dae", collada(unit='<unit meter=""/>'), "1 are expected"),
        "COLLADA with a short matrix": ("a.dae", collada("<node><matrix>1 2</matrix></node>"), "16 are expected"),
        "COLLADA that multiplies without end": (
            "a.dae",
            collada('<node><instance_node url="#n0"/></node>', libraries=f"<library_nodes>{DOUBLING}</library_nodes>"),
            "more than 10000 parts",
        ),
        "COLLADA that contains itself": (
            "a.dae",
            collada('<node id="me"><instance_node url="#me"/></node>'),
            "nested more than",
        ),
    }.values(),
)
def test_a_mesh_that_cannot_be_read_says_why(tmp_path, name, content, reason):
    with pytest.raises(RobotError, match=r"\S") as caught:
        read_vertices(written(tmp_path, name, content))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mesh_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.robot.meshes.LARGEST_MESH", 100)
    with pytest.raises(RobotError, match="larger than"):
        read_vertices(written(tmp_path, "a.stl", binary_stl()))
