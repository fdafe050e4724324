"""Which values a configuration may have is decided alike by a controller of ours and by one of Kafka's."""

from collections.abc import Iterator
from typing import Final

import pytest

from fastquorum.controller.definitions.client_metrics import METRICS_CONFIGS
from fastquorum.controller.definitions.groups import GROUP_CONFIGS
from fastquorum.controller.definitions.topics import TOPIC_CONFIGS
from fastquorum.controller.image.configs import ResourceType
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

from .alike import Side, Sides, both
from .kafka import Kafka
from .test_describe_configs import make_topics

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

VALUES: Final = (
    "", " ", "0", "1", "-1", "-2", "-3", "2", "4", "9", "10", "17", "18", "22", "23", "99", "100", "101", "1024",
    "5000", "4999", "15000", "15001", "45000", "44999", "60000", "60001", "3600000", "3600001", "1048575", "1048576",
    "2147483647", "2147483648", "-2147483648", "-131072", "-131073", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", " 7 ", "+5", "1_0", "1.5", "1e3", "0.5", "1.0", "1.01", "-0.1", "NaN", "Infinity",
    "0x10", "1f", "1d", "true", " False ", "TRUE", "yes", "delete", "compact", "delete,compact", "compact , delete",
    "delete,delete", "delete,", ",", "delete,forget", "producer", "gzip", "Zstd", " zstd ", "uncompressed", "none",
    "CreateTime", "LogAppendTime", "createtime", "*", "0:1", "0:1,1:2", "0:1 , 1:2", "*,0:1", "0:1,*", "0:1,", "0:a",
    "a:b", "0", "0:1:2", "0:1,0:1", "earliest", "latest", "by_duration:PT1H", "by_duration:x", "read_committed",
    " earliest ", "by_duration:PT1H ", " CreateTime", "\u00a07", "\t7\n", "0x1p-1", "0x1", ".5", "5.", "1e-400",
    "+NaN", "-Infinity", "0.5f", " 0.5D ", "client_id=a.*", "client_id", "client_id=(", "a,b", "a,a", "x=y",
)  # fmt: skip


@pytest.fixture(scope="module")
def sides(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with both(kafka, tmp_path_factory.mktemp("values")) as started:
        for side in started:
            make_topics(side)
        yield started


def judged(side: Side, kind: int, resource_name: str, name: str, value: str) -> ErrorCode:
    """Whether it could be set: nothing is."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=name, config_operation=0, value=value)
    wanted = [resource(resource_type=kind, resource_name=resource_name, configs=[change])]
    request = IncrementalAlterConfigsRequest(resources=wanted, validate_only=True)
    (answer,) = side.ask(request, 1, IncrementalAlterConfigsResponse).responses
    return ErrorCode(answer.error_code)


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS))
def test_of_a_topic(sides: Sides, name: str) -> None:
    kind = ResourceType.TOPIC
    theirs, ours = sides.ask(lambda side: {each: judged(side, kind, "plain", name, each) for each in VALUES})
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(GROUP_CONFIGS))
def test_of_a_group(sides: Sides, name: str) -> None:
    theirs, ours = sides.ask(lambda side: {each: judged(side, ResourceType.GROUP, "g", name, each) for each in VALUES})
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(METRICS_CONFIGS))
def test_of_a_subscription(sides: Sides, name: str) -> None:
    kind = ResourceType.CLIENT_METRICS
    theirs, ours = sides.ask(lambda side: {each: judged(side, kind, "m", name, each) for each in VALUES})
    assert ours == theirs
