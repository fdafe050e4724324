"""/metrics, /healthz and /readyz by HTTP, on a thread of its own.

A request has a few seconds from its connection on, whatever its client does; of too many connections the oldest goes.
The replica is asked, never waited for beyond a second. Sources: RFC 9112; Kubernetes, "Configure Probes".
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import h11

from fastquorum.node.io.repeating import Repeating
from fastquorum.node.io.sockets.accepting import Acceptor
from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.exposition import CONTENT_TYPE, page
from fastquorum.observe.families import NodeView
from fastquorum.observe.health import HealthVerdict, health, readiness
from fastquorum.observe.recorder import Recorder
from fastquorum.observe.window import SAMPLE_US
from fastquorum.threads import start_thread

CONNECTIONS_MAX: Final = 32
REQUEST_S: Final = 5.0
REQUEST_BYTES_MAX: Final = 16 * 1024
_PIECE_BYTES: Final = 4096
"""Read at once; so much may come beyond REQUEST_BYTES_MAX."""
_REFUSALS: Final = {
    HTTPStatus.BAD_REQUEST: "this is not an HTTP/1 request with a host\n",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "the request is too long\n",
}
ANSWER_S: Final = 1.0
"""The replica's thread has this long to answer."""
JOIN_S: Final = 2.0
_TEXT: Final = "text/plain; charset=utf-8"
_INDEX: Final = "/metrics  for Prometheus\n/healthz  is the replica alive?\n/readyz   can it serve clients?\n"


class HttpResponse(NamedTuple):
    """What a path leads to."""

    status: HTTPStatus
    body: str
    content_type: str = _TEXT


