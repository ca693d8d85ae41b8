"""Runs: configuration files, and run folders that are written atomically and checked when read."""

from ..configuration import read_config as read_config
from .folder import RunFolder as RunFolder
from .folder import hashes_of as hashes_of
from .folder import write_arrays as write_arrays
from .reading import LARGEST_VALUE as LARGEST_VALUE
from .reading import arrays_of as arrays_of
from .reading import file_of as file_of
from .reading import is_changed as is_changed
from .reading import read_result as read_result
