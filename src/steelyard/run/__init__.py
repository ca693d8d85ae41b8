"""Runs: configuration files, result folders, and writing that a kill cannot break."""

from .config import read_config as read_config
from .folder import SCHEMA_VERSION as SCHEMA_VERSION
from .folder import hashes_of as hashes_of
from .folder import json_text as json_text
from .folder import remove_other_arrays as remove_other_arrays
from .folder import write_arrays as write_arrays
from .folder import write_result as write_result
