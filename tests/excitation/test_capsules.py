"""Capsules: distances against codes nobody here wrote, fits that contain everything, pairs that must keep apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from oracles import NO_MUJOCO, NO_PINOCCHIO
from steelyard.errors import DesignError, RobotError
from steelyard.excitation.limits.joint_limits import position_ranges
from steelyard.excitation.space.capsules import (
    Capsule,
    CapsulePair,
    in_base_frame,
    nearest_points,
    without_contained,
)
from steelyard.excitation.space.fitting import bounding_capsule, fitted_capsule, fitted_capsules
from steelyard.excitation.space.rules import ArmPlaces, random_postures
from steelyard.excitation.space.self_collision import self_collision_pairs
from steelyard.physics import pose_function
from steelyard.robot import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    MeshShape,
    Robot,
    SphereShape,
    origin_placement,
    read_urdf,
    read_vertices,
    transform_from_placement,
)

PLACEMENT = origin_placement((0.1, -0.2, 0.3), (0.4, 0.5, -0.6))


def random_ends(count: int, seed: int = 0) -> np.ndarray:
    """Return ends of pairs of segments (4, 3, count): far and near, some of no length, some parallel, some crossing."""
    rng = np.random.default_rng(seed)
    ends = rng.uniform(-1, 1, (4, 3, count))
    ends[:2, :, : count // 2] *= 0.3
    ends[1, :, ::7] = ends[0, :, ::7]
    ends[3, :, ::11] = ends[2, :, ::11]
    ends[3, :, 1::13] = ends[2, :, 1::13] + 1.7 * (ends[1, :, 1::13] - ends[0, :, 1::13])
    ends[3, :, 2::13] = ends[2, :, 2::13] - 0.6 * (ends[1, :, 2::13] - ends[0, :, 2::13]) + 1e-9
    return ends


def distance_to(points: np.ndarray, capsule: Capsule) -> np.ndarray:
    """Return by how much points (N, 3) stick out of a capsule (negative inside)."""
    start, along = np.array(capsule.start), np.array(capsule.end) - np.array(capsule.start)
    place = np.clip((points - start) @ along / max(along @ along, 1e-300), 0, 1)
    return np.linalg.norm(points - start - place[:, None] * along, axis=1) - capsule.radius


def pair(margin: float = 0.0, first: float = 0.1, second: float = 0.2) -> CapsulePair:
    ends = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    return CapsulePair("pair", Capsule("a", *ends, first), Capsule("b", *ends, second), margin)


def ball(link: str | None) -> Capsule:
    return Capsule(link, (0, 0, 0), (0, 0, 0), 1.0)


def test_segment_distances_are_those_of_a_bounded_least_squares_solver():
    ends = random_ends(400)
    found = nearest_points(*ends)
    for column in range(400):
        a, b, c, d = ends[:, :, column]
        solved = lsq_linear(np.stack([b - a, c - d], axis=1), c - a, bounds=(0, 1), tol=1e-14)
        assert found.distance[column] == pytest.approx(np.sqrt(2 * solved.cost), abs=1e-7)
        assert found.distance[column] <= np.sqrt(2 * solved.cost) + 1e-12
    here = ends[0] + found.first * (ends[1] - ends[0]) - ends[2] - found.second * (ends[3] - ends[2])
    np.testing.assert_allclose(here, found.distance * found.direction, atol=1e-12)
    assert ((found.first >= 0) & (found.first <= 1) & (found.second >= 0) & (found.second <= 1)).all()


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-8, 1e-10, 1e-13])
def test_nearly_parallel_segments_keep_their_distance_to_the_last_digits(angle):
    """Two long segments that cross at a height of 0.4 above each other: the distance is 0.4 whatever the angle."""
    half, height = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, 0.4])
    across = np.array([1.0, 0.0, 0.0])
    a, b, c, d = (place[:, None] for place in (-across, across, height - half, height + half))
    assert nearest_points(a, b, c, d).distance[0] == pytest.approx(0.4, abs=1e-15)


def test_clearances_equal_those_of_coal():
    coal: Any = pytest.importorskip("coal", reason=NO_PINOCCHIO)
    rng = np.random.default_rng(2)
    rule, worst = pair(0.03), 0.0
    for _ in range(300):
        lengths = rng.uniform(0.05, 1, 2)
        rotations = Rotation.random(2, rng=rng).as_matrix()
        shifts = rng.uniform(-1, 1, (2, 3))
        shapes = [coal.Capsule(radius, length) for radius, length in zip((0.1, 0.2), lengths, strict=True)]
        poses = [coal.Transform3s(rotation, shift) for rotation, shift in zip(rotations, shifts, strict=True)]
        theirs = coal.distance(shapes[0], poses[0], shapes[1], poses[1], coal.DistanceRequest(), coal.DistanceResult())
        places = [
            shift + side * length / 2 * rotation[:, 2]
            for shift, length, rotation in zip(shifts, lengths, rotations, strict=True)
            for side in (-1, 1)
        ]
        ours = rule.clearance(np.array(places)[:, :, None])[0][0]
        worst = max(worst, abs(ours - (theirs - 0.03)))
    assert worst < 1e-12


def test_clearances_equal_those_of_mujoco():
    mujoco: Any = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    rng = np.random.default_rng(3)
    ends = rng.uniform(-1, 1, (4, 3, 60))
    ours = pair().clearance(ends)[0]
    for column in range(60):
        geoms = ""
        for radius, places in ((0.1, ends[:2, :, column]), (0.2, ends[2:, :, column])):
            numbers = " ".join(repr(float(value)) for value in places.ravel())
            geoms += f'<body><geom type="capsule" size="{radius}" fromto="{numbers}"/></body>'
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        assert ours[column] == pytest.approx(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None), abs=1e-6)


@pytest.mark.parametrize("fixed", [False, True])
def test_gradients_equal_central_differences(fixed):
    ends = np.random.default_rng(4).uniform(-1, 1, (4, 3, 300))
    rule = pair()
    if fixed:
        second = Capsule(None, (0.2, 0.3, -0.4), (0.5, -0.1, 0.7), 0.15)
        ends, rule = ends[:2], CapsulePair("pillar", rule.first, second)
    value, gradient = rule.clearance(ends)
    assert value.shape == (300,)
    assert gradient.shape == ends.shape
    step = 1e-6
    for point, row in np.ndindex(len(ends), 3):
        shift = np.zeros((len(ends), 3, 1))
        shift[point, row] = step
        numeric = (rule.clearance(ends + shift)[0] - rule.clearance(ends - shift)[0]) / (2 * step)
        np.testing.assert_allclose(gradient[point, row], numeric, atol=1e-5)


def test_where_segments_cross_a_way_apart_is_still_given():
    crossing = np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]])
    same = np.array([[-1.0, 0, 0], [1, 0, 0], [-1, 0, 0], [1, 0, 0]])
    one_point = np.zeros((4, 3))
    value, gradient = pair().clearance(np.stack([crossing, same, one_point], axis=2))
    np.testing.assert_allclose(value, -0.3)
    total = np.linalg.norm(gradient[:2].sum(axis=0), axis=0)
    np.testing.assert_allclose(total, 1.0)
    np.testing.assert_allclose(np.abs(gradient[:2].sum(axis=0)[:, 0]), [0, 0, 1], atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.floats(1e-5, 1.0))
def test_a_clearance_never_changes_by_more_than_the_slack(seed, scale):
    rng = np.random.default_rng(seed)
    before, radii = random_ends(100, seed), scale * rng.random((4, 100))
    step = rng.normal(size=(4, 3, 100))
    step *= (radii / np.linalg.norm(step, axis=1))[:, None]
    rule = pair()
    slack = rule.slack(radii)
    np.testing.assert_allclose(slack, radii[:2].max(axis=0) + radii[2:].max(axis=0))
    assert (np.abs(rule.clearance(before + step)[0] - rule.clearance(before)[0]) <= slack + 1e-12).all()


def test_a_capsule_in_the_room_adds_no_points_and_no_slack():
    rule = CapsulePair("pillar", pair().first, Capsule(None, (1, 0, 0), (1, 0, 1), 0.1))
    assert [point.link for point in rule.points] == ["a", "a"]
    np.testing.assert_array_equal(rule.slack(np.array([[1.0, 2.0], [3.0, 1.0]])), [3.0, 2.0])


@pytest.mark.parametrize(
    ("build", "message"),
    {
        "a negative radius": (lambda: Capsule("a", (0, 0, 0), (0, 0, 0), -1), "capsule of link 'a': radius .m. is -1"),
        "an infinite end": (lambda: Capsule(None, (0, 0, 0), (0, np.inf, 0), 1), "capsule: end is"),
        "two coordinates": (lambda: Capsule("a", (0, 0), (0, 0, 0), 1), "start is"),  # pyright: ignore
        "a pair in the room": (lambda: CapsulePair("p", ball(None), ball(None)), "on a link"),
        "a pair on one link": (lambda: CapsulePair("p", ball("a"), ball("a")), "'a' and 'a'"),
        "a negative margin": (lambda: pair(-0.1), "margin .m. is -0.1"),
    }.values(),
)
def test_capsules_that_mean_nothing_are_refused(build, message):
    with pytest.raises(DesignError, match=message):
        build()


def surface(shape: SphereShape | CylinderShape | CapsuleShape | BoxShape, count: int = 4000) -> np.ndarray:
    """Return points on and in a shape, in the link's frame (N, 3)."""
    rng = np.random.default_rng(5)
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    if isinstance(shape, BoxShape):
        local = np.sign(direction) * np.array(shape.size) / 2
    elif isinstance(shape, CylinderShape):
        angle = rng.uniform(0, 2 * np.pi, count)
        height = rng.choice([-1, 1], count) * shape.length / 2
        local = np.stack([shape.radius * np.cos(angle), shape.radius * np.sin(angle), height], axis=1)
    else:
        half = shape.length / 2 if isinstance(shape, CapsuleShape) else 0.0
        local = shape.radius * direction + np.sign(direction[:, 2:]) * np.array([0, 0, half])
    rotation, translation = transform_from_placement(shape.placement)
    return local @ rotation.T + translation


