"""LLVM text of the loop over time: pointers to rows are exchanged after each step, data are not moved."""

from __future__ import annotations

from string import Template

from .lower import BLOCK, Program

FRAME_FIELDS = (
    "bytes",  # length of a row of this block
    "input_base",  # first input of this block
    "input_step",  # bytes from one time row of the inputs to the next
    "input_row",  # bytes from one input to the next
    "input_column",  # 8: each column has its own; 0: all share one
    "hold",  # steps for which a time row of the inputs is used
    "record_base",  # first recorded output of this block
    "record_step",  # bytes from one record to the next
    "record_row",  # bytes from one output to the next
    "every",  # steps from one record to the next
    "records",  # number of records
)
"""What a block of columns needs to know, as 64-bit integers in this order; its table of row pointers follows."""


def loop_driver(program: Program) -> str:
    """Return LLVM text of ``@advance``, which takes one block of columns through steps first to stop - 1.

    ::

        @advance(ptr scratch, ptr frame, i64 first, i64 stop)

    The step's table is [state, input, parameters, next state, output]. After each step the pointers of state and
    next state change places. Inputs are spread over a block of scratch when a new time row of them begins;
    outputs go straight to their record, or to a scratch row when the step is not recorded.
    """
    states, inputs, parameters = program.input_rows
    next_state = states + inputs + parameters
    return _TEXT.substitute(
        STATES=states,
        INPUTS=inputs,
        OUTPUTS=program.output_rows[1],
        NEXT=next_state,
        OUT=next_state + states,
        TABLE=8 * len(FRAME_FIELDS),
        HELD=program.slots * BLOCK * 8,
        UNUSED=(program.slots + inputs) * BLOCK * 8,
        ROW=BLOCK * 8,
        VECTOR=8 * program.target.lanes,
        TYPE=f"<{program.target.lanes} x double>",
        LANES=program.target.lanes,
        **{name.upper(): index for index, name in enumerate(FRAME_FIELDS)},
    )


def scratch_size(program: Program) -> int:
    """Return the scratch memory that one thread needs [doubles]."""
    return (program.slots + program.input_rows[1] + program.output_rows[1]) * BLOCK


