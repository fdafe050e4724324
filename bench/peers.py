"""The peers' ways to encode and decode, each brought to one shape. A peer that is not installed is left out."""

import importlib
import io
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

TIMESTAMP_MS = 1_700_000_000_000
NO_PRODUCER = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}


@cache
def module(name: str) -> Any:
    """A peer's module; None if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kafka-python loads its schemas in a way that Python deprecates
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name is not None and name.split(".")[0] == missing.name.split(".")[0]:
                return None
            raise


def batch_encoders(values: Sequence[bytes]) -> dict[str, Callable[[], bytes]]:
    """Peer -> a function that encodes these values as one v2 batch, as its own producer does."""
    found: dict[str, Callable[[], bytes]] = {}
    for peer, path in (
        ("aiokafka", "aiokafka.record.default_records"),
        ("kafka-python", "kafka.record.default_records"),
    ):
        records = module(path)
        if records is not None:
            found[peer] = _built_by(records.DefaultRecordBatchBuilder, values)
    if module("kio") is not None:
        found["kio"] = _kio_encoder(values)
    return found


def _built_by(builder: Any, values: Sequence[bytes]) -> Callable[[], bytes]:
    def encode() -> bytes:
        batch = builder(magic=2, compression_type=0, is_transactional=False, batch_size=1 << 24, **NO_PRODUCER)
        append = batch.append
        for offset, value in enumerate(values):
            append(offset, TIMESTAMP_MS, None, value, [])
        built: bytes = batch.build()
        return built

    return encode


def _kio_encoder(values: Sequence[bytes]) -> Callable[[], bytes]:
    schema, write_batch = module("kio.records.schema"), module("kio.records.writers").write_batch
    at = datetime.fromtimestamp(TIMESTAMP_MS / 1000, UTC)

    def encode() -> bytes:
        records = tuple(
            schema.Record(attributes=0, timestamp=at, offset=offset, key=None, value=value, headers=())
            for offset, value in enumerate(values)
        )
        batch = schema.NewRecordBatch(records=records, attributes=0, **NO_PRODUCER)
        out = io.BytesIO()
        write_batch(out, batch)
        return out.getvalue()

    return encode


def batch_decoders(batch: bytes) -> dict[str, tuple[Callable[[], Any], Callable[[Any], list[bytes]]]]:
    """Peer -> (checksum and decode all records, the values out of what that gives)."""
    found: dict[str, tuple[Callable[[], Any], Callable[[Any], list[bytes]]]] = {}

    def values(records: Any) -> list[bytes]:
        return [record.value for record in records]

    for peer, path in (
        ("aiokafka", "aiokafka.record.default_records"),
        ("kafka-python", "kafka.record.default_records"),
    ):
        records = module(path)
        if records is not None:
            found[peer] = (_decoded_by(records.DefaultRecordBatch, batch), values)
    if module("kio") is not None:
        read_batch = module("kio.records.readers").read_batch
        found["kio"] = (lambda: read_batch(batch, 0)[0].records, values)
    return found


def _decoded_by(reader: Any, batch: bytes) -> Callable[[], Any]:
    def decode() -> Any:
        theirs = reader(batch)
        if not theirs.validate_crc():
            raise AssertionError("the peer finds the checksum wrong")
        return list(theirs)

    return decode


class Codec(NamedTuple):
    """The codec of one library for one message's body."""

    encode: Callable[[], bytes]
    """Encodes the message that it had decoded from the frame's body."""
    decode: Callable[[], Any]
    encode_again: Callable[[Any], bytes]
    """Encodes what it decoded, to see that it read all of it."""


def message_codecs(name: str, version: int, body: bytes) -> dict[str, Codec]:
    """Peer -> codec, for the peers that know this message in this version. `name` as Kafka's: FetchRequest, ..."""
    makers = {"aiokafka": _aiokafka_codec, "kafka-python": _kafka_python_codec, "kio": _kio_codec}
    made = ((peer, make(name, version, body)) for peer, make in makers.items())
    return {peer: codec for peer, codec in made if codec is not None}


def _aiokafka_codec(name: str, version: int, body: bytes) -> Codec | None:
    schema = getattr(module("aiokafka.protocol.fetch"), f"{name}_v{version}", None)
    if schema is None:
        return None
    return Codec(schema.decode(body).encode, lambda: schema.decode(body), lambda message: message.encode())


def _kafka_python_codec(name: str, version: int, body: bytes) -> Codec | None:
    schema = getattr(module("kafka.protocol.consumer.fetch"), name, None)
    if schema is None or version > schema.max_version:
        return None

    def encode(message: Any) -> bytes:
        message._header = None  # what its encode looks for and its decode leaves out
        encoded: bytes = message.encode(version=version)
        return encoded

    def decode() -> Any:
        return schema.decode(body, version=version)

    message = decode()
    message._header = None
    return Codec(lambda: message.encode(version=version), decode, encode)


def _kio_codec(name: str, version: int, body: bytes) -> Codec | None:
    kind = "Request" if name.endswith("Request") else "Response"
    schema = module(f"kio.schema.{name.removesuffix(kind).lower()}.v{version}.{kind.lower()}")
    if schema is None:
        return None
    serial = module("kio.serial")
    read, write = serial.entity_reader(getattr(schema, name)), serial.entity_writer(getattr(schema, name))

    def encode(message: Any) -> bytes:
        out = io.BytesIO()
        write(out, message)
        return out.getvalue()

    message, size = read(body, 0)
    assert size == len(body)
    return Codec(lambda: encode(message), lambda: read(body, 0), lambda read: encode(read[0]))
