"""Robot files as bytes of bounded size, and parsing of untrusted XML.

A first pass with expat, which builds nothing, refuses document types and entities (the entity bomb, files drawn in from
elsewhere), odd encodings, and trees too deep or too large. Only what passes reaches lxml, which keeps comments and
unknown tags so that the document can be edited in place later.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.parsers import expat

from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..errors import RobotError
from ..files import file_bytes, too_large

PathOrBytes = str | os.PathLike[str] | bytes


def place_of(path_or_bytes: PathOrBytes) -> str:
    """Return what a message calls this input: the path, or a description for bytes."""
    if isinstance(path_or_bytes, bytes):
        return "robot description (bytes)"
    return os.fspath(path_or_bytes)


def content_of(path_or_bytes: PathOrBytes, limit: int) -> bytes:
    """Return the bytes given, or those of the file, refusing more than ``limit`` of them."""
    if isinstance(path_or_bytes, bytes):
        data = path_or_bytes
    else:
        name = os.fspath(path_or_bytes)
        if name.lstrip().startswith("<"):
            raise RobotError("got XML text where a path was expected; pass the text as bytes, or the name of a file")
        data = file_bytes(Path(name), "a robot description", RobotError, limit)
    if len(data) > limit:
        raise RobotError(too_large(limit))
    if not data.strip():
        raise RobotError("the file is empty; a robot description was expected")
    return data


# The largest URDF files in the wild have a few hundred kilobytes.
LARGEST_FILE = 20_000_000
MOST_ELEMENTS = 100_000
DEEPEST_ELEMENT = 100

# Both parsers know these and read them alike.
ENCODINGS = ("utf-8", "utf-16", "us-ascii", "ascii", "iso-8859-1")

XACRO_MESSAGE = "this is a xacro file, not yet a URDF; expand it first: xacro robot.urdf.xacro > robot.urdf"


class _Gate:
    """Handlers of the first pass; each raises at the first thing that is not allowed."""

    def __init__(self) -> None:
        self.depth = 0
        self.elements = 0

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ENCODINGS:
            raise RobotError(f"encoding '{encoding}' is not read; allowed: {', '.join(ENCODINGS)}; save it as utf-8")

    def document_type(self, *_: object) -> None:
        raise RobotError(
            "has a DOCTYPE (entity declarations), which is refused because it can be used for attacks; "
            "robot files need none: delete the <!DOCTYPE ...> part"
        )

    def start(self, name: str, _: object) -> None:
        self.depth += 1
        self.elements += 1
        if name.startswith("xacro:"):
            raise RobotError(XACRO_MESSAGE)
        if self.depth > DEEPEST_ELEMENT:
            raise RobotError(f"elements are nested more than {DEEPEST_ELEMENT} deep; no robot file is, check the file")
        if self.elements > MOST_ELEMENTS:
            raise RobotError(f"has more than {MOST_ELEMENTS} elements; no robot file has, check the file")

    def end(self, _: str) -> None:
        self.depth -= 1


def parse_xml_safely(data: bytes) -> etree._ElementTree:
    """Return the document with its comments and unknown tags, or refuse it in one line."""
    check_xml(data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        tree = etree.fromstring(data, parser).getroottree()
    except (etree.XMLSyntaxError, ValueError) as error:
        raise RobotError(f"not XML ({error}); give a URDF or MJCF file") from error
    if tree.docinfo.internalDTD is not None or tree.docinfo.doctype:
        raise RobotError("has a DOCTYPE, which is refused; delete the <!DOCTYPE ...> part")
    if any(_is_xacro(element) for element in tree.iter(etree.Element)):
        raise RobotError(XACRO_MESSAGE)
    return tree


def check_xml(data: bytes) -> None:
    """Refuse what is not XML, document types and entities, odd encodings, and trees too deep or too large."""
    gate, parser = _Gate(), expat.ParserCreate()
    parser.XmlDeclHandler = gate.declaration
    parser.StartDoctypeDeclHandler = gate.document_type
    parser.EntityDeclHandler = gate.document_type
    parser.StartElementHandler = gate.start
    parser.EndElementHandler = gate.end
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise RobotError(f"not XML ({error}); give a URDF or MJCF file") from error


def _is_xacro(element: etree._Element) -> bool:
    return "xacro" in (etree.QName(element).namespace or "")
