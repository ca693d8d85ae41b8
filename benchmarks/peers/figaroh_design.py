"""FIGAROH's own optimiser on an arm of the catalogue, run in an interpreter that has FIGAROH 1.0.2 and cyipopt.

``python -m benchmarks.peers.figaroh_design INTERPRETER [ROBOT]``. FIGAROH searches cubic splines through waypoints for
the smallest condition number of its base columns, by Ipopt with finite differences; limits hold at its samples.
cyipopt has no wheel with Ipopt inside: where its library is elsewhere, set LD_LIBRARY_PATH before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.peers.information import question
from steelyard.model import stacked_regressor
from steelyard.robot import Body, Robot, inertia_from_parameters, load_robot, transform_from_placement

DRIVER = Path(__file__).with_name("figaroh_driver.py")


@dataclass(frozen=True)
class FigarohSettings:
    """How FIGAROH is asked; as its own example of a UR10 has it, but for the friction that we have too.

    Attributes:
        waypoints: Of each segment, the first one given.
        seconds_between: Time from waypoint to waypoint [s].
        rate: Samples of the columns a second [Hz].
        iterations: Of Ipopt.
        segments: Motions one after the other.
        acceleration: Limit of every joint [rad/s^2].
        margin: Part of each limit that is not used.
        friction: Whether drive inertia, friction and offsets are among the parameters.
    """

    waypoints: int = 7
    seconds_between: float = 2.0
    rate: int = 20
    iterations: int = 100
    segments: int = 1
    acceleration: float = 40.0
    margin: float = 0.0
    friction: bool = True


@dataclass(frozen=True, eq=False)
class FigarohReached:
    """What it gave.

    Attributes:
        reported: What FIGAROH reported: seconds, segments found, iterations, condition number of its columns.
        log_det: Our log det, on its motion at its samples; NaN if it found nothing.
        condition: Condition number of our base columns there, not scaled.
        samples: Number of its samples.
        output: What it printed, for the case that it failed.
    """

    reported: dict[str, Any]
    log_det: float
    condition: float
    samples: int
    output: str


def design(
    interpreter: str, robot: Robot, settings: FigarohSettings, seconds_allowed: float, seed: int = 0
) -> FigarohReached:
    """Run FIGAROH in another interpreter and judge its motion by our columns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "arm.urdf").write_text(urdf_text(robot))
        # Every JSON document is a YAML document.
        (folder / "config.yaml").write_text(json.dumps(_config(robot, settings), indent=1))
        command = [interpreter, str(DRIVER), str(folder), str(settings.segments), str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_allowed, check=False)
        except subprocess.TimeoutExpired:
            return FigarohReached({}, np.nan, np.nan, 0, f"not ready in {seconds_allowed:g} s")
        output = done.stdout[-3000:] + done.stderr[-3000:]
        result = folder / "result.json"
        reported = json.loads(result.read_text()) if result.exists() else {}
        if not (folder / "motion.npz").exists():
            return FigarohReached(reported, np.nan, np.nan, 0, output)
        with np.load(folder / "motion.npz") as motion:
            return _judged(robot, reported, motion["q"], motion["qd"], motion["qdd"], output)


def _judged(
    robot: Robot, reported: dict[str, Any], q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, output: str
) -> FigarohReached:
    requested = question(robot)
    W = stacked_regressor(requested.model.regressor, q, qd, qdd)[:, list(requested.base.base_columns)]
    sign, size = np.linalg.slogdet(W.T @ W)
    return FigarohReached(reported, float(size) if sign > 0 else np.nan, float(np.linalg.cond(W)), q.shape[1], output)


