"""Formatting a directory, and reading whose it is."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.errors import DirectoryError, UsageError, VoterCountError
from fastquorum.kernels import Kernels
from fastquorum.storage.format import FormatOptions, bootstrap_checkpoint, format_directory
from fastquorum.storage.identity import LogKind, format_voters, parse_voters, read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.checkpoint import CheckpointTimes, data_values, encode_checkpoint, read_checkpoint
from fastquorum.storage.log.mark import ANEW, LogPosition, Mark, encode_mark
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    DURABLE_MARK,
    EPOCH_CHECKPOINT,
    KAFKA_STATE,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    RETIRED_SUFFIX,
    ZERO_CHECKPOINT,
)
from fastquorum.storage.properties import format_properties, parse_properties
from fastquorum.storage.startup import check_state, first_voters
from fastquorum.types import Endpoint, ReplicaKey, Uuid, Voter, VoterSet
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record

from .fake_disk import Crashed, FakeDisk
from .logs import Rig

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka-4.3.0" / "cluster"
MARK = f"{LOG_DIRECTORY}/{DURABLE_MARK}"
EPOCHS = f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}"
CLUSTER = "usACA5tBSrKS64DhDt4jig"
OWN = Uuid.parse("vvU4x29PSmGr6cl_yWjBGQ")
STATIC = "1@127.0.0.1:19091,2@127.0.0.1:19092"
DYNAMIC = (
    "1@127.0.0.1:19091:vvU4x29PSmGr6cl_yWjBGQ,2@127.0.0.1:19092:MzGshnxlQ8CWUREFNVsnEw,"
    "3@127.0.0.1:19093:9vYZaEs_QvG4c-Lp2Qh1qA"
)


def options(text: str = STATIC, **changes: object) -> FormatOptions:
    base = FormatOptions(CLUSTER, 1, OWN, parse_voters(text))
    return base._replace(**changes)  # type: ignore[arg-type]


AT = Endpoint("CONTROLLER", "127.0.0.1", 19_099)


def with_voter(voter: Voter) -> FormatOptions:
    return options(voters=VoterSet([*parse_voters("1@127.0.0.1:19091"), voter]))


def golden_batches(kernels: Kernels, name: str) -> tuple[bytes, list[int]]:
    data = (GOLDEN / "c1" / name).read_bytes()
    return data, [info.base_timestamp_ms for info in kernels.batch_headers(data)]


def test_the_first_checkpoint_is_kafkas_byte_for_byte(kernels: Kernels) -> None:
    golden, times = golden_batches(kernels, ZERO_CHECKPOINT)
    disk = FakeDisk()
    disk.write_file("golden", golden)
    state = read_checkpoint(disk, kernels, "golden")
    assert state.kraft_version == 1
    assert state.voters is not None
    assert format_voters(state.voters).startswith("1@127.0.0.1:")
    ours = encode_checkpoint(
        kernels,
        CheckpointTimes(times[0], 0, times[1], state.last_contained_ms),
        kraft_version=1,
        voters=state.voters,
    )
    assert ours == golden


def test_the_bootstrap_checkpoint_is_kafkas_byte_for_byte(kernels: Kernels) -> None:
    golden, times = golden_batches(kernels, "bootstrap.checkpoint")
    wanted = options(log_kind=LogKind.METADATA, is_controller=True)
    assert bootstrap_checkpoint(kernels, CheckpointTimes(*times), wanted) == golden


def test_without_the_other_features_a_metadata_log_begins_with_its_version(kernels: Kernels) -> None:
    disk = FakeDisk()
    format_directory(disk, kernels, options(log_kind=LogKind.METADATA), now_ms=5)
    level = encode_metadata_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
    assert data_values(disk, kernels, BOOTSTRAP_CHECKPOINT) == (level,)


def test_a_static_quorum_has_no_first_checkpoint(kernels: Kernels) -> None:
    disk = FakeDisk()
    identity = format_directory(disk, kernels, options(), now_ms=5)
    assert read_identity(disk, cluster_id=CLUSTER, node_id=1) == identity
    assert (identity.kraft_version, identity.log_kind, identity.topic_name) == (0, LogKind.USER, "quorum")
    assert not disk.exists(ZERO_CHECKPOINT)
    assert first_voters(disk, kernels, identity) == (parse_voters(STATIC), 0)
    assert parse_properties(disk.read_file(META_PROPERTIES)) == {
        "version": "1",
        "cluster.id": CLUSTER,
        "node.id": "1",
        "directory.id": str(OWN),
    }
    golden = GOLDEN / "c1" / LOG_DIRECTORY / "partition.metadata"
    assert disk.read_file(f"{LOG_DIRECTORY}/partition.metadata") == golden.read_bytes()


def test_directory_ids_make_a_dynamic_quorum(kernels: Kernels) -> None:
    disk = FakeDisk()
    identity = format_directory(disk, kernels, options(DYNAMIC, log_kind=LogKind.METADATA), now_ms=5)
    assert identity.kraft_version == 1
    assert first_voters(disk, kernels, identity) == (parse_voters(DYNAMIC), 1)
    assert Rig(kernels, disk).log.end_offset == 0


def test_formatting_again_changes_nothing_if_it_is_the_same(kernels: Kernels) -> None:
    disk = FakeDisk()
    first = format_directory(disk, kernels, options(), now_ms=5)
    before = disk.contents()
    assert format_directory(disk, kernels, options(directory_id=Uuid(b"x" * 16)), now_ms=6) == first
    assert disk.contents() == before


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cluster_id": "other"}, "cluster id"),
        ({"node_id": 2}, "node id"),
        ({"log_kind": LogKind.METADATA}, "log kind"),
        ({"topic_name": "another"}, "topic name"),
        ({"voters": parse_voters("1@elsewhere:1")}, "voters"),
    ],
)
def test_formatting_again_as_something_else_is_refused(
    kernels: Kernels, changes: dict[str, object], field: str
) -> None:
    disk = FakeDisk()
    format_directory(disk, kernels, options(), now_ms=5)
    before = disk.contents()
    with pytest.raises(DirectoryError, match=field):
        format_directory(disk, kernels, options(**changes), now_ms=5)
    assert disk.contents() == before


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (options("1@a:1:vvU4x29PSmGr6cl_yWjBGQ,2@b:2"), r"voters \[2\] have no directory id"),
        (options("2@b:2"), "not among the voters"),
        (options(cluster_id=""), "cluster id is empty"),
        (options("1@a:1:MzGshnxlQ8CWUREFNVsnEw"), "directory's is to be"),
        (options(topic_name="__cluster_metadata"), "name of metadata logs"),
        (options(topic_name="../up"), "not a topic name"),
        (options(directory_id=Uuid()), "all zeros"),
        (options(node_id=-1), "node id"),
        (options(node_id=2**31), "node id"),
        (with_voter(Voter(ReplicaKey(-1), (AT,))), "voter -1 has a negative id"),
        (with_voter(Voter(ReplicaKey(2**31), (AT,))), "voter 2147483648 has an id above 2147483647"),
        (with_voter(Voter(ReplicaKey(2), ())), "voter 2 has no endpoint"),
        (with_voter(Voter(ReplicaKey(2), (AT._replace(port=0),))), "voter 2 has an endpoint without"),
        (with_voter(Voter(ReplicaKey(2), (AT._replace(port=65_536),))), "voter 2 has an endpoint without"),
        (with_voter(Voter(ReplicaKey(2), (AT,), 1, 0)), "voter 2 supports kraft.version 1 to 0"),
    ],
)
def test_contradictions_are_named_and_nothing_is_written(kernels: Kernels, wrong: FormatOptions, text: str) -> None:
    disk = FakeDisk()
    with pytest.raises(UsageError, match=text):
        format_directory(disk, kernels, wrong, now_ms=5)
    assert not disk.entries


def test_no_quorum_of_none_or_of_eight(kernels: Kernels) -> None:
    for count in (0, 8):
        voters = VoterSet(list(parse_voters(",".join(f"{number}@h:1" for number in range(count)))))
        with pytest.raises(VoterCountError):
            format_directory(FakeDisk(), kernels, options(voters=voters), now_ms=5)


def test_a_crash_at_any_point_of_formatting_can_be_formatted_over(kernels: Kernels) -> None:
    wanted = options(DYNAMIC)
    for crash_at in range(1, 60):
        disk = FakeDisk()
        disk.crash_at = crash_at
        try:
            format_directory(disk, kernels, wanted, now_ms=5)
        except Crashed:
            again = disk.copy()
            format_directory(again, kernels, wanted, now_ms=6)
            assert read_identity(again).kraft_version == 1
            assert Rig(kernels, again).log.end_offset == 0
        else:
            return
    pytest.fail("formatting never ended")


def test_a_foreign_directory_is_refused_and_both_sides_are_named(kernels: Kernels) -> None:
    disk = FakeDisk()
    with pytest.raises(DirectoryError, match="not formatted"):
        read_identity(disk)
    format_directory(disk, kernels, options(), now_ms=5)
    with pytest.raises(DirectoryError, match=f"cluster {CLUSTER}, not to cluster other"):
        read_identity(disk, cluster_id="other")
    with pytest.raises(DirectoryError, match="node 1, not to node 7"):
        read_identity(disk, node_id=7)


def test_a_newer_format_is_refused(kernels: Kernels) -> None:
    disk = FakeDisk()
    format_directory(disk, kernels, options(), now_ms=5)
    newer = disk.read_file(OWN_PROPERTIES).replace(b"format.version=1", b"format.version=2")
    disk.write_file(OWN_PROPERTIES, newer)
    with pytest.raises(DirectoryError, match="format version 2"):
        read_identity(disk)


def test_a_log_without_meta_properties_is_not_written_over(kernels: Kernels) -> None:
    disk = FakeDisk()
    format_directory(disk, kernels, options(), now_ms=5)
    rig = Rig(kernels, disk)
    rig.append(1, b"a")
    rig.log.close()
    disk.remove(META_PROPERTIES)
    with pytest.raises(DirectoryError, match=r"no meta\.properties"):
        format_directory(disk, kernels, options(), now_ms=5)


TRACES: dict[str, Callable[[FakeDisk, Kernels], None]] = {
    "durable-mark": lambda disk, kernels: disk.write_file(MARK, encode_mark(kernels, Mark(LogPosition(5, 0, 90), 0))),
    "a mark that begins later": lambda disk, kernels: disk.write_file(
        MARK, encode_mark(kernels, Mark(LogPosition(0, 0, ANEW), 0))
    ),
    "an empty mark": lambda disk, _: disk.write_file(MARK, b""),
    "leader-epoch-checkpoint": lambda disk, _: disk.write_file(EPOCHS, b"0\n1\n1 0\n"),
    "empty epochs": lambda disk, _: disk.write_file(EPOCHS, b""),
    "a snapshot": lambda disk, _: disk.write_file(f"{LOG_DIRECTORY}/{0:019d}7-{0:09d}2.checkpoint", b""),
    "an index": lambda disk, _: disk.write_file(f"{LOG_DIRECTORY}/{0:020d}.index", b""),
    "a later segment": lambda disk, _: disk.write_file(f"{LOG_DIRECTORY}/{0:019d}7.log", b""),
    "a vote that was handed over": lambda disk, _: disk.write_file(QUORUM_STATE + RETIRED_SUFFIX, b""),
    "kafka's that was": lambda disk, _: disk.write_file(KAFKA_STATE + RETIRED_SUFFIX, b""),
}


@pytest.mark.parametrize("trace", TRACES)
def test_what_records_or_votes_leave_without_meta_properties_is_not_written_over(kernels: Kernels, trace: str) -> None:
    disk = FakeDisk()
    format_directory(disk, kernels, options(), now_ms=5)
    disk.remove(META_PROPERTIES)
    TRACES[trace](disk, kernels)
    before = disk.contents()
    with pytest.raises(DirectoryError, match=r"it holds .*, but no meta\.properties; put that file back from a copy"):
        format_directory(disk, kernels, options(), now_ms=6)
    assert disk.contents() == before


def bootstrap_of(kernels: Kernels, feature: str) -> bytes:
    value = encode_metadata_record(FeatureLevelRecord(name=feature, feature_level=1), 0)
    return encode_checkpoint(kernels, CheckpointTimes.at(1), values=[value])


@pytest.mark.parametrize("feature", ["kraft.version", ""])
def test_a_bootstrap_checkpoint_of_somebody_else_is_not_written_over(kernels: Kernels, feature: str) -> None:
    disk = FakeDisk()
    wanted = options(log_kind=LogKind.METADATA, is_controller=True)
    disk.write_file(BOOTSTRAP_CHECKPOINT, bootstrap_of(kernels, feature)[: 200 if feature else 90])
    disk.make_directory(LOG_DIRECTORY)
    before = disk.contents()
    with pytest.raises(DirectoryError, match=r"bootstrap\.checkpoint that `fastquorum format` has not made"):
        format_directory(disk, kernels, wanted, now_ms=6)
    assert disk.contents() == before


def test_an_interrupted_format_is_taken_up_by_one_that_asks_for_something_else(kernels: Kernels) -> None:
    for first in (options(log_kind=LogKind.METADATA, is_controller=True), options(DYNAMIC), options()):
        for second in (options(log_kind=LogKind.METADATA), options(DYNAMIC, log_kind=LogKind.METADATA), options()):
            disk = FakeDisk()
            format_directory(disk, kernels, first, now_ms=5)
            disk.remove(META_PROPERTIES)
            assert format_directory(disk, kernels, second, now_ms=6) == read_identity(disk)


@pytest.mark.parametrize("node_id", ["-1", "2147483648", "one"])
def test_a_node_id_that_is_none_is_refused(kernels: Kernels, node_id: str) -> None:
    disk = FakeDisk()
    format_directory(disk, kernels, options(), now_ms=5)
    meta = {**parse_properties(disk.read_file(META_PROPERTIES)), "node.id": node_id}
    disk.write_file(META_PROPERTIES, format_properties(meta, comment=""))
    with pytest.raises(DirectoryError, match="properties cannot be used"):
        read_identity(disk)


def test_a_lost_quorum_state_is_refused_with_advice() -> None:
    with pytest.raises(DirectoryError, match="restore the file"):
        check_state(None, end_offset=5, last_epoch=2, path="n1")


def test_kafkas_directories_are_read_as_they_are(kernels: Kernels, tmp_path: Path) -> None:
    copy = shutil.copytree(GOLDEN / "c1", tmp_path / "c1")
    disk = RealDisk.open_directory(str(copy), kernels)
    identity = read_identity(disk, cluster_id=CLUSTER, node_id=1)
    assert (identity.log_kind, identity.kraft_version, identity.format_version) == (LogKind.METADATA, 1, 0)
    assert identity.directory_id == OWN
    voters, kraft_version = first_voters(disk, kernels, identity)
    assert (voters.ids, kraft_version) == ((1, 2, 3), 1)


@pytest.mark.parametrize(
    "values",
    [
        {"a": "b"},
        {"a key": " lead", "colon:": "c=d", "uni": "grün 𝄞", "tab\t": "line\nbreak", "back\\": "#!\\"},
        {"empty": ""},
    ],
)
def test_properties_round_trip(values: dict[str, str]) -> None:
    assert parse_properties(format_properties(values, comment="x")) == values


def test_properties_as_java_reads_them() -> None:
    text = b"! comment\n#c\n a = 1\nb:2\nc 3\n  d=\\\n   continued\ne\\u0041=x\r\nempty\n"
    assert parse_properties(text) == {"a": "1", "b": "2", "c": "3", "d": "continued", "eA": "x", "empty": ""}


@pytest.mark.parametrize(
    "text", ["1", "1@", "1@h", "x@h:1", "1@h:0", "1@h:70000", "1@:1", "1@h:1:short", "1@h:1,1@h:2", "2147483648@h:1"]
)
def test_bad_voters_are_named(text: str) -> None:
    with pytest.raises(ValueError):
        parse_voters(text)


def test_an_ipv6_voter_stands_in_brackets() -> None:
    voters = parse_voters("1@[::1]:9:vvU4x29PSmGr6cl_yWjBGQ")
    assert voters[0].endpoints[0].host == "::1"
    assert parse_voters(format_voters(voters)) == voters
