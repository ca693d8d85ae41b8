"""Recordings: logs read as declared, brought to joints and SI units, and checked without a model."""

from .files import AnyRecording as AnyRecording
from .files import RecordingsLike as RecordingsLike
from .files import check_recording as check_recording
from .files import load_recordings as load_recordings
from .files import read_recording as read_recording
from .files import read_recordings as read_recordings
from .files import recording_from_arrays as recording_from_arrays
from .files import recording_from_frame as recording_from_frame
from .files import stream_recording as stream_recording
from .files import stream_recordings as stream_recordings
from .files import write_recording as write_recording
from .record import TORQUE_KINDS as TORQUE_KINDS
from .record import Finding as Finding
from .record import Recording as Recording
from .record import Source as Source
from .record import TorqueChannel as TorqueChannel
from .setup import ChannelSetup as ChannelSetup
from .setup import PartSetup as PartSetup
from .setup import RecordingSetup as RecordingSetup
from .setup import TextOptions as TextOptions
from .setup import read_setup as read_setup
from .setup import setup_from_table as setup_from_table
from .stream import RecordingStream as RecordingStream
from .stream import StreamResult as StreamResult
