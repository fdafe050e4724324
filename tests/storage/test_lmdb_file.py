"""A value out of LMDB's file, read without LMDB: what LMDB wrote, and what is left of it after damage."""

import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import CorruptionError
from fastquorum.kernels import load
from fastquorum.raft.election import ElectionState
from fastquorum.storage.io_state import LmdbStateStore
from fastquorum.storage.lmdb_file import check_pages, value_in
from fastquorum.storage.names import QUORUM_STATE
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import Uuid


def written(path: Path, *transactions: dict[bytes, bytes]) -> bytes:
    """The file that LMDB leaves behind after these."""
    with closing(lmdb.open(str(path), map_size=1 << 22, subdir=False, max_dbs=0, lock=False)) as env:
        for each in transactions:
            with env.begin(write=True) as transaction:
                for key, value in each.items():
                    transaction.put(key, value)
    data = path.read_bytes()
    path.unlink()
    return data


@given(
    transactions=st.lists(
        st.dictionaries(st.binary(min_size=1, max_size=8), st.binary(max_size=200), max_size=4), max_size=4
    )
)
def test_the_last_value_of_each_key_is_read(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[dict[bytes, bytes]]
) -> None:
    data = written(tmp_path_factory.mktemp("lmdb") / "file", *transactions)
    last: dict[bytes, bytes] = {}
    for each in transactions:
        last |= each
    for key, value in last.items():
        assert value_in(data, key) == value
    assert value_in(data, b"a key of nobody") is None


@given(damage=st.data())
def test_a_damaged_file_is_an_error_or_another_value_and_nothing_worse(
    tmp_path_factory: pytest.TempPathFactory, damage: st.DataObject
) -> None:
    data = bytearray(written(tmp_path_factory.mktemp("lmdb") / "file", {b"key": b"value"}, {b"key": b"later"}))
    for at in damage.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=8)):
        data[at] = damage.draw(st.integers(0, 255))
    with suppress(CorruptionError):
        found = value_in(bytes(data), b"key")
        assert found is None or isinstance(found, bytes)


def test_a_file_that_is_cut_off_is_an_error_or_the_value(tmp_path: Path) -> None:
    """LMDB itself ends the process at some of these."""
    data = written(tmp_path / "file", {b"key": b"value"}, {b"key": b"later"})
    assert value_in(data, b"key") == b"later"
    outcomes = set()
    for end in range(len(data)):
        try:
            outcomes.add(value_in(data[:end], b"key"))
        except CorruptionError as error:
            outcomes.add(error.reason.encode())
    assert outcomes <= {b"later", b"state_file"}


def test_a_value_that_fills_more_than_a_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError, match="state_file"):
        value_in(written(tmp_path / "file", {b"key": bytes(100_000)}), b"key")


# --- whether LMDB may open it -----------------------------------------------------------------------------------------


@given(
    transactions=st.lists(
        st.dictionaries(
            st.binary(min_size=1, max_size=8), st.binary(max_size=200) | st.integers(0, 20_000).map(bytes), max_size=40
        ),
        max_size=4,
    )
)
def test_what_lmdb_wrote_is_all_there(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[dict[bytes, bytes]]
) -> None:
    check_pages(written(tmp_path_factory.mktemp("lmdb") / "file", *transactions))


def test_a_tree_of_many_pages_is_all_there(tmp_path: Path) -> None:
    check_pages(written(tmp_path / "file", {b"%05d" % key: bytes(500) for key in range(2000)}))


OPEN = """
import sys
from fastquorum.errors import CorruptionError
from fastquorum.kernels import load
from fastquorum.raft.election import ElectionState
from fastquorum.storage.io_state import LmdbStateStore
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import Uuid
import os

path, whole = sys.argv[1], open(sys.argv[1], "rb").read()
owner, kernels = StateOwner("cluster", 1, Uuid(b"1" * 16)), load("native")
outcomes = set()
for end in range(0, len(whole), 512):
    with open(path, "wb") as file:
        file.write(whole[:end])
    try:
        store = LmdbStateStore(os.path.dirname(path), owner, kernels)
    except CorruptionError as error:
        outcomes.add(error.reason)
        continue
    outcomes.add(store.load().epoch)
    store.save(ElectionState(6, 2))
    assert store.load().epoch == 6
    store.close()
print(sorted(map(str, outcomes)))
"""


def test_a_file_that_was_cut_off_is_refused_or_opened_and_ends_nobody(tmp_path: Path) -> None:
    """In a process of its own: LMDB dies of a page that is not there."""
    store = LmdbStateStore(str(tmp_path), StateOwner("cluster", 1, Uuid(b"1" * 16)), load("native"))
    for epoch in range(6):
        store.save(ElectionState(epoch, 2))
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path / QUORUM_STATE)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "['5', 'state_file']\n"), done.stderr
