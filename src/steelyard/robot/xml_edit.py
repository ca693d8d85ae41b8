"""Byte-exact editing of XML robot files (URDF and MJCF): what is not changed stays as it is, byte for byte.

The elements of a file are found by expat, which says at which byte each tag begins. Attributes are replaced, added or
removed inside their tag; new elements are put behind the opening tag of their parent, indented as their neighbours are;
a comment can be put at the top. Comments, character data, quotes, line ends and the byte order mark survive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from ..errors import RobotError
from .files import check_xml
from .placement import Vector3

_TAG = re.compile(rb"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")
_TAG_NAME = re.compile(rb"<[^\s/>]+")
_ATTRIBUTE = re.compile(rb"\s+([^\s=/>]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_BLANK = re.compile(rb"\s*")
_LINE_START = re.compile(rb"\r?\n[ \t]*\Z")
_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?(?:<\?xml\s.*?\?>)?", re.DOTALL)
_COMMENT = re.compile(rb"\s*(<!--\s*(.*?)-->)", re.DOTALL)
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_USUAL_INDENT = b"  "
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}

Origin = tuple[Vector3, Vector3]
"""A frame in its parent's, as URDF writes it: xyz [m], and roll, pitch and yaw [rad]."""


@dataclass(eq=False)
class XmlElement:
    """An element of an :class:`XmlDocument`; changes are written by ``XmlDocument.edited``.

    Attributes:
        tag: Name without its namespace prefix.
        prefix: Namespace prefix with its colon, or empty.
        attributes: Values by name, changes included.
        children: Elements inside it, in file order; new ones last.
        start: Byte at which its opening tag begins; None for a new element.

    Example:
        >>> from steelyard.robot import XmlDocument
        >>> link = XmlDocument(b'<robot><link name="rod"/></robot>').root.child("link")
        >>> link.tag, link.attributes
        ('link', {'name': 'rod'})
    """

    tag: str
    prefix: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[XmlElement] = field(default_factory=list, repr=False)
    start: int | None = None
    _changes: dict[str, str | None] = field(default_factory=dict, repr=False)

    def elements(self, tag: str) -> Iterator[XmlElement]:
        """Iterate over the children with this tag, whatever their namespace."""
        return (element for element in self.children if element.tag == tag)

    def child(self, tag: str, name: str | None = None) -> XmlElement | None:
        """Return the first child with this tag, and with this ``name`` attribute if one is given; or None."""
        return next((each for each in self.elements(tag) if name is None or each.attributes.get("name") == name), None)

    def descendants(self, tag: str) -> Iterator[XmlElement]:
        """Iterate over all elements with this tag inside this one, in file order."""
        for element in self.children:
            if element.tag == tag:
                yield element
            yield from element.descendants(tag)

    def child_or_new(self, tag: str) -> XmlElement:
        """Return the first child with this tag; without one, add it."""
        return self.child(tag) or self.add(tag)

    def add(self, tag: str) -> XmlElement:
        """Return a new child, in the namespace of this element."""
        element = XmlElement(tag, self.prefix)
        self.children.append(element)
        return element

    def set(self, name: str, text: str) -> None:
        """Replace or add an attribute; one that has this text already is left alone."""
        if self.attributes.get(name) != text:
            self.attributes[name] = self._changes[name] = text

    def remove(self, name: str) -> None:
        """Remove an attribute, if it is there."""
        if self.attributes.pop(name, None) is not None:
            self._changes[name] = None

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """Return the numbers that an attribute holds; None if it is missing or holds something else."""
        try:
            return tuple(float(part) for part in self.attributes[name].split())
        except (KeyError, ValueError):
            return None

    def set_numbers(self, name: str, *values: float, tolerance: float = 0.0) -> None:
        """Replace or add an attribute that holds numbers, written with all digits that distinguish them.

        An attribute whose numbers are the same, within a tolerance, keeps its text.
        """
        present = self.numbers(name) or ()
        same_count = name in self.attributes and len(present) == len(values)
        if same_count and all(abs(a - b) <= tolerance for a, b in zip(present, values, strict=True)):
            return
        self.set(name, " ".join(repr(float(value) + 0.0) for value in values))  # + 0.0: no negative zeros

    @property
    def is_changed(self) -> bool:
        """Whether the element, or one inside it, is new or has changed attributes."""
        return self.start is None or bool(self._changes) or any(child.is_changed for child in self.children)


