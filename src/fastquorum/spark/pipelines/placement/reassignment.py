"""The moves as the JSON file that kafka-reassign-partitions and `fastquorum topic reassign` take (KIP-455)."""

import json
from collections.abc import Iterator

import pyarrow as pa


def reassignment_text(moves: pa.Table) -> Iterator[str]:
    """Its text, piece by piece: of a million partitions it has a hundred megabytes."""
    yield '{"version":1,"partitions":['
    is_first = True
    for batch in moves.select(["topic", "partition", "planned"]).to_batches(max_chunksize=10_000):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        listed = ({"topic": topic, "partition": number, "replicas": nodes} for topic, number, nodes in rows)
        texts = ",\n".join(json.dumps(each, separators=(",", ":")) for each in listed)
        yield texts if is_first else f",\n{texts}"
        is_first = False
    yield "]}\n"
