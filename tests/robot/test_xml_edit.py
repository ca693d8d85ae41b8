"""The XML editor: what is not changed stays byte for byte, whatever the file looks like."""

from __future__ import annotations

import pytest
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from steelyard.errors import RobotError
from steelyard.robot import XmlDocument, set_origin

ODD = """<?xml version="1.0"?>
<!-- <link name="rod"><inertial/></link> -->
<robot name='odd' xmlns:u="urn:u">
  <link name="base"/>
  <link odd='a > "b" name="rod" mass="1"' name = 'rod'
      >
    <![CDATA[ <inertial> ]]>
    <inertial><mass value='2' /></inertial>
  </link>
  <u:link name="prefixed" />
  <link name="empty"></link>
  <link name="open">
  </link>
  <transmission><joint name="rod"/></transmission>
</robot>
"""


def link(document: XmlDocument, name: str):
    found = document.root.child("link", name)
    assert found is not None
    return found


@pytest.mark.parametrize("text", [ODD, ODD.replace("\n", "\r\n"), "\ufeff" + ODD, ODD.partition("\n")[2]])
def test_nothing_changed_is_the_same_file(text):
    document = XmlDocument(text.encode())
    rod = link(document, "rod")
    rod.set("name", "rod")
    rod.child_or_new("inertial").child_or_new("mass").set_numbers("value", 2.0)
    rod.remove("absent")
    assert not document.root.is_changed
    assert document.edited() == text.encode()


def test_attributes_are_replaced_inside_their_quotes_and_not_inside_those_of_others():
    document = XmlDocument(ODD.encode())
    rod = link(document, "rod")
    rod.set("name", "a'b<\"&")
    mass = rod.child_or_new("inertial").child_or_new("mass")
    mass.set_numbers("value", 0.1 + 0.2)
    mass.set_numbers("other", -0.0, 1e-20)
    done = document.edited().decode()
    changes = {
        "name = 'rod'": "name = 'a&apos;b&lt;&quot;&amp;'",
        "<mass value='2' />": "<mass value='0.30000000000000004' other=\"0.0 1e-20\"/>",
    }
    expected = ODD
    for before, after in changes.items():
        assert expected.count(before) == 1
        expected = expected.replace(before, after)
    assert done == expected
    assert etree.fromstring(done.encode()).xpath("//link[2]")[0].get("name") == "a'b<\"&"


def test_attributes_can_be_removed():
    document = XmlDocument(b"""<body pos="1 2 3"  quat = '1 0 0 0' mass="2"/>""")
    document.root.remove("quat")
    document.root.remove("mass")
    assert document.edited() == b'<body pos="1 2 3"/>'
    assert document.root.attributes == {"pos": "1 2 3"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_new_elements_are_indented_as_their_neighbours(end):
    text = ODD.replace("\n", end)
    document = XmlDocument(text.encode())
    for name in ("base", "rod", "empty", "open"):
        new = link(document, name).add("new")
        new.add("inner").set("a", "1")
        new.add("inner")
    document.root.child("link", "prefixed").add("new").add("inner")  # pyright: ignore[reportOptionalMemberAccess]
    done = document.edited().decode()
    block = '\n    <new>\n      <inner a="1"/>\n      <inner/>\n    </new>'
    expected = (
        ODD.replace('<link name="base"/>', f'<link name="base">{block}\n  </link>')
        .replace("'rod'\n      >", f"'rod'\n      >{block}")
        .replace(
            '<u:link name="prefixed" />',
            '<u:link name="prefixed">\n    <u:new>\n      <u:inner/>\n    </u:new>\n  </u:link>',
        )
        .replace('<link name="empty"></link>', f'<link name="empty">{block}\n  </link>')
        .replace('<link name="open">\n', f'<link name="open">{block}\n')
    )
    assert done == expected.replace("\n", end)


def test_a_file_on_one_line_stays_on_one_line():
    document = XmlDocument(b'<robot><joint name="a"><axis/></joint><joint name="b"/></robot>')
    for joint in document.root.elements("joint"):
        set_origin(joint, ((0.5, 0.0, 0.0), (0.0, 0.0, 1.0)))
    origin = b'<origin xyz="0.5 0.0 0.0" rpy="0.0 0.0 1.0"/>'
    expected = b'<robot><joint name="a">' + origin + b'<axis/></joint><joint name="b">' + origin + b"</joint></robot>"
    assert document.edited() == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<a/>", "<!-- Top\nline\n-->\n<a/>"),
        ("\ufeff<a/>", "\ufeff<!-- Top\nline\n-->\n<a/>"),
        ('<?xml version="1.0"?>\n<a/>', '<?xml version="1.0"?>\n<!-- Top\nline\n-->\n<a/>'),
        ('\ufeff<?xml version="1.0"?>\r\n<a/>', '\ufeff<?xml version="1.0"?>\r\n<!-- Top\r\nline\r\n-->\r\n<a/>'),
        ('<?xml version="1.0"?><a/>', '<?xml version="1.0"?>\n<!-- Top\nline\n--><a/>'),
        ("<!-- Other\n -->\n<a/>", "<!-- Top\nline\n-->\n<!-- Other\n -->\n<a/>"),
        ('<?xml version="1.0"?>\n<!-- Top\nof old\n-->\n<a/>', '<?xml version="1.0"?>\n<!-- Top\nline\n-->\n<a/>'),
    ],
)
def test_a_comment_stands_at_the_top_and_replaces_its_own_kind(before, after):
    done = XmlDocument(before.encode()).edited("Top\nline")
    assert done == after.encode()
    assert XmlDocument(done).edited("Top\nline") == done


