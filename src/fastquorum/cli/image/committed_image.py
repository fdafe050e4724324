"""The image of a running quorum, for commands: by their arguments, with progress on a terminal."""

import argparse
from functools import partial
from typing import Final

from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.terminal.output import progress
from fastquorum.client.committed import committed_fold
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.types import Offset

WATCH: Final = partial(progress, "reading the metadata log")
"""Draws a progress bar on a terminal."""


def committed_image(arguments: argparse.Namespace) -> Image:
    """Return the committed image of the quorum that the arguments name (`arguments.add_bootstrap`, `add_kernels`).
    Raises what `committed_fold` raises."""
    with quorum_client(arguments) as client:
        return watched_fold(client, arguments.timeout).image


def watched_fold(client: QuorumClient, timeout_s: float, end_offset: Offset | None = None) -> Fold:
    """Return `committed_fold` with a progress bar, and raise what that raises."""
    return committed_fold(client, client.kernels, timeout_s, end_offset, WATCH)
