"""`fastquorum format`: makes a data directory for one node. Formatting the same way again changes nothing."""

import argparse
import os
from collections.abc import Sequence

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels, node_number
from fastquorum.cli.terminal.output import print_json, print_table, tell
from fastquorum.errors import UsageError
from fastquorum.node.io.directory import new_directory_id, present_identity
from fastquorum.node.io.formatting import format_locked
from fastquorum.node.io.sources import read_settings
from fastquorum.node.settings.kafka_file import ignored_text
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.storage.format import USER_TOPIC_NAME, FormatOptions, check_options
from fastquorum.storage.identity import Identity, LogKind, format_voters, parse_voters
from fastquorum.types import LISTENER_NAME, ZERO_UUID, VoterSet


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Make a data directory for one node. With a directory id for every voter the quorum begins at kraft.version 1 "
        "(as changes of voters need, which are still to come), without any at 0. A directory id, or a voter's id "
        "without one, stands for the votes and records in its directory: use it once. If a voter's directory is lost "
        "and formatted again with the same command, the voter may vote twice, and acknowledged records may be lost. Do "
        "that only while all other voters run and follow one leader, and stop none of them until it has caught up.\n"
        "The cluster id is required if there is more than one voter.\n"
        "--controller makes a metadata log that begins with the features of a Kafka 4.3 cluster, as kafka-storage "
        "format does, and `run` then runs a controller. A file of Kafka's own (process.roles=controller) says the "
        "same, and names the node; if it has no controller.quorum.voters, --voters takes the place of kafka-storage's "
        "--initial-controllers.",
        "fastquorum format --data n1 --node-id 1 --cluster-id $(fastquorum random-uuid) "
        "--voters 1@h1:9093,2@h2:9093,3@h3:9093",
        "fastquorum format --config controller.properties --cluster-id ID --voters 1@h1:9093:DIRID,2@h2:9093:DIRID",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="the directory; created if it is missing (default: the file's log.dirs)"
    )
    parser.add_argument("--config", metavar="FILE", help="a node's properties or .toml file, as `run` takes it")
    parser.add_argument("--node-id", metavar="N", type=node_number, help="(default: the file's node.id)")
    parser.add_argument(
        "--voters", metavar="ID@HOST:PORT[:DIRID],...", help="(default: the file's controller.quorum.voters)"
    )
    parser.add_argument("--cluster-id", metavar="ID", help="the same for every node; see random-uuid")
    parser.add_argument("--log", choices=("user", "metadata"), help="kind of the records (default: user)")
    parser.add_argument(
        "--controller", action="store_true", help="format for a controller of a Kafka cluster: implies --log metadata"
    )
    parser.add_argument(
        "--topic-name", metavar="NAME", help="the topic under which Kafka's clients see a user log (default: quorum)"
    )
    parser.add_argument(
        "--no-bootstrap",
        action="store_true",
        help="begin a metadata log empty, without the feature levels that Kafka's nodes need",
    )
    parser.add_argument("--observer", action="store_true", help="confirm that the node is not among the voters")
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    settings = NodeSettings()
    if arguments.config is not None:
        settings = read_settings({}, arguments.config, {}, _tell_ignored)
    path = arguments.data if arguments.data is not None else settings.path
    if path is None:
        raise _missing("--data", "log.dirs")
    present = present_identity(path, kernels)
    options = _options(arguments, settings, present)
    check_options(options)  # before a directory is made for nothing
    identity = format_locked(path, kernels, options)
    root = os.path.abspath(path)
    if present is not None:
        tell(
            f"{root} is formatted already, with cluster id {identity.cluster_id}: nothing is changed; to start over, "
            "name another directory"
        )
    _show(root, identity, arguments.format)
    return 0


def _tell_ignored(file: str, keys: Sequence[str]) -> None:
    tell(ignored_text(file, keys))


def _missing(option: str, key: str) -> UsageError:
    return UsageError(f"{option} is missing", f"or name {key} in --config FILE")


