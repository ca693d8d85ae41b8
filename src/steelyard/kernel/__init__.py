"""Compilation of symbolic functions to batch functions and to loops over time.

CasADi's list of scalar instructions is lowered to LLVM code in which each instruction works on a vector of samples. The
stages, each a module: :mod:`program` reads the list, fuses operations and cuts it into chunks, :mod:`lower` writes LLVM
text and makes machine code of it, :mod:`batch` and :mod:`loop` give it arrays.
"""

from .arrays import OutputSparsity as OutputSparsity
from .batch import BatchFunction as BatchFunction
from .batch import BoundBatch as BoundBatch
from .batch import compile_batch as compile_batch
from .emitter import Target as Target
from .emitter import baseline_target as baseline_target
from .emitter import host_target as host_target
from .loop import TimeLoop as TimeLoop
from .loop import compile_loop as compile_loop
