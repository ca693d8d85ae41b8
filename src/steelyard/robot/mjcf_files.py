"""MJCF files as documents, their includes followed, and as models that MuJoCo has compiled."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..configuration import LARGEST_NUMBER, located, vector
from ..errors import RobotError, SteelyardError
from .files import LARGEST_FILE, PathOrBytes, content_of, parse_xml_safely
from .parts import MeshShape

MJCF_ROOT = "mujoco"
WORLD = "world"
"""Name of MuJoCo's fixed body, which all others hang on."""

OUT_OF_SCOPE = {
    "attach": "put the bodies of the attached model into the file, or let MuJoCo do it (MjSpec.to_file)",
    "composite": "write its bodies out",
    "flex": "deformable bodies are out of scope, delete it",
    "flexcomp": "deformable bodies are out of scope, delete it",
    "plugin": "plugins are not run, delete it",
    "replicate": "write its copies out, or let MuJoCo do it (MjSpec.to_file)",
}
"""Elements that are not read, and what to do about them."""


def import_mujoco(what: str, error_kind: type[SteelyardError]) -> Any:
    """Return the mujoco module, or raise an error that says what needs it and how to install it."""
    try:
        import mujoco
    except ImportError as error:
        raise error_kind(f"{what} needs MuJoCo; install it with: pip install 'steelyard[mujoco]'") from error
    return mujoco


@contextmanager
def without_mujoco_log(mujoco: Any) -> Iterator[None]:
    """Keep MuJoCo from writing its warnings to the screen and to a file in the working folder."""
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


@dataclass(frozen=True, eq=False)
class MjcfSource:
    """An MJCF file and those it includes.

    Attributes:
        content: The file.
        folder: Where it stands; None if it came as bytes.
        included: Included files by the names that ``<include>`` gives them.
        model: Name of the model; empty if it has none.
    """

    content: bytes
    folder: Path | None
    included: Mapping[str, bytes]
    model: str

    def elements(self, *tags: str) -> Iterator[Any]:
        """Iterate over the elements of the file and of those it includes that have one of these tags."""
        for content in (self.content, *self.included.values()):
            yield from parse_xml_safely(content).getroot().iter(*tags)


def mjcf_source(path_or_bytes: PathOrBytes) -> MjcfSource:
    """Return an MJCF file with all that it includes.

    Raises:
        RobotError: If a file is no safe XML, or has an element that is not read.
    """
    content = content_of(path_or_bytes, LARGEST_FILE)
    folder = None if isinstance(path_or_bytes, bytes) else Path(path_or_bytes).absolute().parent
    root = parse_xml_safely(content).getroot()
    tag = etree.QName(root).localname
    if tag != MJCF_ROOT:
        remedy = "give the file that includes it" if tag == "mujocoinclude" else "give the arm's MJCF or URDF"
        raise RobotError(f"root element is <{tag}>, not MJCF; allowed is <{MJCF_ROOT}>, {remedy}")
    included: dict[str, bytes] = {}
    _follow(root, folder, included)
    return MjcfSource(content, folder, included, root.get("model", ""))


def _follow(root: etree._Element, folder: Path | None, included: dict[str, bytes]) -> None:
    """Add the files that are included below an element, and check them all."""
    for element in root.iter(etree.Element):
        tag, name = etree.QName(element).localname, element.get("file", "")
        if tag in OUT_OF_SCOPE:
            raise RobotError(f"has a <{tag}>, which is not read; {OUT_OF_SCOPE[tag]}")
        if tag != "include":
            continue
        if folder is None or name in included:
            remedy = "give the path of the file" if folder is None else "MuJoCo allows it once"
            raise RobotError(
                f"<include file='{name}'/> cannot be followed{'' if folder is None else ' again'}; {remedy}"
            )
        with located(f"included file '{name}'", RobotError):
            included[name] = content_of(folder / name, LARGEST_FILE)
            _follow(parse_xml_safely(included[name]).getroot(), folder, included)


@dataclass(frozen=True, eq=False)
class CompiledMjcf:
    """A model as MuJoCo compiled it.

    Attributes:
        mujoco: The module.
        model: The compiled model.
        meshes: Meshes without their place, by the number of the geometry; it is a ball where the mesh was not opened.
        notes: What MuJoCo warned of.
    """

    mujoco: Any
    model: Any
    meshes: dict[int, MeshShape]
    notes: tuple[str, ...] = ()

    def kind(self, enumeration: str, value: int) -> str:
        """Return the name that a number of one of MuJoCo's enumerations has in MJCF, such as ``hinge``."""
        return getattr(self.mujoco, f"mjt{enumeration}")(int(value)).name.rpartition("_")[2].lower()

    def name(self, kind: str, number: int) -> str:
        """Return the name of a body, joint or site; empty for a site without one."""
        return self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), number) or ""


