"""`brokers` and `configs` of the image at an offset, or what changed of them."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource
from fastquorum.controller.image.diff import map_changes
from fastquorum.controller.image.view import resource_kind, resource_name
from fastquorum.spark.tables.columns import Columns, number, plain, uuids
from fastquorum.spark.tables.images import ImageTable

LISTENERS: Final = pa.list_(
    pa.struct([("name", pa.string()), ("host", pa.string()), ("port", pa.int32()), ("security_protocol", pa.int16())])
)
FEATURES: Final = pa.list_(
    pa.struct([("name", pa.string()), ("min_supported_level", pa.int16()), ("max_supported_level", pa.int16())])
)
_FEATURE_FIELDS: Final[tuple[str, ...]] = tuple(field.name for field in FEATURES.value_type)
_BROKER: Final[Columns] = {
    "broker_epoch": number(pa.int64(), "epoch"),
    "incarnation_id": plain(pa.string(), lambda broker: str(broker.incarnation_id)),
    "fenced": plain(pa.bool_(), lambda broker: broker.fenced),
    "in_controlled_shutdown": plain(pa.bool_(), lambda broker: broker.in_controlled_shutdown),
    "rack": plain(pa.string(), lambda broker: broker.rack),
    "listeners": plain(LISTENERS, lambda broker: [each._asdict() for each in broker.listeners]),
    "features": plain(
        FEATURES, lambda broker: [dict(zip(_FEATURE_FIELDS, each, strict=True)) for each in broker.features]
    ),
    "log_dirs": uuids("directories"),
    "cordoned_log_dirs": uuids("cordoned_directories"),
}
"""`cordoned_log_dirs` is null until the broker has said."""
_ConfigKey = tuple[Resource, str]


def _configs(image: Image) -> Iterator[tuple[_ConfigKey, str]]:
    for resource, values in sorted(image.configs.items()):
        for name, value in sorted(values.items()):
            yield (resource, name), value


def _config_changes(before: Image, after: Image) -> Iterator[tuple[Any, ...]]:
    for resource, was, now in map_changes(before.configs, after.configs, resource_name):
        for name, old, new in map_changes(was or {}, now or {}):
            yield (resource, name), old, new


BROKERS: Final = ImageTable(
    "brokers",
    {"broker_id": plain(pa.int32(), lambda broker_id: broker_id)},
    _BROKER,
    lambda image: sorted(image.brokers.items()),
    lambda before, after: map_changes(before.brokers, after.brokers),
    has_topics=False,
)
CONFIGS: Final = ImageTable(
    "configs",
    {
        "resource_type": plain(pa.string(), lambda key: resource_kind(key[0])),
        "resource_name": plain(pa.string(), lambda key: key[0].name),
        "name": plain(pa.string(), lambda key: key[1]),
    },
    {"value": plain(pa.string(), lambda value: value)},
    _configs,
    _config_changes,
)
"""What was set, as it was set. The resource_name "" stands for every broker's default."""
