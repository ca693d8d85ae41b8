"""Identify an arm with mujoco.sysid and predict unseen torques; run by ``benchmarks.peers.real`` in its interpreter.

Arguments: a folder with ``arm.urdf`` and ``task.json``. Writes ``predicted.npz`` and ``result.json``, as the driver of
FIGAROH does. mujoco.sysid compares simulated motion with measured motion; a torque log driven through a simulation
without a controller leaves the recorded motion within a second. Its parameters, bounds, model modifiers and optimiser
are used here with the residual that applies to such logs: torques of ``mj_inverse`` along the recorded motion. It has
no filter: positions go through that of the judgement first.
"""

# pyright: reportAttributeAccessIssue=false
# Its attributes are those of compiled modules.
import json
import logging
import sys
import time
from pathlib import Path

import mujoco  # pyright: ignore[reportMissingImports]
import numpy as np
from mujoco import sysid  # pyright: ignore[reportMissingImports]

from benchmarks.real_scoring import READERS, even, low_pass

ROWS_PER_CUTOFF = 2.5
"""Rows a second that are fitted, in units of the cut-off."""


def motion_of(log, cutoff, recorded):
    """Return positions, velocities, accelerations and torques (n, N) through the filter."""
    q, torque = (low_pass(values, log.rate, cutoff) for values in (log.q, log.torque))
    qd = low_pass(log.qd, log.rate, cutoff) if recorded else np.gradient(q, log.time, axis=1)
    return q, qd, np.gradient(qd, log.time, axis=1), torque


def inverse_torques(model, q, qd, qdd):
    """Return the torques (n, N) along a motion."""
    data, torque = mujoco.MjData(model), np.empty_like(q)
    for k in range(q.shape[1]):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[:, k], qd[:, k], qdd[:, k]
        mujoco.mj_inverse(model, data)
        torque[:, k] = data.qfrc_inverse
    return torque


def spec_of(folder, coupled):
    """Return the arm; a coupled wrist has a tendon along both joints, on which the motor's inertia and friction act."""
    spec = mujoco.MjSpec.from_file(str(folder / "arm.urdf"))
    if coupled:
        tendon = spec.add_tendon(name="motor_6")
        for joint in spec.joints[4:6]:
            tendon.wrap_joint(joint.name, 1.0)
    return spec


def _set(kind, name, attribute):
    def modify(spec, parameter):
        found = spec.joint(name) if kind == "joint" else spec.tendon(name)
        size = np.size(getattr(found, attribute))  # damping is a polynomial of the speed, its first entry linear
        value = float(parameter.value[0])
        setattr(found, attribute, value if size == 1 else np.array([value, *[0.0] * (size - 1)]))

    return modify


def _set_inertia(name):
    """Return the modifier of a link's pseudo-inertia; mujoco.sysid's own fails on arms with several such links."""

    def modify(spec, parameter):
        pi = sysid.model_modifier.pi_from_theta(parameter.value)
        mass, centre = pi[0], pi[1:4] / pi[0]
        cross = sysid.model_modifier.skew(centre)
        principal, axes = np.linalg.eigh(pi[4:].reshape(3, 3) + mass * cross @ cross)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        turned = np.empty(4)
        mujoco.mju_mat2Quat(turned, axes.ravel())
        body = spec.body(name)
        body.explicitinertial, body.mass, body.ipos = True, mass, centre
        body.fullinertia, body.inertia, body.iquat = np.full((6, 1), np.nan), principal, turned

    return modify


def parameters_of(spec, drive_inertia):
    """Return the unknowns: inertia of every link, drive inertia, viscous and Coulomb friction, torque offset."""
    found, model = sysid.ParameterDict(), spec.compile()
    for body in spec.bodies[1:]:
        modifier = _set_inertia(body.name)
        found.add(sysid.body_inertia_param(spec, model, body.name, sysid.InertiaType.Pseudo, modifier=modifier))
    places = [("joint", joint.name) for joint in spec.joints] + [("tendon", tendon.name) for tendon in spec.tendons]
    for kind, name in places:
        most = {"damping": 200.0, "frictionloss": 100.0, **({"armature": 20.0} if drive_inertia else {})}
        for attribute, bound in most.items():
            start = bound / 100
            found.add(sysid.Parameter(f"{attribute}_{name}", start, 0.0, bound, modifier=_set(kind, name, attribute)))
    for joint in spec.joints:
        found.add(sysid.Parameter(f"offset_{joint.name}", 0.0, -20.0, 20.0))
    return found


def main() -> None:
    """Identify, and predict along the unseen logs."""
    folder = Path(sys.argv[1])
    logging.basicConfig(level=logging.ERROR)
    task = json.loads((folder / "task.json").read_text())
    root, cutoff, recorded = Path(task["root"]), task["cutoff"], task["recorded_velocity"]
    read = READERS[task["robot"]]
    spec = spec_of(folder, task["coupled"])
    start = parameters_of(spec, task["drive_inertia"])
    rows = []
    for name in task["training"]:
        log = even(read(root, name))
        border = round(log.rate / cutoff)
        step = max(1, round(log.rate / (ROWS_PER_CUTOFF * cutoff)))
        fitted = slice(border, min(round(task["trained"] * len(log.time)), len(log.time) - border), step)
        rows.append([part[:, fitted] for part in motion_of(log, cutoff, recorded)])
    q, qd, qdd, torque = (np.concatenate(parts, axis=1) for parts in zip(*rows, strict=True))
    weight = 1 / np.sqrt((torque**2).mean(axis=1, keepdims=True))

    def predicted(parameters, *motion):
        model = sysid.apply_param_modifiers(parameters, spec)
        offsets = [parameters[f"offset_{joint.name}"].value[0] for joint in spec.joints]
        return inverse_torques(model, *motion) + np.array(offsets)[:, None]

    def residuals(x, parameters):
        columns = []
        for one in x.reshape(len(x), -1).T:
            parameters.update_from_vector(one)
            columns.append((weight * (predicted(parameters, q, qd, qdd) - torque)).ravel())
        stacked = np.array(columns).T
        return [stacked if x.ndim > 1 else stacked[:, 0]], None, None

    found, _ = sysid.optimize(start, residuals, verbose=False, max_iters=task["iterations"])
    seconds = time.process_time()
    arrays = {}
    for k, name in enumerate(task["unseen"]):
        log = even(read(root, name))
        arrays |= {f"time_{k}": log.time, f"torque_{k}": predicted(found, *motion_of(log, cutoff, recorded)[:3])}
    np.savez(folder / "predicted.npz", **arrays)
    (folder / "result.json").write_text(json.dumps({"cpu_seconds": seconds, "parameters": int(found.size)}))


if __name__ == "__main__":
    main()