def compiled_mjcf(source: MjcfSource) -> CompiledMjcf:
    """Return the model that MuJoCo compiles, its fixed bodies as they are; joints and bodies without a name get one.

    Raises:
        RobotError: If MuJoCo is not installed or does not compile it.
    """
    mujoco = import_mujoco("reading MJCF", RobotError)
    with without_mujoco_log(mujoco), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = source.content.decode("utf-8-sig")
            spec = mujoco.MjSpec.from_string(text, include=dict(source.included) or None)
            spec.modelfiledir = "" if source.folder is None else str(source.folder)
            # Every body of the file stays, so that links have the file's names.
            spec.compiler.fusestatic = spec.compiler.discardvisual = False
            for kind, elements in (("joint", spec.joints), ("body", spec.bodies[1:])):
                _name_all(kind, elements)
            meshes = _without_meshes(mujoco, spec, source.folder)
            model = spec.compile()
        except UnicodeDecodeError as error:
            raise RobotError("is not utf-8 text, which MuJoCo needs; save it as utf-8") from error
        except (ValueError, mujoco.FatalError) as error:
            reason = str(error).removeprefix("Error: ").replace("\n", ", ")
            raise RobotError(f"MuJoCo does not compile it: {reason}; correct the file") from error
    _check_numbers(model)
    notes = tuple(f"MuJoCo: {warning.message}" for warning in caught)
    return CompiledMjcf(mujoco, model, {geom.id: mesh for geom, mesh in meshes}, notes)


def _check_numbers(model: Any) -> None:
    """Refuse numbers that are not finite, or beyond all measure."""
    kinds = {
        "body": ("pos", "quat", "mass", "ipos", "iquat", "inertia"),
        "jnt": ("pos", "axis"),
        "dof": ("armature", "damping", "frictionloss"),
        "geom": ("pos", "quat", "size"),
        "site": ("pos", "quat"),
        "actuator": ("gear", "gainprm", "armature", "damping"),
        "eq": ("data",),
    }
    fields = {
        f"{kind} {name}": getattr(model, f"{kind}_{name}", 0.0)  # MuJoCo 3.2 to 3.4: actuators without armature
        for kind, names in kinds.items()
        for name in names
    }
    for what, values in {**fields, "gravity": model.opt.gravity, "reference": model.qpos0}.items():
        if not np.all(np.abs(values) <= LARGEST_NUMBER):
            raise RobotError(f"a number of '{what}' is not finite or above {LARGEST_NUMBER:g}; correct the file")


def _name_all(kind: str, elements: list[Any]) -> None:
    taken = {element.name for element in elements}
    for number, element in enumerate(elements, start=1):
        name = f"{kind}_{number}"
        while not element.name and name in taken:
            name += "_"
        element.name = element.name or name


def _without_meshes(mujoco: Any, spec: Any, folder: Path | None) -> list[tuple[Any, MeshShape]]:
    """Put a massless ball in the place of each mesh that no inertia depends on, and return all geometries with a mesh.

    The compiler still resolves the place of the ball, and files of meshes and textures need not be there.
    """
    meshes = {mesh.name or Path(mesh.file).stem: mesh for mesh in spec.meshes}
    from_geometry = int(spec.compiler.inertiafromgeom) == int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    found = []
    for geom in spec.geoms:
        if geom.type != mujoco.mjtGeom.mjGEOM_MESH or geom.meshname not in meshes:
            continue
        found.append((geom, _mesh_shape(meshes[geom.meshname], folder, spec)))
        if not _moves(geom.parent) or (geom.parent.explicitinertial and not from_geometry):
            geom.type, geom.meshname, geom.mass = mujoco.mjtGeom.mjGEOM_SPHERE, "", 0.0
            geom.size = [0.001, 0.0, 0.0]
    used = {geom.meshname for geom in spec.geoms}
    for name, mesh in meshes.items():
        if name not in used:
            spec.delete(mesh)
    for look in (*spec.geoms, *spec.sites, *spec.tendons):
        look.material = ""
    for look in (*spec.skins, *spec.materials, *spec.textures):
        spec.delete(look)
    return found


def _moves(body: Any) -> bool:
    """Return whether a joint moves a body: the inertia of the others has no effect."""
    while body.name != WORLD:
        if body.joints:
            return True
        body = body.parent
    return False


def _mesh_shape(mesh: Any, folder: Path | None, spec: Any) -> MeshShape:
    """Return a mesh without a place; its path is None if there is no such file or MuJoCo moves its vertices."""
    name = Path(mesh.file).name if spec.strippath else mesh.file
    path = None if folder is None or not name else folder / spec.meshdir / name
    moved = np.any(mesh.refpos) or not np.array_equal(mesh.refquat, [1, 0, 0, 0])
    scale = vector(np.array(mesh.scale).tolist())
    return MeshShape((), name or mesh.name, path if path and path.is_file() and not moved else None, scale)
