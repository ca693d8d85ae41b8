import numpy as np

from steelyard.robot import (
    inertia_from_parameters,
    is_consistent,
    moved_parameters,
    origin_placement,
    parameters_from_centre,
    parameters_from_inertia,
    transform_from_placement,
)


def parameters_of_points(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Return the ten parameters of point masses straight from their definition."""
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for p, m in zip(points, masses, strict=True))
    return parameters_from_inertia(np.asarray(inertia), masses @ points, float(masses.sum()))


def test_moving_a_body_equals_moving_its_points() -> None:
    rng = np.random.default_rng(2)
    points, masses = rng.normal(size=(7, 3)), rng.uniform(0.1, 2, 7)
    rotation, translation = transform_from_placement(origin_placement((0.3, -1.0, 2.0), (0.2, 1.0, -2.0)))
    moved = moved_parameters(parameters_of_points(points, masses), rotation, translation)
    np.testing.assert_allclose(moved, parameters_of_points(points @ rotation.T + translation, masses), rtol=1e-12)


def test_parameters_from_the_centre_agree_with_point_masses() -> None:
    rng = np.random.default_rng(3)
    points, masses = rng.normal(size=(5, 3)), rng.uniform(0.1, 2, 5)
    centre = masses @ points / masses.sum()
    at_centre, _, mass = inertia_from_parameters(parameters_of_points(points - centre, masses))
    np.testing.assert_allclose(
        parameters_from_centre(mass, centre, at_centre), parameters_of_points(points, masses), atol=1e-12
    )


def test_point_masses_are_possible_and_a_broken_triangle_inequality_is_not() -> None:
    rng = np.random.default_rng(4)
    assert is_consistent(parameters_of_points(rng.normal(size=(4, 3)), np.ones(4)))
    assert not is_consistent(np.array([1.0, 0, 0, 1.0, 0, 2.1, 0, 0, 0, 5.0]))


def test_a_heavy_body_with_a_small_impossible_inertia_is_found() -> None:
    assert not is_consistent(np.array([1e-5, 0, 0, 1e-5, 0, 3e-5, 0, 0, 0, 50.0]))


def test_a_point_mass_counts_as_possible() -> None:
    assert is_consistent(parameters_from_centre(0.2, np.array([0.0, 0.0, 0.042]), np.zeros((3, 3))))
    assert is_consistent(np.zeros(10))
