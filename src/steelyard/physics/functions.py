"""CasADi functions of an arm with named inputs, to be evaluated, differentiated, compiled or exported."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca

from ..robot import Robot
from .forward_dynamics import forward_dynamics
from .inverse_dynamics import (
    gravity_torques,
    inertia_matrix,
    inertial_regressor,
    inverse_dynamics,
    kinetic_energy,
    potential_energy,
    velocity_torques,
)
from .kinematics import Geometry, frame_jacobian, frame_pose


def motion_symbols(robot: Robot) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return symbols q, qd, qdd (na,) of the actuated joints.

    Example:
        >>> from steelyard.physics import motion_symbols
        >>> q, qd, qdd = motion_symbols(steelyard.load_robot("scara_2r"))
        >>> q.shape
        (2, 1)
    """
    size = len(robot.actuated)
    return ca.SX.sym("q", size), ca.SX.sym("qd", size), ca.SX.sym("qdd", size)


def inertia_symbols(robot: Robot) -> ca.SX:
    """Return a symbol for the ten inertial parameters of every body (10 nb,).

    Example:
        >>> from steelyard.physics import inertia_symbols
        >>> inertia_symbols(steelyard.load_robot("scara_2r")).shape
        (20, 1)
    """
    return ca.SX.sym("inertias", 10 * len(robot.bodies))


def _function(name: str, inputs: dict[str, ca.SX], output: ca.SX, label: str) -> ca.Function:
    # Subexpressions are shared before anything is compiled: CasADi's derivatives repeat some.
    return ca.Function(name, list(inputs.values()), [ca.cse(output)], list(inputs), [label])


def _dynamics_function(
    robot: Robot, name: str, inputs: Sequence[str], expression: Callable[..., ca.SX], label: str
) -> ca.Function:
    """Return the function of an expression of some of q, qd and qdd, and of the inertial parameters."""
    motion: dict[str, ca.SX] = dict(zip(("q", "qd", "qdd"), motion_symbols(robot), strict=True))
    given = {**{key: motion[key] for key in inputs}, "inertias": inertia_symbols(robot)}
    return _function(name, given, ca.densify(expression(robot, *given.values())), label)


def inverse_dynamics_function(robot: Robot) -> ca.Function:
    """Return ``(q, qd, qdd, inertias) -> tau``.

    Example:
        >>> from steelyard.physics import inverse_dynamics_function
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertias = np.concatenate([body.inertia for body in robot.bodies])
        >>> np.array(inverse_dynamics_function(robot)([0, 0], [0, 0], [1, 0], inertias)).ravel().round(3).tolist()
        [3.746, 0.195]
    """
    return _dynamics_function(robot, "inverse_dynamics", ("q", "qd", "qdd"), inverse_dynamics, "tau")


def inertial_regressor_function(robot: Robot) -> ca.Function:
    """Return ``(q, qd, qdd) -> D_st`` (na, 10 nb), sparse.

    Example:
        >>> from steelyard.physics import inertial_regressor_function
        >>> inertial_regressor_function(steelyard.load_robot("scara_2r"))([0, 0], [0, 0], [1, 0]).shape
        (2, 20)
    """
    q, qd, qdd = motion_symbols(robot)
    matrix = inertial_regressor(robot, q, qd, qdd)
    return _function("inertial_regressor", {"q": q, "qd": qd, "qdd": qdd}, matrix, "regressor")


def inertia_matrix_function(robot: Robot) -> ca.Function:
    """Return ``(q, inertias) -> M`` (na, na).

    Example:
        >>> from steelyard.physics import inertia_matrix_function
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertias = np.concatenate([body.inertia for body in robot.bodies])
        >>> np.array(inertia_matrix_function(robot)([0, 0], inertias)).round(3).tolist()
        [[3.746, 0.195], [0.195, 0.064]]
    """
    return _dynamics_function(robot, "inertia_matrix", ("q",), inertia_matrix, "M")