def _options(arguments: argparse.Namespace, settings: NodeSettings, present: Identity | None) -> FormatOptions:
    """Return the options to format with. `present`, what the directory is formatted as, gives a missing cluster id."""
    is_controller = arguments.controller or bool(settings.controller)
    kind = _log_kind(arguments, settings, is_controller)
    topic_name = arguments.topic_name if arguments.topic_name is not None else settings.topic
    if kind is LogKind.METADATA and topic_name is not None:
        raise UsageError("--topic-name is for user logs", "leave it out: a metadata log is __cluster_metadata")
    if is_controller and arguments.no_bootstrap:
        raise UsageError("--no-bootstrap is not for controllers", "none can begin before the features are known")
    node_id = arguments.node_id if arguments.node_id is not None else settings.node_id
    if node_id is None:
        raise _missing("--node-id", "node.id")
    listener_name = settings.listen.name if settings.listen is not None else LISTENER_NAME
    voters = _voters(arguments, settings, listener_name)
    own = voters.get(node_id)
    given = own.key.directory_id if own is not None else ZERO_UUID
    return FormatOptions(
        cluster_id=_cluster_id(arguments, settings, voters, present),
        node_id=node_id,
        directory_id=given if given != ZERO_UUID else new_directory_id(),
        voters=voters,
        log_kind=kind,
        topic_name=topic_name or USER_TOPIC_NAME,
        listener_name=listener_name,
        is_observer=arguments.observer,
        has_bootstrap=not arguments.no_bootstrap,
        is_controller=is_controller,
    )


def _log_kind(arguments: argparse.Namespace, settings: NodeSettings, is_controller: bool) -> LogKind:
    kind = LogKind(arguments.log) if arguments.log is not None else settings.log
    if is_controller and kind is LogKind.USER:
        raise UsageError("a controller keeps Kafka's metadata", "leave out --log user")
    return LogKind.METADATA if is_controller else kind or LogKind.USER


def _voters(arguments: argparse.Namespace, settings: NodeSettings, listener_name: str) -> VoterSet:
    """Return the voters from --voters or the file. If both have them they must agree, since `run` compares."""
    listed = settings.voters
    if listed is not None:
        listed = VoterSet(
            [
                voter._replace(endpoints=tuple(each._replace(name=listener_name) for each in voter.endpoints))
                for voter in listed
            ]
        )
    if arguments.voters is None:
        if listed is None:
            raise _missing("--voters", "controller.quorum.voters")
        return listed
    try:
        voters = parse_voters(arguments.voters, listener_name)
    except ValueError as error:
        raise UsageError(f"--voters: {error}") from error
    if listed is not None and listed != voters:
        raise UsageError(
            f"--voters says {format_voters(voters)}, and {arguments.config} has {format_voters(listed)}",
            "keep one of the two",
        )
    return voters


def _cluster_id(
    arguments: argparse.Namespace, settings: NodeSettings, voters: VoterSet, present: Identity | None
) -> str:
    cluster_id: str | None = arguments.cluster_id if arguments.cluster_id is not None else settings.cluster_id
    if cluster_id is None:
        if present is not None:
            return present.cluster_id
        if len(voters) > 1:
            raise UsageError(
                "--cluster-id is required with more than one voter",
                "make one with `fastquorum random-uuid` and give it to every node",
            )
        return str(new_directory_id())
    return cluster_id


def _show(root: str, identity: Identity, how: str) -> None:
    report = {
        "data": root,
        "clusterId": identity.cluster_id,
        "nodeId": identity.node_id,
        "directoryId": str(identity.directory_id),
        "log": str(identity.log_kind),
        "topic": identity.topic_name,
        "kraftVersion": identity.kraft_version,
        "voters": format_voters(identity.voters),
    }
    if how == "json":
        print_json(report)
    else:
        print_table(("FORMATTED", ""), list(report.items()))
        if identity.kraft_version and identity.voters.get(identity.node_id) is not None:
            print(
                "\n"
                "The directory id is used once. If this directory is lost, one that is formatted again with the same\n"
                "line lacks its votes and its records: read `fastquorum format --help` first."
            )
