"""Every bad input gives one line: what, got, allowed, what next, with the name of the file."""

import os
from pathlib import Path

import pytest

from steelyard.errors import RobotError
from steelyard.robot import load_robot, parse_urdf_document, read_catalogue, read_table, read_urdf


def message_of(path: Path, content: bytes) -> str:
    """Write the file, load it, and return the one line it is refused with."""
    path.write_bytes(content)
    with pytest.raises(RobotError) as caught:
        load_robot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def expect(message: str, *parts: str) -> None:
    for part in parts:
        assert part in message, f"{part!r} not in {message!r}"


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    return tmp_path / "arm.urdf"


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "arm.toml"


URDF_CHANGES = {
    "not XML at all": (None, b"hello, I am a poem", ["not XML", "give a URDF or MJCF file"]),
    "XML that is cut off": (b"</robot>", b"", ["not XML", "line"]),
    "a binary file": (None, bytes(range(256)), ["not XML"]),
    "an empty file": (None, b"", ["empty", "expected"]),
    "white space only": (None, b" \n\t ", ["empty"]),
    "a wrong encoding": (b'name="two_joint"', b'name="caf\xe9"', ["not XML"]),
    "an encoding nobody uses": (b'version="1.0"', b'version="1.0" encoding="utf-7"', ["utf-7", "allowed", "utf-8"]),
    "a loop beside the tree": (
        b"</robot>",
        b'<link name="a"/><link name="b"/>'
        b'<joint name="ab" type="fixed"><parent link="a"/><child link="b"/></joint>'
        b'<joint name="ba" type="fixed"><parent link="b"/><child link="a"/></joint></robot>',
        ["loop", "'a'", "'b'", "tree is allowed", "break"],
    ),
    "no root": (
        b"</robot>",
        b'<joint name="back" type="fixed"><parent link="fore"/><child link="base"/></joint></robot>',
        ["loop", "'fore'", "'base'", "break"],
    ),
    "two roots": (
        b"</robot>",
        b'<link name="stray"/></robot>',
        ["2 roots", "one is allowed", "'base', 'stray'", "connect"],
    ),
    "a link with two parents": (
        b"</robot>",
        b'<joint name="again" type="fixed"><parent link="base"/><child link="fore"/></joint></robot>',
        ["'fore' has two parents", "'elbow'", "'again'", "one is allowed"],
    ),
    "a joint with no such parent": (
        b'<parent link="upper"/>',
        b'<parent link="uper"/>',
        ["joint 'elbow'", "parent link 'uper' does not exist", "links: base, upper, fore", "did you mean 'upper'?"],
    ),
    "a joint with no such child": (b'<child link="fore"/>', b'<child link="four"/>', ["child link 'four'", "'fore'?"]),
    "a joint without a child": (b'<child link="fore"/>', b"", ["joint 'elbow' has no <child>", "add"]),
    "two links of one name": (
        b'<link name="base"/>',
        b'<link name="fore"/>',
        ["'fore' is used more than once", "own name"],
    ),
    "two joints of one name": (b'joint name="elbow"', b'joint name="shoulder"', ["'shoulder' is used more than once"]),
    "a nameless link": (b'<link name="base"/>', b"<link/>", ["a link", "no attribute 'name'", "add it"]),
    "an empty name": (b'<link name="base"/>', b'<link name=""/>', ["a link has no name", "give"]),
    "a name of a thousand letters": (b'name="base"', b'name="' + b"x" * 1000 + b'"', ["1000 letters", "allowed 200"]),
    "a negative mass": (b'mass value="4"', b'mass value="-4"', ["link 'upper'", "mass is -4.0", "zero or positive"]),
    "a mass that is not a number": (b'mass value="4"', b'mass value="nan"', ["'upper'", "mass is nan", "finite"]),
    "an infinite mass": (b'mass value="4"', b'mass value="inf"', ["mass is inf", "finite"]),
    "a mass that overflows": (b'mass value="4"', b'mass value="1e999"', ["mass is inf", "finite"]),
    "a mass beyond all measure": (b'mass value="4"', b'mass value="1e30"', ["mass is 1e+30", "up to 1e+09", "unit"]),
    "a mass in words": (b'mass value="4"', b'mass value="four"', ["mass is 'four'", "allowed: a number"]),
    "digits with an underscore": (b'mass value="4"', b'mass value="4_0"', ["mass is '4_0'", "allowed: a number"]),
    "an inertial without a mass": (b'<mass value="4"/>', b"", ["link 'upper'", "no <mass>", "add it"]),
    "an inertia with a hole": (b' ixz="-0.001"', b"", ["link 'upper'", "no attribute 'ixz'"]),
    "a lower limit above the upper": (
        b'lower="-2" upper="2.5"',
        b'lower="2" upper="1.5"',
        ["joint 'shoulder'", "lower limit 2.0 is above upper limit 1.5", "allowed is lower <= upper"],
    ),
    "a negative velocity limit": (
        b'velocity="3"',
        b'velocity="-3"',
        ["'shoulder'", "velocity limit is -3.0", "positive"],
    ),
    "a negative effort limit": (
        b'effort="50"',
        b'effort="-5"',
        ["effort limit is -5.0", "must be positive", "left out"],
    ),
    "an infinite limit": (b'velocity="3"', b'velocity="inf"', ["'shoulder'", "velocity limit is inf", "finite"]),
    "a limit that is not a number": (b'upper="2.5"', b'upper="nan"', ["upper limit is nan", "leave it out"]),
    "an unknown joint type": (
        b'"elbow" type="revolute"',
        b'"elbow" type="revolut"',
        ["joint 'elbow'", "'revolut'", "allowed: revolute, continuous, prismatic, fixed", "did you mean 'revolute'?"],
    ),
    "a floating joint": (
        b'"elbow" type="revolute"',
        b'"elbow" type="floating"',
        ["'elbow'", "out of scope", "fixed-base"],
    ),
    "a planar joint": (b'"elbow" type="revolute"', b'"elbow" type="planar"', ["out of scope", "allowed"]),
    "an axis without direction": (b'<axis xyz="0 0 2"/>', b'<axis xyz="0 0 0"/>', ["'elbow'", "no direction", "0 0 1"]),
    "an axis of two numbers": (b'<axis xyz="0 0 2"/>', b'<axis xyz="0 1"/>', ["'0 1'", "three numbers"]),
    "a mimic of an unknown joint": (
        b'<axis xyz="0 0 2"/>',
        b'<axis xyz="0 0 1"/><mimic joint="sholder"/>',
        ["joint 'elbow' mimics 'sholder'", "allowed: shoulder", "did you mean 'shoulder'?"],
    ),
    "a mimic of itself": (b'<axis xyz="0 0 2"/>', b'<mimic joint="elbow"/>', ["'elbow' mimics itself", "circle"]),
    "no joint that moves": (b'type="revolute"', b'type="fixed"', ["no joint moves", "at least one"]),
    "no link": (None, b'<robot name="x"/>', ["no link", "at least two"]),
    "an SDF file": (None, b'<sdf version="1.7"/>', ["SDF", "not a URDF"]),
    "another XML file": (None, b"<html/>", ["<html>", "allowed is <robot>"]),
    "an unexpanded xacro": (
        b"</robot>",
        b'<xacro:property name="a" value="1"/></robot>',
        ["xacro", "expand", "xacro robot.urdf.xacro > robot.urdf"],
    ),
    "a xacro under another prefix": (
        b"</robot>",
        b'<x:macro xmlns:x="http://www.ros.org/wiki/xacro" name="a"/></robot>',
        ["xacro robot.urdf.xacro > robot.urdf"],
    ),
    "a xacro expression left behind": (b'xyz="0.4 0 0"', b'xyz="${a + 1} 0 0"', ["'elbow'", "${a + 1}", "xacro"]),
}