@pytest.mark.parametrize(
    "shape",
    [
        SphereShape(PLACEMENT, 0.2),
        CylinderShape(PLACEMENT, 0.2, 0.7),
        CapsuleShape(PLACEMENT, 0.2, 0.7),
        BoxShape(PLACEMENT, (0.2, 0.7, 0.3)),
        BoxShape(PLACEMENT, (0.5, 0.5, 0.0)),
    ],
    ids=lambda shape: type(shape).__name__,
)
def test_a_fitted_capsule_contains_its_shape_and_touches_it(shape):
    capsule = fitted_capsule("hand", shape)
    assert capsule.link == "hand"
    out = distance_to(surface(shape), capsule)
    assert -0.01 < out.max() < 1e-12


def test_spheres_capsules_and_cylinders_keep_their_radius_and_length():
    for shape, length in (
        (SphereShape(PLACEMENT, 0.2), 0.0),
        (CylinderShape(PLACEMENT, 0.2, 0.7), 0.7),
        (CapsuleShape(PLACEMENT, 0.2, 0.7), 0.7),
    ):
        capsule = fitted_capsule("hand", shape)
        assert capsule.radius == 0.2
        assert np.linalg.norm(np.subtract(capsule.end, capsule.start)) == pytest.approx(length)


def test_the_capsule_around_points_of_a_capsule_is_hardly_larger():
    points = surface(CapsuleShape(PLACEMENT, 0.1, 0.8))
    capsule = bounding_capsule("hand", points)
    assert distance_to(points, capsule).max() <= 0
    assert capsule.radius < 0.1 * 1.03
    assert np.linalg.norm(np.subtract(capsule.end, capsule.start)) < 0.8 * 1.03


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((1, 3)),
        np.ones((5, 3)),
        np.eye(3)[:2],
        np.eye(3),
        np.outer(np.arange(9.0), [1, 2, 3]),
        1e-6 * np.eye(3),
    ],
    ids=["one", "one many times", "two", "three", "a line", "tiny"],
)
def test_points_that_span_no_volume_are_contained_too(points):
    capsule = bounding_capsule(None, points + 0.5)
    assert distance_to(points + 0.5, capsule).max() <= 1e-15
    assert capsule.radius <= 1.02 * np.ptp(points, axis=0).max()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 60), time_scale=st.floats(0.01, 100))
