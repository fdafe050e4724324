"""A directory of ours without `fastquorum.properties`: nothing else says who votes, and what kind of log it is."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.config import QuorumConfig
from fastquorum.errors import DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import KEY_COUNT, Identity, LogKind, meta_by_kafka, parse_voters, read_identity
from fastquorum.storage.io.directory import DataDirectory
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.handover import hand_to_kafka, take_from_kafka
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    DURABLE_MARK,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    RETIRED_SUFFIX,
    segment_name,
)
from fastquorum.types import Uuid
from tests.api.nodes import QUICK, WAIT_S
from tests.process.command import picture

from .fake_disk import FakeFlusher

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka-4.3.0" / "cluster"
STATIC = "1@127.0.0.1:19091,2@127.0.0.1:19092"
DYNAMIC = f"1@127.0.0.1:19091:{Uuid(b'o' * 16)},2@127.0.0.1:19092:{Uuid(b'p' * 16)}"

LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "blanked": lambda path: path.write_bytes(b" \n" * 20),
    "without its values": lambda path: path.write_bytes(path.read_bytes().split(b"\n", 1)[0] + b"\n"),
}
MARK = f"{LOG_DIRECTORY}/{DURABLE_MARK}"
LEFT: dict[str, tuple[str, ...]] = {
    "mark and state": (),
    "the mark": (QUORUM_STATE,),
    "the state": (MARK,),
    "what a format alone makes": (QUORUM_STATE, MARK),
    "an empty log": (QUORUM_STATE, MARK, BOOTSTRAP_CHECKPOINT),
    "no segment": (QUORUM_STATE, MARK, BOOTSTRAP_CHECKPOINT, f"{LOG_DIRECTORY}/{segment_name(0)}"),
}


def formatted(
    root: Path, kernels: Kernels, node_id: int = 1, voters: str = STATIC, kind: str = "user", cluster: str = "c"
) -> Identity:
    disk = RealDisk.open_directory(str(root), kernels, create=True)
    own = parse_voters(voters).get(node_id)
    assert own is not None
    given = own.key.directory_id if any(own.key.directory_id) else Uuid(bytes([node_id]) * 16)
    options = FormatOptions(cluster, node_id, given, parse_voters(voters), LogKind(kind))
    return format_directory(disk, kernels, options, now_ms=1)


def opened(root: Path, kernels: Kernels) -> Identity:
    """Open the directory like a node, which makes what a first start makes."""
    directory = DataDirectory.open(str(root), kernels, QuorumConfig(), FakeFlusher())
    directory.close()
    return directory.identity


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("voters", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("kind", ["user", "metadata"])
def test_it_is_not_opened_as_something_else(
    tmp_path: Path, kernels: Kernels, loss: str, left: str, voters: str, kind: str
) -> None:
    root = tmp_path / "n1"
    formatted(root, kernels, voters=voters, kind=kind)
    opened(root, kernels)
    LOSSES[loss](root / OWN_PROPERTIES)
    for name in LEFT[left]:
        (root / name).unlink()
    before = picture(root)
    with pytest.raises(DirectoryError, match=OWN_PROPERTIES) as refused:
        opened(root, kernels)
    assert refused.value.path == str(root)
    assert "put it back from a copy" in refused.value.hint
    assert picture(root) == before


@pytest.mark.parametrize("loss", LOSSES)
def test_nobody_formats_verifies_or_hands_over_what_has_lost_it(tmp_path: Path, kernels: Kernels, loss: str) -> None:
    root = tmp_path / "n1"
    formatted(root, kernels, kind="metadata")
    opened(root, kernels)
    LOSSES[loss](root / OWN_PROPERTIES)
    before = picture(root)
    for act in (
        lambda: formatted(root, kernels, kind="metadata"),
        lambda: hand_to_kafka(str(root), kernels),
        lambda: take_from_kafka(str(root), kernels),
        lambda: sync.open(root, **QUICK),
    ):
        with pytest.raises(DirectoryError, match=OWN_PROPERTIES):
            act()
    (finding,) = fq.log.open(str(root)).verify().findings
    assert OWN_PROPERTIES in finding.text
    assert finding.path == str(root)
    assert picture(root) == before


def test_nor_is_it_opened_by_us_when_it_comes_back_from_kafka(tmp_path: Path, kernels: Kernels) -> None:
    root = tmp_path / "n1"
    formatted(root, kernels, kind="metadata", voters=DYNAMIC)
    opened(root, kernels)
    hand_to_kafka(str(root), kernels)
    assert (root / (QUORUM_STATE + RETIRED_SUFFIX)).exists()
    (root / OWN_PROPERTIES).unlink()
    with pytest.raises(DirectoryError, match=OWN_PROPERTIES):
        take_from_kafka(str(root), kernels)


@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize("voters", [STATIC, DYNAMIC])
def test_a_file_that_was_cut_short_is_not_taken_for_a_whole_one(
    tmp_path: Path, kernels: Kernels, voters: str, is_older: bool
) -> None:
    """Half a list of voters is a list of voters: a voter of two would be a quorum of one."""
    formatted(tmp_path, kernels, voters=voters)
    path = tmp_path / OWN_PROPERTIES
    whole = path.read_bytes()
    if is_older:  # which had no count
        whole = b"".join(line for line in whole.splitlines(keepends=True) if not line.startswith(KEY_COUNT.encode()))
        path.write_bytes(whole)
        assert read_identity(RealDisk.open_directory(str(tmp_path), kernels)).voters == parse_voters(voters)
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        if is_older and whole[:end].endswith(b"\n") and b"\nvoters=" in whole[:end]:
            continue  # as the oldest version wrote it
        with pytest.raises(DirectoryError, match=OWN_PROPERTIES):
            read_identity(RealDisk.open_directory(str(tmp_path), kernels))


@pytest.mark.parametrize("voters", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_another_voters_file_does_in_its_place(tmp_path: Path, kernels: Kernels, voters: str) -> None:
    """The refusal says so; and so does the file of an empty directory which is formatted with the same line for the
    same cluster."""
    first, second, anew = tmp_path / "n1", tmp_path / "n2", tmp_path / "anew"
    identity = formatted(first, kernels, voters=voters)
    opened(first, kernels)
    formatted(second, kernels, 2, voters)
    formatted(anew, kernels, voters=voters)
    for other in (second, anew):
        (first / OWN_PROPERTIES).unlink()
        shutil.copy(other / OWN_PROPERTIES, first)
        assert opened(first, kernels) == identity


@pytest.mark.parametrize("taken", [OWN_PROPERTIES, META_PROPERTIES])
@pytest.mark.parametrize("others", [STATIC, "1@127.0.0.1:19091"], ids=["as many voters", "a quorum of one"])
def test_that_of_another_cluster_does_not(tmp_path: Path, kernels: Kernels, taken: str, others: str) -> None:
    """Mixed up, it would say that this voter is the only one, or that its log is of another kind."""
    root, other = tmp_path / "n1", tmp_path / "other"
    formatted(root, kernels, kind="metadata")
    opened(root, kernels)
    formatted(other, kernels, voters=others, cluster="d")
    shutil.copy(other / taken, root)
    before = picture(root)
    for act in (
        lambda: opened(root, kernels),
        lambda: formatted(root, kernels, kind="metadata"),
        lambda: hand_to_kafka(str(root), kernels),
        lambda: take_from_kafka(str(root), kernels),
        lambda: sync.open(root, **QUICK),
    ):
        with pytest.raises(DirectoryError, match=f"{OWN_PROPERTIES} is of cluster ., {META_PROPERTIES} of") as refused:
            act()
        assert "put back the one that belongs to this log" in refused.value.hint
    (finding,) = fq.log.open(str(root)).verify().findings
    assert f"{OWN_PROPERTIES} is of cluster" in finding.text
    assert picture(root) == before


def test_one_of_an_older_version_names_no_cluster_and_is_taken(tmp_path: Path, kernels: Kernels) -> None:
    identity = formatted(tmp_path, kernels)
    path = tmp_path / OWN_PROPERTIES
    lines = path.read_bytes().splitlines(keepends=True)
    assert b"cluster.id=c\n" in lines
    older = [line for line in lines if not line.startswith(b"cluster.id=")]
    path.write_bytes(b"".join(older).replace(b"key.count=9", b"key.count=8"))
    assert opened(tmp_path, kernels) == identity


def test_a_user_log_opens_again_with_its_records_when_it_is_back(tmp_path: Path) -> None:
    data = tmp_path / "n1"
    with sync.open(data, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        offset = quorum.append(b"kept")
    properties = data / OWN_PROPERTIES
    whole = properties.read_bytes()
    properties.unlink()
    with pytest.raises(DirectoryError, match=f"{OWN_PROPERTIES} is missing"):
        sync.open(data, **QUICK)
    properties.write_bytes(whole)
    with sync.open(data, **QUICK) as quorum:
        quorum.wait_ready(WAIT_S)
        items = quorum.committed(offset, follow=False)
        assert [record.value for item in items for record in item.records] == [b"kept"]


def test_a_directory_that_kafka_formatted_never_had_it(tmp_path: Path, kernels: Kernels) -> None:
    """Nor does it when our node has run on it, and left its own files there."""
    for name in ("as formatted", "after a handover"):
        root = Path(shutil.copytree(GOLDEN / "c1", tmp_path / name))
        if name == "as formatted":
            for path in (root / LOG_DIRECTORY).iterdir():
                if path.name != "00000000000000000000-0000000000.checkpoint":
                    path.unlink()
        else:
            take_from_kafka(str(root), kernels)
        for _ in range(3):
            identity = opened(root, kernels)
            assert (identity.format_version, identity.log_kind) == (0, LogKind.METADATA)
            assert (root / QUORUM_STATE).exists()
            assert (root / LOG_DIRECTORY / DURABLE_MARK).exists()


def test_one_of_kafkas_whose_meta_properties_a_template_wrote_is_told_the_way_back(
    tmp_path: Path, kernels: Kernels
) -> None:
    root = Path(shutil.copytree(GOLDEN / "c1", tmp_path / "c1"))
    take_from_kafka(str(root), kernels)
    meta = root / META_PROPERTIES
    kafkas = meta.read_bytes()
    meta.write_bytes(b"".join(line for line in kafkas.splitlines(keepends=True) if not line.startswith(b"#")))
    with pytest.raises(DirectoryError, match=f"{OWN_PROPERTIES} is missing") as refused:
        opened(root, kernels)
    assert "put back the meta.properties that it wrote, which begins with a '#' line" in refused.value.hint
    meta.write_bytes(kafkas)
    assert opened(root, kernels).format_version == 0


def test_kafkas_meta_properties_are_known_by_their_first_line(tmp_path: Path, kernels: Kernels) -> None:
    """Java's `Properties.store` begins with a comment, whatever it is asked for; our `format` writes none."""
    formatted(tmp_path, kernels)
    assert not meta_by_kafka((tmp_path / META_PROPERTIES).read_bytes())
    for name in ("c1", "c2", "c3"):
        assert meta_by_kafka((GOLDEN / name / META_PROPERTIES).read_bytes())


@pytest.mark.parametrize("data", [b"", bytes(120), b"version=1\n"], ids=["empty", "zeros", "cut off"])
def test_other_properties_that_cannot_be_used_are_named(tmp_path: Path, kernels: Kernels, data: bytes) -> None:
    formatted(tmp_path, kernels)
    (tmp_path / META_PROPERTIES).write_bytes(data)
    disk = RealDisk.open_directory(str(tmp_path), kernels)
    with pytest.raises(DirectoryError, match=r"meta\.properties cannot be used: .* is missing; put it back"):
        read_identity(disk)
