"""Identified arms and payloads as files that controllers, planners and simulators load.

A new format is a function that takes an :class:`IdentifiedArm` and keyword options and returns files, and an entry of
``EXPORTS``. Its module is imported when it is used, so that this list costs nothing to load.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .exporting import ExportResult as ExportResult
    from .exporting import export_model as export_model
    from .exporting import identified_arm as identified_arm
    from .exporting import sampled_arms as sampled_arms
    from .identified import ExportedFile as ExportedFile
    from .identified import IdentifiedArm as IdentifiedArm
    from .identified import TorqueComparison as TorqueComparison
    from .identified import write_files as write_files
    from .payload_formats import PAYLOAD_FORMATS as PAYLOAD_FORMATS
    from .payload_formats import PayloadFormat as PayloadFormat
    from .payload_formats import export_payload as export_payload


@final
@dataclass(frozen=True)
class Export:
    """A format that an identified arm can be written in.

    Attributes:
        name: Its name on the command line, ``--NAME``.
        summary: A few words for ``--help``.
        files: Names of the files that it writes.
        builder: Module and function below ``steelyard.export``; called with an ``IdentifiedArm`` and keyword options,
            returns an ``ExportedFile`` or a tuple of them.
        options: Keyword options that the builder takes.
    """

    name: str
    summary: str
    files: str
    builder: str
    options: tuple[str, ...] = ()

    def build(self, arm: IdentifiedArm, **options: Any) -> tuple[ExportedFile, ...]:
        """Return the files of an arm, the main one first; options that the format does not know are left out.

        The notes of the main file begin with the cautions and conditions of the arm.
        """
        module, function = self.builder.split(".")
        known = {name: value for name, value in options.items() if name in self.options}
        built = getattr(import_module(f"{__name__}.{module}"), function)(arm, **known)
        main, *others = built if isinstance(built, tuple) else (built,)
        return (replace(main, notes=tuple(dict.fromkeys((*arm.heading, *main.notes)))), *others)


EXPORTS: dict[str, Export] = {
    one.name: one
    for one in (
        Export(
            "urdf", "URDF: the robot's own, edited, or a new one", "<robot>.urdf", "urdf.urdf_file",
            ("force", "origins", "new_file"),
        ),
        Export(
            "mjcf", "MJCF: the robot's own, edited, or a new one", "<robot>.xml", "mjcf.mjcf_files",
            ("force", "new_file"),
        ),
        Export("c", "C99 without dependencies", "<robot>.h <robot>.c", "c_code.c_files", ("side",)),
        Export(
            "casadi", "CasADi functions", "<robot>_<function>.casadi <robot>_casadi.txt",
            "casadi_functions.casadi_files", ("side", "parameters"),
        ),
        Export("numpy", "a module that needs NumPy alone", "<robot>_dynamics.py", "numpy_module.numpy_file", ("side",)),
        Export("yaml", "parameters with sigmas as YAML", "<robot>.yaml", "tables.yaml_file"),
        Export("json", "parameters with sigmas as JSON", "<robot>.json", "tables.json_file"),
        Export("latex", "parameters with sigmas as a LaTeX table", "<robot>.tex", "tables.latex_file"),
    )
}  # fmt: skip
"""By name, in the order of the documentation."""

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "exporting": ["ExportResult", "export_model", "identified_arm", "sampled_arms"],
        "identified": ["ExportedFile", "IdentifiedArm", "TorqueComparison", "write_files"],
        "payload_formats": ["PAYLOAD_FORMATS", "PayloadFormat", "export_payload"],
    },
)