def test_bounding_capsules_contain_all_points(seed, count, time_scale):
    points = np.random.default_rng(seed).normal(size=(count, 3)) * [1, time_scale, 1] + [3, -7, 20]
    assert distance_to(points, bounding_capsule(None, points)).max() <= 0


SHAPED = """<robot name="shaped"><link name="base">{base}</link><link name="a">{a}</link><link name="b">{b}</link>
  <link name="c">{c}</link><link name="tool">{tool}</link>
  <joint name="one" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="1" effort="10"/></joint>
  <joint name="two" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-2.4" upper="2.4" velocity="1" effort="10"/></joint>
  <joint name="three" type="revolute"><parent link="b"/><child link="c"/><origin xyz="0 0 0.4"/><axis xyz="0 1 0"/>
    <limit lower="-2.6" upper="2.6" velocity="1" effort="10"/></joint>
  <joint name="mount" type="fixed"><parent link="c"/><child link="tool"/><origin xyz="0 0 0.3"/></joint></robot>"""


def collision(length: float, radius: float = 0.05, shift: float = 0.0) -> str:
    return (
        f'<collision><origin xyz="{shift} 0 {length / 2}"/><geometry><capsule radius="{radius}" length="{length}"/>'
        "</geometry></collision>"
    )


def shaped(**links: str) -> Robot:
    plain = {
        "base": collision(0.2),
        "a": collision(0.2),
        "b": collision(0.35),
        "c": collision(0.25),
        "tool": collision(0.1),
    }
    return read_urdf(SHAPED.format(**{**plain, **links}).encode())


