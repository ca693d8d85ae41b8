"""The command line: parse, call the library, print."""

from .app import main as main
