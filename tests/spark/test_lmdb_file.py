"""A value out of LMDB's file, read without LMDB: what LMDB wrote, and what is left of it after damage."""

from contextlib import closing, suppress
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import CorruptionError
from fastquorum.spark.lmdb_file import value_in


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