def test_bodies_are_paired_but_not_with_neighbours_and_not_with_themselves():
    robot = shaped()
    pairs, notes = self_collision_pairs(robot, fitted_capsules(robot)[0])
    assert {pair.name for pair in pairs} == {"base - b", "base - c", "base - tool", "a - c", "a - tool"}
    assert notes == ()
    assert all(pair.margin == 0.01 for pair in pairs)
    assert {pair.name: pair.first.link for pair in pairs}["base - c"] == "c"
    assert [pair.second.link for pair in pairs if pair.name.startswith("base")] == [None] * 3


def test_pairs_measure_what_the_arm_s_poses_say():
    robot = shaped()
    pairs, _ = self_collision_pairs(robot, fitted_capsules(robot)[0], margin=0.0)
    rule = next(pair for pair in pairs if pair.name == "a - tool")
    arm = ArmPlaces(robot, rule.points)
    q = np.array([0.3, 0.9, 2.2])
    value = rule.clearance(arm.of(rule, arm.at(q[:, None])))[0][0]
    samples = np.linspace(0, 1, 2001)
    ends = []
    for link, length in (("a", 0.2), ("tool", 0.1)):
        pose = np.array(pose_function(robot, link)(q, []))
        ends.append((pose @ np.stack([0 * samples, 0 * samples, length * samples, np.ones_like(samples)])).T)
    gaps = np.linalg.norm(ends[0][:, None] - ends[1][None, ::10], axis=2)
    assert value == pytest.approx(gaps.min() - 0.1, abs=1e-3)


def test_clearances_of_an_arm_have_exact_gradients_by_its_joints():
    robot = shaped()
    pairs, _ = self_collision_pairs(robot, fitted_capsules(robot)[0])
    arm = ArmPlaces(robot, (point for pair in pairs for point in pair.points))
    q = np.array([0.3, 0.9, 2.1])
    for rule in pairs:
        gradient = arm.clearance_and_gradient(rule, q)[1]
        steps = 1e-6 * np.eye(3)
        numeric = [
            (arm.clearance_and_gradient(rule, q + step)[0] - arm.clearance_and_gradient(rule, q - step)[0]) / 2e-6
            for step in steps
        ]
        np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def test_pairs_that_always_overlap_are_left_out_with_a_note():
    fat = {"a": collision(0.3) + collision(0.3, 0.02, shift=0.2), "c": collision(0.25, 0.37), "tool": collision(0.4)}
    robot = shaped(**fat)
    pairs, notes = self_collision_pairs(robot, fitted_capsules(robot)[0])
    assert "a 2 - tool" in {pair.name for pair in pairs}
    assert "a 1 - c" not in {pair.name for pair in pairs}
    assert len(notes) == 1
    assert "a 1 - c (100 %)" in notes[0]
    assert "[[capsule]]" in notes[0]


