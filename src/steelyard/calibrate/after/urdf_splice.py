"""Joint origins of a URDF replaced byte by byte: what is not a joint's origin stays as it was, to the last blank."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final
from xml.parsers import expat

from ...errors import CalibrationError

_TAG = re.compile(rb"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")
_BLANK = re.compile(rb"\s*")
_JOINT_DEPTH = 2
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@final
@dataclass(frozen=True)
class Origin:
    """Where a joint's frame stands in its parent's: xyz [m] and roll, pitch, yaw [rad]."""

    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]


def with_origins(content: bytes, origins: Mapping[str, Origin]) -> bytes:
    """Return a URDF with the origins of some joints replaced; a joint that has none gets one.

    Args:
        content: The file, known to be safe XML (``parse_urdf_document`` has read it).
        origins: New origins by the joints' names.
    """
    if content.startswith(_UTF_16_MARKS):
        raise CalibrationError("the URDF is UTF-16 text, which is read but not edited; save it as utf-8")
    places = _Places(content)
    edits = [_edit(content, places.joints[name], places.origins.get(name), new) for name, new in origins.items()]
    for start, end, text in sorted(edits, reverse=True):
        content = content[:start] + text + content[end:]
    return content


class _Places:
    """Where the tags of joints and of their origins begin in the file."""

    def __init__(self, content: bytes) -> None:
        self.joints: dict[str, int] = {}
        self.origins: dict[str, int] = {}
        self._open: list[str] = []
        self._joint: str | None = None
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(content, True)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        word = tag.rpartition(":")[2]
        self._open.append(word)
        if len(self._open) == _JOINT_DEPTH:
            self._joint = attributes.get("name") if word == "joint" else None
            if self._joint is not None:
                self.joints[self._joint] = self._parser.CurrentByteIndex
        elif len(self._open) == _JOINT_DEPTH + 1 and word == "origin" and self._joint is not None:
            self.origins.setdefault(self._joint, self._parser.CurrentByteIndex)

    def _end(self, _: str) -> None:
        self._open.pop()


def _edit(content: bytes, joint: int, origin: int | None, new: Origin) -> tuple[int, int, bytes]:
    """Return start, end and text of a replacement."""
    if origin is not None:
        tag = _tag_at(content, origin)
        return origin, origin + len(tag), _with_attribute(_with_attribute(tag, b"xyz", new.xyz), b"rpy", new.rpy)
    opening = _tag_at(content, joint)
    after = joint + len(opening)
    indent = _BLANK.match(content, after)
    prefix = opening[1:].split(b"joint", 1)[0]  # of a namespace
    bare = _with_attribute(_with_attribute(b"<" + prefix + b"origin/>", b"xyz", new.xyz), b"rpy", new.rpy)
    return after, after, (indent.group() if indent else b"") + bare


def _tag_at(content: bytes, start: int) -> bytes:
    found = _TAG.match(content, start)
    if found is None:
        raise CalibrationError("the URDF has a joint whose tag cannot be found again; save the file as plain utf-8 XML")
    return found.group()


def _with_attribute(tag: bytes, name: bytes, values: tuple[float, float, float]) -> bytes:
    text = b'"' + " ".join(repr(value) for value in values).encode() + b'"'
    present = re.compile(rb"(\s" + name + rb"\s*=\s*)(\"[^\"]*\"|'[^']*')")
    if present.search(tag):
        return present.sub(lambda found: found.group(1) + text, tag, count=1)
    end = -2 if tag.endswith(b"/>") else -1
    return tag[:end].rstrip() + b" " + name + b"=" + text + tag[end:]
