"""Voter sets as they come in, by a record: those that no quorum can be made of are refused where they are read."""

from collections.abc import Callable

import pytest

from fastquorum.errors import CorruptionError, WireError
from fastquorum.kernels import Attribute, Kernels, Record
from fastquorum.node.records.control_batches import read_span, recovered
from fastquorum.storage.log.checkpoint import header_of, read_checkpoint
from fastquorum.storage.log.voter_sets import voter_set
from fastquorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, Uuid, Voter, VoterSet
from fastquorum.wire.records.control import encode_control_record
from fastquorum.wire.records.control_values import VotersRecord

from .logs import Rig, checkpoint, checkpoint_path

Entry = VotersRecord.Voter


def entry(node_id: int) -> Entry:
    return Entry(
        voter_id=node_id,
        voter_directory_id=Uuid(bytes(15) + bytes([node_id % 256])),
        endpoints=[Entry.Endpoint(name="CONTROLLER", host=f"h{node_id}", port=9093)],
        kraft_version_feature=Entry.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )


def _without_endpoints(record: VotersRecord) -> None:
    record.voters[1].endpoints = []


def _without_host(record: VotersRecord) -> None:
    record.voters[1].endpoints[0].host = ""


def _without_port(record: VotersRecord) -> None:
    record.voters[1].endpoints[0].port = 0


def _without_versions(record: VotersRecord) -> None:
    record.voters[1].kraft_version_feature.min_supported_version = 2


def _negative(record: VotersRecord) -> None:
    record.voters[1].voter_id = -2


def _twice(record: VotersRecord) -> None:
    record.voters[1].voter_id = 1


def _nobody(record: VotersRecord) -> None:
    record.voters = []


FAULTS: dict[str, tuple[Callable[[VotersRecord], None], str]] = {
    "empty": (_nobody, "without voters"),
    "an id twice": (_twice, "voter 1 .* twice"),
    "a negative id": (_negative, "voter -2 .* negative"),
    "no endpoint": (_without_endpoints, "voter 2 .* no endpoint"),
    "no host": (_without_host, "voter 2 .* host"),
    "no port": (_without_port, "voter 2 .* port"),
    "no range of versions": (_without_versions, "voter 2 .* kraft.version 2 to 1"),
}


def broken(fault: str) -> VotersRecord:
    record = VotersRecord(voters=[entry(1), entry(2), entry(3)])
    FAULTS[fault][0](record)
    return record


def batch_with(kernels: Kernels, record: VotersRecord, base_offset: int = 0) -> bytes:
    key, value = encode_control_record(record)
    return kernels.encode_records(
        [Record(value, key)],
        base_offset=base_offset,
        leader_epoch=1,
        timestamp_ms=1_000,
        attributes=Attribute.CONTROL,
    )


@pytest.mark.parametrize("count", [1, 7, 8, 40])
def test_any_number_of_voters_is_read(count: int) -> None:
    voters = voter_set(VotersRecord(voters=[entry(node_id) for node_id in range(count, 0, -1)]))
    assert voters.ids == tuple(range(1, count + 1))


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_set_is_said(fault: str) -> None:
    with pytest.raises(WireError, match=FAULTS[fault][1]):
        voter_set(broken(fault))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_leaders_records_with_such_a_set_are_no_span(kernels: Kernels, fault: str) -> None:
    with pytest.raises(WireError, match=FAULTS[fault][1]):
        read_span(kernels, batch_with(kernels, broken(fault)), 0, epoch_min=0, epoch_max=5)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_with_such_a_set_is_damaged_and_the_words_say_where(kernels: Kernels, fault: str) -> None:
    rig = Rig(kernels)
    rig.append(1, b"before")
    rig.log.append_batch(
        batch_with(kernels, broken(fault), 1), base_offset=1, next_offset=2, epoch=1, timestamp_ms=1_000
    )
    rig.flush()
    with pytest.raises(CorruptionError, match=rf"offset 1\): .*{FAULTS[fault][1]}"):
        recovered(kernels, rig.reopen().log)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_checkpoint_with_such_a_set_is_damaged_and_the_words_say_where(kernels: Kernels, fault: str) -> None:
    rig = Rig(kernels)
    name = checkpoint_path(OffsetAndEpoch(10, 1))
    rig.disk.replace_file(name, batch_with(kernels, broken(fault)))
    with pytest.raises(CorruptionError, match=FAULTS[fault][1]) as caught:
        read_checkpoint(rig.disk, kernels, name)
    assert name in caught.value.path


def test_a_checkpoint_with_many_voters_has_its_header(kernels: Kernels) -> None:
    """The voters are in the header's batch, which is large then."""
    rig = Rig(kernels)
    voters = VoterSet(
        [
            Voter(ReplicaKey(each, Uuid(bytes(14) + each.to_bytes(2))), (Endpoint("C", "h" * 200, 1),))
            for each in range(500)
        ]
    )
    snapshot = OffsetAndEpoch(10, 1)
    name = checkpoint_path(snapshot)
    rig.disk.replace_file(name, checkpoint(kernels, snapshot, voters=voters))
    assert read_checkpoint(rig.disk, kernels, name).voters == voters
    file = rig.disk.open(name, "read")
    try:
        assert header_of(kernels, file).version == 0
    finally:
        file.close()
