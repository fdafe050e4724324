"""Record batches: encoded from Python bytes and from columns, decoded to columns and to values; the accumulator.

Peers build the very same batch (compared byte for byte after it got its place in the log). They know no columns: for
encoding from columns the yardstick is C, and what decodes to columns is held against what decodes to their records.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from bench import floors, peers
from bench.cases.setting import Setting
from bench.measure import GB_PER_S, M_RECORDS_PER_S, Case, Contender, Goal, Role, python
from fastquorum.kernels import Kernels

PLACE = {"base_offset": 0, "leader_epoch": 0, "timestamp_ms": peers.TIMESTAMP_MS}
SHAPES = ((100, 1), (100, 100), (100, 1000), (1024, 1000))
C_FLOOR = "C"


def cases(setting: Setting) -> Iterator[Case]:
    for size, count in SHAPES:
        yield _encode_values(setting, size, count)
    for size, count in SHAPES[1:]:
        yield _encode_columns(setting, size, count)
    for size, count in SHAPES[1:]:
        yield _decode_columns(setting, size, count)
    yield _decode_values(setting, 100, 1000)
    yield from _accumulate(setting, 100, 1000)


def some_values(size: int, count: int) -> list[bytes]:
    return [bytes((i + j) & 0xFF for j in range(size)) for i in range(count)]


def _shape(size: int, count: int) -> str:
    return f"{size if size < 1024 else size // 1024} {'B' if size < 1024 else 'KB'} x {count}"


def _encode_values(setting: Setting, size: int, count: int) -> Case:
    values = some_values(size, count)
    stamp = setting.kernels[0].stamp_batch
    contenders = [
        python(
            kernels.NAME,
            Role(kernels.NAME),
            "encode(values, **place)",
            encode=kernels.encode_values,
            values=values,
            place=PLACE,
        )
        for kernels in setting.kernels
    ]

    def placed(encode: Callable[[], bytes]) -> bytes:
        batch = bytearray(encode())
        stamp(batch, 0, 0)
        return bytes(batch)

    contenders += [
        python(name, Role.PEER, "encode()", partial(placed, encode), encode=encode)
        for name, encode in peers.batch_encoders(values).items()
    ]
    if setting.has_compiler:
        contenders.append(_floor(values))
    least = {(100, 1): 2.0, (100, 1000): 5.0, (1024, 1000): 5.0}.get((size, count), 0.0)
    goals = [Goal(against=("aiokafka",), at_least=least)] if least else []
    return _case("encode v2 batch from bytes", size, count, contenders, goals)


def _case(group: str, size: int, count: int, contenders: Sequence[Contender], goals: Sequence[Goal] = ()) -> Case:
    if size >= 1024:
        return Case(group, _shape(size, count), GB_PER_S, contenders, goals, amount=size * count)
    return Case(group, _shape(size, count), M_RECORDS_PER_S, contenders, goals, amount=count)


def _columns(values: Sequence[bytes]) -> tuple[bytes, Any]:
    return b"".join(values), np.fromiter(accumulate(map(len, values), initial=0), np.int32, len(values) + 1)


def _floor(values: Sequence[bytes]) -> Contender:
    lib = floors.library()
    data, offsets = _columns(values)
    out = ctypes.create_string_buffer(len(data) + 32 * len(values) + 128)
    arguments = (data, offsets.ctypes.data, len(values), peers.TIMESTAMP_MS, out)

    def encode() -> bytes:
        assert len(offsets) == len(values) + 1  # and keeps alive what `arguments` points into
        size = lib.floor_encode(*arguments)
        return out.raw[:size]

    return Contender(C_FLOOR, Role.FLOOR, lambda repeat: lib.floor_encode_ns(*arguments, repeat), encode)


def _encode_columns(setting: Setting, size: int, count: int) -> Case:
    values = some_values(size, count)
    data, offsets = _columns(values)
    contenders = [
        python(
            kernels.NAME,
            Role(kernels.NAME),
            "encode(data, offsets, **place)",
            encode=kernels.encode_columns,
            data=data,
            offsets=offsets,
            place=PLACE,
        )
        for kernels in setting.kernels
    ]
    if setting.has_compiler:
        contenders.append(_floor(values))
    return _case("encode v2 batch from columns", size, count, contenders, [Goal(against=(C_FLOOR,), at_least=0.6)])


def _decode_columns(setting: Setting, size: int, count: int) -> Case:
    batch = setting.kernels[0].encode_values(some_values(size, count), **PLACE)
    contenders = [
        python(
            kernels.NAME,
            Role(kernels.NAME),
            "decode(batch)",
            partial(_column_values, kernels, batch),
            decode=kernels.decode_batch,
            batch=batch,
        )
        for kernels in setting.kernels
    ]
    goals = [Goal(against=("aiokafka",), at_least=10.0)] if (size, count) == (100, 1000) else []
    return _case("decode v2 batch to columns", size, count, [*contenders, *_decoders(batch)], goals)


def _column_values(kernels: Kernels, batch: bytes) -> list[bytes]:
    columns = kernels.decode_batch(batch)
    spans = zip(columns.value_starts.tolist(), columns.value_lengths.tolist(), strict=True)
    return [bytes(columns.data[start : start + length]) for start, length in spans]


def _decode_values(setting: Setting, size: int, count: int) -> Case:
    batch = setting.kernels[0].encode_values(some_values(size, count), **PLACE)
    contenders = [
        python(kernels.NAME, Role(kernels.NAME), "decode(batch)", decode=kernels.decode_values, batch=batch)
        for kernels in setting.kernels
    ]
    return _case("decode v2 batch to a list of values", size, count, [*contenders, *_decoders(batch)])


def _decoders(batch: bytes) -> Iterator[Contender]:
    for name, (decode, values) in peers.batch_decoders(batch).items():
        yield python(name, Role.PEER, "decode()", partial(_after, decode, values), decode=decode)


def _after(first: Callable[[], Any], then: Callable[[Any], Any]) -> Any:
    return then(first())


def _accumulate(setting: Setting, size: int, count: int) -> Iterator[Case]:
    """What an append costs before it meets the disk: encoded straight into the open batch, sealed once."""
    values = some_values(size, count)

    def one_by_one(batch: Any) -> bytes:
        batch.open(0, 0, peers.TIMESTAMP_MS)
        append = batch.append
        for value in values:
            append(value)
        sealed: bytes = batch.seal()
        return sealed

    def at_once(batch: Any) -> bytes:
        batch.open(0, 0, peers.TIMESTAMP_MS)
        batch.append_many(values)
        sealed: bytes = batch.seal()
        return sealed

    for name, fill in (("one by one", one_by_one), ("append_many", at_once)):
        contenders = [
            python(kernels.NAME, Role(kernels.NAME), "fill(batch)", fill=fill, batch=kernels.Accumulator())
            for kernels in setting.kernels
        ]
        yield Case(f"accumulate and seal, {name}", _shape(size, count), M_RECORDS_PER_S, contenders, amount=count)
