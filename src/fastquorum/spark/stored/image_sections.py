"""The sections of an image, as the table `image` names them."""

import json
from typing import Any, Final

SECTIONS: Final = {
    "feature": "features",
    "broker": "brokers",
    "controller": "controllers",
    "topic": "topics",
    "partition": "partitions",
    "config": "configs",
    "client quota": "clientQuotas",
    "producer ids": "nextProducerId",
    "acl": "acls",
    "scram": "scram",
    "delegation token": "delegationTokens",
}
"""Section of each kind of difference."""
BARE: Final = {"feature": "level", "producer ids": "next"}
"""Kinds that an image shows as a plain value, and the name that a difference gives that value."""


def compact(shown: Any) -> str:
    """Return a thing of an image as JSON, as the table has it."""
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