def set_origin(parent: XmlElement, origin: Origin) -> None:
    """Write the origin of a URDF element; one that has no ``<origin>`` gets it.

    Example:
        >>> from steelyard.robot import XmlDocument, set_origin
        >>> document = XmlDocument(b'<joint><origin xyz="0 0 1"/></joint>')
        >>> set_origin(document.root, ((0.0, 0.0, 2.5), (0.0, 0.0, 0.0)))
        >>> document.edited()
        b'<joint><origin xyz="0.0 0.0 2.5" rpy="0.0 0.0 0.0"/></joint>'
    """
    element = parent.child_or_new("origin")
    for name, values in zip(("xyz", "rpy"), origin, strict=True):
        element.set_numbers(name, *values)


class XmlDocument:
    """An XML file whose elements can be changed while every other byte stays.

    Args:
        content: The file: utf-8 (with or without byte order mark), ASCII or ISO 8859-1.

    Attributes:
        content: The file as it was.
        root: Its outermost element.

    Raises:
        RobotError: If it is not XML, has a document type, or is UTF-16.

    Example:
        >>> from steelyard.robot import XmlDocument
        >>> document = XmlDocument(b'<robot><!-- an arm --><link name="rod" /></robot>')
        >>> document.root.child("link", "rod").add("inertial").add("mass").set_numbers("value", 2)
        >>> document.edited()
        b'<robot><!-- an arm --><link name="rod"><inertial><mass value="2.0"/></inertial></link></robot>'
    """

    def __init__(self, content: bytes) -> None:
        if content.startswith(_UTF_16_MARKS) or b"\0" in content[:4]:
            raise RobotError("the file is UTF-16 text, which is read but not edited; save it as utf-8")
        check_xml(content)
        self.content = content
        self._line_end = b"\r\n" if b"\r\n" in content else b"\n"
        self._encoding = "utf-8"
        self._open = [XmlElement("")]
        self._parser = expat.ParserCreate()
        self._parser.XmlDeclHandler = self._declared
        self._parser.StartElementHandler = self._started
        self._parser.EndElementHandler = lambda _: self._open.pop()
        self._parser.Parse(content, True)
        self.root = self._open[0].children[0]
        first = min((child.start for child in self.root.children if child.start is not None), default=None)
        indent = b"" if first is None else self._indent_at(first)
        self._unit = indent.lstrip(b"\r\n") or _USUAL_INDENT

    def edited(self, comment: str = "") -> bytes:
        """Return the file with all changes.

        Args:
            comment: Text of a comment at the top, behind the XML declaration; it replaces a comment there that begins
                with the same line. Lines are separated by line feeds.
        """
        parts, done = [], 0
        for start, end, text in sorted(self._edits(self.root)):
            parts += [self.content[done:start], text]
            done = end
        content = b"".join([*parts, self.content[done:]])
        return self._with_comment(content, comment) if comment else content

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self._encoding = encoding or self._encoding

    def _started(self, name: str, attributes: dict[str, str]) -> None:
        prefix, colon, tag = name.rpartition(":")
        element = XmlElement(tag, prefix + colon, attributes, start=self._parser.CurrentByteIndex)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _edits(self, element: XmlElement) -> Iterator[tuple[int, int, bytes]]:
        """Yield start, end and new text of every opening tag that changes in or below an element of the file."""
        new = [child for child in element.children if child.start is None]
        if element.start is not None and (new or element._changes):
            tag = self._tag_at(element.start)
            end = element.start + len(tag)
            text = self._with_attributes(tag, element._changes)
            yield element.start, end, self._with_children(text, element, end, new) if new else text
        for child in element.children:
            if child.start is not None:
                yield from self._edits(child)

    def _tag_at(self, start: int) -> bytes:
        found = _TAG.match(self.content, start)
        if found is None:
            raise RobotError("the file has a tag that cannot be found again; save it as plain utf-8 XML")
        return found.group()

    def _with_attributes(self, tag: bytes, changes: dict[str, str | None]) -> bytes:
        new = {self._encoded(name): text for name, text in changes.items()}
        name = _TAG_NAME.match(tag)
        done = name.end() if name else 1
        parts = [tag[:done]]
        for found in _ATTRIBUTE.finditer(tag, done):
            key, start = found.group(1), found.start(2)
            if key in new:
                text, quote = new.pop(key), tag[start : start + 1]
                if text is not None:
                    parts += [tag[done:start], quote, self._escaped(text), quote]
                else:
                    parts.append(tag[done : found.start()])
                done = found.end()
        end = len(tag) - (2 if tag.endswith(b"/>") else 1)
        added = b"".join(
            b" " + key + b'="' + self._escaped(text) + b'"' for key, text in new.items() if text is not None
        )
        rest = tag[done:end].rstrip() if added else tag[done:end]
        return b"".join([*parts, rest, added, tag[end:]])

    def _with_children(self, tag: bytes, element: XmlElement, end: int, new: list[XmlElement]) -> bytes:
        """Return an opening tag followed by new children, and by the closing tag if the element had none."""
        blank = _BLANK.match(self.content, end)
        space = blank.group() if blank else b""
        closed = tag.endswith(b"/>")
        if not closed and not self.content.startswith(b"</", end + len(space)):
            before, after = (self._line_end + space.rpartition(b"\n")[2] if b"\n" in space else space), b""
        else:
            own = self._indent_at(element.start or 0)
            before, after = (own + self._unit if own else b""), (own if closed or not space else b"")
        if closed:
            tag = tag[:-2].rstrip() + b">"
            after += b"</" + self._encoded(element.prefix + element.tag) + b">"
        return tag + b"".join(before + self._written(child, before) for child in new) + after

    def _written(self, element: XmlElement, before: bytes) -> bytes:
        """Return the text of a new element; ``before`` is the line break and indent in front of it."""
        name = self._encoded(element.prefix + element.tag)
        attributes = (b" " + self._encoded(k) + b'="' + self._escaped(v) + b'"' for k, v in element.attributes.items())
        opening = b"<" + name + b"".join(attributes)
        if not element.children:
            return opening + b"/>"
        inner = before + self._unit if b"\n" in before else b""
        children = b"".join(inner + self._written(child, inner) for child in element.children)
        return opening + b">" + children + (before if inner else b"") + b"</" + name + b">"

    def _indent_at(self, start: int) -> bytes:
        """Return the line break and indent in front of a tag, or nothing if it does not begin its line."""
        line = self.content.rfind(b"\n", 0, start)
        found = _LINE_START.search(self.content, max(line - 1, 0), start) if line >= 0 else None
        return found.group() if found else b""

    def _with_comment(self, content: bytes, comment: str) -> bytes:
        lines = self._comment_text(comment).split(b"\n")
        text = b"<!-- " + self._line_end.join([*lines, b"-->"])
        found = _DECLARATION.match(content)
        top = found.end() if found else 0
        present = _COMMENT.match(content, top)
        if present and present.group(2).splitlines()[:1] == lines[:1]:
            return content[: present.start(1)] + text + content[present.end() :]
        if content[:top].endswith(b"?>"):
            return content[:top] + self._line_end + text + content[top:]
        return content[:top] + text + self._line_end + content[top:]

    def _comment_text(self, comment: str) -> bytes:
        """Return what a comment may hold: two hyphens in a row are set apart, unprintable letters left out."""
        text = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in comment)
        return self._encoded(re.sub(r"-(?=-)", "- ", text).rstrip("\n"))

    def _escaped(self, text: str) -> bytes:
        return self._encoded("".join(_ESCAPES.get(letter, letter) for letter in text))

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "xmlcharrefreplace")
