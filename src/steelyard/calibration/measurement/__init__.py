"""How an arm was measured: set-up, measurements, files, and what is refused at the door."""
