"""The commands and their options, a file for each part of the work."""
