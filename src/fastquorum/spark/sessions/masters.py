"""Does anything answer where a Spark cluster is said to be? Spark itself asks for a minute or more, with a Java trace a
try."""

import os
import re
import socket
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Final, NamedTuple

from fastquorum.addresses import AddressError, parse_address
from fastquorum.client.connection import Deadline, NotSent, connect
from fastquorum.errors import SparkEnvironmentError, UsageError
from fastquorum.types import LISTENER_NAME, Endpoint

TIMEOUT_S: Final = 5.0
"""For looking up and connecting; a host that is there answers at once."""
SILENCE_S: Final = 10.0
"""For the first byte of an answer; a master whose collector of garbage runs may take some."""
_ANSWER_BYTES: Final = 1 << 16
_STREAM: Final = b"/files/fastquorum"
_STREAM_REQUEST: Final = b"\x06" + len(_STREAM).to_bytes(4, "big") + _STREAM


class _Kind(NamedTuple):
    """What one kind of URL leads to."""

    port: int
    """Where none is named."""
    greeting: bytes
    """What a server of this kind answers, were it with a refusal."""


_KINDS: Final[Mapping[str, _Kind]] = {
    # Spark's transport: a frame with its length in front, that asks for a file which the master does not have.
    "spark": _Kind(7077, (8 + len(_STREAM_REQUEST)).to_bytes(8, "big") + _STREAM_REQUEST),
    # HTTP/2: the preface, and settings, of which there are none.
    "sc": _Kind(15002, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"),
    # A server of HTTPS refuses plain HTTP with words.
    "k8s": _Kind(443, b"GET /version HTTP/1.0\r\n\r\n"),
}
_URL: Final = re.compile(r"(spark|sc|k8s)://(?:https?://)?([^/;]+)")
_HINT: Final = "start it, or name another --master: local[*], or the URL of a Spark cluster that runs"
_HADOOP: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def check_master(master: str) -> None:
    """Raise UsageError if `master` names hosts, and none of them can be reached or says a word; SparkEnvironmentError
    if it is YARN, and nothing here says where that is. Others, as local[*], are Spark's."""
    if master == "yarn":
        _check_yarn()
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


def _check_yarn() -> None:
    """Raise SparkEnvironmentError if there is no configuration of Hadoop."""
    named = {name: os.environ[name] for name in _HADOOP if os.environ.get(name)}
    wanted = f"set {_HADOOP[0]} to the directory of core-site.xml and yarn-site.xml, or name another --master"
    if not named:
        text = f"--master yarn needs a configuration of Hadoop, and neither {' nor '.join(_HADOOP)} is set"
        raise SparkEnvironmentError(text, wanted)
    if not any(os.path.isdir(each) for each in named.values()):
        name, place = next(iter(named.items()))
        raise SparkEnvironmentError(f"{name} is {place}, and there is no such directory", wanted)


def _try(place: str, kind: _Kind, outcomes: "SimpleQueue[str | None]") -> None:
    """Try a connection, and put the outcome: None: something answers; else why not."""
    has_port = place.rpartition(":")[1] and not place.endswith("]")  # an IPv6 address in brackets has colons, too
    try:
        host, port = parse_address(place if has_port else f"{place}:{kind.port}")
        with connect(Endpoint(LISTENER_NAME, host, port), Deadline(TIMEOUT_S)) as connection:
            outcomes.put(_silence(connection, place, kind))
    except AddressError as error:
        outcomes.put(f"{place}: {error}")
    except NotSent as error:
        outcomes.put(f"{place}: {error.reason}")


def _silence(connection: socket.socket, place: str, kind: _Kind) -> str | None:
    """Return why nothing is there though a connection was taken; None: something answers, or hangs up as one does that
    wants to hear of TLS or a secret first, and Spark may ask."""
    try:
        connection.settimeout(SILENCE_S)
        connection.sendall(kind.greeting)
        connection.recv(_ANSWER_BYTES)  # all of it: what is left unread is a reset in the other one's log
    except TimeoutError:
        return f"{place}: it accepts connections, but sends nothing for {SILENCE_S:g} s"
    except OSError:
        return None
    return None
