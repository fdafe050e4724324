"""An LMDB file's bytes without LMDB: one value of it, and whether all is there that LMDB would look at.

LMDB itself maps the file and trusts it, so that one that is cut short ends the process (SIGBUS). Only what a quorum
state needs: small values, few enough for one page. Source: OpenLDAP `mdb.c` (0.9): MDB_meta, MDB_page, MDB_node; all
in the byte order of this machine, as LMDB has it.
"""

import struct
from typing import Final, NamedTuple

from fastquorum.storage.replacing import damaged_state

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
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_PAGES: Final = struct.Struct("@12xI")
"""How many pages a value that overflows takes."""
_BIG_VALUE: Final = 0x01
_PAGE_NUMBER: Final = struct.Struct("@Q")
_NO_PAGE: Final = 2**64 - 1
_PAGE_BYTES: Final = range(512, 65536 + 1)


class _Meta(NamedTuple):
    transaction: int
    page_bytes: int
    root: int
    free_root: int
    """Of the tree of pages to be used again."""


def value_in(data: bytes, key: bytes, path: str = "") -> bytes | None:
    """The value of a key; None if there is none. CorruptionError ("state_file") if that cannot be told."""
    try:
        first = _meta(data, 0)
        last = max(first, _meta(data, first.page_bytes))
        return None if last.root == _NO_PAGE else _in_page(_page(data, last.root, last), key)
    except (ValueError, struct.error) as error:
        raise damaged_state("state_file", path) from error


def check_pages(data: bytes, path: str = "") -> None:
    """CorruptionError ("state_file") if a page that LMDB would look at is not there, or not the page it has to be."""
    try:
        first = _meta(data, 0)
        meta = max(first, _meta(data, first.page_bytes))
        left = [each for each in (meta.root, meta.free_root) if each != _NO_PAGE]
        pages_max = len(data) // meta.page_bytes
        for _ in range(pages_max):
            if not left:
                return
            left += _below(data, left.pop(), meta)
        if left:
            raise ValueError("more pages than there are")
    except (ValueError, struct.error) as error:
        raise damaged_state("state_file", path) from error


def _below(data: bytes, number: int, meta: _Meta) -> list[int]:
    """The pages that a page of a tree leads to; those of its values are looked for here. ValueError, struct.error."""
    page = _page(data, number, meta)
    _, flags, lower, _ = _PAGE.unpack_from(page)
    if not flags & (_BRANCH | _LEAF) or lower > len(page):
        raise ValueError("no page of a tree")
    found = []
    for pointer in range(_PAGE_HEADER_BYTES, lower, 2):
        (at,) = struct.unpack_from("@H", page, pointer)
        low, high, more, key_bytes = _NODE.unpack_from(page, at)
        if flags & _BRANCH:
            found.append(low | high << 16 | more << 32)
        elif more & _BIG_VALUE:
            (first,) = _PAGE_NUMBER.unpack_from(page, at + _NODE.size + key_bytes)
            if not _PAGE.unpack_from(_page(data, first, meta))[1] & _OVERFLOW:
                raise ValueError("no page of a value")
            (count,) = _PAGES.unpack_from(data, first * meta.page_bytes)
            if (first + count) * meta.page_bytes > len(data):
                raise ValueError("not all pages of a value")
    return found


def _page(data: bytes, number: int, meta: _Meta) -> bytes:
    page = data[number * meta.page_bytes : (number + 1) * meta.page_bytes]
    if len(page) < meta.page_bytes or _PAGE.unpack_from(page)[0] != number:
        raise ValueError("not that page, or not the whole of it")
    return page


def _meta(data: bytes, at: int) -> _Meta:
    at += _PAGE_HEADER_BYTES
    magic, version = _META.unpack_from(data, at)
    if (magic, version) != (_MAGIC, _VERSION):
        raise ValueError("no meta page")
    at += _META.size
    page_bytes = _TREE.unpack_from(data, at)[0]
    *_, free_root = _TREE.unpack_from(data, at)
    *_, root = _TREE.unpack_from(data, at + _TREE.size)
    _, transaction = _META_END.unpack_from(data, at + 2 * _TREE.size)
    if page_bytes not in _PAGE_BYTES:
        raise ValueError(f"a page of {page_bytes} bytes")
    return _Meta(transaction, page_bytes, root, free_root)


def _in_page(page: bytes, key: bytes) -> bytes | None:
    _, flags, lower, _ = _PAGE.unpack_from(page)
    if not flags & _LEAF or lower > len(page):
        raise ValueError("no leaf page")
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
