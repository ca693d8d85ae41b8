import math

import numpy as np
import pytest

from steelyard.robot import mdh_placement, origin_placement, transform_from_placement
from steelyard.robot.placement import RightAngles, radians_from_degrees


@pytest.mark.parametrize("quarter_turns", range(-9, 10))
def test_degrees_that_are_right_angles_give_exact_zeros_and_ones(quarter_turns: int) -> None:
    rotation, _ = transform_from_placement(mdh_placement(radians_from_degrees(90 * quarter_turns), 0, math.pi, 0))
    assert set(np.unique(np.abs(rotation))) == {0.0, 1.0}


def test_a_dh_row_equals_the_product_of_elementary_transforms(poses) -> None:
    rng = np.random.default_rng(1)
    for alpha, d, theta, r, gamma, b in rng.uniform(-3, 3, (20, 6)):
        steps = [("rotate", "z", gamma), ("translate", "z", b), ("rotate", "x", alpha), ("translate", "x", d)]
        expected = np.eye(4)
        for kind, axis, value in [*steps, ("rotate", "z", theta), ("translate", "z", r)]:
            expected = expected @ poses.elementary(kind, axis, value)
        rotation, translation = transform_from_placement(mdh_placement(alpha, d, theta, r, gamma, b))
        np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-15)
        np.testing.assert_allclose(translation, expected[:3, 3], atol=1e-14)


def test_an_origin_rotates_by_fixed_axes_roll_then_pitch_then_yaw(poses) -> None:
    roll, pitch, yaw = 0.3, -0.5, 1.2
    rotation, translation = transform_from_placement(origin_placement((1.0, 2.0, 3.0), (roll, pitch, yaw)))
    turns = [
        poses.elementary("rotate", axis, angle)[:3, :3] for axis, angle in zip("zyx", (yaw, pitch, roll), strict=True)
    ]
    np.testing.assert_allclose(rotation, turns[0] @ turns[1] @ turns[2], atol=1e-15)
    np.testing.assert_array_equal(translation, [1.0, 2.0, 3.0])


def test_angles_that_are_no_multiple_of_ninety_degrees_are_kept() -> None:
    assert radians_from_degrees(30.0) == math.radians(30.0)
    assert RightAngles(1e-5).angle(1.56, "joint 'a'") == 1.56


def test_an_axis_almost_along_z_becomes_z_and_a_note_says_so() -> None:
    angles = RightAngles(1e-5)
    assert angles.direction((3e-6, 0.0, -2.0), "joint 'a'") == (0.0, 0.0, -1.0)
    assert "joint 'a'" in angles.notes()[0]
