"""Run FIGAROH's optimal trajectories; started by ``figaroh_design`` in an interpreter that has FIGAROH and cyipopt.

Arguments: the folder with ``arm.urdf`` and ``config.yaml``, the number of segments, the seed. Writes ``motion.npz`` and
``result.json`` there.
"""

import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
import yaml
from figaroh.optimal.base_optimal_trajectory import (  # pyright: ignore[reportMissingImports]
    BaseOptimalTrajectory,
    BaseTrajectoryIPOPTProblem,
)
from figaroh.tools.robot import load_robot  # pyright: ignore[reportMissingImports]


class Optimiser(BaseOptimalTrajectory):
    """FIGAROH's optimiser with its own problem class, nothing added."""

    def create_ipopt_problem(self, *given):
        """Return FIGAROH's own Ipopt problem."""
        return BaseTrajectoryIPOPTProblem(self, *given)


def main() -> None:
    """Run the search and write what it found."""
    folder, segments, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    logging.basicConfig(level=logging.WARNING)
    np.random.seed(seed)  # noqa: NPY002 - FIGAROH draws from numpy's global generator
    arm = load_robot(str(folder / "arm.urdf"), package_dirs=str(folder), load_by_urdf=True)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    joints = config["robot"]["properties"]["joints"]["active_joints"]
    began, began_cpu = time.perf_counter(), time.process_time()
    optimiser = Optimiser(arm, joints, str(folder / "config.yaml"))
    numbers = [arm.model.getJointId(name) for name in joints]
    optimiser.identif_config.update(
        active_joints=joints,
        act_Jid=numbers,
        act_J=[arm.model.joints[number] for number in numbers],
        act_idxq=[arm.model.joints[number].idx_q for number in numbers],
        act_idxv=[arm.model.joints[number].idx_v for number in numbers],
    )
    optimiser.initialize()
    prepared = time.perf_counter() - began
    found = optimiser.solve(stack_reps=segments)
    reported = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - began_cpu,
        "prepared_seconds": prepared,
        "segments": len(found["T_F"]),
        "base_parameters": len(optimiser.idx_b),
        "status": [int(data["status"]) for data in found["iteration_data"]],
        "converged": [bool(data["converged"]) for data in found["iteration_data"]],
        "solve_seconds": [float(data["solve_time"]) for data in found["iteration_data"]],
        "iterations": [len(data["iterations"]) for data in found["iteration_data"]],
    }
    if found["T_F"]:
        motion = [np.vstack([np.asarray(part) for part in found[key]]) for key in ("P_F", "V_F", "A_F")]
        columns = [optimiser.CB.act_idxq, optimiser.CB.act_idxv, optimiser.CB.act_idxv]
        q, qd, qdd = (part[:, chosen].T for part, chosen in zip(motion, columns, strict=True))
        np.savez(folder / "motion.npz", q=q, qd=qd, qdd=qdd)
        reported["condition"] = float(np.linalg.cond(optimiser._stack_base_regressors(*motion)))
    (folder / "result.json").write_text(json.dumps(reported))


if __name__ == "__main__":
    main()
