"""Whatever the bytes, a reader gives a robot or a RobotError of one line, nothing else."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.errors import RobotError
from steelyard.robot import Robot, load_robot, read_table, read_urdf

FEW = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

SPLIT_WORDS = b"""nan -inf 1e308 -1e308 5e-324 1e-200 0 -1 < &amp; &x; \x00 \xff fixed prismatic floating base
upper elbow [ ] { = " true 1979-05-27 [[joint]] [robot] </robot> <robot> <!DOCTYPE <mimic/>""".split()
WORDS = st.sampled_from([*SPLIT_WORDS, b"", b"\n", b" ", b"9" * 400])


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[float, int, bytes]]:
    """Draw places (a fraction of the file), lengths to cut and bytes to put there."""
    one = st.tuples(st.floats(0, 1), st.integers(0, 12), st.one_of(WORDS, st.binary(max_size=6)))
    return draw(st.lists(one, min_size=1, max_size=4))


def mutated(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    for place, length, word in changes:
        start = int(place * len(content))
        content = content[:start] + word + content[start + length :]
    return content


def outcome(read, content) -> None:
    try:
        result = read(content)
    except RobotError as error:
        result = str(error)
    if isinstance(result, str):
        assert "\n" not in result
        assert len(result) < 1000
    else:
        assert isinstance(result, Robot)


@FEW
@given(changes=mutations())
def test_a_mutated_urdf_gives_a_robot_or_one_line(branched: bytes, changes: list[tuple[float, int, bytes]]) -> None:
    outcome(read_urdf, mutated(branched, changes))


@FEW
@given(changes=mutations())
def test_a_mutated_table_gives_a_robot_or_one_line(
    two_joint_table: bytes, changes: list[tuple[float, int, bytes]]
) -> None:
    outcome(read_table, mutated(two_joint_table, changes))


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["1e9", "-1e9", "1e-320", "0", "1e9 1e9 1e9", "0 0 1"]),
)


@FEW
@given(values=st.lists(NUMBERS, min_size=10, max_size=10))
def test_any_numbers_in_a_urdf_give_a_robot_or_one_line(values: list[str]) -> None:
    mass, ixx, ixy, iyy, izz, x, roll, axis, lower, upper = values
    text = f"""<robot name="r"><link name="a"/><link name="b"><inertial><origin xyz="{x} 0 {x}" rpy="{roll} 0 {x}"/>
    <mass value="{mass}"/><inertia ixx="{ixx}" ixy="{ixy}" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial></link>
    <joint name="j" type="revolute"><origin xyz="0 {x} 0" rpy="0 {roll} 0"/><parent link="a"/><child link="b"/>
    <axis xyz="{axis} 0 {ixy}"/><limit lower="{lower}" upper="{upper}" velocity="1" effort="{mass}"/></joint></robot>"""
    outcome(read_urdf, text.encode())


@FEW
@given(values=st.lists(st.one_of(st.floats(), st.integers(), st.floats(-1e9, 1e9)), min_size=10, max_size=10))
def test_any_numbers_in_a_table_give_a_robot_or_one_line(values: list[float]) -> None:
    numbers = ", ".join(str(value) for value in values)
    row = f"alpha_deg = {values[0]}, d = {values[1]}, theta = {values[2]}, r = {values[3]}, inertia = [{numbers}]"
    outcome(read_table, f'joint = [{{{row}}}]\n[robot]\nname = "r"\ngravity = [0, 0, {values[4]}]'.encode())


@FEW
@given(content=st.binary(max_size=200))
def test_random_bytes_give_one_line(content: bytes) -> None:
    outcome(read_urdf, content)
    outcome(read_table, content)


@FEW
@given(name=st.text(max_size=30), suffix=st.sampled_from(["", ".urdf", ".toml", ".xml", ".xacro"]))
def test_random_names_give_one_line(name: str, suffix: str) -> None:
    outcome(load_robot, name + suffix)


@FEW
@given(content=st.binary(max_size=60))
def test_random_files_give_one_line(content: bytes, tmp_path: Path) -> None:
    for suffix in (".urdf", ".toml", ".xml", ".txt"):
        path = tmp_path / f"arm{suffix}"
        path.write_bytes(content)
        outcome(load_robot, path)
