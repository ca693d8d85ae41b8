"""Choice of the configurations to measure."""
