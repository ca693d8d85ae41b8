"""Base, tool and markers found from measurements alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.calibration.chain.registration import frame_numbers, register
from steelyard.calibration.measurement.measurements import Measurements
from steelyard.calibration.measurement.setup import CalibrationSetup, FrameSetup, Kind, MarkerSetup
from steelyard.errors import CalibrationError

MARKERS = np.array([[0.1, 0.2, -0.2], [0.1, -0.2, -0.15], [0.25, 0.05, -0.35]])
NAMES = ("a", "b", "c")


def link_poses(rng, count):
    """Return rotations and positions of a link over a workspace of two metres."""
    return Rotation.random(count, rng=rng).as_matrix(), rng.uniform(-1, 1, (count, 3))


def seen_by(base, rotation, position, markers):
    """Return the measured positions of markers (M, 3): a row for every pose and marker."""
    turn, at = base[:9].reshape(3, 3), base[9:]
    return np.array([turn @ (t + r @ m) + at for r, t in zip(rotation, position, strict=True) for m in markers])


def random_base(rng):
    return np.concatenate([Rotation.random(rng=rng).as_matrix().ravel(), rng.normal(size=3) * 5])


def measurements_of(value, markers=3, rotation=None, kind: Kind = "position"):
    rows = len(value)
    number = np.arange(rows)
    posed = kind == "pose"
    return Measurements(
        joints=("j",), q=np.zeros((1, rows)), kind=(kind,) * rows, pose=number // markers,
        marker=np.full(rows, -1) if posed else number % markers, other=np.full(rows, -1), load=np.full(rows, -1),
        value=value, rotation=np.full((rows, 3, 3), np.nan) if rotation is None else rotation,
        repeat=np.zeros(rows, dtype=int), poses=tuple(f"P{k}" for k in range(-(-rows // markers))),
        markers=() if posed else NAMES[:markers],
    )  # fmt: skip


def setup_of(markers=None, **more):
    return CalibrationSetup(link="l", markers=tuple(markers or (MarkerSetup(name) for name in NAMES)), **more)


@pytest.mark.parametrize("seed", range(12))
def test_unknown_base_and_markers_are_found_wherever_the_base_stands(seed):
    rng = np.random.default_rng(seed)
    rotation, position = link_poses(rng, 8)
    base = random_base(rng)
    value = seen_by(base, rotation, position, MARKERS)
    found = register(setup_of(), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    np.testing.assert_allclose(found.base, base, atol=1e-7)
    np.testing.assert_allclose(found.markers, MARKERS, atol=1e-7)
    np.testing.assert_array_equal(found.tool, frame_numbers(FrameSetup()))


def test_errors_of_the_arm_and_noise_move_the_start_by_no_more_than_their_size():
    rng = np.random.default_rng(20)
    rotation, position = link_poses(rng, 20)
    base = random_base(rng)
    wrong = Rotation.from_rotvec(rng.normal(size=(20, 3)) * 0.01).as_matrix() @ rotation
    value = seen_by(base, wrong, position + rng.normal(size=(20, 3)) * 0.01, MARKERS)
    found = register(setup_of(), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    np.testing.assert_allclose(found.base, base, atol=0.05)
    np.testing.assert_allclose(found.markers, MARKERS, atol=0.02)


def test_known_markers_give_the_alignment_of_two_point_clouds():
    """Kabsch's problem, against scipy."""
    rng = np.random.default_rng(21)
    rotation, position = link_poses(rng, 6)
    value = seen_by(random_base(rng), rotation, position, MARKERS) + rng.normal(size=(18, 3)) * 0.02
    markers = [MarkerSetup(name, tuple(at), True) for name, at in zip(NAMES, MARKERS.tolist(), strict=True)]
    found = register(setup_of(markers), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    points = seen_by(np.append(np.eye(3), [0, 0, 0]), rotation, position, MARKERS)
    expected = Rotation.align_vectors(value - value.mean(0), points - points.mean(0))[0]
    np.testing.assert_allclose(found.base[:9].reshape(3, 3), expected.as_matrix(), atol=1e-7)
    np.testing.assert_allclose(found.base[9:], value.mean(0) - expected.apply(points.mean(0)), atol=1e-6)
    np.testing.assert_array_equal(found.markers, MARKERS)


def test_three_known_markers_at_one_configuration_are_enough():
    rng = np.random.default_rng(22)
    rotation, position = link_poses(rng, 1)
    base = random_base(rng)
    markers = [MarkerSetup(name, tuple(at), True) for name, at in zip(NAMES, MARKERS.tolist(), strict=True)]
    value = seen_by(base, rotation, position, MARKERS)
    found = register(setup_of(markers), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    np.testing.assert_allclose(found.base, base, atol=1e-6)


@pytest.mark.parametrize("known", ["nothing", "tool turn", "tool"])
def test_poses_give_base_and_tool(known):
    rng = np.random.default_rng(23)
    rotation, position = link_poses(rng, 7)
    base, shift, rpy = random_base(rng), (0.1, -0.3, 0.2), (0.4, -1.1, 2.0)
    tool = frame_numbers(FrameSetup(shift, rpy))
    value = seen_by(base, rotation, position, np.array([shift]))
    turned = base[:9].reshape(3, 3) @ rotation @ tool[:9].reshape(3, 3)
    setups = {"nothing": FrameSetup(), "tool turn": FrameSetup(rpy=rpy), "tool": FrameSetup(shift, rpy, True)}
    found = register(
        CalibrationSetup(link="l", tool=setups[known]), measurements_of(value, 1, turned, "pose"), rotation, position
    )
    np.testing.assert_allclose(found.base, base, atol=1e-7)
    np.testing.assert_allclose(found.tool, tool, atol=1e-7)


def test_what_the_set_up_gives_is_kept():
    rng = np.random.default_rng(24)
    rotation, position = link_poses(rng, 8)
    given = FrameSetup(xyz=(1.0, 2.0, 3.0), rpy=(0.1, 0.2, 0.3))
    base = frame_numbers(given)
    value = seen_by(base, rotation, position, MARKERS)
    rows = (measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    started = MarkerSetup("b", (0.0, 0.1, 0.0))
    setup = setup_of([MarkerSetup("a"), started, MarkerSetup("c")], base=given)
    found = register(setup, *rows)
    np.testing.assert_array_equal(found.base, base)
    np.testing.assert_allclose(found.markers[[0, 2]], MARKERS[[0, 2]], atol=1e-12)
    np.testing.assert_array_equal(found.markers[1], started.position)
    turn_alone = register(setup_of(base=FrameSetup(rpy=given.rpy)), *rows)
    np.testing.assert_allclose(turn_alone.base, base, atol=1e-12)
    place_alone = register(setup_of(base=FrameSetup(xyz=given.xyz)), *rows)
    np.testing.assert_allclose(place_alone.base, base, atol=1e-7)


def test_incomplete_positions_are_left_out():
    rng = np.random.default_rng(25)
    rotation, position = link_poses(rng, 10)
    base = random_base(rng)
    value = seen_by(base, rotation, position, MARKERS)
    value[::4, 1] = np.nan
    found = register(setup_of(), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    np.testing.assert_allclose(found.base, base, atol=1e-7)


def test_the_same_measurements_give_the_same_bytes():
    rng = np.random.default_rng(26)
    rotation, position = link_poses(rng, 5)
    value = seen_by(random_base(rng), rotation, position, MARKERS) + rng.normal(size=(15, 3)) * 0.01
    rows = (measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    one, other = register(setup_of(), *rows), register(setup_of(), *rows)
    assert one.base.tobytes() == other.base.tobytes()
    assert one.markers.tobytes() == other.markers.tobytes()


def test_an_arm_that_always_points_down_has_a_base_all_the_same():
    """A SCARA's marker height and base height are one number; the smallest of all solutions starts the fit."""
    rng = np.random.default_rng(27)
    rotation = Rotation.from_rotvec(rng.uniform(-3, 3, (9, 1)) * [0, 0, 1]).as_matrix()
    position, base = rng.uniform(-0.5, 0.5, (9, 3)), random_base(rng)
    value = seen_by(base, rotation, position, MARKERS)
    found = register(setup_of(), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    np.testing.assert_allclose(found.base[:9], base[:9], atol=1e-7)
    np.testing.assert_allclose(found.markers[:, :2], MARKERS[:, :2], atol=1e-7)
    np.testing.assert_allclose(seen_by(found.base, rotation, position, found.markers), value, atol=1e-7)


@pytest.mark.parametrize("case", ["none", "two points", "a line", "one configuration"])
def test_too_little_is_refused_in_one_line(case):
    rng = np.random.default_rng(28)
    rotation, position = link_poses(rng, 6)
    markers = [MarkerSetup(name, (0.0, 0.0, 0.0), True) for name in NAMES]
    if case == "none":
        value = np.full((18, 3), np.nan)
    elif case == "two points":
        rotation, position = rotation[:2], position[:2]
        value = seen_by(random_base(rng), rotation, position, np.zeros((3, 3)))
    elif case == "a line":
        position = np.linspace(0, 1, 6)[:, None] * np.array([1.0, 2.0, 3.0])
        value = seen_by(random_base(rng), rotation, position, np.zeros((3, 3)))
    else:
        rotation, position = np.repeat(rotation[:1], 6, 0), np.repeat(position[:1], 6, 0)
        value, markers = seen_by(random_base(rng), rotation, position, MARKERS), None
    with pytest.raises(
        CalibrationError, match=r"do not fix its orientation, needed are at least 3 .* not on a line"
    ) as error:
        register(setup_of(markers), measurements_of(value), np.repeat(rotation, 3, 0), np.repeat(position, 3, 0))
    assert "\n" not in str(error.value)
