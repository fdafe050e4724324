"""What a table of records needs to know of every type of record: how it lies in each version, and its name.

A row's type is a metadata record's key, or a negative number for a control record (`kernels.rows`).
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.kernels.rows import TextLayout, control_row_type
from fastquorum.wire.codec.codec import GENERATED, is_flexible
from fastquorum.wire.codec.kernel_layout import struct_layout
from fastquorum.wire.message import Message
from fastquorum.wire.records.control import CONTROL_MESSAGES, VERSION, ControlRecordType
from fastquorum.wire.records.metadata import METADATA_RECORDS, record_type_name

ROW_TYPE_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {key: record_type_name(cls) for key, cls in METADATA_RECORDS.items()}
    | {control_row_type(kind): kind.name for kind in ControlRecordType}
)
"""Names of record types as Kafka's tools print them: PARTITION_RECORD, LEADER_CHANGE."""


@functools.cache
def record_layouts() -> tuple[TextLayout, ...]:
    """Return the layouts of every metadata record in every version, and of KRaft's control records."""
    metadata = [
        _layout(key, cls, version)
        for key, cls in METADATA_RECORDS.items()
        for version in range(cls.__wire__.versions.first, cls.__wire__.versions.last + 1)
    ]
    return (*metadata, *(_layout(control_row_type(kind), cls, VERSION) for kind, cls in CONTROL_MESSAGES.items()))


def _layout(number: int, cls: type[Message], version: int) -> TextLayout:
    layout = struct_layout(cls, version, is_flexible(cls, version))
    return TextLayout(number, version, layout, GENERATED.of(cls, version))
