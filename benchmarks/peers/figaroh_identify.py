"""Identify an arm with FIGAROH and predict unseen torques; run by ``benchmarks.peers.real`` in FIGAROH's interpreter.

Arguments: a folder with ``arm.urdf``, ``config.yaml`` and ``task.json``. Logs are read by the reader of the benchmark.
Writes ``predicted.npz`` (torques of every unseen log at its samples) and ``result.json`` (CPU seconds from the start of
Python to the estimate, number of base parameters). FIGAROH's own classes do all that they do; ours only hand it the
samples and, for a coupled wrist, the three columns of its own example, without which it predicts far worse.
"""

import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
from figaroh.identification import base_identification  # pyright: ignore[reportMissingImports]
from figaroh.tools.regressor import build_regressor_basic  # pyright: ignore[reportMissingImports]
from figaroh.tools.robot import load_robot  # pyright: ignore[reportMissingImports]

from benchmarks.real_scoring import READERS, even

BORDER = 20
"""Samples that its own example leaves out at both ends: five times the order of the filter."""

COUPLED = ("Iam6", "fvm6", "fsm6")


def coupled_regressor(robot, q, v, a, identif_config, tau=None):
    """Return FIGAROH's regressor, with the columns of a coupled wrist after it."""
    W = build_regressor_basic(robot, q, v, a, identif_config, tau)
    count, sign = len(q), np.sign(v[:, 4] + v[:, 5])
    extra = np.zeros((len(W), 3))
    extra[4 * count : 5 * count] = np.column_stack([a[:, 5], v[:, 5], sign])
    extra[5 * count : 6 * count] = np.column_stack([a[:, 4], v[:, 4], sign])
    return np.hstack([W, extra])


class Samples(base_identification.BaseIdentification):
    """FIGAROH's identification of logs that are on the joint side already."""

    def __init__(self, robot, config, logs, trained, coupled):
        """Take the logs, evenly sampled, the part that is fitted, and whether motor 6 turns with joint 5."""
        super().__init__(robot, config)
        self.logs, self.trained, self.coupled = logs, trained, coupled
        if coupled:  # everywhere: it builds a second regressor when it judges itself
            base_identification.build_regressor_basic = coupled_regressor
        names = self.identif_config["active_joints"]
        joints = [robot.model.joints[robot.model.getJointId(name)] for name in names]
        self.identif_config.update(
            act_Jid=[robot.model.getJointId(name) for name in names],
            act_J=joints,
            act_idxq=[joint.idx_q for joint in joints],
            act_idxv=[joint.idx_v for joint in joints],
        )

    def load_trajectory_data(self, data_source=None):
        """Return the samples of the first log; others follow when they are filtered."""
        return _as_data(self.logs[0])

    def process_kinematics_data(self, filter_config=None):
        """Filter and differentiate every log on its own, and put the fitted parts one after the other."""
        parts = []
        for log in self.logs:
            self.raw_data = _as_data(log)
            self.filter_kinematics_data(filter_config)
            # Its filter swings at the ends of a log, not where the fitted part ends.
            fitted = slice(BORDER, min(round(self.trained * len(log.time)), len(log.time) - BORDER))
            part = {key: values[fitted] for key, values in self.processed_data.items()}
            parts.append({**part, "torques": log.torque.T[fitted]})
        self.processed_data = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        self.raw_data["torques"] = self.processed_data["torques"]

    def initialize_standard_parameters(self):
        """Name the parameters."""
        super().initialize_standard_parameters()
        if self.coupled:
            self.standard_parameter.update(dict.fromkeys(COUPLED, 0.0))

    def predict(self, log):
        """Return the torques (n, N) of the identified model along a log."""
        self.raw_data = _as_data(log)
        self.filter_kinematics_data(self.filter_config)
        self.num_samples = len(log.time)
        self._build_full_configuration()
        motion = (self.processed_data[key] for key in ("positions", "velocities", "accelerations"))
        W = base_identification.build_regressor_basic(self.robot, *motion, self.identif_config)
        W = np.delete(W, self._idx_eliminated, axis=1)
        return (W[:, self._base_indices] @ self.phi_base).reshape(-1, len(log.time))


def _as_data(log):
    return {
        "timestamps": log.time[:, None],
        "positions": log.q.T,
        "velocities": None if log.qd is None else log.qd.T,
        "accelerations": None,
        "torques": log.torque.T,
    }


def main() -> None:
    """Identify, and predict along the unseen logs."""
    folder = Path(sys.argv[1])
    logging.basicConfig(level=logging.ERROR)
    task = json.loads((folder / "task.json").read_text())
    read = READERS[task["robot"]]

    def prepared(name):
        log = even(read(Path(task["root"]), name))
        return log if task["recorded_velocity"] else log.without_velocity()

    logs = [prepared(name) for name in task["training"]]
    robot = load_robot(str(folder / "arm.urdf"), package_dirs=str(folder), load_by_urdf=True)
    found = Samples(robot, str(folder / "config.yaml"), logs, task["trained"], task["coupled"])
    found.initialize()
    found.solve(decimation_factor=task["decimation"], plotting=False, wls=True)
    seconds = time.process_time()
    unseen = {name: prepared(name) for name in task["unseen"]}
    arrays = {}
    for k, log in enumerate(unseen.values()):
        arrays |= {f"time_{k}": log.time, f"torque_{k}": found.predict(log)}
    np.savez(folder / "predicted.npz", **arrays)
    reported = {"cpu_seconds": seconds, "parameters": len(found.phi_base)}
    (folder / "result.json").write_text(json.dumps(reported))


if __name__ == "__main__":
    main()
