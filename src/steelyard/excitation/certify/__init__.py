"""Bounds over continuous time: intervals of motion, torque, place and clearance, refined until decided."""
