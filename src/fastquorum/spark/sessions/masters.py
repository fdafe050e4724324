"""Does anything answer where a Spark cluster is said to be? Spark itself asks for a minute, with a Java trace a try."""

import re
import threading
from queue import SimpleQueue
from typing import Final

from fastquorum.addresses import AddressError, parse_address
from fastquorum.client.connection import Deadline, NotSent, connect
from fastquorum.errors import UsageError
from fastquorum.types import LISTENER_NAME, Endpoint

TIMEOUT_S: Final = 5.0
"""For looking up and connecting; a host that is there answers at once."""
_KINDS: Final = {"spark": 7077, "sc": 15002}
"""Kinds of URL that name hosts and ports, and the ports where none is named."""
_URL: Final = re.compile(r"(spark|sc)://([^/;]+)")
_HINT: Final = "start it, or name another --master: local[*], or the URL of a Spark cluster that runs"


def check_master(master: str) -> None:
    """UsageError if `master` names hosts, and none of them can be reached. Others, as local[*], are Spark's."""
    match = _URL.match(master)
    if match is None:
        return
    outcomes: SimpleQueue[str | None] = SimpleQueue()
    hosts = [each.strip() for each in match[2].split(",") if each.strip()]
    for each in hosts:
        threading.Thread(target=_try, args=(each, _KINDS[match[1]], outcomes), daemon=True).start()
    why = []
    for _ in hosts:
        outcome = outcomes.get()
        if outcome is None:
            return
        why.append(outcome)
    raise UsageError(f"no Spark can be reached at {master}: {'; '.join(dict.fromkeys(why))}", _HINT)


def _try(place: str, default_port: int, outcomes: "SimpleQueue[str | None]") -> None:
    """Whether somebody listens there: None, or why not."""
    has_port = place.rpartition(":")[1] and not place.endswith("]")  # an IPv6 address in brackets has colons, too
    try:
        host, port = parse_address(place if has_port else f"{place}:{default_port}")
        connect(Endpoint(LISTENER_NAME, host, port), Deadline(TIMEOUT_S)).close()
        outcomes.put(None)
    except AddressError as error:
        outcomes.put(f"{place}: {error}")
    except NotSent as error:
        outcomes.put(f"{place}: {error.reason}")
