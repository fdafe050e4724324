"""Cases of names that are none, and of names that come to exist while somebody waits for them."""

import subprocess
import threading
import time
from typing import Final

import pytest

from fastquorum import sync
from fastquorum.errors import NotAdmitted, NotReady
from tests.broker.clusters import join, one_controller
from tests.process.names.name_server import SILENT, UNKNOWN, Entry
from tests.process.names.rig import COMMAND, COMMIT_S, PORT, TIMEOUT_S, Rig, Steps, all_of, in_time

LATER_S: Final = 2.0
"""When a name begins to exist, after somebody began to wait for it."""
LABEL: Final = "a" * 63
REFUSED: Final = {
    "": "the host is empty",
    ".": "the host is empty",
    "q1..test": "has an empty label",
    f"{LABEL}a.test": "has a label of 64 characters, 63 is the most",
    f"{LABEL}.{LABEL}.{LABEL}.{LABEL}.test": "has 260 characters, 253 is the most",
    "b\u00fccher.test": "is not ASCII: write it as xn--bcher-kva.test",
}
"""Names that cannot be looked up, and what is said of them."""
LONGEST: Final = ".".join((LABEL, LABEL, LABEL, "a" * 56, "test"))
"""253 characters: the most that a name has."""


def refused_names(rig: Rig) -> Steps:
    """Commands are given hosts that are none, and say so at once; the longest name there can be, one that was ASCII's
    to write and one with a dot at its end do for a node and its clients."""
    for host, expected in REFUSED.items():
        voter = ("format", "--data", rig.data(1), "--node-id", "1", "--voters", f"1@{host}:{PORT + 1}")
        client = ("append", "--bootstrap", f"{host}:{PORT + 1}", "--value", "x")
        for words in (voter, client):
            done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
            assert (done.returncode, expected in done.stderr, "Traceback" in done.stderr) == (2, True, False), done
    assert rig.names.questions == {}
    steps = {}
    for node_id, host in enumerate((LONGEST, "xn--bcher-kva.test", "q3.test."), 1):
        address = f"127.0.0.{node_id}"
        rig.zone[host.removesuffix(".")] = Entry((address,))
        rig.format({node_id: host}, node_id)
        rig.start(node_id, None, reached=address)
        words = ("append", "--bootstrap", f"{host}:{PORT + node_id}", "--value", "x", "--timeout", f"{COMMIT_S:g}")
        began = time.monotonic()
        subprocess.run([*COMMAND, *words], check=True, stdout=subprocess.DEVNULL)
        steps[host[:20]] = time.monotonic() - began
        rig.kill(node_id)
    return steps


def embedded_deadline(rig: Rig) -> Steps:
    """The name server is silent of the other voters: what a program waits for at most, it waits no longer."""
    rig.zone |= {"q2.test": SILENT, "q3.test": SILENT}
    voters = f"1@127.0.0.1:{PORT + 1},2@q2.test:{PORT + 2},3@q3.test:{PORT + 3}"
    with sync.open(rig.data(1), node_id=1, voters=voters, cluster_id="A" * 21 + "Q") as quorum:
        began = time.monotonic()
        with pytest.raises(NotReady):
            quorum.wait_ready(timeout=TIMEOUT_S)
        waited_s = all_of(time.monotonic() - began, TIMEOUT_S)
        began = time.monotonic()
        quorum.close(timeout=TIMEOUT_S)
        closed_s = in_time(time.monotonic() - began, TIMEOUT_S)
    return {"not ready": waited_s, "closed": closed_s}


def joined_later(rig: Rig) -> Steps:
    """A broker joins by a controller's name, which exists only later."""
    rig.zone["later.test"] = UNKNOWN
    with one_controller(rig.root) as address, join(f"later.test:{address.rpartition(':')[2]}") as membership:
        began = time.monotonic()
        with pytest.raises(NotAdmitted, match=r"later\.test"):
            membership.wait_active(timeout=TIMEOUT_S)
        waited_s = all_of(time.monotonic() - began, TIMEOUT_S)
        rig.zone["later.test"] = Entry(("127.0.0.1",))
        began = time.monotonic()
        membership.wait_active(timeout=COMMIT_S)
        return {"not admitted": waited_s, "admitted": in_time(time.monotonic() - began, COMMIT_S)}


def loaded_later(rig: Rig) -> Steps:
    """A load is begun by a name that fails at first."""
    rig.zone |= {"q1.test": Entry(("127.0.0.1",)), "later.test": UNKNOWN}
    rig.format({1: "q1.test"}, 1)
    rig.start(1, "127.0.0.1")
    rig.commit()

    def exists() -> None:
        rig.zone["later.test"] = Entry(("127.0.0.1",))

    words = ("load", "--bootstrap", f"later.test:{PORT + 1}", "--rate", "100", "--seconds", "1")
    timer = threading.Timer(LATER_S, exists)
    timer.start()
    began = time.monotonic()
    done = subprocess.run([*COMMAND, *words, "--warmup", "0"], capture_output=True, text=True, check=False)
    timer.join()
    assert done.returncode == 0, done.stderr
    return {"loaded": time.monotonic() - began}
