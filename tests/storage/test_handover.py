"""Votes change hands between our nodes and Kafka's: written there, synced, and only then taken away here."""

import json
import shutil
from pathlib import Path

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, DirectoryError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.node.records.control_batches import encode_batch
from fastquorum.raft.election import ElectionState
from fastquorum.raft.messages import kraft_version_record, voters_record
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import LogKind, parse_voters, read_identity
from fastquorum.storage.io.directory import DataDirectory
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.handover import hand_to_kafka, take_from_kafka
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.kafka_state import decode_kafka_state, encode_kafka_state
from fastquorum.storage.names import DURABLE_MARK, KAFKA_STATE, LOG_DIRECTORY, QUORUM_STATE, RETIRED_SUFFIX
from fastquorum.types import ReplicaKey, Uuid, VoterSet
from tests.privileges import fill, mounted

from .fake_disk import FakeFlusher

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka-4.3.0" / "cluster"
OWN, OTHER = Uuid(b"o" * 16), Uuid(b"p" * 16)
STATE = ElectionState(7, -1, ReplicaKey(2, OTHER))


def formatted(
    root: Path,
    kernels: Kernels,
    kind: LogKind = LogKind.METADATA,
    state: ElectionState = STATE,
    voters: str = f"1@h:1:{OWN},2@h:2:{OTHER}",
) -> Path:
    """A directory of ours that has voted; its log is empty."""
    disk = RealDisk.open_directory(str(root), kernels, create=True)
    identity = format_directory(disk, kernels, FormatOptions("c", 1, OWN, parse_voters(voters), kind), now_ms=1)
    store = LmdbStateStore(disk.root, identity.owner, kernels)
    store.save(state)
    store.close()
    return root


def ours(root: Path, kernels: Kernels) -> ElectionState | None:
    disk = RealDisk.open_directory(str(root), kernels)
    store = LmdbStateStore(disk.root, read_identity(disk).owner, kernels)
    try:
        return store.load()
    finally:
        store.close()


def kafkas(root: Path) -> ElectionState:
    return decode_kafka_state((root / KAFKA_STATE).read_bytes(), "")


def opens(root: Path, kernels: Kernels) -> None:
    DataDirectory.open(str(root), kernels, QuorumConfig(), FakeFlusher()).close()


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["c1", "c2", "c3"])
def test_kafkas_own_files_are_read_and_written_byte_for_byte(name: str) -> None:
    data = (GOLDEN / name / KAFKA_STATE).read_bytes()
    state = decode_kafka_state(data, "")
    assert encode_kafka_state(state, kraft_version=1, voters=VoterSet()) == data


def test_static_voters_have_no_directory_ids() -> None:
    text = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    state = decode_kafka_state(text, "")
    assert state == ElectionState(1, 1, None)
    assert encode_kafka_state(state, kraft_version=0, voters=parse_voters("1@h:1")) == text


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"data_version":9,"leaderEpoch":1,"leaderId":1,"votedId":1}'])
def test_what_is_no_quorum_state_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptionError):
        decode_kafka_state(data, "somewhere")


# --- changing hands ---------------------------------------------------------------------------------------------------


def test_there_and_back_the_vote_is_the_same(tmp_path: Path, kernels: Kernels) -> None:
    root = formatted(tmp_path, kernels)
    assert hand_to_kafka(str(root), kernels) == STATE
    assert kafkas(root) == STATE
    assert not (root / QUORUM_STATE).exists()
    assert not (root / LOG_DIRECTORY / DURABLE_MARK).exists()
    with pytest.raises(DirectoryError, match="Kafka keeps this replica's votes"):
        opens(root, kernels)
    assert take_from_kafka(str(root), kernels) == STATE
    assert not (root / KAFKA_STATE).exists()
    assert ours(root, kernels) == STATE
    opens(root, kernels)


def test_what_kafka_decided_meanwhile_comes_back(tmp_path: Path, kernels: Kernels) -> None:
    root = formatted(tmp_path, kernels)
    hand_to_kafka(str(root), kernels)
    later = ElectionState(9, 2, None)
    (root / KAFKA_STATE).write_bytes(encode_kafka_state(later, kraft_version=1, voters=VoterSet()))
    assert take_from_kafka(str(root), kernels) == later
    assert ours(root, kernels) == later