@pytest.mark.parametrize("case", URDF_CHANGES)
def test_a_bad_urdf_is_refused_in_one_line(case: str, two_joint: bytes, urdf: Path) -> None:
    old, new, parts = URDF_CHANGES[case]
    if old is not None:
        assert old in two_joint
    content = new if old is None else two_joint.replace(old, new)
    expect(message_of(urdf, content), *parts)


BILLION_LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "haha">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]><robot name="&d;"/>"""
EXTERNAL = b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r"><link name="a">&x;</link></robot>'
PARAMETER = b'<!DOCTYPE r [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;]><robot name="r"/>'
BARE_DOCTYPE = b'<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/robot.dtd"><robot name="r"/>'


@pytest.mark.parametrize("bomb", [BILLION_LAUGHS, EXTERNAL, PARAMETER, BARE_DOCTYPE])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
def test_documents_with_entities_are_refused_in_every_encoding(bomb: bytes, encoding: str, urdf: Path) -> None:
    text = bomb.decode().replace('<?xml version="1.0"?>', "")
    if encoding == "utf-16-le":
        text = "\ufeff" + text
    expect(message_of(urdf, text.encode(encoding)), "DOCTYPE", "refused", "delete")


def test_a_doctype_hidden_in_another_encoding_is_refused(urdf: Path) -> None:
    text = '<?xml version="1.0" encoding="cp037"?><!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>'
    expect(message_of(urdf, text.encode("cp037")), "not XML")


def test_trees_too_deep_or_too_wide_are_refused(urdf: Path) -> None:
    expect(message_of(urdf, b"<robot>" + b"<a>" * 200 + b"</a>" * 200 + b"</robot>"), "100 deep", "check")
    expect(message_of(urdf, b"<robot>" + b"<a/>" * 100_001 + b"</robot>"), "100000 elements", "check")


def test_a_urdf_of_200_megabytes_is_refused_before_a_byte_is_read(urdf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urdf.touch()
    os.truncate(urdf, 200_000_000)

    def opened(*_: object) -> None:
        raise AssertionError("the file was opened")

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(RobotError) as caught:
        load_robot(urdf)
    expect(str(caught.value), str(urdf), "larger than 20 MB", "right file")


def test_too_many_bytes_are_refused() -> None:
    with pytest.raises(RobotError, match="larger than 20 MB"):
        read_urdf(b" " * 20_000_001)


def test_a_robot_of_a_thousand_joints_is_refused(urdf: Path) -> None:
    links = b"".join(b'<link name="l%d"/>' % n for n in range(1001))
    joints = b"".join(
        b'<joint name="j%d" type="fixed"><parent link="l%d"/><child link="l%d"/></joint>' % (n, n, n + 1)
        for n in range(1000)
    )
    expect(message_of(urdf, b"<robot>" + links + joints + b"</robot>"), "1000 joints", "at most 500")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name in ("none.urdf", "none.toml"):
        with pytest.raises(RobotError) as caught:
            load_robot(tmp_path / name)
        expect(str(caught.value), str(tmp_path / name), "no such file", "check the path")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "robot.urdf"
    folder.mkdir()
    with pytest.raises(RobotError, match="is a folder or a device, not a file; name the file"):
        load_robot(folder)
    with pytest.raises(RobotError, match="not known; allowed"):
        load_robot(tmp_path)


def test_a_device_is_refused_without_reading_it() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("no /dev/zero here")
    with pytest.raises(RobotError, match="folder or a device"):
        read_urdf("/dev/zero")


def test_permission_denied_is_an_error_of_its_own(
    urdf: Path, two_joint: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    urdf.write_bytes(two_joint)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RobotError) as caught:
        load_robot(urdf)
    expect(str(caught.value), str(urdf), "permission denied", "make the file readable")


@pytest.mark.parametrize("name", ["a\0b.urdf", "x" * 5000 + ".urdf", "\ud800.urdf", "a\nb.toml"])
def test_impossible_paths_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(RobotError) as caught:
        load_robot(name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_xml_text_given_as_a_path_is_explained(two_joint: bytes) -> None:
    with pytest.raises(RobotError, match="pass the text as bytes"):
        read_urdf(two_joint.decode())


def test_a_xacro_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(RobotError, match=r"expand it first: xacro robot.urdf.xacro > robot.urdf"):
        load_robot(tmp_path / "arm.urdf.xacro")


def test_an_unknown_name_offers_the_nearest_of_the_catalogue() -> None:
    with pytest.raises(RobotError) as caught:
        load_robot("kuka_lwr")
    expect(str(caught.value), "unknown robot 'kuka_lwr'", "no such file", "franka_panda", "did you mean 'kuka_lwr4'?")
    with pytest.raises(RobotError, match="did you mean 'ur10e'"):
        read_catalogue("ur10")


def test_something_that_is_no_name_is_refused() -> None:
    with pytest.raises(RobotError, match="robot: got 42 of type int; allowed: a Robot, a catalogue name or the path"):
        load_robot(42)  # pyright: ignore[reportArgumentType]


def test_an_unknown_kind_of_file_names_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "arm.json"
    expect(message_of(path, b"{}"), "'.json'", "allowed: .toml (table), .urdf and .xml")


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), 0.5])
def test_a_senseless_tolerance_is_refused(tolerance: float, two_joint: bytes) -> None:
    with pytest.raises(RobotError, match="right_angle_tolerance is"):
        read_urdf(two_joint, right_angle_tolerance=tolerance)


def test_the_document_alone_is_checked_the_same_way() -> None:
    with pytest.raises(RobotError, match="DOCTYPE"):
        parse_urdf_document(BILLION_LAUGHS)


def test_an_impossible_inertia_is_a_note_that_names_the_link(two_joint: bytes) -> None:
    robot = read_urdf(two_joint.replace(b'izz="0.01"', b'izz="0.5"'))
    assert [
        note for note in robot.notes if "'fore'" in note and "not physically possible" in note and "eigenvalue" in note
    ]


def test_a_massless_link_is_a_note(two_joint: bytes) -> None:
    zero = b'<mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    robot = read_urdf(
        two_joint.replace(b'<link name="base"/>', b'<link name="base"><inertial>' + zero + b"</inertial></link>")
    )
    assert "link 'base': mass and inertia are zero (massless)" in robot.notes


TABLE_CHANGES = {
    "not TOML": (None, b"[robot\nname=", ["not TOML", "line"]),
    "not text": (None, b"\xff\xfe\x00\x01", ["not a text file", "utf-8"]),
    "nested too deep": (None, b"a = " + b"[" * 50_000, ["not TOML"]),
    "a number of 10000 digits": (b"r = 0.3", b"r = " + b"9" * 10_000, ["not TOML"]),
    "a number of 1000 digits": (b"r = 0.3", b"r = " + b"9" * 1000, ["'r'", "very large", "unit"]),
    "no joint": (None, b'[robot]\nname = "x"', ["no joint", "add a [[joint]]"]),
    "no name": (b'name = "two_joint"', b"", ["[robot]", "'name' is missing", "add"]),
    "a missing alpha": (
        b"alpha_deg = -90\n",
        b"",
        ["joint 'elbow'", "no column 'alpha' (or alpha_deg)", "needs alpha, d"],
    ),
    "a missing d": (b"d = 0.4\n", b"", ["joint 'elbow'", "no column 'd'", "add it"]),
    "a missing r": (b"r = 0.3\n", b"", ["joint 'shoulder'", "no column 'r'", "needs alpha, d, theta, r"]),
    "an angle given twice": (b"d = 0.4", b"d = 0.4\nalpha = 1", ["'elbow'", "both alpha and alpha_deg", "keep one"]),
    "a mixed placement": (b"d = 0.4", b"d = 0.4\nxyz = [0, 0, 0]", ["mixes", "xyz", "use one"]),
    "an unknown key of a joint": (
        b"d = 0.4",
        b"d = 0.4\nlowr = 1",
        ["'elbow'", "unknown key 'lowr'", "did you mean 'lower'?"],
    ),
    "an unknown key of the robot": (
        b"[robot]",
        b"[robot]\ngravty = 1",
        ["unknown key 'gravty'", "did you mean 'gravity'?"],
    ),
    "an unknown section": (b"[robot]", b"[roboter]\n[robot]", ["unknown key 'roboter'", "did you mean 'robot'?"]),
    "an unknown type": (b"d = 0.4", b'd = 0.4\ntype = "prismatc"', ["'prismatc'", "allowed: revolute", "'prismatic'?"]),
    "an unknown torque": (b"[robot]", b'[robot]\ntorque = "motor_curent"', ["torque", "allowed", "'motor_current'?"]),
    "a moved word": (b"[robot]", b'[robot]\nmeasured = "all"', ["measured is 'all'", "allowed: motor, joint, both"]),
    "an unknown parent": (b"d = 0.4", b'd = 0.4\nparent = "uper"', ["parent link 'uper' does not exist", "'upper'?"]),
    "a loop": (b"r = 0.3", b'r = 0.3\nparent = "fore"', ["loop", "'upper'", "'fore'"]),
    "a negative mass": (b"mass = 2", b"mass = -2", ["joint 'elbow'", "mass is -2.0", "zero or positive"]),
    "an infinite mass": (b"mass = 2", b"mass = inf", ["mass is inf", "finite"]),
    "a mass that is true": (b"mass = 2", b"mass = true", ["mass is True", "allowed: a finite number"]),
    "half an inertia": (b"mass = 2\n", b"", ["'elbow'", "given by centre, inertia_at_centre", "allowed"]),
    "nine numbers": (
        b"r = 0.3",
        b"r = 0.3\ninertia = [1,2,3,4,5,6,7,8,9]",
        ["inertia is [1, 2,", "allowed: a list of 10 numbers"],
    ),
    "limits upside down": (
        b"r = 0.3",
        b"r = 0.3\nlower = 1\nupper = -1",
        ["lower limit 1.0 is above upper limit -1.0"],
    ),
    "a negative speed": (b"r = 0.3", b"r = 0.3\nvelocity = -1", ["velocity limit is -1.0", "positive"]),
    "an infinite speed": (b"r = 0.3", b"r = 0.3\nvelocity = inf", ["velocity is inf", "finite", "leave it out"]),
    "a range without an end": (
        b"r = 0.3",
        b'r = 0.3\ntype = "continuous"\nlower = 1',
        ["'lower'", "continuous", "delete"],
    ),
    "degrees of a slide": (b"r = 0.3", b'r = 0.3\ntype = "prismatic"\nlower_deg = 1', ["'lower_deg'", "prismatic"]),
    "a mimic of nobody": (b"d = 0.4", b'd = 0.4\nmimic = {leader = "sholder"}', ["mimics 'sholder'", "'shoulder'?"]),
    "a mimic with a wrong key": (
        b"d = 0.4",
        b'd = 0.4\nmimic = {joint = "a"}',
        ["mimic", "unknown key 'joint'", "leader"],
    ),
    "a mimic in a word": (b"d = 0.4", b'd = 0.4\nmimic = "shoulder"', ["mimic is 'shoulder'", "allowed"]),
    "a gear ratio of zero": (b"d = 0.4", b"d = 0.4\ngear_ratio = 0", ["gear_ratio must not be 0"]),
    "an axis that is missing": (
        b"alpha_deg = -90\nd = 0.4\ntheta_deg = 0\nr = 0\n",
        b"xyz = [0, 0, 0]\n",
        ["'axis' is missing"],
    ),
    "no placement": (b"alpha_deg = -90\nd = 0.4\ntheta_deg = 0\nr = 0\n", b"", ["no placement", "DH row", "xyz"]),
    "an unknown parameter": (b"[robot]", b"[values]\nFv1 = 1\n[robot]", ["unknown parameter 'Fv1'", "allowed", "Fvm"]),
    "a parameter of no joint": (b"[robot]", b"[values]\nIa3 = 1\n[robot]", ["Ia3", "joints 1 to 2"]),
    "a list of a wrong length": (
        b"[robot]",
        b"[values]\nIa = [1]\n[robot]",
        ["Ia is [1]", "allowed: a list of 2 numbers"],
    ),
    "a value given twice": (b"[robot]", b"[values]\nIa = [1, 2]\nIa1 = 1\n[robot]", ["Ia1 is given twice", "keep one"]),
    "a payload of nine": (
        b"[robot]",
        b"[payloads]\na = [1,2,3,4,5,6,7,8,9]\n[robot]",
        ["[payloads]: a is", "allowed: a list of 10 numbers"],
    ),
    "a payload link": (b"[robot]", b'[robot]\npayload_link = "for"', ["no link 'for'", "links: base", "'fore'?"]),
    "a spring of no joint": (b"[robot]", b'[robot]\nsprings = ["elbo"]', ["springs is 'elbo'", "'elbow'?"]),
    "a coupling of no joint": (
        b"[robot]",
        b'[[gear_coupling]]\nmotor = "elbow"\nalso_turns_with = "x"\n[robot]',
        ["also_turns_with is 'x'", "shoulder, elbow"],
    ),
    "a motor coupled to its own joint": (
        b"[robot]",
        b'[[gear_coupling]]\nmotor = "elbow"\nalso_turns_with = "elbow"\n[robot]',
        ["'elbow' is coupled to its own joint", "name another"],
    ),
    "a joint that is a number": (None, b'joint = 3\n[robot]\nname = "x"', ["[[joint]]", "double brackets"]),
    "a robot that is a number": (None, b"robot = 3\njoint = [{}]", ["robot is 3", "[robot]"]),
}


@pytest.mark.parametrize("case", TABLE_CHANGES)
def test_a_bad_table_is_refused_in_one_line(case: str, two_joint_table: bytes, toml: Path) -> None:
    old, new, parts = TABLE_CHANGES[case]
    if old is not None:
        assert old in two_joint_table
    content = new if old is None else two_joint_table.replace(old, new, 1)
    expect(message_of(toml, content), *parts)


def test_an_impossible_inertia_of_a_table_is_a_note(two_joint_table: bytes) -> None:
    robot = read_table(two_joint_table.replace(b"0.02, 0, 0.01]", b"0.02, 0, 0.5]"))
    assert any("'fore'" in note and "not physically possible" in note for note in robot.notes)


def test_an_impossible_payload_is_a_note(two_joint_table: bytes) -> None:
    robot = read_table(two_joint_table + b"[payloads]\nbox = [1, 0, 0, 1, 0, 5, 0, 0, 0, 1]\n")
    assert any("payload 'box'" in note for note in robot.notes)
