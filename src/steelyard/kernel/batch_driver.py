"""The loop over a batch: blocks of columns, large results streamed past the cache, and the last few columns.

::

    @batch(ptr bases, ptr strides, ptr scratch, i64 first, i64 stop)
    @stream(ptr bases, ptr strides, ptr scratch, i64 first, i64 stop)

Row r begins at ``bases[r]``; column c of it is ``strides[r] * c`` bytes further: 8 for an array, 0 for a value
shared by all columns, whose row holds it ``BLOCK`` times. Both compute columns first to stop - 1.

``@stream`` is for results larger than the cache. Hundreds of rows written a block at a time defeat the processor's
prefetchers, and each line is read before it is written. So groups of columns are computed into a stage in
cache and copied from there with stores that bypass the cache; output rows must begin at a cache line.

The last few columns, too few for a vector, are copied to a vector filled up with copies of the last one,
and go through the same code as all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from .lower import BLOCK, Program

_STAGE_BYTES = 768 * 1024
"""A stage that shares the second-level cache (1 to 2 MB) with inputs and slots."""

_LONGEST_GROUP = 5 * BLOCK


@dataclass(frozen=True)
class _Layout:
    """Where things lie in the scratch memory of one thread [bytes]: slots first, then these."""

    table: int
    group_table: int
    edge: int
    stage: int
    end: int
    group: int  # columns
    pitch: int


def _layout(program: Program) -> _Layout:
    outputs = sum(program.output_rows)
    pointers = -(-program.n_rows * 8 // 64) * 64
    group = _STAGE_BYTES // (8 * BLOCK * max(1, outputs)) * BLOCK
    group = min(max(group, BLOCK), _LONGEST_GROUP)
    pitch = 8 * group + (0 if group % 16 else 64)  # an odd number of cache lines
    table = program.slots * BLOCK * 8
    edge = table + 2 * pointers
    stage = edge + program.n_rows * 64
    return _Layout(table, table + pointers, edge, stage, stage + outputs * pitch, group, pitch)


def batch_driver(program: Program) -> str:
    """Return LLVM text of ``@batch`` and ``@stream``, to follow the program's."""
    layout = _layout(program)
    return _TEXT.substitute(
        INPUTS=program.n_inputs,
        ROWS=program.n_rows,
        OUTPUTS=program.n_rows - program.n_inputs,
        LANES=program.target.lanes,
        VECTOR=8 * program.target.lanes,
        TYPE=f"<{program.target.lanes} x double>",
        BLOCK=BLOCK,
        TABLE=layout.table,
        GROUP_TABLE=layout.group_table,
        EDGE=layout.edge,
        STAGE=layout.stage,
        GROUP=layout.group,
        PITCH=layout.pitch,
    )


def scratch_size(program: Program) -> int:
    """Return the scratch memory that one thread needs [doubles]."""
    return _layout(program).end // 8