def _config(robot: Robot, settings: FigarohSettings) -> dict[str, Any]:
    bodies = robot.actuated
    zeros = [0.0] * len(bodies)
    limits = [body.joint.limits for body in bodies]
    joints = {
        "active_joints": [body.joint.name for body in bodies],
        "joint_limits": {
            "position": [bound for limit in limits for bound in (limit.lower, limit.upper)],
            "velocity": [limit.velocity for limit in limits],
            "acceleration": [settings.acceleration] * len(bodies),
            "torque": [limit.effort for limit in limits],
        },
    }
    mechanics = {
        "reduction_ratios": [1.0] * len(bodies),
        "ratio_essential": 100.0,
        "friction_coefficients": {"viscous": zeros, "static": zeros},
        "actuator_inertias": zeros,
        "joint_offsets": zeros,
    }
    components = dict.fromkeys(("friction", "joint_offset", "actuator_inertia"), settings.friction)
    identification = {
        "enabled": True,
        "problem": {
            "include_external_forces": False,
            "use_joint_torques": True,
            "model_components": {**components, "static_regressor": True, "inertia_regressor": True},
        },
        "signal_processing": {
            "sampling_frequency": float(settings.rate), "cutoff_frequency": 5.0, "filter_type": "butterworth",
            "filter_order": 4,
        },
    }  # fmt: skip
    trajectory = {
        "enabled": True,
        "problem": {"soft_lim": settings.margin, "max_attempts": 500, "max_iterations": settings.iterations},
        "trajectory": {
            "waypoints": settings.waypoints, "frequency": settings.rate, "segment_duration": settings.seconds_between,
        },
    }  # fmt: skip
    return {
        "robot": {"name": robot.name, "properties": {"joints": joints, "mechanics": mechanics}},
        "tasks": {"identification": identification, "optimal_trajectory": trajectory},
    }


def urdf_text(robot: Robot, bodies: Sequence[Body] = ()) -> str:
    """Return a robot's moving bodies, or others in their place, as URDF: one link each, no shapes."""
    bodies = bodies or robot.bodies
    links = '<link name="ground"/>' + "".join(_link(body) for body in bodies)
    names = ["ground", *(body.link for body in bodies)]
    joints = "".join(_joint(body, names[body.parent]) for body in bodies)
    return f"<robot name={quoteattr(robot.name)}>{links}{joints}</robot>"


def _numbers(values: np.ndarray) -> str:
    return quoteattr(" ".join(repr(float(value)) for value in values))


def _link(body: Body) -> str:
    if body.inertia is None:
        return f"<link name={quoteattr(body.link)}/>"
    inertia, moment, mass = inertia_from_parameters(np.array(body.inertia))
    centre = moment / mass
    about = inertia - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    entries = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    texts = " ".join(f'{name}="{float(about[place])!r}"' for name, place in entries.items())
    return (
        f"<link name={quoteattr(body.link)}><inertial><origin xyz={_numbers(centre)}/>"
        f'<mass value="{float(mass)!r}"/><inertia {texts}/></inertial></link>'
    )


def _joint(body: Body, parent: str) -> str:
    rotation, translation = transform_from_placement(body.placement)
    angles = Rotation.from_matrix(rotation).as_euler("xyz", suppress_warnings=True)
    limits = body.joint.limits
    return (
        f"<joint name={quoteattr(body.joint.name)} type={quoteattr(body.joint.kind)}><parent link={quoteattr(parent)}/>"
        f"<child link={quoteattr(body.link)}/><origin xyz={_numbers(translation)} rpy={_numbers(angles)}/>"
        f"<axis xyz={_numbers(np.array(body.joint.axis))}/>"
        f'<limit lower="{limits.lower!r}" upper="{limits.upper!r}" velocity="{limits.velocity!r}" '
        f'effort="{limits.effort!r}"/></joint>'
    )


def main() -> None:
    """Print what FIGAROH gives with and without friction columns."""
    robot = load_robot(sys.argv[2] if len(sys.argv) > 2 else "ur10e")
    for friction in (True, False):
        reached = design(sys.argv[1], robot, replace(FigarohSettings(), friction=friction), 900.0)
        print(f"friction {friction}: {reached.reported}")
        print(f"  our log det {reached.log_det:.3f}, condition {reached.condition:.1f}, {reached.samples} samples")
        if not reached.samples:
            print(reached.output)


if __name__ == "__main__":
    main()
