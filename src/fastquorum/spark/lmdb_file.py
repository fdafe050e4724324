"""One value out of an LMDB file's bytes: no map, no lock, and damage is an error.

LMDB itself maps the file and trusts it, so that one that is cut short ends the process (SIGBUS). Only what a quorum
state needs: small values, few enough for one page. Source: OpenLDAP `mdb.c` (0.9): MDB_meta, MDB_page, MDB_node; all
in the byte order of this machine, as LMDB has it.
"""

import struct
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_PAGE_HEADER_BYTES: Final = 16
_META: Final = struct.Struct("@II8x8x")
"""Magic, version; address and size of the map."""
_TREE: Final = struct.Struct("@IHHQQQQQ")
"""Page size (of the first tree), flags, depth; pages of three kinds; entries, root."""
_META_END: Final = struct.Struct("@QQ")
"""Last page, transaction."""
_PAGE: Final = struct.Struct("@Q2xHHH")
"""Number; flags; where the pointers end, where the nodes begin."""
_NODE: Final = struct.Struct("@HHHH")
"""Size of the value, low and high; flags; size of the key."""
_LEAF: Final = 0x02
_NO_PAGE: Final = 2**64 - 1
_PAGE_BYTES: Final = range(512, 65536 + 1)


class _Meta(NamedTuple):
    transaction: int
    page_bytes: int
    root: int


def value_in(data: bytes, key: bytes, path: str = "") -> bytes | None:
    """The value of a key; None if there is none. CorruptionError ("state_file") if that cannot be told."""
    try:
        first = _meta(data, 0)
        last = max(first, _meta(data, first.page_bytes))
        return None if last.root == _NO_PAGE else _in_page(data, last.root * last.page_bytes, last, key)
    except (ValueError, struct.error) as error:
        raise CorruptionError("state_file", path=path) from error


def _meta(data: bytes, at: int) -> _Meta:
    at += _PAGE_HEADER_BYTES
    magic, version = _META.unpack_from(data, at)
    if (magic, version) != (_MAGIC, _VERSION):
        raise ValueError("no meta page")
    at += _META.size
    page_bytes = _TREE.unpack_from(data, at)[0]
    *_, root = _TREE.unpack_from(data, at + _TREE.size)
    _, transaction = _META_END.unpack_from(data, at + 2 * _TREE.size)
    if page_bytes not in _PAGE_BYTES:
        raise ValueError(f"a page of {page_bytes} bytes")
    return _Meta(transaction, page_bytes, root)


def _in_page(data: bytes, start: int, meta: _Meta, key: bytes) -> bytes | None:
    page = data[start : start + meta.page_bytes]
    number, flags, lower, _ = _PAGE.unpack_from(page)
    if len(page) < meta.page_bytes or number != meta.root or not flags & _LEAF or lower > len(page):
        raise ValueError("no leaf page, or not the whole of it")
    for pointer in range(_PAGE_HEADER_BYTES, lower, 2):
        (at,) = struct.unpack_from("@H", page, pointer)
        low, high, is_elsewhere, key_bytes = _NODE.unpack_from(page, at)
        at += _NODE.size
        size = low | high << 16
        if page[at : at + key_bytes] != key:
            continue
        at += key_bytes
        if is_elsewhere or at + size > len(page):
            raise ValueError("the value lies elsewhere")
        return page[at : at + size]
    return None
