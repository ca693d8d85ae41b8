"""Rules on one point of the arm: signs, gradients, and the most by which a clearance can change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DesignError
from steelyard.excitation.space.regions import Box, Cylinder, HalfSpace, Sphere, perpendicular
from steelyard.excitation.space.rules import ArmPoint, PointRule

INF = np.inf
TIP = ArmPoint("tool", (0.0, 0.0, 0.1))
REGIONS = {
    "half-space": HalfSpace((1.0, -2.0, 0.5), 0.3),
    "box": Box((-0.5, -0.4, 0.0), (0.6, 0.7, 1.1)),
    "slab": Box((-np.inf, -np.inf, 0.1), (np.inf, np.inf, 0.5)),
    "cylinder": Cylinder(0.5, (0.1, 0.2, 0.3), (1.0, 1.0, -0.5), -0.4, 0.8),
    "cylinder without ends": Cylinder(0.3),
    "sphere": Sphere(0.7, (0.1, -0.2, 0.4)),
}
CASES = [
    PointRule(f"{name}, {keep}", TIP, region, keep, 0.05)
    for name, region in REGIONS.items()
    for keep in ("keep_in", "keep_out")
]


def places(count: int = 500, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (1, 3, count))


def clearance(rule: PointRule, *points: tuple[float, float, float]) -> list[float]:
    return rule.clearance(np.array(points, dtype=float).T[None])[0].tolist()


def test_a_half_space_measures_the_distance_from_its_plane_whatever_the_length_of_its_normal():
    for normal in ((0, 0, 1), (0, 0, 7.5)):
        rule = PointRule("floor", TIP, HalfSpace(normal, 0.1), margin=0.02)
        np.testing.assert_allclose(clearance(rule, (3, 4, 0.1), (0, 0, 0.5), (9, 9, -1)), [-0.02, 0.38, -1.12])


def test_the_rules_of_paper_p2_hold_where_d_xy_is_at_least_0_3_and_z_at_least_minus_0_2():
    around = PointRule("d_xy", TIP, Cylinder(0.3), "keep_out")
    above = PointRule("z", TIP, HalfSpace((0, 0, 1), -0.2))
    points = places()
    x, y, z = points[0]
    np.testing.assert_allclose(around.clearance(points)[0], np.hypot(x, y) - 0.3, atol=1e-15)
    np.testing.assert_allclose(above.clearance(points)[0], z + 0.2, atol=1e-15)


def test_the_rule_of_paper_p4_is_kept_unless_both_r_and_z_are_small():
    rule = PointRule("pedestal", TIP, Cylinder(0.7, upper=1.8), "keep_out")
    points = places() * np.array([[1.0], [1.0], [2.0]])
    x, y, z = points[0]
    inside = rule.clearance(points)[0] >= 0
    assert 50 < inside.sum() < 450
    np.testing.assert_array_equal(inside, ~((np.hypot(x, y) < 0.7) & (z < 1.8)))


@pytest.mark.parametrize("region", REGIONS.values(), ids=list(REGIONS))
def test_keep_in_and_keep_out_are_opposites_but_for_the_margin(region):
    inside = PointRule("in", TIP, region, "keep_in").clearance(places())
    outside = PointRule("out", TIP, region, "keep_out").clearance(places())
    np.testing.assert_array_equal(inside[0], -outside[0])
    np.testing.assert_array_equal(inside[1], -outside[1])
    narrow = PointRule("in", TIP, region, "keep_in", 0.25).clearance(places())
    np.testing.assert_allclose(narrow[0], inside[0] - 0.25)


def test_a_box_and_a_cylinder_know_their_inside():
    box = PointRule("box", TIP, Box((0, 0, 0), (1, 2, 3)), "keep_in")
    np.testing.assert_allclose(
        clearance(box, (0.5, 1, 1), (0.9, 1, 1), (1.2, 1, 1), (0.5, -3, 1)), [0.5, 0.1, -0.2, -3]
    )
    can = PointRule("can", TIP, Cylinder(0.5, (1, 0, 0), (2, 0, 0), 0, 2), "keep_in")
    np.testing.assert_allclose(clearance(can, (2, 0.1, 0), (2.9, 0, 0), (4, 0, 0), (2, 3, 4)), [0.4, 0.1, -1, -4.5])


@pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.name)
def test_gradients_equal_central_differences_and_have_length_one(rule):
    points = places()
    value, gradient = rule.clearance(points)
    assert value.shape == (500,)
    assert gradient.shape == (1, 3, 500)
    np.testing.assert_allclose(np.linalg.norm(gradient[0], axis=0), 1.0, rtol=1e-12)
    step, numeric = 1e-6, np.zeros((3, 500))
    for row in range(3):
        shift = np.zeros((1, 3, 1))
        shift[0, row] = step
        numeric[row] = (rule.clearance(points + shift)[0] - rule.clearance(points - shift)[0]) / (2 * step)
    smooth = np.linalg.norm(numeric, axis=0) > 1 - 1e-4  # at a kink the difference is of neither side
    assert smooth.sum() > 490
    np.testing.assert_allclose(gradient[0][:, smooth], numeric[:, smooth], atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(case=st.sampled_from(CASES), seed=st.integers(0, 10_000), radius=st.floats(1e-6, 2.0))
def test_a_clearance_never_changes_by_more_than_the_slack(case, seed, radius):
    rng = np.random.default_rng(seed)
    before = rng.uniform(-1.5, 1.5, (1, 3, 200))
    step = rng.normal(size=(1, 3, 200))
    step *= radius * rng.random((1, 1, 200)) ** 0.1 / np.linalg.norm(step, axis=1, keepdims=True)
    slack = case.slack(np.full((1, 200), radius))
    assert slack.shape == (200,)
    change = np.abs(case.clearance(before + step)[0] - case.clearance(before)[0])
    assert (change <= slack + 1e-12).all()


def test_at_the_middle_of_a_cylinder_or_a_sphere_a_way_out_is_still_given():
    for region in (Cylinder(0.3, axis=(1, 2, 3)), Sphere(0.3)):
        value, gradient = PointRule("x", TIP, region, "keep_out").clearance(np.zeros((1, 3, 1)))
        assert value[0] == -0.3
        assert np.linalg.norm(gradient) == pytest.approx(1.0)


def test_a_perpendicular_is_one_for_every_direction():
    axes = np.random.default_rng(1).normal(size=(3, 50))
    axes[:, :3] = np.eye(3)
    axes /= np.linalg.norm(axes, axis=0)
    found = perpendicular(axes)
    np.testing.assert_allclose(np.einsum("ij,ij->j", found, axes), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1)
    np.testing.assert_allclose(perpendicular(axes[:, 7]), found[:, 7])


@pytest.mark.parametrize(
    ("build", "message"),
    {
        "a normal of no length": (
            lambda: HalfSpace((0, 0, 0)),
            "normal of a half-space is .0, 0, 0.; it has no",
        ),
        "a normal that is nan": (lambda: HalfSpace((np.nan, 0, 0)), "no direction"),
        "an infinite offset": (lambda: HalfSpace((0, 0, 1), np.inf), "offset of a half-space is inf"),
        "a box upside down": (lambda: Box((0, 0, 1), (1, 1, 0)), "lower z is 1, upper z is 0"),
        "a box with nan": (lambda: Box((0, 0, np.nan), (1, 1, 1)), "lower z is nan"),
        "a box without sides": (lambda: Box((-INF, -INF, -INF), (INF, INF, INF)), "every side is infinite"),
        "a radius of zero": (lambda: Cylinder(0.0), "radius of a cylinder is 0.0; allowed: a finite number above 0"),
        "a cylinder upside down": (lambda: Cylinder(1.0, lower=1, upper=1), "lower is 1, upper is 1"),
        "an axis of no length": (lambda: Cylinder(1.0, axis=(0, 0, 0)), "axis of a cylinder"),
        "a sphere at infinity": (lambda: Sphere(1.0, (np.inf, 0, 0)), "centre of a sphere"),
        "a negative sphere": (lambda: Sphere(-1.0), "radius of a sphere is -1"),
        "a negative margin": (lambda: PointRule("x", TIP, Sphere(1.0), margin=-0.1), "margin .m. is -0.1"),
        "a margin that is nan": (lambda: PointRule("x", TIP, Sphere(1.0), margin=np.nan), "margin .m. is nan"),
        "an unknown side": (lambda: PointRule("x", TIP, Sphere(1.0), "keepin"), "did you mean 'keep_in'"),  # pyright: ignore
        "a point that is nan": (lambda: ArmPoint("tool", (0, np.nan, 0)), "three numbers"),
    }.values(),
)
def test_rules_that_mean_nothing_are_refused(build, message):
    with pytest.raises(DesignError, match=message):
        build()
