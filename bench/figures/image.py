"""What the controller's image costs at size: to fold from a log, to keep, to answer heartbeats on, to fence a broker
in, and to write as a snapshot while requests go on.

1,000 brokers and 1,000,000 partitions with three replicas each, 100 to a topic. It is folded by a process of its own;
the rest is done in this one, as in a controller's. No disk but the snapshot's.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.figures.figure import Goal, Measured, Setting, alone
from bench.figures.folding import fold, folded_by_itself
from fastquorum.controller.brokers import fencing
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.image.fold import Place
from fastquorum.controller.state.controller_state import ControllerSettings, ControllerState
from fastquorum.kernels import Kernels, load
from fastquorum.storage.images import snapshot_batches
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.checkpoint import CheckpointTimes
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import OffsetAndEpoch, Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.records.brokers import RegisterBrokerRecord
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionRecord, TopicRecord

PARTITIONS, QUICK_PARTITIONS = 1_000_000, 10_000
BROKERS: Final = 1_000
IN_A_TOPIC: Final = 100
REPLICAS: Final = 3
IN_A_BATCH: Final = 1_000
LEVEL: Final = 30
HEARTBEATS, QUICK_HEARTBEATS = 20_000, 500
FOLD_GOAL: Final = Goal(at_least=500_000)
BYTES_GOAL: Final = Goal(at_most=2_048)
PAUSE_GOAL: Final = Goal(at_most=50)


def measure(setting: Setting, directory: Path) -> Measured:
    kernels = load("native")
    partitions = setting.pick(PARTITIONS, QUICK_PARTITIONS)
    setting.say(f"image: encoding {partitions:,} partitions ...")
    batches = list(_batches(kernels, _records(partitions)))
    rounds = setting.pick(3, 1)
    log = directory / "image.log"
    log.write_bytes(b"".join(batches))
    folds, decodes, kept = [], [], []
    for turn in range(rounds):
        setting.say(f"image: folding, round {turn + 1} of {rounds} ...")
        found = folded_by_itself(log)
        folds.append(found["records_per_s"])
        kept.append(found["kept_bytes"] / partitions)
        decodes.append(_decode(kernels, batches))
    log.unlink()
    _, image = fold(kernels, batches)
    del batches
    state = ControllerState(ControllerSettings("bench"), image, 10 * partitions, 1, 0)
    rows = [
        alone("fold", "records/s", folds, FOLD_GOAL),
        alone("memory of the image", "bytes a partition", kept, BYTES_GOAL),
        alone("a heartbeat decided", "us", [_heartbeats(setting, state) for _ in range(rounds)]),
        alone("a broker fenced: decided, encoded, applied", "ms", [_fencing(state, each) for each in range(rounds)]),
    ]
    setting.say("image: a snapshot while heartbeats go on ...")
    seconds, size_bytes, pause_ms = _snapshot(kernels, setting, state, directory)
    rows.append(alone("a snapshot written", "s", [seconds]))
    rows.append(alone("the longest that a heartbeat waited meanwhile", "ms", [pause_ms], PAUSE_GOAL))
    how = {"partitions": partitions, "brokers": BROKERS, "replicas": REPLICAS, "snapshot_bytes": size_bytes}
    return Measured(
        rows, how, {"batches_decoded_per_s": decodes, "replicas_of_a_broker": partitions * REPLICAS // BROKERS}
    )


def _records(partitions: int) -> Iterator[tuple[Message, int]]:
    yield FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0
    for broker in range(BROKERS):
        record = RegisterBrokerRecord(broker_id=broker, incarnation_id=_id(1, broker), broker_epoch=1 + broker)
        record.fenced, record.log_dirs = False, [_id(2, broker)]
        yield record, 3
    for topic in range(-(-partitions // IN_A_TOPIC)):
        yield TopicRecord(name=f"topic-{topic}", topic_id=_id(3, topic)), 0
        for number in range(IN_A_TOPIC):
            replicas = [(topic * IN_A_TOPIC + number + 7 * each) % BROKERS for each in range(REPLICAS)]
            record = PartitionRecord(partition_id=number, topic_id=_id(3, topic), replicas=replicas, isr=replicas)
            record.leader, record.directories = replicas[0], [_id(2, each) for each in replicas]
            yield record, 2


def _id(kind: int, number: int) -> Uuid:
    return Uuid(bytes([kind]) + number.to_bytes(15, "big"))


def _batches(kernels: Kernels, records: Iterator[tuple[Message, int]]) -> Iterator[bytes]:
    offset, values = 0, []
    for record, version in records:
        values.append(encode_metadata_record(record, version))
        if len(values) == IN_A_BATCH:
            yield bytes(kernels.encode_values(values, base_offset=offset, leader_epoch=1, timestamp_ms=1))
            offset, values = offset + len(values), []
    if values:
        yield bytes(kernels.encode_values(values, base_offset=offset, leader_epoch=1, timestamp_ms=1))


def _decode(kernels: Kernels, batches: list[bytes]) -> float:
    count, began = 0, perf_counter()
    for batch in batches:
        count += sum(1 for _ in kernels.decode_records(batch, verify_crc=False))
    return count / (perf_counter() - began)


def _heartbeats(setting: Setting, state: ControllerState) -> float:
    """Microseconds of one: touched, decided, heard."""
    count = setting.pick(HEARTBEATS, QUICK_HEARTBEATS)
    requests = [_beat(number % BROKERS) for number in range(count)]
    began = perf_counter()
    for now_us, request in enumerate(requests):
        _decide(state, request, now_us)
    return (perf_counter() - began) / count * 1e6


def _beat(broker: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=broker, broker_epoch=1 + broker, current_metadata_offset=1 << 40)


def _decide(state: ControllerState, request: BrokerHeartbeatRequest, now_us: int) -> None:
    state.heartbeats.touch(request.broker_id, request.broker_epoch, now_us)
    brokers.heartbeat(state, request)
    brokers.heartbeat_done(state, request)


def _fencing(state: ControllerState, broker: int) -> float:
    """Milliseconds. It holds a replica of 3,000 partitions, and leads 1,000 of them."""
    began = perf_counter()
    records = fencing.fence(state, state.image.brokers[broker])
    for record in records:
        encode_metadata_record(record, 2 if hasattr(record, "partition_id") else 1)
    state.applied(state.prepare(records))
    return (perf_counter() - began) * 1e3


def _snapshot(kernels: Kernels, setting: Setting, state: ControllerState, directory: Path) -> tuple[float, int, float]:
    """Seconds, bytes, and the longest time of one heartbeat in milliseconds while it was written."""
    disk = RealDisk.open_directory(str(directory), kernels)
    disk.make_directory(LOG_DIRECTORY)
    snapshot = OffsetAndEpoch(state.next_offset, 1)
    written: list[float] = []

    def write() -> None:
        began = perf_counter()
        place = Place(snapshot.offset, snapshot.epoch, 1)
        batches = snapshot_batches(kernels, state.image, place, CheckpointTimes.at(1), 0, None)
        write_snapshot(disk, kernels, LOG_DIRECTORY, snapshot, batches)
        written.append(perf_counter() - began)

    thread = threading.Thread(target=write)
    thread.start()
    longest, number = 0.0, 0
    while thread.is_alive():
        request, began = _beat(BROKERS - 1 - number % (BROKERS // 2)), perf_counter()
        _decide(state, request, number)
        longest, number = max(longest, perf_counter() - began), number + 1
    thread.join()
    (size_bytes,) = [file.stat().st_size for file in (directory / LOG_DIRECTORY).glob("*.checkpoint")]
    return written[0], size_bytes, longest * 1e3
