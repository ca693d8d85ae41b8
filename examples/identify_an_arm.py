# %% [markdown]
# # Identify an arm
# Two recordings of a simulated SCARA are fitted, a third one judges. With your own arm, give its URDF and the paths of
# your logs instead: `steelyard.identify("my_arm.urdf", ["a.csv", "b.csv"], validation="c.csv")`.

# %%
import steelyard

robot = steelyard.load_robot("scara_2r")
noise = steelyard.Noise("white", (0.5, 0.05))
experiment = steelyard.Experiment(record_rate=200, motor_noise=noise)
amplitudes = [
    ([[0.4, 0.2], [0.7, 0.3]], [[0.2, 0.2], [0.3, 0.3]]),
    ([[0.3, 0.3], [0.5, 0.5]], [[0.1, 0.3], [0.4, 0.1]]),
]
motions = [steelyard.fourier([0, 0], sin, cos, 8.0, ["joint_1", "joint_2"]) for sin, cos in amplitudes]
first, second, unseen = (
    steelyard.recording_of(steelyard.simulate(robot, motion, experiment, seeds=[seed]))
    for seed, motion in enumerate((motions[0], motions[1], motions[0]))
)

# %% [markdown]
# ## Fit, and judge on motion that was not fitted

# %%
found = steelyard.identify(robot, [first, second], validation=unseen)
print(found.verdict.grade, f"{found.unseen_error.relative_percent:.2f} %")
print(found.to_frame().select("name", "value", "sigma", "unit"))

# %% [markdown]
# ## Look
# The figures are those of the report.

# %%
figures = [found.plot_torques(), found.plot_friction(), found.plot_residuals("velocity"), found.plot_parameters()]

# %% [markdown]
# ## Hand it on
# The run folder has `report.html`, and the model can be exported for a simulator or a controller.

# %%
run = steelyard.save_run(found, "scara_run")
written = steelyard.export_model(run, ["urdf", "yaml"], "exported")
print(*(path.name for path in written.paths))
