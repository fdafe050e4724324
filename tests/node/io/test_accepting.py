"""Connections taken in by an asyncio loop, and what is said of those that cannot be."""

import asyncio
import logging
import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fastquorum.node.io.log_writer import LOGGER
from fastquorum.node.io.repeating import AGAIN_S, Repeating
from fastquorum.node.io.sockets.accepting import Acceptor
from fastquorum.node.io.sockets.listening import listen
from fastquorum.types import Endpoint
from tests.api.nodes import WAIT_S
from tests.cli.conftest import wait_until


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 20, hard))
    try:
        while True:
            try:
                held.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_it_says_so_once_and_takes_in_whoever_came_when_there_are_some(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> bytes:
        def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()

        with listen(Endpoint("", "127.0.0.1", 0), "port") as listening:
            acceptor = Acceptor(listening, greet, 100)
            with socket.socket() as client:
                client.setblocking(False)
                with no_descriptor_left():
                    await asyncio.get_running_loop().sock_connect(client, listening.getsockname())
                    while not caplog.records:
                        await asyncio.sleep(0.01)
                    await asyncio.sleep(0.5)  # it looks again some times meanwhile, which nobody is told
                greeting = await asyncio.get_running_loop().sock_recv(client, 100)
            await acceptor.stop()
        return greeting

    assert asyncio.run(run()) == b"hello"
    (record,) = caplog.records
    assert "raise the limit" in record.getMessage()


def test_what_goes_on_happening_is_said_once_a_minute_with_how_often(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    fault = Repeating(lambda: now_s)
    for _ in range(1_000):
        fault.say("it went wrong")
    now_s += AGAIN_S
    fault.say("it went wrong")
    wait_until(lambda: len(caplog.records) == 2, WAIT_S)
    assert [record.getMessage() for record in caplog.records] == [
        "it went wrong",
        "it went wrong (999 times more since it was said last)",
    ]


def test_a_log_of_the_program_that_hangs_or_raises_does_nothing_to_the_thread_that_something_went_wrong_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    let_go, hangs = threading.Event(), threading.Event()

    def look(record: logging.LogRecord) -> bool:
        hangs.set()
        let_go.wait()
        raise ValueError(f"no {record.getMessage()}")

    printed = ""

    def is_reported() -> bool:
        nonlocal printed
        printed += capsys.readouterr().err
        return "ValueError: no disk" in printed

    LOGGER.addFilter(look)
    try:
        Repeating().say("disk")
        assert hangs.wait(WAIT_S)
        let_go.set()
        wait_until(is_reported, WAIT_S)
    finally:
        let_go.set()
        LOGGER.removeFilter(look)
