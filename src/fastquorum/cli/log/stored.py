"""Files of batches as they lie on disk, good or bad: what the dump commands read.

Unlike `storage.offline`, which vouches for what it yields, this shows damaged batches too: one does not look at a log
only while it is healthy.
"""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastquorum.errnos import reason, remedy
from fastquorum.errors import CorruptionError, DirectoryError, StorageFailed, UnsupportedVersion, WireError
from fastquorum.kernels import BatchFault, BatchInfo, Fault, Kernels, Record
from fastquorum.storage import names
from fastquorum.storage.identity import LogKind
from fastquorum.storage.io.odd import check_not_odd
from fastquorum.storage.io.opening import check_holds_batches
from fastquorum.storage.log.reading import whole_batches
from fastquorum.storage.log.scanning import nonzero_end
from fastquorum.storage.properties import parse_properties
from fastquorum.wire import to_json
from fastquorum.wire.records.control import decode_control_record
from fastquorum.wire.records.metadata import decode_metadata_record, record_type_name


class ShownBatch(NamedTuple):
    """A whole batch; `info` tells its position in the file, and whether its CRC is right."""

    info: BatchInfo
    data: bytes


class Leftover(NamedTuple):
    """What follows the last whole batch: the beginning of another, or zeros."""

    position: int
    size_bytes: int
    is_zero: bool


def read_batches(path: str, kernels: Kernels) -> Iterator[ShownBatch | Leftover]:
    """Yield every whole batch, and in the end what is left over, if anything. CorruptionError at invalid bytes."""
    check_not_odd(path)
    try:
        file = kernels.SegmentFile(path, "read")
    except StorageFailed as error:
        raise DirectoryError(f"cannot be read: {error.detail}", remedy(error.errno_code), path) from error
    try:
        end = file.size_bytes
        position = 0
        for info, data in whole_batches(kernels, file, end):
            yield ShownBatch(info, data)
            position = info.position + info.size_bytes
        if position == end:
            return
        is_zero = nonzero_end(file, position, end) == position
        if not is_zero:
            fault = kernels.scan(file.read(position, 1 << 16)).fault
            if fault is None or fault.reason is not BatchFault.TRUNCATED:
                fault = fault or Fault(BatchFault.TRUNCATED, 0, -1, -1, -1)
                raise CorruptionError(*fault._replace(position=position), path=path)
        yield Leftover(position, end - position, is_zero)
    finally:
        file.close()


def files_of(path: str) -> list[str]:
    """The file, or the segments of the data or log directory that `path` names, in order. DirectoryError."""
    if not os.path.isdir(path):
        check_holds_batches(path)
        return [path]
    for directory in (os.path.join(path, names.LOG_DIRECTORY), path):
        if os.path.isdir(directory):
            found = [name for name in _listed(directory) if names.parse_segment(name) is not None]
            if found:
                return [os.path.join(directory, name) for name in found]
    raise DirectoryError("there is no log here", "name a data directory, a log directory or a file", path)


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise DirectoryError(f"cannot be read: {reason(error)}", remedy(error.errno or 0), directory) from error


def kind_of(path: str) -> LogKind:
    """What the records of this file are: the data directory around it knows. Kafka's own are metadata."""
    directory = os.path.dirname(os.path.abspath(path))
    for root in (directory, os.path.dirname(directory)):
        path = os.path.join(root, names.OWN_PROPERTIES)
        check_not_odd(path)
        try:
            with open(path, "rb") as file:
                return LogKind(parse_properties(file.read()).get("log.kind", LogKind.METADATA))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise DirectoryError(f"{names.OWN_PROPERTIES} cannot be read: {error}", path=root) from error
    return LogKind.METADATA


def describe_record(record: Record, *, is_control: bool, kind: LogKind) -> dict[str, Any]:
    """What a record holds: metadata and control records decoded, others as text, or base64 where they are not text."""
    if is_control and record.key is not None and record.value is not None:
        try:
            control, message = decode_control_record(record.key, record.value)
        except WireError as error:
            return {"error": str(error)}
        return {"control": control.name, "data": to_json(message, 0)}
    if kind is LogKind.METADATA and record.value is not None:
        try:
            decoded, version = decode_metadata_record(record.value)
        except (WireError, UnsupportedVersion) as error:
            return {"error": str(error), "value": readable(record.value)}
        return {"type": record_type_name(type(decoded)), "version": version, "data": to_json(decoded, version)}
    shown: dict[str, Any] = {"value": readable(record.value)}
    if record.key is not None:
        shown["key"] = readable(record.key)
    if record.headers:
        shown["headers"] = [[header.key, readable(header.value)] for header in record.headers]
    return shown


def readable(data: bytes | None) -> Any:
    """Text if it is UTF-8, else {"base64": ...}."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode("ascii")}
