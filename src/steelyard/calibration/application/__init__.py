"""Uses of a calibrated arm: accuracy over the workspace, corrected targets, files for controllers."""
