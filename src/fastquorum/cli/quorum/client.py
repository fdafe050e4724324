"""A client of the running quorum that a command's arguments name."""

import argparse

from fastquorum.cli.terminal.arguments import load_kernels, parse_bootstrap
from fastquorum.cli.terminal.output import tell
from fastquorum.client.quorum import QuorumClient


def quorum_client(arguments: argparse.Namespace) -> QuorumClient:
    """Return the client of --bootstrap and --kernels, which says on stderr what it waits for. UsageError."""
    return QuorumClient(parse_bootstrap(arguments.bootstrap), load_kernels(arguments.kernels), tell)
