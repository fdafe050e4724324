"""The contenders, how each is started, and with which settings."""

import importlib.util
import json
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.compare import fetch
from bench.compare.cluster import Plan
from bench.compare.fetch import Missing
from bench.compare.workload import WORKLOADS, Workload
from fastquorum.loopback import free_ports

OURS, PEER = "ours", "peer"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
JAVA = ("java", "-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Dlog4j2.level=OFF")
QUIET_JAVA = (*JAVA, "-Dslf4j.internal.verbosity=ERROR")

Planner = Callable[[Path], Plan]
"""Given an empty directory; fetches nothing."""


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    prepare: Callable[[], Planner]
    """Fetches and builds what it needs. Raises Missing."""
    role: str = PEER
    note: str = ""
    warm_s: float = 1.0
    """Seconds of load before anything is measured: just-in-time compilers, connections."""
    workloads: Sequence[Workload] = WORKLOADS


def _folders(directory: Path) -> list[str]:
    folders = [directory / f"node-{number}" for number in (1, 2, 3)]
    for folder in folders:
        folder.mkdir()
    return list(map(str, folders))


def _addresses(count: int = 3) -> list[str]:
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


def _module(name: str, *arguments: str, python: str = sys.executable) -> list[str]:
    return [python, "-m", f"bench.compare.programs.{name}", *arguments]


# --- ours -------------------------------------------------------------------------------------------------------------


def _ours(api: str) -> Callable[[], Planner]:
    def prepare() -> Planner:
        if api == "uvloop" and importlib.util.find_spec("uvloop") is None:
            raise Missing("uvloop is not installed: pip install '.[bench]'")
        return lambda directory: _our_plan(api, directory, _addresses())

    return prepare


def _our_plan(
    api: str, directory: Path, addresses: Sequence[str], client: Callable[[int], Sequence[str]] | None = None
) -> Plan:
    voters = ",".join(f"{number}@{address}" for number, address in enumerate(addresses, 1))
    options = [
        {"path": folder, "node_id": number, "voters": voters, "cluster_id": CLUSTER_ID, "kernels": "native"}
        for number, folder in enumerate(_folders(directory), 1)
    ]
    return Plan([_module("ours", api, json.dumps(each)) for each in options], client)


def _ours_by_client() -> Planner:
    if importlib.util.find_spec("confluent_kafka") is None:
        raise Missing("confluent-kafka is not installed: pip install '.[bench]'")

    def plan(directory: Path) -> Plan:
        addresses = _addresses()
        return _our_plan("blocking", directory, addresses, lambda leader: _module("kafka_client", addresses[leader]))

    return plan


# --- Go ---------------------------------------------------------------------------------------------------------------


def _go(name: str) -> Callable[[], Planner]:
    """Programs that are started as NAME ID DIRECTORY ADDRESS1 ADDRESS2 ADDRESS3."""

    def prepare() -> Planner:
        program = str(fetch.go_program(name))

        def plan(directory: Path) -> Plan:
            addresses = _addresses()
            nodes = enumerate(_folders(directory), 1)
            return Plan([[program, str(number), folder, *addresses] for number, folder in nodes])

        return plan

    return prepare


def _etcd(has_client: bool) -> Callable[[], Planner]:
    def prepare() -> Planner:
        program = str(fetch.go_program("etcd"))

        def plan(directory: Path) -> Plan:
            addresses = _addresses(6)
            peers, clients = addresses[:3], addresses[3:]
            members = [
                [program, "member", str(number), folder, ",".join(peers), ",".join(clients)]
                for number, folder in enumerate(_folders(directory), 1)
            ]
            return Plan(members, (lambda leader: [program, "client", clients[leader]]) if has_client else None)

        return plan

    return prepare


# --- Java -------------------------------------------------------------------------------------------------------------


def _kafka_raft(linger_ms: int) -> Callable[[], Planner]:
    def prepare() -> Planner:
        lib = fetch.jars("kafka")
        path = f"{fetch.java_program('KafkaRaft', lib)}:{lib}/*"

        def plan(directory: Path) -> Plan:
            addresses = _addresses()
            voters = ",".join(f"{number}@{address}" for number, address in enumerate(addresses, 1))
            members = []
            for number, folder in enumerate(_folders(directory), 1):
                settings = {
                    "node.id": number,
                    "controller.quorum.voters": voters,
                    "controller.listener.names": "CONTROLLER",
                    "listeners": f"CONTROLLER://{addresses[number - 1]}",
                    "log.dirs": folder,
                    "controller.quorum.append.linger.ms": linger_ms,
                }
                file = Path(folder).with_suffix(".properties")
                file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
                directory_id = f"AAAAAAAAAAAAAAAAAAAAB{'AQgw'[number]}"
                members.append([*JAVA, "-cp", path, "KafkaRaft", str(file), directory_id])
            return Plan(members)

        return plan

    return prepare


