"""What a node does not start on, `log verify` does not call sound: whatever files are lost, damaged or another's."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.node.io.directory import OpenDirectory, needs_format
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.raft.election import ElectionState
from fastquorum.storage.findings import Severity
from fastquorum.storage.format import FormatOptions, check_without_log, format_directory
from fastquorum.storage.identity import Identity, LogKind, parse_voters
from fastquorum.storage.io.directory import DataDirectory
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.handover import hand_to_kafka
from fastquorum.storage.io.opening import open_offline, trim_directory
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    DURABLE_MARK,
    LOCK,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    checkpoint_name,
    segment_name,
)
from fastquorum.types import OffsetAndEpoch, Uuid
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.privileges import unprivileged

from .fake_disk import FakeFlusher
from .logs import SMALL, Rig, checkpoint

VOTERS = parse_voters("1@127.0.0.1:19091,2@127.0.0.1:19092")


NO_OP = encode_metadata_record(NoOpRecord(), 0)
ELSEWHERE = FormatOptions("d", 1, Uuid(b"\2" * 16), parse_voters("1@127.0.0.1:19091"))
"""Options of another cluster, whose node is its only voter."""


def made(
    root: Path,
    kernels: Kernels,
    values: list[bytes],
    kind: LogKind = LogKind.USER,
    options: FormatOptions | None = None,
) -> Path:
    """A node's directory with these records, a batch each, closed."""
    disk = RealDisk.open_directory(str(root), kernels, create=True)
    is_controller = kind is LogKind.METADATA
    options = options or FormatOptions("c", 1, Uuid(b"\1" * 16), VOTERS, kind, is_controller=is_controller)
    format_directory(disk, kernels, options, now_ms=1)
    flusher = FakeFlusher()
    with DataDirectory.open(str(root), kernels, SMALL, flusher) as data:
        data.states.save(ElectionState(epoch=2))
        rig = Rig.__new__(Rig)
        rig.kernels, rig.flusher, rig.log = kernels, flusher, data.log
        for value in values:
            rig.append(1, value)
        rig.flush()
    return root


def crashed(whole: Path, root: Path, kernels: Kernels) -> Path:
    """A copy of a node's directory while it runs and has begun to write: there is something to mend, and to trim."""
    with DataDirectory.open(str(whole), kernels, QuorumConfig(), FakeFlusher()):
        shutil.copytree(whole, root)
    segment = max((root / LOG_DIRECTORY).glob("*.log"))
    at = len(segment.read_bytes().rstrip(b"\0")) + 100
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(b"torn")
    for index in (root / LOG_DIRECTORY).glob("*.index"):
        index.unlink()
    return root


def started(root: Path, kernels: Kernels) -> Identity | None:
    """What a node is that starts here; None if none does, which changes nothing. Opening mends what it can: of a
    copy."""
    copy = shutil.copytree(root, root.with_name("tried"))
    before = contents(copy)
    try:
        opened = OpenDirectory(str(copy), kernels, QuorumConfig(), NodeSettings(), lambda *_: None)
        opened.close(None)
    except FastQuorumError:
        assert contents(copy) == before
        return None
    finally:
        shutil.rmtree(copy)
    return opened.identity


def is_refused(root: Path, kernels: Kernels) -> bool:
    return started(root, kernels) is None


def contents(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in files_of(root)}


