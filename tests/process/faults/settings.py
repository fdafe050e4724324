"""Settings that a busy machine does not trip over: nobody is deposed because two cores were elsewhere for a moment."""

from typing import Final

PATIENT: Final[dict[str, object]] = {
    "controller.quorum.fetch.timeout.ms": 2_000,
    "controller.quorum.request.timeout.ms": 2_000,
    "controller.quorum.election.timeout.ms": 500,
}
