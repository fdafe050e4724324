"""The image of a running quorum, for commands: by their arguments, with progress on a terminal."""

import argparse
from functools import partial
from typing import Final

from fastquorum.cli.terminal.arguments import load_kernels, parse_bootstrap
from fastquorum.cli.terminal.output import progress, tell
from fastquorum.client.committed import committed_fold
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.kernels import Kernels
from fastquorum.types import Offset

WATCH: Final = partial(progress, "reading the metadata log")
"""Draws a progress bar on a terminal."""


def committed_image(arguments: argparse.Namespace) -> Image:
    """Return the committed image of the quorum that the arguments name (`arguments.add_bootstrap`, `add_kernels`).
    Raises what `committed_fold` raises."""
    kernels = load_kernels(arguments.kernels)
    with QuorumClient(parse_bootstrap(arguments.bootstrap), kernels, tell) as client:
        return watched_fold(client, kernels, arguments.timeout).image


def watched_fold(client: QuorumClient, kernels: Kernels, timeout_s: float, end_offset: Offset | None = None) -> Fold:
    """Return `committed_fold` with a progress bar, and raise what that raises."""
    return committed_fold(client, kernels, timeout_s, end_offset, WATCH)