def is_sound(root: Path, kernels: Kernels) -> bool:
    return open_offline(str(root), kernels).verify_directory().is_sound


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def halved(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def files_of(root: Path) -> list[str]:
    found = [str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()]
    return sorted(each for each in found if each != LOCK)


def losses(root: Path) -> Iterator[dict[str, Callable[[Path], None]]]:
    """One, two or three files gone; or one that is damaged, and perhaps another one gone. A directory of which nothing
    is left that says a node ran there is a log by itself."""
    names, mark = files_of(root), f"{LOG_DIRECTORY}/{DURABLE_MARK}"
    in_log = [name for name in names if name.startswith(LOG_DIRECTORY)]
    sets = [itertools.combinations(names, 1), itertools.combinations(names, 2), itertools.combinations(in_log, 3)]
    for gone in itertools.chain(*sets):
        yield dict.fromkeys(gone, removed)
    for name, how in itertools.product(names, (emptied, zeroed, halved)):
        yield {name: how}
        if name != mark:
            yield {name: how, mark: removed}


@pytest.mark.parametrize("count", [0, 20])
def test_what_a_node_does_not_start_on_is_not_sound(tmp_path: Path, kernels: Kernels, count: int) -> None:
    whole = made(tmp_path / "whole", kernels, [b"%03d" % each for each in range(count)])
    assert not is_refused(whole, kernels)
    assert is_sound(whole, kernels)
    root, wrong = tmp_path / "n1", []
    for changes in losses(whole):
        shutil.copytree(whole, root)
        for name, how in changes.items():
            how(root / name)
        is_log_alone = changes.get(META_PROPERTIES) is removed
        if not is_log_alone and is_sound(root, kernels) and is_refused(root, kernels):
            wrong.append({name: how.__name__ for name, how in changes.items()})
        shutil.rmtree(root)
    assert wrong == []


def mixtures(names: list[str]) -> Iterator[tuple[str, ...]]:
    """One or two files, or the whole log, and perhaps one file with it."""
    log = tuple(name for name in names if name.startswith(LOG_DIRECTORY))
    some = [name for name in names if name not in log or name.endswith((segment_name(0), DURABLE_MARK))]
    yield from itertools.chain(itertools.combinations(some, 1), itertools.combinations(some, 2))
    yield from (log, *((*log, name) for name in names if name not in log))


@pytest.mark.parametrize("kind", [LogKind.USER, LogKind.METADATA])
@pytest.mark.parametrize("theirs", [LogKind.USER, LogKind.METADATA])
def test_a_node_that_starts_on_files_of_two_directories_is_what_one_of_them_was_formatted_as(
    tmp_path: Path, kernels: Kernels, kind: LogKind, theirs: LogKind
) -> None:
    values = {LogKind.USER: [b"%03d" % each for each in range(30)], LogKind.METADATA: [NO_OP] * 30}
    whole = crashed(made(tmp_path / "ours", kernels, values[kind], kind), tmp_path / "whole", kernels)
    other = made(tmp_path / "theirs", kernels, values[theirs][:20], options=ELSEWHERE._replace(log_kind=theirs))
    known = started(whole, kernels), started(other, kernels)
    assert None not in known
    root, wrong = tmp_path / "n1", []
    for taken in mixtures(files_of(other)):
        shutil.copytree(whole, root)
        if len(taken) > 2:
            shutil.rmtree(root / LOG_DIRECTORY)
            (root / LOG_DIRECTORY).mkdir()
        for name in taken:
            shutil.copy(other / name, root / name)
        found = started(root, kernels)
        if found not in (None, *known) or (found is None and is_sound(root, kernels)):
            wrong.append(taken)
        is_mislabelled = kind is LogKind.METADATA is not theirs and f"{LOG_DIRECTORY}/{segment_name(0)}" in taken
        if is_mislabelled and found == known[0]:
            wrong.append(taken)
        shutil.rmtree(root)
    assert wrong == []


def test_what_may_not_be_written_is_refused_before_anything_is(tmp_path: Path, kernels: Kernels) -> None:
    """A crashed directory, each of whose files and directories in turn belongs to somebody else, as after a restore."""
    root = crashed(made(tmp_path / "ours", kernels, [b"%03d" % each for each in range(30)]), tmp_path / "n1", kernels)
    refused = set()
    for name in (*files_of(root), LOG_DIRECTORY, "."):
        for mode in (0o000, 0o400, 0o500):
            copy = shutil.copytree(root, tmp_path / "copy")
            before = contents(copy)
            (copy / name).chmod(mode)
            try:
                with unprivileged():
                    OpenDirectory(str(copy), kernels, QuorumConfig(), NodeSettings(), lambda *_: None).close(None)
            except DirectoryError:
                (copy / name).chmod(0o700)
                assert contents(copy) == before, (name, mode)
                refused.add(name)
            shutil.rmtree(copy)
    last = max(name for name in files_of(root) if name.endswith(".log"))
    assert refused >= {LOG_DIRECTORY, ".", QUORUM_STATE, last, META_PROPERTIES, OWN_PROPERTIES}


@pytest.mark.parametrize("name", [LOG_DIRECTORY, QUORUM_STATE])
def test_what_no_node_may_write_no_other_command_changes(tmp_path: Path, kernels: Kernels, name: str) -> None:
    whole = made(tmp_path / "ours", kernels, [NO_OP] * 5, LogKind.METADATA)
    root = crashed(whole, tmp_path / "n1", kernels)
    before = contents(root)
    (root / name).chmod(0o500)
    for act in (trim_directory, hand_to_kafka):
        with unprivileged(), pytest.raises(DirectoryError, match=f"{name}: is read-only here; look at its owner"):
            act(str(root), kernels)
    assert contents(root) == before


def test_a_format_that_goes_on_meanwhile_is_no_directory_that_lost_a_file(tmp_path: Path, kernels: Kernels) -> None:
    """Nobody locks a directory to see whether it is empty."""
    whole = made(tmp_path / "whole", kernels, [b"x"])
    kept = (whole / META_PROPERTIES).read_bytes()
    (whole / META_PROPERTIES).unlink()
    disk = RealDisk.open_directory(str(whole), kernels)
    with pytest.raises(DirectoryError, match=r"but no meta\.properties"):
        check_without_log(disk, kernels)
    (whole / META_PROPERTIES).write_bytes(kept)
    check_without_log(disk, kernels)


def test_a_mark_of_another_log_is_not_sound(tmp_path: Path, kernels: Kernels) -> None:
    root = made(tmp_path / "n1", kernels, [b"ours" * 9] * 5)
    other = made(tmp_path / "n2", kernels, [b"theirs"] * 4)
    mark = Path(LOG_DIRECTORY) / DURABLE_MARK
    shutil.copy(other / mark, root / mark)
    assert is_refused(root, kernels)
    (finding,) = [
        each
        for each in open_offline(str(root), kernels).verify_directory().findings
        if each.severity is Severity.CORRUPT
    ]
    assert finding.path == str(root / mark)
    assert finding.text.startswith("no batch ends at offset 4, up to which it says that the log was synced: ")


def test_a_snapshot_of_another_replica_behind_the_log_is_not_sound(tmp_path: Path, kernels: Kernels) -> None:
    root = made(tmp_path / "n1", kernels, [b"x"] * 5)
    snapshot = OffsetAndEpoch(9, 0)
    (root / LOG_DIRECTORY / checkpoint_name(snapshot)).write_bytes(checkpoint(kernels, snapshot))
    assert is_refused(root, kernels)
    assert not is_sound(root, kernels)


def flipped(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("how", [flipped, emptied, zeroed, halved])
def test_a_damaged_bootstrap_checkpoint_is_not_sound(
    tmp_path: Path, kernels: Kernels, how: Callable[[Path], None]
) -> None:
    root = made(tmp_path / "n1", kernels, [], LogKind.METADATA)
    how(root / BOOTSTRAP_CHECKPOINT)
    assert is_refused(root, kernels)
    assert not is_sound(root, kernels)


@pytest.mark.parametrize(("values", "kind"), [([NO_OP], LogKind.METADATA), ([], LogKind.USER)])
@pytest.mark.parametrize("how", [flipped, emptied])
def test_nobody_needs_a_bootstrap_checkpoint_of_a_log_that_has_begun_or_is_of_users(
    tmp_path: Path, kernels: Kernels, values: list[bytes], kind: LogKind, how: Callable[[Path], None]
) -> None:
    root = made(tmp_path / "n1", kernels, values, kind)
    how(root / BOOTSTRAP_CHECKPOINT)
    assert not is_refused(root, kernels)
    (finding,) = open_offline(str(root), kernels).verify_directory().findings
    assert (finding.severity, finding.path) == (Severity.NOTE, str(root / BOOTSTRAP_CHECKPOINT))
    assert finding.text.startswith("damaged, and no longer needed: ")


def test_one_that_cannot_be_begun_may_be_opened_again_in_the_same_process(tmp_path: Path, kernels: Kernels) -> None:
    root = made(tmp_path / "n1", kernels, [], LogKind.METADATA)
    whole = (root / BOOTSTRAP_CHECKPOINT).read_bytes()
    emptied(root / BOOTSTRAP_CHECKPOINT)
    for _ in range(2):
        with pytest.raises(CorruptionError, match=r"bootstrap\.checkpoint: corrupt: checkpoint_header"):
            OpenDirectory(str(root), kernels, QuorumConfig(), NodeSettings(), lambda *_: None)
    (root / BOOTSTRAP_CHECKPOINT).write_bytes(whole)
    OpenDirectory(str(root), kernels, QuorumConfig(), NodeSettings(), lambda *_: None).close(None)


def test_records_of_ours_without_what_says_whose_they_are_are_told_in_the_words_of_run(
    tmp_path: Path, kernels: Kernels
) -> None:
    root = made(tmp_path / "n1", kernels, [b"x"])
    for name in (META_PROPERTIES, QUORUM_STATE):
        (root / name).unlink()
    with pytest.raises(FastQuorumError) as refused:
        needs_format(str(root), kernels)
    (finding,) = open_offline(str(root), kernels).verify_directory().findings
    assert (finding.severity, finding.path) == (Severity.CORRUPT, str(root / META_PROPERTIES))
    assert str(refused.value).replace("; put", ": put").endswith(finding.text)


def test_that_the_segments_of_a_log_that_was_in_use_are_gone_is_told_in_the_words_of_run(
    tmp_path: Path, kernels: Kernels
) -> None:
    root = made(tmp_path / "n1", kernels, [b"x"] * 3)
    for name in (segment_name(0), DURABLE_MARK, "leader-epoch-checkpoint"):
        (root / LOG_DIRECTORY / name).unlink()
    assert (root / QUORUM_STATE).exists()
    with pytest.raises(FastQuorumError) as refused:
        DataDirectory.open(str(root), kernels, SMALL, FakeFlusher())
    texts = [each.text for each in open_offline(str(root), kernels).verify_directory().findings]
    assert any(
        text.startswith("the log directory was in use, but its segments are gone: put them back") for text in texts
    )
    assert str(refused.value).replace("; put", ": put").endswith(texts[0])
