"""A forked child keeps neither the port nor the connections of the server in its parent."""

import os
import socket
import warnings
from pathlib import Path

from fastquorum import sync
from tests.api.nodes import QUICK, WAIT_S
from tests.observe.builders import get


def test_a_child_lets_go_of_the_port(tmp_path: Path) -> None:
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    quorum = sync.open(tmp_path, node_id=1, metrics="127.0.0.1:0", **QUICK)
    quorum.wait_ready(WAIT_S)
    endpoint = str(quorum.metrics_endpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks is the point
        child = os.fork()
    if child == 0:
        try:
            os.write(ready_write, b"!")
            os.read(go_read, 1)
        finally:
            os._exit(0)
    try:
        assert os.read(ready_read, 1) == b"!"
        assert get(endpoint, "/healthz").status == 200
        quorum.close()
        host, _, port = endpoint.rpartition(":")
        with socket.socket() as sock:
            assert sock.connect_ex((host, int(port))) != 0
    finally:
        os.write(go_write, b"!")
        os.waitpid(child, 0)
        for fd in (ready_read, ready_write, go_read, go_write):
            os.close(fd)