class MetricsServer:
    """A Companion of a node. It listens before there is one, so that probes see it start."""

    def __init__(self, listening: socket.socket) -> None:
        """The socket is the server's from here on."""
        self._listening = listening
        self._recorder: Recorder | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event
        self._runs = threading.Event()
        self._faults = Repeating()
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        """By age, the oldest first."""
        self._leaving: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        """Aborted to make room for others, and not over yet."""
        self._thread = threading.Thread(target=self._run, name="fastquorum-metrics", daemon=True)

    # --- from any thread ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Return once it serves."""
        start_thread(self._thread)
        self._runs.wait()

    def watch(self, recorder: Recorder) -> None:
        """There is a node now."""
        self._recorder = recorder

    def close(self) -> None:
        """End it, with all requests under way. Idempotent."""
        if self._loop is None or not self._thread.is_alive():
            self._listening.close()
            return
        try:
            self._loop.call_soon_threadsafe(self._over.set)
        except RuntimeError:  # it has ended by itself meanwhile
            return
        if self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def abandon_in_child(self) -> None:
        """After fork, in the child: the port and the connections are the parent's."""
        self._listening.close()
        for writer in [*self._open, *self._leaving]:
            writer.get_extra_info("socket")._sock.close()

    # --- its thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._runs.set()
            self._listening.close()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(self._on_fault)
        acceptor = Acceptor(self._listening, self._on_connected, REQUEST_BYTES_MAX)
        looking = asyncio.create_task(self._look_now_and_then())
        self._runs.set()
        await self._over.wait()
        looking.cancel()
        await acceptor.stop()
        served = self._open | self._leaving
        for writer in served:
            writer.transport.abort()
        if served:
            await asyncio.wait(served.values())  # each has REQUEST_S at most

    def _on_fault(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A request that failed by a fault of ours, or the like."""
        error = context.get("exception")
        self._faults.say(f"metrics: {context.get('message')}: {error!r}", error)

    async def _look_now_and_then(self) -> None:
        """For the rates of the last half minute, whether or not anybody scrapes."""
        while True:
            recorder = self._recorder
            if recorder is not None and recorder.node.is_running:
                await self._view()
            await asyncio.sleep(SAMPLE_US / 1e6 if recorder is not None else 0.1)

    def _on_connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            oldest = next(iter(self._open))
            self._leaving[oldest] = self._open.pop(oldest)  # or the next one would find it here still
            oldest.transport.abort()
        task = asyncio.create_task(self._serve_one(reader, writer))
        self._open[writer] = task

        def over(_: "asyncio.Task[None]") -> None:
            # Not in the task's own hands: one that is cancelled before it has begun runs none of its code.
            self._open.pop(writer, None)
            self._leaving.pop(writer, None)
            writer.close()

        task.add_done_callback(over)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)  # so that `drain` waits until the kernel has all of it
        try:
            async with asyncio.timeout(REQUEST_S):
                writer.write(await self._response(reader))
                await writer.drain()
                await _until_the_client_is_through(reader, writer)
        except (TimeoutError, ConnectionError):
            writer.transport.abort()  # no client waits for a response

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES_MAX)
        try:
            while (request := http.next_event()) is h11.NEED_DATA:
                http.receive_data(await reader.read(_PIECE_BYTES))
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            return _encoded(http, HttpResponse(status, _REFUSALS.get(status, status.description + "\n")))
        if not isinstance(request, h11.Request):
            raise ConnectionAbortedError  # the client has left without a request
        if not request.http_version.startswith(b"1."):
            return _encoded(http, HttpResponse(HTTPStatus.BAD_REQUEST, _REFUSALS[HTTPStatus.BAD_REQUEST]))
        if request.method not in (b"GET", b"HEAD"):
            refusal = HttpResponse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are served\n")
            return _encoded(http, refusal, [("Allow", "GET, HEAD")])
        answer = await self._answer(request.target.decode("latin-1").partition("?")[0])
        return _encoded(http, answer, has_body=request.method == b"GET")

    async def _answer(self, path: str) -> HttpResponse:
        answers: dict[str, Callable[[], Awaitable[HttpResponse]]] = {
            "/metrics": self._metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
        }
        if path in answers:
            return await answers[path]()
        if path == "/":
            return HttpResponse(HTTPStatus.OK, _INDEX)
        return HttpResponse(HTTPStatus.NOT_FOUND, f"there is no {path[:80]}; there are\n{_INDEX}")

    async def _metrics(self) -> HttpResponse:
        return HttpResponse(HTTPStatus.OK, page(await self._view()), CONTENT_TYPE)

    async def _healthz(self) -> HttpResponse:
        recorder = self._recorder
        if recorder is None:
            return _verdict(health(None, 0))
        if recorder.node.error is None:
            await self._measured()  # so that silence is noticed
        return _verdict(health(recorder.node, recorder.silent_us))

    async def _readyz(self) -> HttpResponse:
        recorder = self._recorder
        if recorder is None:
            return _verdict(readiness(None, None, 0))
        metrics = await self._measured() if recorder.node.error is None else None
        return _verdict(readiness(recorder.node, metrics, recorder.silent_us))

    async def _view(self) -> NodeView | None:
        metrics = await self._measured()
        return None if metrics is None or self._recorder is None else self._recorder.view(metrics)

    async def _measured(self) -> NodeMetrics | None:
        """Return the metrics; None if there is no replica, or it does not answer in time."""
        recorder, loop = self._recorder, asyncio.get_running_loop()
        if recorder is None or recorder.node.is_over:
            return None
        answered: asyncio.Future[NodeMetrics] = loop.create_future()

        def on_metrics(metrics: NodeMetrics) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, answered, metrics)

        recorder.ask(on_metrics)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answered
        except TimeoutError:
            return None
        finally:
            recorder.forget(on_metrics)


async def _until_the_client_is_through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A connection closed with bytes unread is reset, and its client may lose the answer (RFC 9112, section 9.6)."""
    try:
        writer.write_eof()
    except OSError:  # the client has reset it itself, which asyncio has not seen yet
        return
    while await reader.read(REQUEST_BYTES_MAX):
        pass


def _resolve(future: "asyncio.Future[NodeMetrics]", metrics: NodeMetrics) -> None:
    if not future.done():
        future.set_result(metrics)


def _verdict(verdict: HealthVerdict) -> HttpResponse:
    return HttpResponse(HTTPStatus.OK if verdict.is_good else HTTPStatus.SERVICE_UNAVAILABLE, verdict.reason + "\n")


def _encoded(
    http: h11.Connection, answer: HttpResponse, headers: Sequence[tuple[str, str]] = (), *, has_body: bool = True
) -> bytes:
    body = answer.body.encode()
    common = (
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    )
    head = h11.Response(status_code=answer.status, headers=[*common, *headers], reason=answer.status.phrase)
    return (http.send(head) or b"") + (body if has_body else b"")