def test_a_pair_that_overlaps_in_the_middle_posture_is_left_out_with_a_note():
    robot = shaped()
    lamp = Capsule("base", (0.0, 0.0, 1.35), (0.0, 0.0, 1.35), 0.05)
    capsules = [capsule for capsule in fitted_capsules(robot)[0] if capsule.link == "tool"]
    assert self_collision_pairs(robot, [lamp, *capsules])[0] == ()
    assert "base - tool (" in self_collision_pairs(robot, [lamp, *capsules])[1][0]
    away = (np.array([-2.0, 1.0, -2.0]), np.array([2.0, 2.0, 2.0]))
    pairs, notes = self_collision_pairs(robot, [lamp, *capsules], ranges=away)
    assert [pair.name for pair in pairs] == ["base - tool"]
    assert notes == ()


def test_pairs_to_ignore_are_left_out_and_must_exist():
    robot = shaped()
    capsules = fitted_capsules(robot)[0]
    pairs, notes = self_collision_pairs(robot, capsules, ignore=[("tool", "a"), ("base", "c")], margin=0.0)
    assert {pair.name for pair in pairs} == {"base - b", "base - tool", "a - c"}
    assert notes == ()
    with pytest.raises(DesignError, match="names link 'arm', which carries no capsule; links that do: a, b, base"):
        self_collision_pairs(robot, capsules, ignore=[("arm", "a")])


def test_an_arm_of_neighbours_only_has_no_pairs():
    robot = shaped(a="", c="", tool="")
    assert self_collision_pairs(robot, fitted_capsules(robot)[0][1:]) == ((), ())
    assert self_collision_pairs(robot, ()) == ((), ())


def test_capsules_inside_others_of_the_same_body_are_dropped():
    robot = shaped(c=collision(0.4, 0.2) + collision(0.3, 0.1))
    assert [capsule.link for capsule in fitted_capsules(robot)[0]] == ["base", "a", "b", "c"]
    alike = [Capsule("b", (0, 0, 0), (0, 0, 1), 0.1) for _ in range(3)]
    assert len(without_contained(alike, robot)) == 1
    assert len(without_contained([alike[0], Capsule("b", (0, 0, 0), (0, 0, 1.01), 0.1)], robot)) == 2


def test_capsules_of_links_that_stand_still_move_to_the_base_frame():
    robot = shaped().with_locked({"one": np.pi / 2, "two": 0.0})
    fixed = in_base_frame(Capsule("b", (0.1, 0, 0), (0, 0, 0.2), 0.3), robot)
    assert fixed.link is None
    np.testing.assert_allclose([fixed.start, fixed.end], [[0, 0.1, 0.6], [0, 0, 0.8]], atol=1e-12)
    moving = Capsule("c", (0, 0, 0), (0, 0, 1), 0.1)
    assert in_base_frame(moving, robot) is moving


def test_a_mesh_that_is_missing_gives_a_note_and_no_capsule(tmp_path):
    mesh = '<collision><geometry><mesh filename="{}"/></geometry></collision>'
    (tmp_path / "bad.stl").write_bytes(b"nothing")
    text = SHAPED.format(base="", a=mesh.format("gone.stl"), b=mesh.format("bad.stl"), c=collision(0.2), tool="")
    (tmp_path / "arm.urdf").write_text(text)
    capsules, notes = fitted_capsules(read_urdf(tmp_path / "arm.urdf"))
    assert [capsule.link for capsule in capsules] == ["c"]
    assert len(notes) == 1
    assert "meshes of 'a', 'b' are not used: mesh file 'gone.stl' is not found" in notes[0]
    with pytest.raises(RobotError, match=r"'bad.stl' is not read \(not an STL file"):
        fitted_capsule("b", MeshShape((), "bad.stl", tmp_path / "bad.stl"))


