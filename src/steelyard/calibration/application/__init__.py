"""What a calibrated arm is good for: accuracy over the workspace, corrected targets, files for controllers."""