@pytest.mark.parametrize("is_mark_gone", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_an_interrupted_handover_is_refused_to_both_and_ends_when_done_again(
    tmp_path: Path, kernels: Kernels, back: bool, is_mark_gone: bool
) -> None:
    root = formatted(tmp_path, kernels)
    (root / KAFKA_STATE).write_bytes(encode_kafka_state(STATE, kraft_version=1, voters=VoterSet()))
    if is_mark_gone:
        (root / LOG_DIRECTORY / DURABLE_MARK).unlink()
    with pytest.raises(DirectoryError, match="a handover was interrupted"):
        opens(root, kernels)
    assert (take_from_kafka if back else hand_to_kafka)(str(root), kernels) == STATE
    assert (root / KAFKA_STATE).exists() is not back
    assert (root / QUORUM_STATE).exists() is back
    if back:
        opens(root, kernels)


def test_voters_that_were_static_have_directory_ids_in_kafkas_file_once_the_log_gives_them(
    tmp_path: Path, kernels: Kernels
) -> None:
    root = formatted(tmp_path, kernels, voters="1@h:1,2@h:2")
    mark = root / LOG_DIRECTORY / DURABLE_MARK
    marked = mark.read_bytes()
    hand_to_kafka(str(root), kernels)
    assert kafkas(root) == STATE._replace(voted_key=ReplicaKey(2)), "as Kafka itself has it at kraft.version 0"
    mark.write_bytes(marked)
    (root / KAFKA_STATE).unlink()
    (root / (QUORUM_STATE + RETIRED_SUFFIX)).rename(root / QUORUM_STATE)
    directory = DataDirectory.open(str(root), kernels, QuorumConfig(), FakeFlusher())
    records = [kraft_version_record(1), voters_record(parse_voters(f"1@h:1:{OWN},2@h:2:{OTHER}"))]
    batch = encode_batch(kernels, records, 0, STATE.epoch, 1)
    directory.log.append_batch(batch, base_offset=0, next_offset=2, epoch=STATE.epoch, timestamp_ms=1)
    directory.close()
    hand_to_kafka(str(root), kernels)
    assert kafkas(root) == STATE
    assert json.loads((root / KAFKA_STATE).read_text())["data_version"] == 1


@pytest.mark.parametrize("back", [False, True])
def test_two_that_contradict_each_other_are_refused(tmp_path: Path, kernels: Kernels, back: bool) -> None:
    root = formatted(tmp_path, kernels)
    other = ElectionState(8, -1, ReplicaKey(1, OWN))
    (root / KAFKA_STATE).write_bytes(encode_kafka_state(other, kraft_version=1, voters=VoterSet()))
    with pytest.raises(DirectoryError, match="may have voted twice"):
        (take_from_kafka if back else hand_to_kafka)(str(root), kernels)
    assert (kafkas(root), ours(root, kernels)) == (other, STATE)


def test_a_user_log_stays_ours(tmp_path: Path, kernels: Kernels) -> None:
    root = formatted(tmp_path, kernels, LogKind.USER)
    with pytest.raises(UsageError, match="user log"):
        hand_to_kafka(str(root), kernels)
    opens(root, kernels)


def test_what_is_not_there_to_hand_over(tmp_path: Path, kernels: Kernels) -> None:
    root = formatted(tmp_path, kernels)
    with pytest.raises(DirectoryError, match="fastquorum's already"):
        take_from_kafka(str(root), kernels)
    hand_to_kafka(str(root), kernels)
    with pytest.raises(DirectoryError, match="Kafka's already"):
        hand_to_kafka(str(root), kernels)
    (root / KAFKA_STATE).unlink()
    with pytest.raises(DirectoryError, match=r"no quorum-state of Kafka's"):
        take_from_kafka(str(root), kernels)


@pytest.mark.parametrize("is_to_kafka", [True, False])
def test_without_room_a_handover_says_so_and_is_done_again(tmp_path: Path, kernels: Kernels, is_to_kafka: bool) -> None:
    with mounted(tmp_path / "disk", "tmpfs", "size=2m") as place:
        root = formatted(place, kernels)
        opens(root, kernels)
        if not is_to_kafka:
            hand_to_kafka(str(root), kernels)
        change, back = (hand_to_kafka, take_from_kafka) if is_to_kafka else (take_from_kafka, hand_to_kafka)
        filling = fill(place)
        with pytest.raises(DirectoryError, match="No space left on device; make room on its file system, and do it"):
            change(str(root), kernels)
        filling.unlink()
        state = change(str(root), kernels)
        assert back(str(root), kernels) == state


def test_a_directory_in_use_is_left_alone(tmp_path: Path, kernels: Kernels) -> None:
    root = formatted(tmp_path, kernels)
    with DataDirectory.open(str(root), kernels, QuorumConfig(), FakeFlusher()), pytest.raises(DirectoryError):
        hand_to_kafka(str(root), kernels)
    assert not (root / KAFKA_STATE).exists()


def test_kafkas_own_directory_is_taken_over(tmp_path: Path, kernels: Kernels) -> None:
    root = tmp_path / "c1"
    shutil.copytree(GOLDEN / "c1", root)
    found = json.loads((root / KAFKA_STATE).read_text())
    state = take_from_kafka(str(root), kernels)
    assert (state.epoch, state.leader_id) == (found["leaderEpoch"], found["leaderId"])
    opens(root, kernels)