_TEXT = Template("""
define void @batch(ptr %bases, ptr %strides, ptr %scratch, i64 %first, i64 %stop) nounwind {
  %count = sub i64 %stop, %first
  %rest = urem i64 %count, $LANES
  %whole = sub i64 %stop, %rest
  call void @blocks(ptr %bases, ptr %strides, ptr %scratch, i64 %first, i64 %whole)
  call void @edge(ptr %bases, ptr %strides, ptr %scratch, i64 %whole, i64 %rest)
  ret void
}

define void @stream(ptr %bases, ptr %strides, ptr %scratch, i64 %first, i64 %stop) nounwind {
entry:
  %count = sub i64 %stop, %first
  %rest = urem i64 %count, $LANES
  %whole = sub i64 %stop, %rest
  br label %group
group:
  %g = phi i64 [ %first, %entry ], [ %end, %body ]
  %more = icmp slt i64 %g, %whole
  br i1 %more, label %body, label %done
body:
  %full = add i64 %g, $GROUP
  %fits = icmp slt i64 %full, %whole
  %end = select i1 %fits, i64 %full, i64 %whole
  call void @point_to_stage(ptr %bases, ptr %scratch, i64 %g)
  %staged = getelementptr i8, ptr %scratch, i64 $GROUP_TABLE
  call void @blocks(ptr %staged, ptr %strides, ptr %scratch, i64 %g, i64 %end)
  call void @flush(ptr %bases, ptr %strides, ptr %scratch, i64 %g, i64 %end)
  br label %group
done:
  fence seq_cst
  call void @edge(ptr %bases, ptr %strides, ptr %scratch, i64 %whole, i64 %rest)
  ret void
}

define internal void @blocks(ptr %bases, ptr %strides, ptr %scratch, i64 %first, i64 %stop) noinline nounwind {
entry:
  %table = getelementptr i8, ptr %scratch, i64 $TABLE
  br label %block
block:
  %column = phi i64 [ %first, %entry ], [ %column.next, %compute ]
  %left = sub i64 %stop, %column
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %point, label %done
point:
  %r = phi i64 [ 0, %block ], [ %r.next, %point.row ]
  %pointed = icmp eq i64 %r, $ROWS
  br i1 %pointed, label %compute, label %point.row
point.row:
  %base.p = getelementptr ptr, ptr %bases, i64 %r
  %base = load ptr, ptr %base.p
  %stride.p = getelementptr i64, ptr %strides, i64 %r
  %stride = load i64, ptr %stride.p
  %offset = mul i64 %stride, %column
  %start = getelementptr i8, ptr %base, i64 %offset
  %entry.r = getelementptr ptr, ptr %table, i64 %r
  store ptr %start, ptr %entry.r
  %r.next = add i64 %r, 1
  br label %point
compute:
  %fits = icmp slt i64 %left, $BLOCK
  %width = select i1 %fits, i64 %left, i64 $BLOCK
  %bytes = shl i64 %width, 3
  call void @compute(ptr %scratch, ptr %table, i64 %bytes)
  %column.next = add i64 %column, %width
  br label %block
done:
  ret void
}

define internal void @point_to_stage(ptr %bases, ptr %scratch, i64 %first) noinline nounwind {
entry:
  %staged = getelementptr i8, ptr %scratch, i64 $GROUP_TABLE
  %stage = getelementptr i8, ptr %scratch, i64 $STAGE
  %before = mul i64 %first, -8
  %origin = getelementptr i8, ptr %stage, i64 %before
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %body ]
  %end = icmp eq i64 %r, $ROWS
  br i1 %end, label %done, label %body
body:
  %base.p = getelementptr ptr, ptr %bases, i64 %r
  %base = load ptr, ptr %base.p
  %o = sub i64 %r, $INPUTS
  %offset = mul i64 %o, $PITCH
  %row.stage = getelementptr i8, ptr %origin, i64 %offset
  %is.input = icmp slt i64 %o, 0
  %chosen = select i1 %is.input, ptr %base, ptr %row.stage
  %to = getelementptr ptr, ptr %staged, i64 %r
  store ptr %chosen, ptr %to
  %r.next = add i64 %r, 1
  br label %row
done:
  ret void
}

define internal void @flush(ptr %bases, ptr %strides, ptr %scratch, i64 %first, i64 %stop) noinline nounwind {
entry:
  %stage = getelementptr i8, ptr %scratch, i64 $STAGE
  %count = sub i64 %stop, %first
  %bytes = shl i64 %count, 3
  br label %row
row:
  %o = phi i64 [ 0, %entry ], [ %o.next, %row.end ]
  %end = icmp eq i64 %o, $OUTPUTS
  br i1 %end, label %done, label %row.body
row.body:
  %offset = mul i64 %o, $PITCH
  %from = getelementptr i8, ptr %stage, i64 %offset
  %r = add i64 %o, $INPUTS
  %to = call ptr @cell(ptr %bases, ptr %strides, i64 %r, i64 %first)
  br label %copy
copy:
  %i = phi i64 [ 0, %row.body ], [ %i.next, %copy ]
  %source = getelementptr i8, ptr %from, i64 %i
  %value = load $TYPE, ptr %source, align $VECTOR
  %sink = getelementptr i8, ptr %to, i64 %i
  store $TYPE %value, ptr %sink, align $VECTOR, !nontemporal !0
  %i.next = add i64 %i, $VECTOR
  %more = icmp ult i64 %i.next, %bytes
  br i1 %more, label %copy, label %row.end
row.end:
  %o.next = add i64 %o, 1
  br label %row
done:
  ret void
}

define internal ptr @cell(ptr %bases, ptr %strides, i64 %row, i64 %column) nounwind {
  %base.p = getelementptr ptr, ptr %bases, i64 %row
  %base = load ptr, ptr %base.p
  %stride.p = getelementptr i64, ptr %strides, i64 %row
  %stride = load i64, ptr %stride.p
  %offset = mul i64 %stride, %column
  %cell = getelementptr i8, ptr %base, i64 %offset
  ret ptr %cell
}

define internal void @edge(ptr %bases, ptr %strides, ptr %scratch, i64 %column, i64 %rest) noinline nounwind {
entry:
  %table = getelementptr i8, ptr %scratch, i64 $TABLE
  %edges = getelementptr i8, ptr %scratch, i64 $EDGE
  %last = sub i64 %rest, 1
  %ragged = icmp sgt i64 %rest, 0
  br i1 %ragged, label %row, label %done
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %r.done = icmp eq i64 %r, $ROWS
  br i1 %r.done, label %run, label %row.body
row.body:
  %offset = mul i64 %r, $VECTOR
  %vector = getelementptr i8, ptr %edges, i64 %offset
  %entry.r = getelementptr ptr, ptr %table, i64 %r
  store ptr %vector, ptr %entry.r
  %from = call ptr @cell(ptr %bases, ptr %strides, i64 %r, i64 %column)
  %is.input = icmp ult i64 %r, $INPUTS
  br i1 %is.input, label %fill, label %row.end
fill:
  %c = phi i64 [ 0, %row.body ], [ %c.next, %fill ]
  %beyond = icmp ugt i64 %c, %last
  %c.from = select i1 %beyond, i64 %last, i64 %c
  %source = getelementptr double, ptr %from, i64 %c.from
  %value = load double, ptr %source
  %sink = getelementptr double, ptr %vector, i64 %c
  store double %value, ptr %sink
  %c.next = add i64 %c, 1
  %filled = icmp eq i64 %c.next, $LANES
  br i1 %filled, label %row.end, label %fill
row.end:
  %r.next = add i64 %r, 1
  br label %row
run:
  call void @compute(ptr %scratch, ptr %table, i64 $VECTOR)
  br label %out
out:
  %o = phi i64 [ $INPUTS, %run ], [ %o.next, %copied ]
  %o.done = icmp eq i64 %o, $ROWS
  br i1 %o.done, label %done, label %out.body
out.body:
  %o.offset = mul i64 %o, $VECTOR
  %o.vector = getelementptr i8, ptr %edges, i64 %o.offset
  %to = call ptr @cell(ptr %bases, ptr %strides, i64 %o, i64 %column)
  br label %copy
copy:
  %k = phi i64 [ 0, %out.body ], [ %k.next, %copy ]
  %k.source = getelementptr double, ptr %o.vector, i64 %k
  %k.value = load double, ptr %k.source
  %k.sink = getelementptr double, ptr %to, i64 %k
  store double %k.value, ptr %k.sink
  %k.next = add i64 %k, 1
  %k.done = icmp eq i64 %k.next, %rest
  br i1 %k.done, label %copied, label %copy
copied:
  %o.next = add i64 %o, 1
  br label %out
done:
  ret void
}
!0 = !{i32 1}
""")
