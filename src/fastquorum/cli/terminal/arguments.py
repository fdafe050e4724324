"""Arguments that several subcommands share, and how their text is read."""

import argparse
import math
from collections.abc import Callable
from typing import Final, Literal

from fastquorum.addresses import PORT_MAX
from fastquorum.client.endpoints import parse_endpoints
from fastquorum.errors import UsageError
from fastquorum.kernels import Kernels, load
from fastquorum.types import Endpoint, NodeId, is_whole

DEFAULT_TIMEOUT_S: Final = 30.0
_TEXT_BYTES_MAX: Final = 2**15 - 1
"""What a string of Kafka's protocol can hold."""


def explain(parser: argparse.ArgumentParser, description: str, *examples: str) -> None:
    """What `--help` says: a description and examples that work."""
    parser.description = description
    parser.epilog = "\n".join(("examples:" if len(examples) > 1 else "example:", *(f"  {each}" for each in examples)))


def add_format(parser: argparse.ArgumentParser, *others: str) -> None:
    parser.add_argument(
        "--format", choices=("table", "json", *others), default="table", help="how to print (default: table)"
    )


def add_kernels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernels", choices=("native", "pure"), default="native", help="which kernels to use (default: native)"
    )


def add_bootstrap(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,...",
        required=required,
        help="any nodes of the quorum; the leader is found through them",
    )
    add_timeout(parser, "give up after this long")


def add_timeout(parser: argparse.ArgumentParser, meaning: str, default_s: float = DEFAULT_TIMEOUT_S) -> None:
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive_seconds,
        default=default_s,
        help=f"{meaning} (default: {default_s:g})",
    )


def add_at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at",
        metavar="OFFSET",
        type=natural,
        help="use the records below this offset (default: all); a batch counts as a whole",
    )


def add_quorum(parser: argparse.ArgumentParser) -> None:
    """What a command takes that asks a running quorum and prints a table."""
    add_bootstrap(parser)
    add_format(parser)
    add_kernels(parser)


def load_kernels(name: Literal["native", "pure"]) -> Kernels:
    """Return the kernel set of --kernels. UsageError if it is not installed: there is no fallback."""
    try:
        return load(name)
    except ImportError as error:
        raise UsageError(str(error)) from error


def parse_bootstrap(text: str) -> tuple[Endpoint, ...]:
    """Parse the value of --bootstrap. UsageError names the wrong part."""
    return parse_endpoints("--bootstrap", text)


def positive_seconds(text: str) -> float:
    """An argparse type."""
    return number(text, "a number of seconds above 0 and below a thousand million", lambda value: 0 < value < 1e9)


def number(text: str, what: str, fits: Callable[[float], bool]) -> float:
    """Parse a number for an argparse type. ArgumentTypeError says what it must be if it does not fit."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not fits(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value


def natural(text: str) -> int:
    """An argparse type: 0 and up, in 64 bits."""
    if not is_whole(text) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {2**63 - 1}")
    return int(text)


def positive(text: str) -> int:
    """An argparse type: 1 and up, in 64 bits."""
    if not is_whole(text) or not 0 < int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {2**63 - 1}")
    return int(text)


def node_number(text: str) -> NodeId:
    """An argparse type: 0 and up, in 32 bits."""
    if not is_whole(text) or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {2**31 - 1}")
    return int(text)


def port_number(text: str) -> int:
    """An argparse type: a port that one can connect to."""
    if not is_whole(text) or not 0 < int(text) <= PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a whole number from 1 to {PORT_MAX}")
    return int(text)


def sendable(text: str) -> str:
    """An argparse type: what a string of Kafka's protocol can hold."""
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from error
    if size > _TEXT_BYTES_MAX:
        raise argparse.ArgumentTypeError(f"{text[:20]!r}... has {size} bytes, above {_TEXT_BYTES_MAX}")
    return text