_TEXT = Template("""
define internal i64 @field(ptr %frame, i64 %index) nounwind {
  %p = getelementptr i64, ptr %frame, i64 %index
  %v = load i64, ptr %p
  ret i64 %v
}

define void @advance(ptr %scratch, ptr %frame, i64 %first, i64 %stop) nounwind {
entry:
  %table = getelementptr i8, ptr %frame, i64 $TABLE
  %held = getelementptr i8, ptr %scratch, i64 $HELD
  %input.entries = getelementptr ptr, ptr %table, i64 $STATES
  call void @point(ptr %input.entries, ptr %held, i64 $ROW, i64 $INPUTS)
  %bytes = call i64 @field(ptr %frame, i64 $BYTES)
  %hold = call i64 @field(ptr %frame, i64 $HOLD)
  br label %step
step:
  %t = phi i64 [ %first, %entry ], [ %t.next, %advance ]
  %more = icmp slt i64 %t, %stop
  br i1 %more, label %refresh, label %done
refresh:
  %phase = urem i64 %t, %hold
  %begins = icmp eq i64 %phase, 0
  %enters = icmp eq i64 %t, %first
  %fresh = or i1 %begins, %enters
  br i1 %fresh, label %spread, label %advance
spread:
  %row = udiv i64 %t, %hold
  call void @spread(ptr %held, ptr %frame, i64 %row)
  br label %advance
advance:
  call void @point_outputs(ptr %scratch, ptr %frame, i64 %t)
  call void @compute(ptr %scratch, ptr %table, i64 %bytes)
  call void @swap(ptr %table)
  %t.next = add i64 %t, 1
  br label %step
done:
  ret void
}

define internal void @point(ptr %entries, ptr %base, i64 %stride, i64 %count) noinline nounwind {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %done, label %body
body:
  %offset = mul i64 %k, %stride
  %address = getelementptr i8, ptr %base, i64 %offset
  %slot = getelementptr ptr, ptr %entries, i64 %k
  store ptr %address, ptr %slot
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}

define internal void @point_outputs(ptr %scratch, ptr %frame, i64 %t) noinline nounwind {
  %every = call i64 @field(ptr %frame, i64 $EVERY)
  %records = call i64 @field(ptr %frame, i64 $RECORDS)
  %base = call i64 @field(ptr %frame, i64 $RECORD_BASE)
  %record.step = call i64 @field(ptr %frame, i64 $RECORD_STEP)
  %record.row = call i64 @field(ptr %frame, i64 $RECORD_ROW)
  %record = udiv i64 %t, %every
  %phase = urem i64 %t, %every
  %on.time = icmp eq i64 %phase, 0
  %has.room = icmp slt i64 %record, %records
  %due = and i1 %on.time, %has.room
  %offset = mul i64 %record, %record.step
  %address = add i64 %base, %offset
  %kept = inttoptr i64 %address to ptr
  %unused = getelementptr i8, ptr %scratch, i64 $UNUSED
  %to = select i1 %due, ptr %kept, ptr %unused
  %stride = select i1 %due, i64 %record.row, i64 $ROW
  %table = getelementptr i8, ptr %frame, i64 $TABLE
  %entries = getelementptr ptr, ptr %table, i64 $OUT
  call void @point(ptr %entries, ptr %to, i64 %stride, i64 $OUTPUTS)
  ret void
}

define internal void @swap(ptr %table) noinline nounwind {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %end = icmp eq i64 %k, $STATES
  br i1 %end, label %done, label %body
body:
  %a = getelementptr ptr, ptr %table, i64 %k
  %k.other = add i64 %k, $NEXT
  %b = getelementptr ptr, ptr %table, i64 %k.other
  %x = load ptr, ptr %a
  %y = load ptr, ptr %b
  store ptr %y, ptr %a
  store ptr %x, ptr %b
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}

define internal void @spread(ptr %held, ptr %frame, i64 %row) noinline nounwind {
entry:
  %bytes = call i64 @field(ptr %frame, i64 $BYTES)
  %base = call i64 @field(ptr %frame, i64 $INPUT_BASE)
  %step = call i64 @field(ptr %frame, i64 $INPUT_STEP)
  %stride = call i64 @field(ptr %frame, i64 $INPUT_ROW)
  %column = call i64 @field(ptr %frame, i64 $INPUT_COLUMN)
  %shared = icmp eq i64 %column, 0
  %offset = mul i64 %row, %step
  %address = add i64 %base, %offset
  %now = inttoptr i64 %address to ptr
  br label %input
input:
  %k = phi i64 [ 0, %entry ], [ %k.next, %input.end ]
  %end = icmp eq i64 %k, $INPUTS
  br i1 %end, label %done, label %input.body
input.body:
  %k.from = mul i64 %k, %stride
  %from = getelementptr i8, ptr %now, i64 %k.from
  %k.to = mul i64 %k, $ROW
  %to = getelementptr i8, ptr %held, i64 %k.to
  %value = load double, ptr %from
  %lane = insertelement $TYPE poison, double %value, i32 0
  %same = shufflevector $TYPE %lane, $TYPE poison, <$LANES x i32> zeroinitializer
  br label %vector
vector:
  %i = phi i64 [ 0, %input.body ], [ %i.next, %vector.end ]
  br i1 %shared, label %vector.end, label %own
own:
  %source = getelementptr i8, ptr %from, i64 %i
  %each = load $TYPE, ptr %source, align 8
  br label %vector.end
vector.end:
  %put = phi $TYPE [ %same, %vector ], [ %each, %own ]
  %sink = getelementptr i8, ptr %to, i64 %i
  store $TYPE %put, ptr %sink, align 8
  %i.next = add i64 %i, $VECTOR
  %i.more = icmp ult i64 %i.next, %bytes
  br i1 %i.more, label %vector, label %input.end
input.end:
  %k.next = add i64 %k, 1
  br label %input
done:
  ret void
}
""")
