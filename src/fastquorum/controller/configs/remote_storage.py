"""Checks the configurations of remote storage, and of the part that stays on the brokers' disks.

Source: KIP-405, KIP-950; Kafka `LogConfig.validate`, which has the same error texts.
"""

from collections.abc import Mapping
from typing import Final

from fastquorum.controller.configs.effective import TOPIC_DEFAULTS
from fastquorum.controller.definitions.checks import is_whole, listed, trimmed

_ENABLE: Final = "remote.storage.enable"
_DELETE_ON_DISABLE: Final = "remote.log.delete.on.disable"
_COPY_DISABLE: Final = "remote.log.copy.disable"
_NOT_THERE: Final = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)
_SIZES: Final = ("retention.bytes", "local.retention.bytes")
_TIMES: Final = ("retention.ms", "local.retention.ms")
_ANY: Final = -1
"""A limit of retention: keep everything."""
_AS_IN_ALL: Final = -2
"""A local limit of retention: the same as the total one."""


def remote_storage_fault(values: Mapping[str, str], before: Mapping[str, str], *, is_there: bool) -> str:
    """Return why a topic may not change to these configurations, each valid in itself; empty if it may.

    `is_there`: brokers have remote storage (`remote.log.storage.system.enable`).
    """
    if _is_on(values, _ENABLE):
        return _enabled_fault(values) if is_there else _NOT_THERE
    if before.get(_ENABLE, "").lower() == "true" and not _is_on(values, _DELETE_ON_DISABLE):
        return (
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data "
            f"and turn to read only, please set `{_ENABLE}=true,{_COPY_DISABLE}=true`. If you want to disable remote "
            f"storage and delete all remote data, please set `{_ENABLE}=false,{_DELETE_ON_DISABLE}=true`."
        )
    return ""


def _enabled_fault(values: Mapping[str, str]) -> str:
    policies = dict.fromkeys(listed(_text(values, "cleanup.policy")))
    if policies and list(policies) != ["delete"]:
        return (
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    faults = [_local_fault(values, *_SIZES), _local_fault(values, *_TIMES)]
    if _is_on(values, _COPY_DISABLE):
        faults += [_copied_fault(values, *_SIZES), _copied_fault(values, *_TIMES)]
    return next(filter(None, faults), "")


def _local_fault(values: Mapping[str, str], of_all: str, of_local: str) -> str:
    """Return why the local limit does not fit: what disks keep is part of the whole."""
    kept, local = _number(values, of_all), _number(values, of_local)
    if kept <= _ANY or local == _AS_IN_ALL:
        return ""
    begin = f"Invalid value {local} for configuration {of_local}: Value must not be"
    if local == _ANY:
        return f"{begin} -1 as {of_all} value is set as {kept}."
    return f"{begin} more than {of_all} property value: {kept}" if local > kept else ""


def _copied_fault(values: Mapping[str, str], of_all: str, of_local: str) -> str:
    """Return why a local limit does not fit where copying is disabled: data that leaves the disks would be lost."""
    kept, local = _number(values, of_all), _number(values, of_local)
    if local in (_AS_IN_ALL, kept):
        return ""
    return (
        f"When `{_COPY_DISABLE}` is set to true, the `{of_local}` and `{of_all}` must be set to the identical value "
        "because there will be no more logs copied to the remote storage."
    )


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return trimmed(_text(values, name)).lower() == "true"


def _number(values: Mapping[str, str], name: str) -> int:
    """Return a value as a number; the default, if another program has written something else."""
    text = _text(values, name)
    return int(trimmed(text)) if is_whole(text) else int(TOPIC_DEFAULTS[name] or 0)


def _text(values: Mapping[str, str], name: str) -> str:
    return values.get(name, TOPIC_DEFAULTS[name] or "")
