# %% [markdown]
# # Identify a payload
# The arm is identified without payload first; its run then stands for all its recordings.

# %%
from dataclasses import replace

import steelyard

plate = (0.002, 0, 0, 0.002, 0, 0.002, 0.04, 0, 0, 0.5)  # XX XY XZ YY YZ ZZ MX MY MZ M
robot = replace(steelyard.load_robot("scara_2r"), payloads={"plate": plate})
motion = steelyard.fourier([0, 0], [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]], 5.0, ["joint_1", "joint_2"])
empty, carrying = steelyard.Experiment(record_rate=200), steelyard.Experiment(record_rate=200, payload="plate")

# %%
found = steelyard.identify(robot, steelyard.recording_of(steelyard.simulate(robot, motion, empty)))
run = steelyard.save_run(found, "arm_run")

# %% [markdown]
# ## With the payload

# %%
payload = steelyard.identify_payload(robot, run, steelyard.recording_of(steelyard.simulate(robot, motion, carrying)))
mass, sigma = payload.body.mass
print(f"mass {mass:.3f} +- {sigma:.3f} kg")
report = payload.to_html()
