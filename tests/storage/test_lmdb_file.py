"""A value out of LMDB's file, read without LMDB: what LMDB wrote, and what is left of it after damage."""

import ast
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
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.lmdb_file import values_in
from fastquorum.storage.names import QUORUM_STATE
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import Uuid


def opened(path: Path) -> lmdb.Environment:
    return lmdb.open(str(path), map_size=1 << 22, subdir=False, max_dbs=0, lock=False)


def written(path: Path, *transactions: dict[bytes, bytes]) -> bytes:
    """The file that LMDB leaves behind after these."""
    with closing(opened(path)) as env:
        for each in transactions:
            with env.begin(write=True) as transaction:
                for key, value in each.items():
                    transaction.put(key, value)
    data = path.read_bytes()
    path.unlink()
    return data


@given(
    transactions=st.lists(
        st.dictionaries(
            st.binary(min_size=1, max_size=8), st.binary(max_size=200) | st.integers(0, 20_000).map(bytes), max_size=40
        ),
        max_size=6,
    )
)
def test_what_lmdb_wrote_is_read_and_what_was_before_the_last_transaction(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[dict[bytes, bytes]]
) -> None:
    values = values_in(written(tmp_path_factory.mktemp("lmdb") / "file", *transactions))
    last: dict[bytes, bytes] = {}
    before: dict[bytes, bytes] = {}
    for each in filter(None, transactions):  # one that changes nothing is none to LMDB
        before, last = last, last | each
    assert values == (last, before)


def test_a_tree_of_many_pages_is_read(tmp_path: Path) -> None:
    values = {b"%05d" % key: bytes(500) for key in range(2000)}
    assert values_in(written(tmp_path / "file", values, {b"00001": b"other"})).last == values | {b"00001": b"other"}


@given(damage=st.data())
def test_a_damaged_file_is_an_error_or_one_that_lmdb_reads_as_well(
    tmp_path_factory: pytest.TempPathFactory, damage: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("lmdb") / "file"
    data = bytearray(written(path, {b"key": b"value"}, {b"key": b"later"}))
    for at in damage.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=8)):
        data[at] = damage.draw(st.integers(0, 255))
    with suppress(CorruptionError):
        found = values_in(bytes(data)).last
        path.write_bytes(data)
        with closing(opened(path)) as env, env.begin() as transaction:
            assert dict(transaction.cursor()) == found


def test_a_file_that_is_cut_off_is_an_error_or_the_value(tmp_path: Path) -> None:
    """LMDB itself ends the process at some of these."""
    data = written(tmp_path / "file", {b"key": b"value"}, {b"key": b"later"})
    outcomes = set()
    for end in range(len(data)):
        try:
            outcomes.add(values_in(data[:end]).last[b"key"])
        except CorruptionError as error:
            outcomes.add(error.reason.encode())
    assert outcomes <= {b"later", b"state_file"}


# --- whether LMDB may open it -----------------------------------------------------------------------------------------


OPEN = """
import os
import struct
import sys
from fastquorum.errors import CorruptionError
from fastquorum.kernels import load
from fastquorum.raft.election import ElectionState
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import Uuid

path, whole = sys.argv[1], open(sys.argv[1], "rb").read()
owner, kernels = StateOwner("cluster", 1, Uuid(b"1" * 16)), load("native")


def damaged():
    if sys.argv[2] == "cut off":
        for end in range(0, len(whole), 512):
            yield end, whole[:end]
        return
    roots = {struct.unpack_from("@Q", whole, at)[0] for at in (80, 128, 4096 + 80, 4096 + 128)}
    for at in range(len(whole)):
        number, in_page = divmod(at, 4096)
        if not (number < 2 and in_page < 152 or number in roots and (in_page < 40 or whole[at])):
            continue  # which nobody looks at
        for change in (0x01, 0xFF):
            yield (at, change), whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1:]


outcomes = set()
for where, data in damaged():
    with open(path, "wb") as file:
        file.write(data)
    print(where, file=sys.stderr)  # the last line says of which LMDB died
    try:
        store = LmdbStateStore(os.path.dirname(path), owner, kernels)
    except CorruptionError as error:
        outcomes.add(error.reason)
        continue
    outcomes.add(store.load().epoch)
    for epoch in range(6, 10):
        store.save(ElectionState(epoch, 2))
        assert store.load().epoch == epoch
    store.close()
print(sorted(map(str, outcomes)))
"""


@pytest.mark.parametrize("how", ["cut off", "one byte"])
def test_a_damaged_file_is_refused_or_works_on_and_ends_nobody(tmp_path: Path, how: str) -> None:
    """In a process of its own: LMDB dies of a page that is not there. No state but the last is ever started from."""
    store = LmdbStateStore(str(tmp_path), StateOwner("cluster", 1, Uuid(b"1" * 16)), load("native"))
    for epoch in range(6):
        store.save(ElectionState(epoch, 2))
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path / QUORUM_STATE), how], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(ast.literal_eval(done.stdout)) <= {"5", "state_file", "crc", "state_length", "magic"}, done.stdout
