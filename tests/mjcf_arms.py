"""MJCF models with every odd feature, and MuJoCo's own torques and poses beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles import NO_MUJOCO
from steelyard.physics import inverse_dynamics_function, pose_function
from steelyard.robot import Robot

FOLDER = Path(__file__).parent / "robot" / "mjcf"
ARMS = tuple(sorted(path.name for path in FOLDER.glob("*.xml")))


def compiled(path: Path, robot: Robot) -> Any:
    """Return a file as MuJoCo compiles it, without the meshes that are not here; unnamed joints are named as ours."""
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    spec = mujoco.MjSpec.from_file(str(path))
    for geom in list(spec.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            spec.delete(geom)
    for asset in (*spec.meshes, *spec.textures):
        spec.delete(asset)
    moving = [joint.name for joint in robot.joints if joint.kind != "fixed"]
    for joint, name in zip(spec.joints, moving, strict=True):
        joint.name = joint.name or name
    for number, body in enumerate(spec.bodies):
        body.name = body.name or f"body_{number}"
    return spec.compile()


class Theirs:
    """A file as MuJoCo itself compiles it, its positions and torques in our order of joints."""

    def __init__(self, model: Any, robot: Robot) -> None:
        self.mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
        self.model, self.data = model, self.mujoco.MjData(model)
        model.opt.disableflags |= self.mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.coupling, self.offset = robot.coupling()
        joints = [model.joint(body.joint.name) for body in robot.bodies]
        self.positions = [int(joint.qposadr[0]) for joint in joints]
        self.rates = [int(joint.dofadr[0]) for joint in joints]
        self.held = {joint.name: joint.locked_at for joint in robot.joints if joint.locked_at is not None}

    def move(self, q, qd=None, qdd=None) -> None:
        """Set positions, velocities and accelerations of the actuated joints."""
        size = len(q)
        self.data.qpos[self.positions] = self.coupling @ q + self.offset
        self.data.qvel[self.rates] = self.coupling @ (np.zeros(size) if qd is None else qd)
        self.data.qacc[:] = 0
        self.data.qacc[self.rates] = self.coupling @ (np.zeros(size) if qdd is None else qdd)
        for name, position in self.held.items():
            self.data.qpos[self.model.joint(name).qposadr[0]] = position

    def torques(self, q, qd, qdd) -> np.ndarray:
        """Return inverse dynamics with armature and damping, without dry friction."""
        self.move(q, qd, qdd)
        acceleration = self.data.qacc.copy()
        self.mujoco.mj_fwdPosition(self.model, self.data)
        self.mujoco.mj_fwdVelocity(self.model, self.data)
        self.data.qacc[:] = acceleration
        self.mujoco.mj_inverse(self.model, self.data)
        return self.coupling.T @ self.data.qfrc_inverse[self.rates]

    def pose(self, body: str, q) -> tuple[np.ndarray, np.ndarray]:
        self.move(q)
        self.mujoco.mj_kinematics(self.model, self.data)
        found = self.data.body(body)
        return found.xmat.reshape(3, 3).copy(), found.xpos.copy()


def states(robot: Robot, count: int, seed: int = 5):
    """Yield q, qd and qdd of random states."""
    rng = np.random.default_rng(seed)
    size = len(robot.actuated)
    for _ in range(count):
        yield rng.uniform(-2, 2, size), rng.uniform(-2, 2, size), rng.uniform(-5, 5, size)


def our_torques(robot: Robot):
    """Return the function of q, qd, qdd that gives rigid-body torques with drive inertia and viscous friction."""
    inverse = inverse_dynamics_function(robot)
    chi = np.concatenate([np.array(body.inertia) for body in robot.bodies])
    ia, viscous = (np.array([robot.values.get(f"{s}{b.number}", 0.0) for b in robot.actuated]) for s in ("Ia", "Fvm"))
    viscous = viscous + np.array([robot.values.get(f"Fvl{b.number}", 0.0) for b in robot.actuated])
    return lambda q, qd, qdd: np.array(inverse(q, qd, qdd, chi)).ravel() + ia * qdd + viscous * qd


def assert_same_torques(robot: Robot, model: Any, count: int = 20, tolerance: float = 1e-9) -> float:
    """Compare with MuJoCo relative to the largest torque of each joint; return the largest difference."""
    theirs, ours = Theirs(model, robot), our_torques(robot)
    rows = [(ours(*state), theirs.torques(*state)) for state in states(robot, count)]
    mine, wanted = (np.array(part) for part in zip(*rows, strict=True))
    off = float((np.abs(mine - wanted).max(axis=0) / np.abs(wanted).max(axis=0)).max())
    assert off < tolerance
    return off


def assert_same_poses(robot: Robot, model: Any, links: dict[str, str]) -> None:
    """Compare poses of our links with those of MuJoCo's bodies (link: body)."""
    theirs = Theirs(model, robot)
    for link, body in links.items():
        pose = pose_function(robot, link)
        for q, _, _ in states(robot, 3):
            rotation, position = theirs.pose(body, q)
            ours = np.array(pose(q, []))
            np.testing.assert_allclose(ours, np.column_stack([rotation, position]), atol=1e-9)
