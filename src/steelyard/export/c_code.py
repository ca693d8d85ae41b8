"""C99 of an identified arm: ``<robot>.h`` and ``<robot>.c``, without dependencies, allocation or static state.

The functions are those of :mod:`steelyard.export.dynamics`, written operation by operation from the expressions with
common sub-expressions computed once; the operations are the steps that the kernel would compile. Variables are reused
after their last reader, so that the stack stays small even without optimisation.

The file is compiled once a precision: as it is for ``double``, with ``<ROBOT>_SINGLE`` defined for ``float``. The two
have different names (``arm_gravity``, ``armf_gravity``), so that both fit in one program and a mistake shows when
linking. CasADi's own generator was not used: its functions take arrays of pointers, work arrays and a memory index,
carry sparsity tables, and have one precision a program.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

import casadi as ca
import numpy as np

from ..errors import ExportError
from ..kernel.operations import operation_name
from ..kernel.program import (
    CONSTANT,
    INPUT,
    MULTIPLY_ADD,
    MULTIPLY_SUBTRACT,
    NEGATIVE_MULTIPLY_ADD,
    SINCOS,
    Graph,
    ProgramStep,
    graph_from_function,
    steps_from_graph,
)
from ..text import for_terminal
from .dynamics import SIGNATURES, ArmDynamics, Signature, TorqueSide, arm_dynamics
from .identified import ExportedFile, IdentifiedArm, safe_stem

_WIDTH = 100
_LONGEST_STRING = 1000  # bytes; C99 asks compilers for no more than 4095

# Arguments {0}, {1}, {2} are variables, elements of inputs or constants, so that no operation needs parentheses.
_EXPRESSIONS: dict[int, str] = {
    MULTIPLY_ADD: "{0} * {1} + {2}",
    MULTIPLY_SUBTRACT: "{0} * {1} - {2}",
    NEGATIVE_MULTIPLY_ADD: "{2} - {0} * {1}",
    ca.OP_ADD: "{0} + {1}",
    ca.OP_SUB: "{0} - {1}",
    ca.OP_MUL: "{0} * {1}",
    ca.OP_DIV: "{0} / {1}",
    ca.OP_NEG: "-{0}",
    ca.OP_INV: "NUMBER(1.0) / {0}",
    ca.OP_SQ: "{0} * {0}",
    ca.OP_TWICE: "{0} + {0}",
    ca.OP_LT: "(real)({0} < {1})",
    ca.OP_LE: "(real)({0} <= {1})",
    ca.OP_EQ: "(real)({0} == {1})",
    ca.OP_NE: "(real)({0} != {1})",
    ca.OP_NOT: "(real)!{0}",
    ca.OP_AND: "(real)({0} && {1})",
    ca.OP_OR: "(real)({0} || {1})",
    ca.OP_IF_ELSE_ZERO: "{0} ? {1} : NUMBER(0.0)",
    ca.OP_SIGN: "sign_of({0})",
    ca.OP_CONSTPOW: "MATH(pow)({0}, {1})",
    **{
        getattr(ca, f"OP_{name.upper()}"): f"MATH({name})({{0}})"
        for name in (
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
            "log", "sqrt", "fabs", "floor", "ceil", "erf", "expm1", "log1p",
        )
    },
    **{
        getattr(ca, f"OP_{name.upper()}"): f"MATH({name})({{0}}, {{1}})"
        for name in ("pow", "atan2", "fmod", "remainder", "hypot", "fmin", "fmax", "copysign")
    },
}  # fmt: skip

_SIGN = """static real sign_of(real x)
{
    return x > NUMBER(0.0) ? NUMBER(1.0) : (x < NUMBER(0.0) ? NUMBER(-1.0) : x);
}
"""


def c_files(arm: IdentifiedArm, *, side: TorqueSide = "motor") -> tuple[ExportedFile, ExportedFile]:
    """Return header and source in C99 of an identified arm.

    Args:
        arm: The arm.
        side: ``motor`` for the torques of the motors, ``joint`` for those of joint torque sensors.

    Raises:
        ExportError: If an inertia is unknown or an effect's operation has no counterpart in C.
    """
    dynamics = arm_dynamics(arm, side)
    stem = safe_stem(arm.robot.name)
    source, header = _source(dynamics, stem), _header(dynamics, stem)
    return (
        ExportedFile(f"{stem}.h", header.encode("utf-8"), dynamics.notes),
        ExportedFile(f"{stem}.c", source.encode("utf-8")),
    )


def _header(dynamics: ArmDynamics, stem: str) -> str:
    macro, robot = stem.upper(), dynamics.arm.robot
    slides = [body.joint.kind == "prismatic" for body in dynamics.joints]
    tables = {
        "joint_names": (f"{macro}_JOINTS", robot.joint_names),
        "position_units": (f"{macro}_JOINTS", ["m" if one else "rad" for one in slides]),
        "torque_units": (f"{macro}_JOINTS", ["N" if one else "N m" for one in slides]),
        "parameter_names": (f"{macro}_PARAMETERS", [one.name for one in dynamics.parameters]),
        "parameter_units": (f"{macro}_PARAMETERS", [one.unit for one in dynamics.parameters]),
    }
    lines = [
        *_comment(_about(dynamics, stem)),
        f"#ifndef {macro}_H",
        f"#define {macro}_H",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {macro}_JOINTS {len(slides)}",
        f"#define {macro}_PARAMETERS {len(dynamics.parameters)}",
        "",
        *_comment(_sign_text(dynamics)),
        f"#define {macro}_SIGN_WIDTH {dynamics.arm.model.sign_width!r}",
        "",
        f"static const char {stem}_robot_name[] = {c_string(robot.name)};",
        f"static const char {stem}_run[] = {c_string(dynamics.arm.run)};",
    ]
    for name, (size, texts) in tables.items():
        lines += ["", f"static const char *const {stem}_{name}[{size}] = {{", *_wrapped(map(c_string, texts)), "};"]
    for kind, prefix in (("double", stem), ("float", f"{stem}f")):
        lines += ["", *_comment([_precision_text(kind, stem)]), *_declarations(prefix, macro, kind)]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join(lines) + "\n"


def _about(dynamics: ArmDynamics, stem: str) -> Iterator[str]:
    robot, run = dynamics.arm.robot, dynamics.arm.run
    yield f"Dynamics of robot {robot.name}" + (f", run {run}." if run else ".")
    yield "Written by Steelyard; generate it again instead of editing it."
    yield from dynamics.arm.heading
    yield ""
    yield "tau = M(q) qdd + coriolis(q, qd) + gravity(q) + friction(q, qd)"
    yield (
        "tau are the torques of the motors, on the joint side of the gears."
        if dynamics.side == "motor"
        else ("tau are the torques that joint torque sensors measure.")
    )
    yield "Units are SI: rad or m, rad/s or m/s, rad/s^2 or m/s^2, N m or N. Gravity in the base frame [m/s^2]: " + (
        " ".join(f"{value:g}" for value in robot.gravity) + "."
    )
    yield f"Vectors have one entry a joint, in the order of {stem}_joint_names. Matrices are row by row."
    yield "Functions keep nothing between calls. An output may be the array of an input."
    yield (
        f"Functions without _with use the identified values, {stem}_parameters; those with it take parameters in the "
        f"order of {stem}_parameter_names: per link the inertia XX XY XZ YY YZ ZZ about the origin of the link's "
        "frame, first moments MX MY MZ and mass M in that frame, then drives, friction, offsets and springs."
    )
    for note in dynamics.notes:
        yield f"Note: {note}."


def _sign_text(dynamics: ArmDynamics) -> list[str]:
    if dynamics.arm.model.sign_width == 0.0:
        return ["Friction changes with the exact sign of the velocity; sign(0) = 0."]
    return ["Friction changes with tanh(velocity / width), width in rad/s or m/s."]


def _precision_text(kind: str, stem: str) -> str:
    if kind == "double":
        return f"Double precision: {stem}.c as it is."
    return f"Single precision: {stem}.c compiled with -D{stem.upper()}_SINGLE."


def _declarations(prefix: str, macro: str, kind: str) -> Iterator[str]:
    yield f"extern const {kind} {prefix}_parameters[{macro}_PARAMETERS];"
    for one in SIGNATURES:
        yield ""
        yield from _comment([one.summary])
        yield _heading(f"{prefix}_{one.name}", one, macro, kind) + ";"
        yield _heading(f"{prefix}_{one.name}_with", one, macro, kind, with_parameters=True) + ";"


def _heading(name: str, one: Signature, macro: str, kind: str, *, with_parameters: bool = False) -> str:
    """Return the head of a function, one argument a line if they are long."""
    joints = f"{macro}_JOINTS"
    inputs = [f"const {kind} parameters[{macro}_PARAMETERS]"] if with_parameters else []
    inputs += [f"const {kind} {name}[{joints}]" for name in one.inputs]
    size = f"{joints} * {joints}" if one.is_matrix else joints
    arguments = [*inputs, f"{kind} {one.output}[{size}]"]
    line = f"void {name}({', '.join(arguments)})"
    return line if len(line) < _WIDTH else f"void {name}(\n    " + ",\n    ".join(arguments) + ")"


def _source(dynamics: ArmDynamics, stem: str) -> str:
    macro = stem.upper()
    bodies = [_definition(one, dynamics.functions[one.name], macro) for one in SIGNATURES]
    text = "\n".join(bodies)
    lines = [
        *_comment([f"Dynamics of robot {dynamics.arm.robot.name}: see {stem}.h.", *dynamics.arm.heading]),
        f'#include "{stem}.h"',
        "",
        "#include <math.h>",
        "",
        f"#ifdef {macro}_SINGLE",
        "typedef float real;",
        f"#define NAME(name) {stem}f_##name",
        "#define NUMBER(digits) digits##f",
        "#define MATH(name) name##f",
        "#else",
        "typedef double real;",
        f"#define NAME(name) {stem}_##name",
        "#define NUMBER(digits) digits",
        "#define MATH(name) name",
        "#endif",
        "",
        f"const real NAME(parameters)[{macro}_PARAMETERS] = {{",
        *(f"    {_number(value)}, /* {one.name} [{one.unit}] */" for one, value in zip(
            dynamics.parameters, dynamics.values, strict=True)),
        "};",
        "",
    ]  # fmt: skip
    return "\n".join(lines) + (f"\n{_SIGN}" if "sign_of(" in text else "") + "\n" + text


def _definition(one: Signature, function: ca.Function, macro: str) -> str:
    """Return a function that takes the parameters, and the one that calls it with the identified values."""
    passed = ", ".join(["NAME(parameters)", *one.inputs, one.output])
    lines = [
        _heading(f"NAME({one.name}_with)", one, macro, "real", with_parameters=True),
        "{",
        *(f"    {line}" for line in statements(function, (*one.inputs, "parameters"), one.output)),
        "}",
        "",
        _heading(f"NAME({one.name})", one, macro, "real"),
        "{",
        f"    NAME({one.name}_with)({passed});",
        "}",
    ]
    return "\n".join(lines) + "\n"


def statements(function: ca.Function, inputs: tuple[str, ...], output: str) -> list[str]:
    """Return the body of a C function that computes a CasADi function of one output.

    Args:
        function: SX function with dense columns as inputs.
        inputs: Name of the array of each input.
        output: Name of the array of the output. It is written last, so that it may be one of the inputs. A matrix is
            written column by column, which for a symmetric one is row by row.
    """
    graph = graph_from_function(function)
    steps = steps_from_graph(graph, fuse=True)
    places = [f"{name}[{row}]" for name, rows in zip(inputs, graph.input_rows, strict=True) for row in range(rows)]
    text_of = {node: _number(value) for node, value in graph.constants.items()}
    for node, operation in enumerate(graph.operations):
        if operation == INPUT:
            text_of[node] = places[graph.arguments[node][0]]
    body, count = _steps(graph, steps, text_of)
    results = [
        f"{output}[{row}] = {_number(0.0) if node is None else text_of[node]};"
        for row, node in enumerate(graph.outputs)
    ]
    nodes = {node for step in steps for node in step.arguments}.union(graph.outputs)
    read = {text_of[node] for node in nodes if node is not None}
    arrays = {place.partition("[")[0] for place in places if place in read}
    unused = [f"(void){name};" for name in inputs if name not in arrays]
    return [*_wrapped_statement("real", [f"t{k}" for k in range(count)]), *unused, *body, *results]


def _steps(graph: Graph, steps: list[ProgramStep], text_of: dict[int, str]) -> tuple[list[str], int]:
    """Return an assignment for each step and the number of variables; ``text_of`` gets the variable of each result.

    A variable is free again after the last step that reads it.
    """
    last_reader = {node: k for k, step in enumerate(steps) for node in step.arguments}
    last_reader.update((node, len(steps)) for node in graph.outputs if node is not None)
    lines, free, count = [], [], 0
    for k, step in enumerate(steps):
        arguments = [text_of[node] for node in step.arguments]
        operations = (ca.OP_SIN, ca.OP_COS) if step.operation == SINCOS else (step.operation,)
        for node, operation in zip(step.results, operations, strict=True):
            if not free:
                free.append(f"t{count}")
                count += 1
            text_of[node] = free.pop()
            lines.append(f"{text_of[node]} = {_expression(operation, graph.name).format(*arguments)};")
        read = (node for node in dict.fromkeys(step.arguments) if graph.operations[node] not in (INPUT, CONSTANT))
        free.extend(text_of[node] for node in read if last_reader[node] == k)
    return lines, count


def _expression(operation: int, function: str) -> str:
    if operation not in _EXPRESSIONS:
        raise ExportError(
            f"function '{function}': operation '{operation_name(operation)}' cannot be written in C; leave the effect "
            "out that needs it, or export CasADi functions"
        )
    return _EXPRESSIONS[operation]


def _number(value: float) -> str:
    text = f"NUMBER({float(abs(value))!r})"
    return f"(-{text})" if np.signbit(value) else text


def c_string(text: str) -> str:
    r"""Return a string literal: UTF-8, everything but plain ASCII as octal escapes, no trigraphs.

    Example:
        >>> from steelyard.export.c_code import c_string
        >>> print(c_string('a "b" ??='))
        "a \"b\" \?\?="
    """
    letters = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?'
        else f"\\{chr(byte)}" if chr(byte) in '"\\?'
        else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "replace")[:_LONGEST_STRING]
    )  # fmt: skip
    return f'"{"".join(letters)}"'


def _comment(lines: Iterable[str]) -> list[str]:
    """Return a comment; text that would end it, begin another or be a trigraph is taken apart."""
    safe = [_comment_text(line) for line in lines]
    wrapped = [part for line in safe for part in (textwrap.wrap(line, _WIDTH - 3) or [""])]
    if len(wrapped) == 1:
        return [f"/* {wrapped[0]} */"]
    return ["/*", *(f" * {line}".rstrip() for line in wrapped), " */"]


def _comment_text(text: str) -> str:
    safe = for_terminal(text).replace("\\", "|")
    for pair in ("*/", "/*", "??", "//"):
        while pair in safe:
            safe = safe.replace(pair, f"{pair[0]} {pair[1]}")
    return safe


def _wrapped(items: Iterable[str]) -> list[str]:
    """Return items of an initialiser, lines filled; an item is never cut."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > _WIDTH - 4:
            lines.append(f"    {line}")
            line = ""
        line += f"{' ' if line else ''}{item},"
    return [*lines, f"    {line}"] if line else lines


def _wrapped_statement(kind: str, names: list[str]) -> list[str]:
    return [f"{kind} {line.strip().rstrip(',')};" for line in _wrapped(names)]
