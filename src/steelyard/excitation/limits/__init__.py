"""What a motion must keep: by the robot, and by a limits file."""