@pytest.mark.parametrize("name", ["a--b", "a---b", "-", "--", "a\x1bb", "-->", "<!--"])
def test_a_comment_is_well_formed_whatever_it_says(name):
    done = XmlDocument(b"<a/>").edited(f"joint {name}")
    assert etree.fromstring(done).tag == "a"
    assert XmlDocument(b"<a/>").edited(f"{name}\nmore").count(b"-->") == 1


def test_latin_text_keeps_its_encoding():
    text = '<?xml version="1.0" encoding="iso-8859-1"?><robot><link name="é"/><link name="b"/></robot>'
    document = XmlDocument(text.encode("latin-1"))
    link(document, "é").set("note", "ü€")
    done = document.edited("é €")
    assert done.decode("latin-1") == text.replace("?><robot", "?>\n<!-- é &#8364;\n--><robot").replace(
        '"é"', '"é" note="ü&#8364;"'
    )
    assert etree.fromstring(done)[0].get("note") == "ü€"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused(encoding):
    with pytest.raises(RobotError, match="UTF-16 text, which is read but not edited; save it as utf-8"):
        XmlDocument("<robot/>".encode(encoding))


@pytest.mark.parametrize("text", [b'<!DOCTYPE a [<!ENTITY b "c">]><a/>', b"<a>", b""])
def test_what_the_readers_refuse_is_not_edited_either(text):
    with pytest.raises(RobotError):
        XmlDocument(text)


def test_elements_are_found_by_tag_and_name_at_their_own_depth():
    root = XmlDocument(ODD.encode()).root
    assert [element.attributes["name"] for element in root.elements("link")] == [
        "base",
        "rod",
        "prefixed",
        "empty",
        "open",
    ]
    assert root.child("joint") is None
    assert [element.attributes["name"] for element in root.descendants("joint")] == ["rod"]


def test_numbers_are_written_unless_they_are_the_same_within_the_tolerance():
    def written(text: str, *values: float, **options: float) -> str:
        document = XmlDocument(f'<a v="{text}"/>'.encode())
        document.root.set_numbers("v", *values, **options)
        assert document.root.is_changed == (document.root.attributes["v"] != text)
        return document.root.attributes["v"]

    assert written("1e0 02", 1.0, 2.0) == "1e0 02"
    assert written("1 2", 1.0, 2.05) == "1.0 2.05"
    assert written("1 2", 1.0, 2.05, tolerance=0.1) == "1 2"
    assert written("1 2", 1.0) == "1.0"
    assert written("one", 1.0) == "1.0"
    assert written("", 1.0) == "1.0"


def test_an_element_is_changed_by_its_attributes_by_new_elements_and_by_what_is_inside():
    document = XmlDocument(b'<a><b c="1"><d/></b><e/></a>')
    b, e = document.root.children
    assert not document.root.is_changed
    b.children[0].set("f", "2")
    assert (document.root.is_changed, b.is_changed, e.is_changed) == (True, True, False)
    e.remove("absent")
    assert not e.is_changed
    e.add("new")
    assert e.is_changed
    assert e.children[0].is_changed
