"""What `join` takes: every option is checked before anything happens."""

from typing import Any

import pytest

from fastquorum.broker.options import JoinOptions, joining
from fastquorum.errors import ConfigError
from fastquorum.types import Uuid

DRAWN = (Uuid(b"i" * 16), Uuid(b"d" * 16))
NEEDED: dict[str, Any] = {"bootstrap": "h1:9093", "broker_id": 7, "cluster_id": "usACA5tBSrKS64DhDt4jig"}
NO_NUMBERS = ["1", 1.5, float("nan"), float("inf"), True, -1, 2**64, [1]]
NO_SWITCHES = ["no", 0, 1, None]
BAD: dict[str, list[Any]] = {
    "bootstrap": [None, 5, "", "h1", []],
    "broker_id": [None, *NO_NUMBERS],
    "cluster_id": [None, 5, ""],
    "host": [5, b"h1"],
    "port": [None, *NO_NUMBERS, 0, 65536],
    "listeners": ["x", 5, [5]],
    "rack": [5, b"r", "r" * 40_000, "\ud800"],
    "log_dirs": [5, "x", [5], []],
    "metadata_dir": [5, b"m", "", " ", "m\0"],
    "ready": NO_SWITCHES,
    "kernels": [None, 5, "fast"],
    "heartbeat_interval_us": [None, *NO_NUMBERS, 0],
    "session_timeout_us": [None, *NO_NUMBERS, 0],
    "heartbeat_timeout_us": [*NO_NUMBERS, 0],
    "request_timeout_us": [None, *NO_NUMBERS, 0],
    "retry_backoff_us": [None, *NO_NUMBERS, 0],
    "fetch_wait_us_max": [None, *NO_NUMBERS],
    "fetch_bytes_max": [None, *NO_NUMBERS, 0, 2**31],
    "metadata_heartbeats": NO_SWITCHES,
    "control_requests": NO_SWITCHES,
}


def test_every_option_is_here() -> None:
    assert BAD.keys() == JoinOptions.__annotations__.keys()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_what_an_option_cannot_be_is_refused_by_its_name(name: str, value: Any) -> None:
    beside = {"host": "h7"} if name == "port" else {"port": 9092} if name == "host" else {}
    with pytest.raises(ConfigError) as refused:
        joining({**NEEDED, **beside, name: value}, *DRAWN)
    assert refused.value.key == name
