"""Starting a node: its directory opened, its socket bound, its replica set going; or nothing of it, if one fails."""

import socket
from contextlib import ExitStack
from dataclasses import replace

from fastquorum.addresses import AddressError, check_reachable
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.errors import ConfigError, DirectoryError
from fastquorum.kernels import load
from fastquorum.node.assembly import Member
from fastquorum.node.io import directory as directories
from fastquorum.node.io.failpoints import failpoint
from fastquorum.node.io.formatting import check_format, format_for
from fastquorum.node.io.machines import machine_for
from fastquorum.node.io.observing import Observer
from fastquorum.node.io.running import RunningNode
from fastquorum.node.io.sockets.listening import bound_endpoint, listen
from fastquorum.node.io.sockets.own_address import LOOPBACK, where_it_is_reached, where_to_listen
from fastquorum.node.settings.log_kinds import CONTROLLER_SETTINGS, check_log_kind
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.storage.identity import Identity
from fastquorum.types import Endpoint, NodeId, Voter, VoterSet


def start_node(settings: NodeSettings, observer: Observer) -> RunningNode:
    """Open the directory, bind, and set a replica going. Raises ConfigError, DirectoryError, UsageError,
    CorruptionError, FatalError.
    """
    failpoint.check()
    if settings.path is None:
        raise ConfigError("a node needs a data directory", "give it", "path")
    if settings.advertise is not None:
        try:
            check_reachable(settings.advertise.host)
        except AddressError as error:
            raise ConfigError(str(error), "advertise one that others can reach", "advertise") from error
    kernels = load("pure" if settings.kernels == "pure" else "native")
    with ExitStack() as resources:
        listening: socket.socket | None = None
        bound, advertised, note = LOOPBACK, LOOPBACK, ""

        def listen_first(node_id: NodeId, voters: VoterSet, *, is_port_drawn: bool = False) -> None:
            # Before the directory is touched: a port that is taken, or an address that nobody can reach, changes
            # nothing.
            nonlocal listening, bound, advertised, note
            if listening is None:
                wanted, note = where_to_listen(settings.listen, node_id, voters)
                may_move = is_port_drawn and settings.listen is None
                listening, bound = _listen(resources, wanted, may_move=may_move)
            advertised = where_it_is_reached(settings.advertise, bound, node_id, voters, is_drawn=is_port_drawn)

        def accept(identity: Identity, voters: VoterSet, is_port_drawn: bool) -> None:
            check_log_kind(settings, identity.log_kind, is_controller=_is_controller(settings, identity))
            listen_first(identity.node_id, voters, is_port_drawn=is_port_drawn)

        if directories.needs_format(settings.path, kernels):
            if not settings.create:
                # If its volume is not mounted, an empty voter would come back in its name.
                raise DirectoryError(
                    "the directory is not formatted",
                    "if it was formatted before, find out where its files are, as whether a volume is mounted; "
                    "else format it, once: `fastquorum format`, or create=True in a program",
                    settings.path,
                )
            # Whatever refuses it refuses it now: no directory is left behind. Its only voter is to be reached where it
            # listens, so it must listen first.
            listen_first(check_format(settings), settings.voters or VoterSet())
            format_for(settings.path, kernels, settings, advertised)
        machine = machine_for(kernels)
        opened = directories.OpenDirectory(
            settings.path, kernels, settings.quorum, settings, accept, machine.native_flusher
        )
        resources.callback(opened.close, None)
        assert listening is not None
        member = _member(opened, advertised, settings)
        machine.equip(member, settings.quorum, kernels, opened)
        resources.callback(machine.transport.close_all)
        node = RunningNode(
            config=settings.quorum,
            kernels=kernels,
            opened=opened,
            machine=machine,
            listening=listening,
            advertised=advertised,
            member=member,
            listening_note=note,
        )
        node.start(observer)
        resources.pop_all()  # from here on the node closes them
    return node


def _is_controller(settings: NodeSettings, identity: Identity) -> bool:
    return identity.is_controller if settings.controller is None else settings.controller


def _member(opened: directories.OpenDirectory, advertised: Endpoint, settings: NodeSettings) -> Member:
    identity = opened.identity
    is_controller = _is_controller(settings, identity)
    controller = controller_settings(identity.cluster_id, settings) if is_controller else None
    return Member(
        key=identity.key,
        cluster_id=identity.cluster_id,
        voters=_voters(opened, advertised, settings),
        kraft_version=opened.kraft_version,
        log_kind=identity.log_kind,
        topic_name=identity.topic_name,
        listeners=(advertised,),
        bootstrap=settings.bootstrap,
        first_records=opened.first_records,
        controller=controller,
    )


def _voters(opened: directories.OpenDirectory, advertised: Endpoint, settings: NodeSettings) -> VoterSet:
    """Return the first voters; the only one, whose port nobody chose, is where it can be reached now."""
    if not opened.identity.is_port_drawn or settings.voters is not None or opened.kraft_version:
        return opened.voters
    return VoterSet([Voter(each.key, (advertised._replace(name=each.endpoints[0].name),)) for each in opened.voters])


def controller_settings(cluster_id: str, settings: NodeSettings) -> ControllerSettings:
    """What it was told; its defaults are Kafka's."""
    values = {name: getattr(settings, name) for name in CONTROLLER_SETTINGS}
    values["leader_imbalance_check_us"] = 0 if settings.preferred_leaders is False else settings.imbalance_check_us
    values["unclean_election_check_us"] = settings.unclean_check_us
    given = {name: value for name, value in values.items() if value is not None}
    return replace(ControllerSettings(cluster_id), **given)


def _listen(resources: ExitStack, wanted: Endpoint, *, may_move: bool) -> tuple[socket.socket, Endpoint]:
    """Listen there; if that port cannot be had and `may_move`, at any other of the same host. ConfigError."""
    try:
        sock = listen(wanted)
    except ConfigError:
        if not may_move:
            raise
        sock = listen(wanted._replace(port=0))
    resources.callback(sock.close)
    return sock, bound_endpoint(sock, wanted)
