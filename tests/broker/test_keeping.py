"""A member that keeps where its metadata stands, and what the next one makes of that."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum import log, sync
from fastquorum.broker import State
from fastquorum.errors import ClosedError, ConfigError, CorruptionError, DirectoryError, ProtocolFatal, StorageFailed
from fastquorum.storage.names import LOG_DIRECTORY, parse_checkpoint
from fastquorum.types import OffsetAndEpoch
from tests.api.nodes import WAIT_S
from tests.broker.clusters import create_topic, join, one_controller, seen


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with one_controller(tmp_path) as at:
        yield at


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The member's; nobody has made it yet."""
    return tmp_path / "metadata"


def kept(root: Path) -> OffsetAndEpoch | None:
    """The one snapshot in there, if there is any."""
    found = [snapshot for each in (root / LOG_DIRECTORY).iterdir() if (snapshot := parse_checkpoint(each.name))]
    assert len(found) <= 1
    return found[0] if found else None


def file_of(root: Path) -> Path:
    (found,) = (root / LOG_DIRECTORY).glob("*.checkpoint")
    return found


def lived(bootstrap: str, root: Path) -> int:
    """A whole life of a member, which reads of a topic; where its metadata stood in the end."""
    with join(bootstrap, metadata_dir=str(root)) as membership:
        membership.wait_active(WAIT_S)
        if membership.image.topics.named("shards") is None:
            create_topic(bootstrap, "shards", 7)
            seen(membership, lambda view: view.image.topics.named("shards") is not None)
    assert membership.view.reason == "let go by the controller"
    return membership.metadata_offset


def test_gone_in_good_order_it_has_written_down_where_its_metadata_stood(bootstrap: str, root: Path) -> None:
    offset = lived(bootstrap, root)
    found = kept(root)
    assert found is not None
    assert found.offset == offset + 1
    assert log.open(str(root)).image().topics.named("shards") is not None, "the layout is Kafka's"


def test_the_next_one_goes_on_from_there(bootstrap: str, root: Path) -> None:
    offset = lived(bootstrap, root)
    stood: list[int] = []

    def start(membership: sync.Membership) -> None:
        assert (membership.state, membership.epoch) == (State.OFFLINE, -1)
        assert membership.image.topics.named("shards") is not None
        stood.append(membership.metadata_offset)

    with join(bootstrap, metadata_dir=str(root), start=start) as membership:
        epoch = membership.wait_active(WAIT_S)
        assert stood == [offset]
        assert membership.metadata_offset >= epoch > offset, "and it has caught up"


def test_answered_it_writes_down_where_its_metadata_stands_before_it_catches_up(bootstrap: str, root: Path) -> None:
    offset = lived(bootstrap, root)

    def start(_: sync.Membership) -> None:
        file_of(root).unlink()

    membership = join(bootstrap, metadata_dir=str(root), start=start)
    epoch = membership.wait_active(WAIT_S)
    membership._member.abort()  # it vanishes: what is there was written when it was registered
    found = kept(root)
    assert found is not None
    assert offset < found.offset <= membership.metadata_offset
    with join(bootstrap, metadata_dir=str(root)) as successor:
        assert successor.metadata_offset >= found.offset - 1
        assert successor.wait_active(WAIT_S) > epoch, "it registered, and read on"


def test_controllers_that_have_lost_what_it_had_read_are_refused(tmp_path: Path, root: Path) -> None:
    """They have the same id and another, shorter past: what was read there is not to be acted upon, nor forgotten."""
    with one_controller(tmp_path / "first") as bootstrap:
        with join(bootstrap, metadata_dir=str(root)) as membership:
            membership.wait_active(WAIT_S)
            for number in range(40):
                create_topic(bootstrap, f"topic-{number}", 7)
            seen(membership, lambda view: view.image.topics.named("topic-39") is not None)
        offset = membership.metadata_offset
    with one_controller(tmp_path / "second") as bootstrap:
        membership = join(bootstrap, metadata_dir=str(root))
        with pytest.raises(ProtocolFatal, match="lost their disks"):
            membership.wait_active(WAIT_S)
    found = kept(root)
    assert found is not None
    assert found.offset == offset + 1


# --- the directory ----------------------------------------------------------------------------------------------------


def test_one_directory_is_one_members(bootstrap: str, root: Path) -> None:
    with join(bootstrap, metadata_dir=str(root)) as membership:
        membership.wait_active(WAIT_S)
        with pytest.raises(DirectoryError, match="open in this process"):
            join(bootstrap, 7, metadata_dir=str(root))
    with pytest.raises(DirectoryError, match="belongs to node 7, not to node 8"):
        join(bootstrap, 8, metadata_dir=str(root))
    lived(bootstrap, root)


def test_a_directory_that_is_something_else_is_refused_and_left_as_it_is(tmp_path: Path, root: Path) -> None:
    root.mkdir()
    (root / "letter").write_text("dear")
    with pytest.raises(DirectoryError, match="does not hold a member's metadata"):
        join("127.0.0.1:1", metadata_dir=str(root))
    assert {each.name for each in root.iterdir()} == {"letter"}
    with one_controller(tmp_path, node_id=7):
        pass
    with pytest.raises(DirectoryError, match="does not hold a member's metadata"):
        join("127.0.0.1:1", metadata_dir=str(tmp_path / "controller"))


def test_a_member_that_reads_no_metadata_keeps_none(root: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        join("127.0.0.1:1", host="127.0.0.1", port=9092, control_requests=True, metadata_dir=str(root))
    assert refused.value.key == "metadata_dir"
    assert not root.exists()


def test_a_damaged_snapshot_is_refused_and_without_it_all_is_read_anew(bootstrap: str, root: Path) -> None:
    lived(bootstrap, root)
    file = file_of(root)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptionError) as refused:
        join(bootstrap, metadata_dir=str(root))
    assert str(file) in str(refused.value)
    assert "it is only a copy of what the controllers have: delete it" in str(refused.value)
    file.unlink()
    lived(bootstrap, root)
    assert kept(root)


def test_a_start_that_fails_leaves_the_directory_to_the_next(bootstrap: str, root: Path) -> None:
    def start(_: sync.Membership) -> None:
        raise OSError("the log is on a broken disk")

    with pytest.raises(OSError, match="broken disk"):
        join(bootstrap, metadata_dir=str(root), start=start)
    lived(bootstrap, root)


def test_what_cannot_be_written_down_ends_the_membership(bootstrap: str, root: Path) -> None:
    lived(bootstrap, root)

    def start(_: sync.Membership) -> None:
        shutil.rmtree(root / LOG_DIRECTORY)

    membership = join(bootstrap, metadata_dir=str(root), start=start)
    with pytest.raises(StorageFailed, match="No such file"):
        membership.wait_active(WAIT_S)
    membership.close()
    assert membership.state is State.GONE


def test_what_cannot_be_written_down_in_the_end_is_told(bootstrap: str, root: Path) -> None:
    membership = join(bootstrap, metadata_dir=str(root))
    membership.wait_active(WAIT_S)
    shutil.rmtree(root / LOG_DIRECTORY)
    membership.close()
    assert membership.view.reason == "let go by the controller"
    with pytest.raises(StorageFailed, match="No such file"):
        membership.check()
    with pytest.raises(StorageFailed):
        list(membership.changes())
    assert not isinstance(membership.view.error, ClosedError)