def test_random_postures_begin_in_the_middle_and_keep_their_ranges():
    lower, upper = np.array([-1.0, 2.0]), np.array([2.0, 3.0])
    postures = random_postures(lower, upper, 500, 1)
    np.testing.assert_array_equal(postures[:, 0], [0.5, 2.5])
    assert ((postures >= lower[:, None]) & (postures <= upper[:, None])).all()
    np.testing.assert_array_equal(postures, random_postures(lower, upper, 500, 1))


def example(name: str) -> Path:
    """Return the path of a robot of the package example-robot-data, wherever it was put."""
    pin: Any = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    found = sorted((Path(pin.__file__).parents[4] / "share" / "example-robot-data").rglob(name))
    if not found:
        pytest.skip("the package example-robot-data is not installed: run 'make test-all'")
    return found[0]


@pytest.mark.large
@pytest.mark.parametrize("name", ["panda.urdf", "ur5_robot.urdf", "kinova.urdf", "xarm7.urdf", "tiago_no_hand.urdf"])
def test_capsules_contain_the_meshes_of_example_robots_as_others_read_them(name):
    trimesh: Any = pytest.importorskip("trimesh")
    coal: Any = pytest.importorskip("coal", reason=NO_PINOCCHIO)
    robot = read_urdf(example(name))
    checked = 0
    for link in robot.links:
        for shape in link.shapes:
            if not isinstance(shape, MeshShape):
                continue
            assert shape.path is not None
            if shape.path.suffix.lower() == ".dae":
                vertices = np.array(coal.MeshLoader().load(str(shape.path), np.ones(3)).vertices())
            else:
                vertices = np.asarray(trimesh.load(shape.path, force="mesh").vertices)
            ours = read_vertices(shape.path)
            np.testing.assert_allclose([ours.min(0), ours.max(0)], [vertices.min(0), vertices.max(0)], atol=1e-6)
            rotation, translation = transform_from_placement(shape.placement)
            capsule = fitted_capsule(link.name, shape)
            # Coal keeps single precision.
            assert distance_to(vertices * shape.scale @ rotation.T + translation, capsule).max() <= 1e-7
            checked += 1
    assert checked > 3


@pytest.mark.large
@pytest.mark.parametrize("name", ["panda.urdf", "ur5_robot.urdf", "talos_left_arm.urdf"])
def test_pairs_of_example_robots_are_as_far_apart_as_pinocchio_and_coal_say(name):
    pin: Any = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    coal: Any = pytest.importorskip("coal", reason=NO_PINOCCHIO)
    robot = read_urdf(example(name), right_angle_tolerance=0)
    capsules, notes = fitted_capsules(robot)
    assert notes == ()
    pairs, _ = self_collision_pairs(robot, capsules, margin=0.0)
    model = pin.buildModelFromUrdf(str(example(name)))
    data = model.createData()
    coupling, offset = robot.coupling()
    arm = ArmPlaces(robot, (point for pair in pairs for point in pair.points))
    postures = random_postures(*position_ranges(robot), 5, 8)

    def placed(capsule: Capsule) -> tuple[Any, Any]:
        start, end = np.array(capsule.start), np.array(capsule.end)
        if capsule.link is not None:
            pose = data.oMf[model.getFrameId(capsule.link)]
            start, end = pose.act(start), pose.act(end)
        length = np.linalg.norm(end - start)
        turn = Rotation.align_vectors([end - start], [[0, 0, 1.0]])[0].as_matrix() if length else np.eye(3)
        return coal.Capsule(capsule.radius, float(length)), coal.Transform3s(turn, (start + end) / 2)

    for q in postures.T:
        full = np.zeros(model.nq)
        for body, value in zip(robot.bodies, coupling @ q + offset, strict=True):
            full[model.joints[model.getJointId(body.joint.name)].idx_q] = value
        pin.framesForwardKinematics(model, data, full)
        places = arm.at(q[:, None])
        for rule in pairs:
            (one, here), (other, there) = placed(rule.first), placed(rule.second)
            theirs = coal.distance(one, here, other, there, coal.DistanceRequest(), coal.DistanceResult())
            # Coal takes a capsule some nanometres long for a ball.
            assert rule.clearance(arm.of(rule, places))[0][0] == pytest.approx(theirs, abs=1e-8)
