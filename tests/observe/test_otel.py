"""Metrics pushed by OTLP arrive at a collector; without the extra, or with bad settings, it is said."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import cast

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource

from fastquorum import sync
from fastquorum.errors import ConfigError
from fastquorum.node.settings.parsing import url
from fastquorum.observe.families import NodeView
from fastquorum.observe.otel import Pusher, metrics_data
from fastquorum.observe.recorder import Recorder
from tests.api.nodes import QUICK, WAIT_S
from tests.observe.builders import view


class Collector(HTTPServer):
    """Keeps what is pushed to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pushed: Queue[tuple[str, ExportMetricsServiceRequest]] = Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportMetricsServiceRequest()
        request.ParseFromString(body)
        self.server.pushed.put((self.path, request))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Failing:
    """An exporter that says why it fails."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._count = 0
        self.has_failed_often = Event()

    def export(self, _: object) -> MetricExportResult:
        self._logger.warning("no %s", "route")
        self._logger.error("given up")
        self._count += 1
        if self._count == 3:
            self.has_failed_often.set()
        return MetricExportResult.FAILURE

    def shutdown(self) -> None:
        pass


class Looking:
    """A recorder of a node that always has the same numbers."""

    def look(self, _: float) -> NodeView:
        return view()


class Kept(logging.Handler):
    """Keeps what is said."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__()
        self._sentences = sentences

    def emit(self, record: logging.LogRecord) -> None:
        self._sentences.append(record.getMessage())


def metrics_of(request: ExportMetricsServiceRequest) -> dict[str, object]:
    return {
        each.name: each for found in request.resource_metrics for scope in found.scope_metrics for each in scope.metrics
    }


def test_a_node_pushes_what_it_would_serve(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    with sync.open(tmp_path, node_id=1, otel=collector.url, **QUICK) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x", timeout=WAIT_S)
        while True:
            path, request = collector.pushed.get(timeout=WAIT_S)
            found = metrics_of(request)
            epoch = found["kafka_server_raft_metrics_current_epoch"].gauge.data_points[0].as_int  # type: ignore[attr-defined]
            if found["fastquorum_appended_records_total"].sum.data_points[0].as_int:  # type: ignore[attr-defined]
                break
        assert path == "/v1/metrics"
        assert epoch == quorum.epoch
        attributes = {each.key: each.value.string_value for each in request.resource_metrics[0].resource.attributes}
        assert attributes["service.name"] == "fastquorum"
        assert attributes["service.instance.id"].endswith("/1")


def test_the_variables_of_opentelemetry_say_where_to_and_as_whom(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    with sync.open(tmp_path, node_id=1, otel="", **QUICK):
        _, request = collector.pushed.get(timeout=WAIT_S)
    attributes = {each.key: each.value.string_value for each in request.resource_metrics[0].resource.attributes}
    assert attributes["service.name"] == "orders"


def test_kinds_become_opentelemetry_s() -> None:
    data = metrics_data(view(), Resource({}), 1, 2)
    found = {each.name: each for each in data.resource_metrics[0].scope_metrics[0].metrics}
    assert type(found["kafka_server_raft_metrics_current_epoch"].data).__name__ == "Gauge"
    syncs = found["fastquorum_syncs_total"]
    assert (type(syncs.data).__name__, syncs.data.is_monotonic, syncs.unit) == ("Sum", True, "1")  # type: ignore[union-attr]
    stages = found["fastquorum_commit_stage_seconds"]
    assert stages.unit == "s"
    whole = next(each for each in stages.data.data_points if each.attributes == {"stage": "append_told"})
    assert whole.count == sum(whole.bucket_counts) == 3  # type: ignore[union-attr]
    assert len(whole.bucket_counts) == len(whole.explicit_bounds) + 1  # type: ignore[union-attr]
    flush = "kafka_log_logflushstats_logflushrateandtimems"
    assert {name for name in found if name.startswith(flush)} == {flush, flush + "_count", flush + "_sum"}


def test_a_collector_that_is_not_there_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
    with sync.open(tmp_path, node_id=1, otel="http://127.0.0.1:9", **QUICK) as quorum:
        quorum.wait_ready(WAIT_S)
        assert quorum.append(b"x", timeout=WAIT_S) > 0


@pytest.mark.parametrize("text", ["collector:4318", "ftp://h"])
def test_a_url_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sync.open(tmp_path / "n1", node_id=1, otel=text)
    assert "expected a URL that begins with http:// or https://" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http://", "the host is empty"),
        ("http:// ", "the host is empty"),
        ("http://[::1", "the bracket of an IPv6 address is not closed"),
        ("http://h:99999", "port '99999' is not a number from 1 to 65535"),
        ("http://h:0", "port '0' is not a number from 1 to 65535"),
        ("http://h:abc/", "port 'abc' is not a number"),
        ("http://h h:1", "no blanks"),
    ],
)
def test_a_url_that_leads_nowhere_is_said_wherever_it_stands(
    tmp_path: Path, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError) as refused:
        sync.open(tmp_path / "n1", node_id=1, otel=text)
    assert why in str(refused.value)
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        monkeypatch.setenv(name, text)
        with pytest.raises(ConfigError) as refused:
            sync.open(tmp_path / "n1", node_id=1, otel="")
        assert (refused.value.key, refused.value.source) == (name, "environment")
        assert why in str(refused.value)
    assert not (tmp_path / "n1").exists()


@pytest.mark.parametrize(
    "text", ["http://h", "https://h:1/base", "http://[::1]:4318", "http://[::1]/v1/metrics?a=b", "http://u:p@h_1:65535"]
)
def test_a_url_that_leads_somewhere_is_taken(text: str) -> None:
    assert url(f" {text} ") == text


def test_pushes_that_fail_are_said_once_a_minute_and_by_this_node_s_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry's own log hears nothing of it, but of what others push in this process."""
    notices: list[tuple[str, str]] = []
    own: list[str] = []
    logger = logging.getLogger("opentelemetry.sdk")
    monkeypatch.setattr(logger, "handlers", [Kept(own)])
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
    failing = Failing(logger)
    pushing = Pusher("http://127.0.0.1:9", lambda *notice: notices.append(notice))
    monkeypatch.setattr(pushing, "_exporter", failing)
    pushing.watch(cast("Recorder", Looking()))
    assert failing.has_failed_often.wait(WAIT_S)
    logger.warning("somebody else")
    pushing.close()
    assert notices == [("metrics_not_pushed", "metrics could not be pushed by OTLP: no route")]
    assert own == ["somebody else"]


def test_a_bad_interval_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "soon")
    with pytest.raises(ConfigError) as refused:
        sync.open(tmp_path / "n1", node_id=1, otel="")
    assert refused.value.key == "OTEL_METRIC_EXPORT_INTERVAL"
    assert not (tmp_path / "n1").exists()


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from fastquorum import sync\n"
        f"sync.open({str(tmp_path / 'n1')!r}, node_id=1, otel='http://h:4318')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "otel.endpoint: OpenTelemetry is not installed" in done.stderr
    assert "pip install 'fastquorum[otel]'" in done.stderr
    assert not (tmp_path / "n1").exists()