def zookeeper_servers(path: str, directory: Path) -> tuple[Plan, Sequence[int]]:
    """Three of them without a client, and where clients reach each. `path`: the class path."""
    ports = free_ports(9)
    clients, quorum, election = ports[:3], ports[3:6], ports[6:]
    members = []
    for number, folder in enumerate(_folders(directory), 1):
        lines = [
            "tickTime=2000",
            "initLimit=10",
            "syncLimit=5",
            f"dataDir={folder}",
            f"clientPort={clients[number - 1]}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr,mntr",
            "maxClientCnxns=0",
            "globalOutstandingLimit=100000",
            *(f"server.{n}=127.0.0.1:{quorum[n - 1]}:{election[n - 1]}" for n in (1, 2, 3)),
        ]
        (Path(folder) / "myid").write_text(f"{number}\n")
        file = Path(folder).with_suffix(".cfg")
        file.write_text("\n".join(lines) + "\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        members.append([*QUIET_JAVA, "-cp", path, main, str(file)])
    return Plan(members, leads=lambda number: _leads_zookeeper(clients[number])), clients


def _zookeeper(client: str) -> Callable[[], Planner]:
    def prepare() -> Planner:
        lib = fetch.jars("zookeeper")
        path = f"{fetch.java_program('ZooKeeperLoad', lib)}:{lib}/*"
        python = str(fetch.python()) if client == "kazoo" else ""

        def plan(directory: Path) -> Plan:
            servers, clients = zookeeper_servers(path, directory)

            def load(leader: int) -> Sequence[str]:
                address = f"127.0.0.1:{clients[leader]}"
                if client == "kazoo":
                    return _module("kazoo_client", address, python=python)
                return [*QUIET_JAVA, "-cp", path, "ZooKeeperLoad", address]

            return replace(servers, client=load)

        return plan

    return prepare


def _leads_zookeeper(port: int) -> bool:
    """By the four-letter word `srvr`. A server that does not answer yet does not lead."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"srvr")
            response = b""
            while got := connection.recv(4096):
                response += got
    except OSError:
        return False
    return b"Mode: leader" in response


# --- Python -----------------------------------------------------------------------------------------------------------


def _pysyncobj(kind: str) -> Callable[[], Planner]:
    def prepare() -> Planner:
        python = str(fetch.python())

        def plan(directory: Path) -> Plan:
            addresses = _addresses()
            nodes = enumerate(_folders(directory), 1)
            return Plan(
                [
                    _module("pysyncobj_node", kind, str(number), folder, *addresses, python=python)
                    for number, folder in nodes
                ]
            )

        return plan

    return prepare


JVM_WARM_S = 6.0
PACKED = "a batch is one entry that holds all its values"

CONTENDERS = (
    Contender("ours, blocking", _ours("blocking"), OURS),
    Contender("ours, asyncio", _ours("asyncio"), OURS),
    Contender("ours, uvloop", _ours("uvloop"), OURS),
    Contender("ours, Kafka client", _ours_by_client, OURS, "confluent-kafka's producer, acks=all, linger 0"),
    Contender("etcd raft + wal", _go("etcdraft"), note="bare raft 3.7.0 and etcd's wal: no snapshots, no recovery"),
    Contender("dragonboat", _go("dragonboat"), note=f"v4, Tan log; {PACKED}"),
    Contender("hashicorp/raft", _go("hashicorp"), note=f"1.8.0, raft-wal 0.4.1, batches of up to 1,024; {PACKED}"),
    Contender("etcd, in process", _etcd(False), note="3.7.3; a batch is one transaction"),
    Contender(
        "etcd, client", _etcd(True), note="3.7.3 by gRPC, 4 connections to the leader; a batch is one transaction"
    ),
    Contender(
        "ZooKeeper",
        _zookeeper("java"),
        note="3.9.5, its Java client, 4 sessions with the leader; a batch is one multi",
        warm_s=JVM_WARM_S,
    ),
    Contender("ZooKeeper, kazoo", _zookeeper("kazoo"), note="3.9.5, kazoo 2.11.0", warm_s=JVM_WARM_S),
    Contender(
        "Kafka's raft",
        _kafka_raft(25),
        note="4.3.0, kafka.tools.TestRaftServer, its default linger of 25 ms",
        warm_s=JVM_WARM_S,
    ),
    Contender("Kafka's raft, linger 0", _kafka_raft(0), note="4.3.0, kafka.tools.TestRaftServer", warm_s=JVM_WARM_S),
    Contender("PySyncObj", _pysyncobj("default"), note="0.3.17 as it comes, with its journal"),
    Contender("PySyncObj, tuned", _pysyncobj("tuned"), note="0.3.17, a tick of 1 ms"),
)
