# %% [markdown]
# # Design the motion to record
# A motion that keeps every limit of the robot file and shows the parameters well.

# %%
import steelyard
from steelyard.motion import write_trajectory

settings = steelyard.DesignSettings(duration=8.0, starts=1)
designed = steelyard.design("scara_2r", settings=settings)
print(designed.objective, f"{designed.value:.3g}")

# %% [markdown]
# ## A file for the controller

# %%
path = write_trajectory(designed.trajectory, "motion.toml")
print(path)
