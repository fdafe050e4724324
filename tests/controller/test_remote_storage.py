"""Topics keep their logs in remote storage only where brokers have it, and keep on disks what can be there. KIP-405,
KIP-950."""

from typing import Any

import pytest

from fastquorum.controller.configs.remote_storage import remote_storage_fault
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.configs import IncrementalAlterConfigsRequest
from fastquorum.wire.records.cluster import ConfigRecord
from tests.controller.rig import Controller
from tests.controller.test_topics import ask, create, three, topic

NOT_THERE = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)
ENABLE, COPY, DELETE = "remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"


def change(controller: Controller, **values: str | None) -> tuple[int, str | None]:
    """`_` in a name stands for a dot; None: no longer set."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        resource.AlterableConfig(name=name.replace("_", "."), config_operation=int(value is None), value=value)
        for name, value in values.items()
    ]
    request = IncrementalAlterConfigsRequest(resources=[resource(resource_type=2, resource_name="t", configs=configs)])
    (result,) = ask(controller, request, 1).responses
    return result.error_code, result.error_message


def with_remote_log(**settings: Any) -> Controller:
    """A topic that has one, whoever allowed it."""
    controller = three(**settings)
    controller.topic([1, 2])
    controller.write(ConfigRecord(resource_type=2, resource_name="t", name=ENABLE, value="true"))
    return controller


@pytest.mark.parametrize("value", ["true", " True "])
def test_no_topic_has_a_remote_log_where_brokers_have_no_such_storage(value: str) -> None:
    controller = three()
    (made,) = create(controller, topic(remote_storage_enable=value))
    assert (made.error_code, made.error_message) == (ErrorCode.INVALID_CONFIG, NOT_THERE)
    assert controller.written == []
    controller.topic([1, 2])
    assert change(controller, remote_storage_enable=value) == (ErrorCode.INVALID_CONFIG, NOT_THERE)
    assert controller.written == []


@pytest.mark.parametrize(
    "configs",
    [
        {"remote_storage_enable": "false"},
        {"remote_log_copy_disable": "true", "local_retention_ms": "-1", "retention_ms": "5"},
        {"remote_log_delete_on_disable": "true", "local_retention_bytes": "99", "retention_bytes": "5"},
    ],
)
def test_what_would_hold_for_a_remote_log_is_not_looked_at_without_one(configs: dict[str, str]) -> None:
    (made,) = create(three(), topic(**configs))
    assert made.error_code == 0


def test_with_remote_storage_a_topic_may_have_a_remote_log() -> None:
    controller = three(remote_storage=True)
    (made,) = create(controller, topic(remote_storage_enable="true", local_retention_ms="5000"))
    assert made.error_code == 0
    assert change(controller, retention_ms="4000")[0] == ErrorCode.INVALID_CONFIG
    assert change(controller, retention_ms="5000") == (0, None)


def test_a_remote_log_is_given_up_only_with_what_is_in_it() -> None:
    controller = with_remote_log(remote_storage=True)
    for value in ("false", None):
        code, text = change(controller, remote_storage_enable=value)
        assert code == ErrorCode.INVALID_CONFIG
        assert text is not None
        assert text.startswith("It is invalid to disable remote storage without deleting remote data.")
    assert change(controller, remote_storage_enable="false", remote_log_delete_on_disable="true") == (0, None)


def test_where_the_storage_is_there_no_more_a_remote_log_has_to_be_given_up_first() -> None:
    controller = with_remote_log()
    assert change(controller, retention_ms="5") == (ErrorCode.INVALID_CONFIG, NOT_THERE)
    assert change(controller, remote_storage_enable=None, remote_log_delete_on_disable="true") == (0, None)
    assert change(controller, retention_ms="5") == (0, None)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, ""),
        ({"cleanup.policy": ""}, ""),
        ({"cleanup.policy": "delete,delete"}, ""),
        ({"cleanup.policy": "compact"}, "Remote log storage only supports topics with cleanup.policy=delete"),
        ({"cleanup.policy": "compact,delete"}, "Remote log storage only supports topics with cleanup.policy=delete"),
        ({"local.retention.bytes": "99"}, ""),
        ({"local.retention.bytes": "99", "retention.bytes": "99"}, ""),
        (
            {"local.retention.bytes": "100", "retention.bytes": "99"},
            "Invalid value 100 for configuration local.retention.bytes: Value must not be more than retention.bytes "
            "property value: 99",
        ),
        (
            {"local.retention.ms": "-1"},
            "Invalid value -1 for configuration local.retention.ms: Value must not be -1 as retention.ms value is set "
            "as 604800000.",
        ),
        ({"local.retention.ms": "-1", "retention.ms": "-1"}, ""),
        ({COPY: "true"}, ""),
        ({COPY: "true", "local.retention.ms": "5", "retention.ms": "5"}, ""),
        ({COPY: "true", "local.retention.ms": "5"}, f"When `{COPY}` is set to true, the `local.retention.ms` and"),
        ({COPY: "true", "local.retention.bytes": "5"}, f"When `{COPY}` is set to true, the `local.retention.bytes`"),
    ],
)
def test_what_holds_for_a_remote_log(values: dict[str, str], text: str) -> None:
    fault = remote_storage_fault({ENABLE: "true", **values}, {}, is_there=True)
    assert fault.startswith(text)
    assert bool(fault) == bool(text)
