"""Settings of quorums that something is done to."""

from typing import Final

PATIENT: Final[dict[str, object]] = {
    "controller.quorum.fetch.timeout.ms": 2_000,
    "controller.quorum.request.timeout.ms": 2_000,
    "controller.quorum.election.timeout.ms": 500,
}
"""A busy machine does not trip over them: nobody is deposed because two cores were elsewhere for a moment."""
ROOMY: Final[dict[str, object]] = {
    **PATIENT,
    "metadata.log.segment.bytes": 64 << 20,
    "log.preallocate.bytes": 4 << 20,
}
"""No segment ends meanwhile: what is read from the disk crosses none, and an answer is as large as was asked for."""
ONE_SEGMENT: Final[dict[str, object]] = {**ROOMY, "metadata.log.segment.bytes": 1 << 30}
"""No segment ends at all: that is Python's business, and a leader whose interpreter is held just then is replaced."""
