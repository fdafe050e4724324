"""At kraft.version 1 voters are known by directory ids: a directory that has another one than the voters' record has of
its node is an observer's, whatever its node's id is."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastquorum.cli.main import main
from fastquorum.kernels import load
from fastquorum.raft.messages import voters_record
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.storage.log.checkpoint import CheckpointTimes, encode_checkpoint
from fastquorum.storage.log.mark import LogPosition, Mark, encode_mark
from fastquorum.storage.names import DURABLE_MARK, LOG_DIRECTORY, META_PROPERTIES, checkpoint_name, segment_name
from fastquorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, Uuid, Voter, VoterSet
from fastquorum.wire.records.control_values import KRaftVersionRecord
from tests.spark.tables.directories import batch, control
from tests.wire.golden import CLUSTER

KERNELS = load("native")
IDS = {node_id: Uuid(bytes([node_id]) * 16) for node_id in (1, 2, 3)}
NEW_ID = Uuid(b"n" * 16)
VOTERS = VoterSet([Voter(ReplicaKey(each, IDS[each]), (Endpoint("CONTROLLER", f"h{each}", 9093),)) for each in IDS])
LOG = (control(0, KRaftVersionRecord(kraft_version=1), voters_record(VOTERS)), batch(2, 4), batch(6, 4), batch(10, 5))
END = 15
KAFKAS_END = OffsetAndEpoch(3836, 3)
KAFKAS_LAST_BATCH_AT = 240226
"""Where it begins in the one segment of each of Kafka's directories."""
FOREIGN = f"it was formatted under another directory id ({NEW_ID}) than the voters' record has of node 3 ({IDS[3]})"


def formatted(path: Path, node_id: int, *batches: bytes, third: Uuid = IDS[3]) -> Path:
    """A directory as `format` makes it, whose log is these batches. `third`: the directory id of node 3 that the line
    says."""
    ids = {**IDS, 3: third}
    voters = ",".join(f"{each}@h{each}:9093:{ids[each]}" for each in ids)
    words = ["format", "--data", str(path), "--node-id", str(node_id), "--voters", voters]
    assert main([*words, "--cluster-id", "usACA5tBSrKS64DhDt4jig"]) == 0
    (path / LOG_DIRECTORY / segment_name(0)).write_bytes(b"".join(batches))
    return path


def know_committed(path: Path, batches: Sequence[bytes], end: int) -> None:
    """Its durable mark says that all of its log is committed."""
    position = LogPosition(end, 0, sum(map(len, batches)))
    (path / LOG_DIRECTORY / DURABLE_MARK).write_bytes(encode_mark(KERNELS, Mark(position, 0, 0, end)))


@pytest.fixture
def two_of_four_lack_records(tmp_path: Path) -> Path:
    """Make three voters: one has all that was committed, and so has a new directory of node 3, beside its former
    one."""
    know_committed(formatted(tmp_path / "n1", 1, *LOG), LOG, END)
    formatted(tmp_path / "n2", 2, *LOG[:-1])
    formatted(tmp_path / "n3", 3, *LOG[:-1])
    formatted(tmp_path / "n3-anew", 3, *LOG, third=NEW_ID)
    return tmp_path


def replicas_of(path: Path) -> dict[str, tuple[str, bool, str | None]]:
    """Verdict, whether it is a voter's, and why it has no vote, by name."""
    rows = LocalEngine(1).audit_replicas(str(path)).to_pylist()
    return {Path(row["directory"]).name: (row["verdict"], row["is_voter"], row["no_vote"]) for row in rows}


def test_a_directory_under_another_id_makes_no_majority(two_of_four_lack_records: Path) -> None:
    assert replicas_of(two_of_four_lack_records) == {
        "n1": ("same", True, None),
        "n2": ("lacks committed records", True, None),
        "n3": ("lacks committed records", True, None),
        "n3-anew": ("same", False, FOREIGN),
    }


def test_the_audit_of_replicas_fails_and_names_the_directory_without_a_vote(
    two_of_four_lack_records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["audit", "replicas", str(two_of_four_lack_records)]) == 1
    output = capsys.readouterr().out
    assert f"note: {two_of_four_lack_records}/n3-anew has no vote: {FOREIGN}\n" in output
    assert "which has one vote" not in output


def test_the_audit_of_invariants_says_that_no_majority_has_it(
    two_of_four_lack_records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = two_of_four_lack_records / "audit.json"
    assert main(["audit", "invariants", str(two_of_four_lack_records), "--out", str(out)]) == 1
    report = json.loads(out.read_text())
    (lost,) = [each for each in report["violations"] if each["kind"] == "not-on-majority"]
    assert lost["node_ids"] == [2, 3]
    (note,) = [each for each in report["notes"] if each["kind"] == "no-vote"]
    assert note["says"] == f"{two_of_four_lack_records}/n3-anew has no vote: {FOREIGN}"
    assert not [each for each in report["notes"] if each["kind"] == "copies"]


def test_it_alone_is_no_reason_to_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for node_id in (1, 2):
        know_committed(formatted(tmp_path / f"n{node_id}", node_id, *LOG), LOG, END)
    formatted(tmp_path / "n3", 3, *LOG[:2], third=NEW_ID)
    assert replicas_of(tmp_path)["n3"] == ("behind", False, FOREIGN)
    assert main(["audit", "replicas", str(tmp_path)]) == 0
    assert f"n3 has no vote: {FOREIGN}" in capsys.readouterr().out
    assert main(["audit", "invariants", str(tmp_path)]) == 0


def test_a_copy_that_has_the_voters_id_has_its_vote(two_of_four_lack_records: Path) -> None:
    shutil.rmtree(two_of_four_lack_records / "n3-anew")
    formatted(two_of_four_lack_records / "n3-copy", 3, *LOG)
    assert {name: row[0] for name, row in replicas_of(two_of_four_lack_records).items()} == {
        "n1": "same",
        "n2": "behind",
        "n3": "behind",
        "n3-copy": "same",
    }


def test_a_directory_of_kafkas_under_another_id_makes_no_majority(tmp_path: Path) -> None:
    for each in ("c1", "c2", "c3"):
        shutil.copytree(CLUSTER / each, tmp_path / each)
    anew = shutil.copytree(tmp_path / "c3", tmp_path / "c3-anew") / META_PROPERTIES
    lines = anew.read_text().splitlines()
    lines = [f"directory.id={NEW_ID}" if each.startswith("directory.id=") else each for each in lines]
    anew.write_text("\n".join(lines) + "\n")
    for each in ("c2", "c3"):
        os.truncate(tmp_path / each / LOG_DIRECTORY / segment_name(0), KAFKAS_LAST_BATCH_AT)
    snapshot = encode_checkpoint(KERNELS, CheckpointTimes(1, 1, 1, last_contained_ms=1), epoch=KAFKAS_END.epoch)
    (tmp_path / "c1" / LOG_DIRECTORY / checkpoint_name(KAFKAS_END)).write_bytes(snapshot)
    found = replicas_of(tmp_path)
    assert {name: row[0] for name, row in found.items()} == {
        "c1": "same",
        "c2": "lacks committed records",
        "c3": "lacks committed records",
        "c3-anew": "same",
    }
    assert found["c3-anew"][2] is not None
