"""What the steady state asks on every Fetch: the epoch's end, the high watermark, where a frame ends. And what a
controller's start reads most of."""

import struct
from collections.abc import Iterator

from bench.cases.setting import Setting
from bench.measure import GB_PER_S, M_RECORDS_PER_S, NANOSECONDS, Case, Goal, Role, python
from fastquorum.controller.image.partition import Partition
from fastquorum.kernels.producers import Stamp
from fastquorum.types import Uuid
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionRecord

PRODUCERS = 1_000
PARTITIONS = 100
EPOCHS = [(epoch, epoch * 1000) for epoch in range(1, 1001)]
LOG_END = 1_001_000
QUICK_ENOUGH = [Goal(at_most=150.0), Goal(against=("pure",), at_least=20.0)]
ENDS = {3: (1000, 998, 990), 5: (1000, 998, 990, 1000, 7), 7: (1000, 998, 990, 1000, 7, 999, -1)}


def cases(setting: Setting) -> Iterator[Case]:
    caches = [(kernels.NAME, kernels.EpochCache(EPOCHS)) for kernels in setting.kernels]
    for name, text in (("epoch_for", "cache.epoch_for(517_300)"), ("end_offset_for", "cache.end_offset_for(517, end)")):
        contenders = [python(each, Role(each), text, cache=cache, end=LOG_END) for each, cache in caches]
        yield Case("leader epochs, 1,000 of them", name, NANOSECONDS, contenders, QUICK_ENOUGH)
    for voters, ends in ENDS.items():
        contenders = [
            python(
                kernels.NAME,
                Role(kernels.NAME),
                "high_watermark(ends, 10)",
                high_watermark=kernels.high_watermark,
                ends=ends,
            )
            for kernels in setting.kernels
        ]
        yield Case("high watermark", f"{voters} voters", NANOSECONDS, contenders, QUICK_ENOUGH)
    yield _producers(setting)
    yield _partitions(setting)
    for size, count in ((200, 320), (16_000, 4)):
        stream = b"".join(struct.pack(">i", size) + bytes(size) for _ in range(count))
        contenders = [
            python(
                kernels.NAME,
                Role(kernels.NAME),
                "feed(stream)",
                feed=kernels.FrameSplitter(1 << 20).feed,
                stream=stream,
            )
            for kernels in setting.kernels
        ]
        yield Case("split frames", f"{size} B x {count}", GB_PER_S, contenders, amount=len(stream))


def _producers(setting: Setting) -> Case:
    """A batch that is there already, found among those of a thousand producers."""
    contenders = []
    for kernels in setting.kernels:
        producers = kernels.Producers(0)
        for producer_id in range(PRODUCERS):
            producers.appended(Stamp(producer_id, 0, 0, 1), producers.end_offset, producers.end_offset + 1)
        text = "producers.check(stamp)"
        stamp = Stamp(PRODUCERS // 2, 0, 0, 1)
        contenders.append(python(kernels.NAME, Role(kernels.NAME), text, producers=producers, stamp=stamp))
    return Case("producers, 1,000 of them", "check", NANOSECONDS, contenders)


def _partitions(setting: Setting) -> Case:
    """The partitions of one topic, three replicas each, out of a batch's values."""
    homes = [Uuid(bytes([number]) * 16) for number in (1, 2, 3)]
    record = PartitionRecord(topic_id=Uuid(b"0123456789abcdef"), replicas=[1, 2, 3], isr=[1, 2, 3], directories=homes)
    values = []
    for number in range(PARTITIONS):
        record.partition_id = number
        values.append(encode_metadata_record(record, 2))
    contenders = [
        python(
            kernels.NAME, Role(kernels.NAME), "read(values)", read=kernels.PartitionRows(Partition).read, values=values
        )
        for kernels in setting.kernels
    ]
    return Case("rows of partitions", f"{PARTITIONS} of a topic", M_RECORDS_PER_S, contenders, amount=PARTITIONS)
