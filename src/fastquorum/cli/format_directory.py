"""`fastquorum format`: makes a data directory for one node. Formatting the same way again changes nothing."""

import argparse
from contextlib import ExitStack

from fastquorum.cli.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.output import print_json, print_table
from fastquorum.errors import UsageError
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.directory import lock_directory, new_directory_id
from fastquorum.storage.format import USER_TOPIC_NAME, FormatOptions, check_options, format_directory
from fastquorum.storage.identity import LogKind, format_voters, parse_voters
from fastquorum.types import ZERO_UUID


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Make a data directory for one node. With a directory id for every voter the quorum begins at kraft.version 1 "
        "(voters can change later), without any at 0.\nThe cluster id is required if there is more than one voter.",
        "fastquorum format --data n1 --node-id 1 --cluster-id $(fastquorum random-uuid) "
        "--voters 1@h1:9093,2@h2:9093,3@h3:9093",
    )
    parser.add_argument("--data", metavar="DIR", required=True, help="the directory; created if it is missing")
    parser.add_argument("--node-id", metavar="N", type=int, required=True)
    parser.add_argument("--voters", metavar="ID@HOST:PORT[:DIRID],...", required=True)
    parser.add_argument("--cluster-id", metavar="ID", help="the same for every node; see random-uuid")
    parser.add_argument(
        "--log", choices=("user", "metadata"), default="user", help="what the records are (default: user)"
    )
    parser.add_argument("--topic-name", metavar="NAME", help="how Kafka's clients see a user log (default: quorum)")
    parser.add_argument(
        "--no-bootstrap",
        action="store_true",
        help="a metadata log begins with what is appended first, not with the feature levels that Kafka's nodes need",
    )
    parser.add_argument(
        "--observer", action="store_true", help="the node is not among the voters, and is meant not to be"
    )
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    try:
        voters = parse_voters(arguments.voters)
    except ValueError as error:
        raise UsageError(f"--voters: {error}") from error
    if arguments.log == "metadata" and arguments.topic_name is not None:
        raise UsageError("--topic-name is for user logs", "leave it out: a metadata log is __cluster_metadata")
    cluster_id = arguments.cluster_id
    if cluster_id is None:
        if len(voters) > 1:
            raise UsageError(
                "--cluster-id is required with more than one voter",
                "make one with `fastquorum random-uuid` and give it to every node",
            )
        cluster_id = str(new_directory_id())
    own = voters.get(arguments.node_id)
    given = own.key.directory_id if own is not None else ZERO_UUID
    options = FormatOptions(
        cluster_id=cluster_id,
        node_id=arguments.node_id,
        directory_id=given if given != ZERO_UUID else new_directory_id(),
        voters=voters,
        log_kind=LogKind(arguments.log),
        topic_name=arguments.topic_name or USER_TOPIC_NAME,
        is_observer=arguments.observer,
        has_bootstrap=not arguments.no_bootstrap,
    )
    check_options(options)  # before a directory is made for nothing
    with ExitStack() as resources:
        disk, _ = lock_directory(arguments.data, kernels, resources)
        identity = format_directory(disk, kernels, options, now_ms=wall_clock_ms())
    said = {
        "data": disk.root,
        "clusterId": identity.cluster_id,
        "nodeId": identity.node_id,
        "directoryId": str(identity.directory_id),
        "log": str(identity.log_kind),
        "topic": identity.topic_name,
        "kraftVersion": identity.kraft_version,
        "voters": format_voters(identity.voters),
    }
    if arguments.format == "json":
        print_json(said)
    else:
        print_table(("FORMATTED", ""), list(said.items()))
    return 0