def gravity_function(robot: Robot) -> ca.Function:
    """Return ``(q, inertias) -> G`` (na,).

    Example:
        >>> from steelyard.physics import gravity_function
        >>> robot = steelyard.load_robot("kuka_ir361")
        >>> inertias = np.concatenate([body.inertia for body in robot.bodies])
        >>> gravity_function(robot)([0, 0, 0], inertias).shape
        (3, 1)
    """
    return _dynamics_function(robot, "gravity", ("q",), gravity_torques, "G")


def velocity_function(robot: Robot) -> ca.Function:
    """Return ``(q, qd, inertias) -> C qd`` (na,).

    Example:
        >>> from steelyard.physics import velocity_function
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertias = np.concatenate([body.inertia for body in robot.bodies])
        >>> round(float(velocity_function(robot)([0, np.pi / 2], [1, 0], inertias)[1]), 3)
        0.131
    """
    return _dynamics_function(robot, "velocity", ("q", "qd"), velocity_torques, "velocity_torques")


def forward_dynamics_function(robot: Robot) -> ca.Function:
    """Return ``(q, qd, tau, inertias, drive_inertia) -> qdd`` with the drive inertia as a vector (na,).

    Example:
        >>> from steelyard.physics import forward_dynamics_function
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertias = np.concatenate([body.inertia for body in robot.bodies])
        >>> acceleration = forward_dynamics_function(robot)([0, 0], [0, 0], [1, 0], inertias, [0, 0])
        >>> np.array(acceleration).ravel().round(3).tolist()
        [0.317, -0.967]
    """
    q, qd, _ = motion_symbols(robot)
    tau, drive = ca.SX.sym("tau", q.shape[0]), ca.SX.sym("drive_inertia", q.shape[0])
    chi = inertia_symbols(robot)
    qdd = forward_dynamics(robot, q, qd, tau, chi, drive)
    inputs = {"q": q, "qd": qd, "tau": tau, "inertias": chi, "drive_inertia": drive}
    return _function("forward_dynamics", inputs, qdd, "qdd")


def energy_function(robot: Robot) -> ca.Function:
    """Return ``(q, qd, inertias) -> (kinetic, potential)`` as a vector (2,).

    Example:
        >>> from steelyard.physics import energy_function
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertias = np.concatenate([body.inertia for body in robot.bodies])
        >>> np.array(energy_function(robot)([0, 0], [1, 0], inertias)).ravel().round(3).tolist()
        [1.873, 0.0]
    """

    def energies(robot: Robot, q: ca.SX, qd: ca.SX, inertias: ca.SX) -> ca.SX:
        return ca.vertcat(kinetic_energy(robot, q, qd, inertias), potential_energy(robot, q, inertias))

    return _dynamics_function(robot, "energy", ("q", "qd"), energies, "energy")


def pose_function(robot: Robot, frame: str, geometry: Geometry | None = None) -> ca.Function:
    """Return ``(q, geometry) -> [R p]`` (3, 4) of a frame in the base frame.

    Example:
        >>> from steelyard.physics import pose_function
        >>> pose = pose_function(steelyard.load_robot("scara_2r"), "link_2")
        >>> np.array(pose([0, 0], [])).round(3)[:, 3].tolist()
        [0.5, 0.0, 0.0]
    """
    q, _, _ = motion_symbols(robot)
    pose = frame_pose(robot, frame, q, geometry)
    symbols = geometry.symbols if geometry else ca.SX(0, 1)
    matrix = ca.densify(ca.horzcat(pose.rotation, pose.translation))
    return _function("pose", {"q": q, "geometry": symbols}, matrix, "pose")


def jacobian_function(robot: Robot, frame: str, geometry: Geometry | None = None) -> ca.Function:
    """Return ``(q, geometry) -> J`` (6, na) of a frame: linear, then angular velocity, in base axes.

    Example:
        >>> from steelyard.physics import jacobian_function
        >>> jacobian = jacobian_function(steelyard.load_robot("scara_2r"), "link_2")
        >>> np.array(jacobian([0, 0], [])).round(3)[1].tolist()
        [0.5, 0.0]
    """
    q, _, _ = motion_symbols(robot)
    symbols = geometry.symbols if geometry else ca.SX(0, 1)
    jacobian = ca.densify(frame_jacobian(robot, frame, q, geometry))
    return _function("jacobian", {"q": q, "geometry": symbols}, jacobian, "jacobian")
