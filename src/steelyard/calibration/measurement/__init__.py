"""How an arm was measured: set-up, measurements, files, and their validation."""
