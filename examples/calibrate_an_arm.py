# %% [markdown]
# # Calibrate an arm from a laser tracker
# Forty configurations of a simulated UR10e whose geometry is off by some tenths of a millimetre; fifteen others judge.

# %%
import numpy as np

import steelyard
from steelyard.calibration import CalibrationSetup, MarkerSetup, random_configurations, simulated_measurements

robot = steelyard.load_robot("ur10e")
nests = [(0.05, 0.0, 0.02), (-0.03, 0.04, 0.02), (-0.03, -0.04, 0.05)]
setup = CalibrationSetup("tool0", markers=tuple(MarkerSetup(f"nest_{k}", place) for k, place in enumerate(nests)))
errors = {"offset2": 2e-3, "z3": 0.8e-3, "offset4": -1.5e-3}
points, others = (
    simulated_measurements(
        robot, setup, random_configurations(robot, count, np.random.default_rng(seed)), errors, sigma=5e-5
    )
    for seed, count in ((1, 40), (2, 15))
)

# %%
found = steelyard.calibrate(robot, points, setup=setup, validate=others, workspace=0)
calibration = found.calibration
print(calibration.verdict.grade, f"{calibration.before.mean_mm:.2f} mm before")
