"""Where a commit's time goes: time stamps of every batch on its way through the nodes of this process, for Perfetto.

    with quorum.trace("commits.json"):          # one node
        ...
    with fastquorum.trace.recording("commits.json", one, two, three):
        ...
    fastquorum.trace.record(quorum, seconds=2).write("commits.json")

Open the file at https://ui.perfetto.dev or chrome://tracing. Off, it costs nothing but the histograms that are always
kept (`quorum.stage_histograms()`); on, memory for the latest `capacity` batches. `kernels.stages` says what is stamped.
"""

from fastquorum.kernels.stages import StageHistogram, TracedGroup
from fastquorum.trace.chrome import chrome_trace
from fastquorum.trace.recording import CAPACITY, NodeTrace, Recording, Trace, record, recording, start

__all__ = [
    "CAPACITY",
    "NodeTrace",
    "Recording",
    "StageHistogram",
    "Trace",
    "TracedGroup",
    "chrome_trace",
    "record",
    "recording",
    "start",
]
