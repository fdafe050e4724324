"""The same metrics, pushed by OTLP over HTTP with OpenTelemetry's own exporter, from a thread of its own.

Needs the extra `fastquorum[otel]`. The endpoint, interval, headers and service name come from OpenTelemetry's variables
(OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES); an endpoint given to us is a collector's base, as in the first of them. Source:
OpenTelemetry, "OTLP Exporter Configuration".
"""

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fastquorum.errors import ConfigError
from fastquorum.node.io.repeating import Repeating
from fastquorum.node.settings import parsing as reading
from fastquorum.observe.catalogue import METRICS
from fastquorum.observe.families import US_PER_S, Metric, MetricPoint, NodeView
from fastquorum.observe.recorder import Recorder
from fastquorum.observe.stages import StageCounts
from fastquorum.observe.window import SAMPLE_US
from fastquorum.threads import start_thread
from fastquorum.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import export as otlp
    from opentelemetry.sdk.resources import Resource

INTERVAL_MS: Final = 60_000
ANSWER_S: Final = 2.0
JOIN_S: Final = 2.0
_PATH: Final = "/v1/metrics"
_LIBRARIES: Final = ("opentelemetry", "urllib3")
"""Libraries whose own logging is hidden: the node logs a failed push itself, in its own form."""
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""The first one that is set decides."""
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_SERVICE: Final = "service.name"
_INSTANCE: Final = "service.instance.id"


Notice = Callable[[str, str], None]
"""Callback with the kind of an event, for machines, and a sentence. Called on any thread."""


class _CapturedLogs(logging.Filter):
    """Keeps what OpenTelemetry and its libraries log in one thread, and hides it from their loggers. The logging of
    other threads in this process is left alone."""

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__()
        self._thread = thread
        self._sentences: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """False: it is written no further."""
        if threading.current_thread() is not self._thread:
            return True
        if record.levelno >= logging.WARNING:
            self._sentences.append(record.getMessage())
        return False

    def listen(self) -> None:
        """Forget what was said, and hear every logger that there is by now."""
        self._sentences.clear()
        for each in self._loggers():
            each.addFilter(self)

    def end(self) -> None:
        for each in self._loggers():
            each.removeFilter(self)

    def first(self) -> str:
        """Why, most likely: what follows tells how often it was tried again."""
        return self._sentences[0] if self._sentences else "no reason is known"

    @staticmethod
    def _loggers() -> list[logging.Logger]:
        known = list(logging.root.manager.loggerDict.items())
        return [each for name, each in known if isinstance(each, logging.Logger) and name.startswith(_LIBRARIES)]


class Pusher:
    """A Companion of a node. Made before there is one, so that what is missing is said first."""

    def __init__(self, endpoint: str, on_notice: Notice) -> None:
        """`endpoint` is a URL, or empty; `on_notice` hears of pushes that fail, at once and then once a minute.

        Raises:
            ConfigError: OpenTelemetry is not installed, or cannot use its settings.
        """
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.resources import Resource
        except ImportError as error:
            raise ConfigError(
                f"OpenTelemetry is not installed ({error})", "pip install 'fastquorum[otel]'", "otel.endpoint"
            ) from error
        self._interval_s = _interval_s()
        if not endpoint:
            _check_variables()
        self._exporter = OTLPMetricExporter(endpoint=_metrics_url(endpoint))
        resource = Resource.create()
        if str(resource.attributes.get(_SERVICE, "")).startswith("unknown_service"):
            resource = resource.merge(Resource({_SERVICE: "fastquorum"}))
        self._resource = resource
        self._started_ns = time.time_ns()
        self._recorder: Recorder | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fastquorum-otel", daemon=True)
        self._captured = _CapturedLogs(self._thread)
        self._on_notice = on_notice
        self._failures = Repeating()

    def watch(self, recorder: Recorder) -> None:
        """Begin to push the metrics of a node."""
        self._recorder = recorder
        start_thread(self._thread)

    def close(self) -> None:
        """Push no more. Idempotent."""
        if not self._over.is_set():
            self._over.set()
            self._exporter.shutdown()  # whatever it is trying again is given up
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def abandon_in_child(self) -> None:
        """Its thread did not come along, and it holds nothing open between two pushes."""

    def _run(self) -> None:
        try:
            self._push_on()
        finally:
            self._captured.end()

    def _push_on(self) -> None:
        assert self._recorder is not None
        next_s = time.monotonic() + self._interval_s
        while not self._over.wait(min(SAMPLE_US / US_PER_S, max(next_s - time.monotonic(), 0))):
            view = self._recorder.look(ANSWER_S)
            if time.monotonic() >= next_s:
                next_s += self._interval_s
                if view is not None:
                    self._push(metrics_data(view, self._resource, self._started_ns, time.time_ns()))

    def _push(self, data: "otlp.MetricsData") -> None:
        from opentelemetry.sdk.metrics import export as otlp

        self._captured.listen()
        if self._exporter.export(data) is otlp.MetricExportResult.SUCCESS or self._over.is_set():
            return
        again = self._failures.again()
        if again is not None:
            self._on_notice(
                "metrics_not_pushed", f"metrics could not be pushed by OTLP{again}: {self._captured.first()}"
            )


def metrics_data(view: NodeView, resource: "Resource", started_ns: int, now_ns: int) -> "otlp.MetricsData":
    """One node at one moment, as OpenTelemetry's exporters take it."""
    from opentelemetry.sdk.environment_variables import OTEL_RESOURCE_ATTRIBUTES
    from opentelemetry.sdk.metrics import export as otlp
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    node = view.node
    if _INSTANCE not in os.environ.get(OTEL_RESOURCE_ATTRIBUTES, ""):
        resource = resource.merge(Resource({_INSTANCE: f"{node.cluster_id}/{node.node_id}"}))
    metrics = [
        found
        for metric in METRICS
        for found in _converted(metric, [each for each in metric.points(view) if _has_value(each)], started_ns, now_ns)
    ]
    scope = otlp.ScopeMetrics(InstrumentationScope("fastquorum", __version__), metrics, "")
    return otlp.MetricsData([otlp.ResourceMetrics(resource, [scope], "")])


def _has_value(point: MetricPoint) -> bool:
    return isinstance(point.value, StageCounts) or not math.isnan(point.value)


def _converted(metric: Metric, points: list[MetricPoint], started_ns: int, now_ns: int) -> "list[otlp.Metric]":
    """Convert a metric to one of OpenTelemetry. It has no summary: the parts of one become metrics of their own."""
    from opentelemetry.sdk.metrics import export as otlp

    cumulative = otlp.AggregationTemporality.CUMULATIVE
    found = []
    for suffix in sorted({each.suffix for each in points}):
        numbers: list[otlp.NumberDataPoint] = []
        histograms: list[otlp.HistogramDataPoint] = []
        for each in points:
            if each.suffix != suffix:
                continue
            if isinstance(each.value, StageCounts):
                histograms.append(_histogram(each, each.value, started_ns, now_ns))
            else:
                numbers.append(otlp.NumberDataPoint(dict(each.labels), started_ns, now_ns, each.value))
        data: otlp.Histogram | otlp.Sum | otlp.Gauge
        if histograms:
            data = otlp.Histogram(histograms, cumulative)
        elif metric.kind == "counter" or suffix:
            data = otlp.Sum(numbers, cumulative, is_monotonic=True)
        else:
            data = otlp.Gauge(numbers)
        found.append(otlp.Metric(metric.name + suffix, metric.help, _unit(metric.name), data))
    return found


def _histogram(point: MetricPoint, stage: StageCounts, started_ns: int, now_ns: int) -> "otlp.HistogramDataPoint":
    from opentelemetry.sdk.metrics import export as otlp

    upto = [0, *(count for _, count in stage.buckets), stage.count]
    return otlp.HistogramDataPoint(
        attributes=dict(point.labels),
        start_time_unix_nano=started_ns,
        time_unix_nano=now_ns,
        count=stage.count,
        sum=stage.sum_us / US_PER_S,
        bucket_counts=[after - before for before, after in pairwise(upto)],
        explicit_bounds=[bound / US_PER_S for bound, _ in stage.buckets],
        min=math.inf,  # not known, and left out by the encoding
        max=-math.inf,
    )


def _unit(name: str) -> str:
    """Return the unit in UCUM."""
    base = name.removesuffix("_total")
    return "s" if base.endswith("_seconds") else "By" if base.endswith("_bytes") else "1"


def _metrics_url(endpoint: str) -> str | None:
    """None: OpenTelemetry's variables, or its default, decide."""
    if not endpoint:
        return None
    return endpoint if endpoint.endswith(_PATH) else endpoint.rstrip("/") + _PATH


def _check_variables() -> None:
    """ConfigError if the variable with the endpoint is not a URL."""
    name = next((each for each in _ENDPOINTS if os.environ.get(each)), None)
    if name is None:
        return
    text = os.environ[name]
    try:
        reading.url(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} cannot be used: {error}", "", name, "environment") from error


def _interval_s() -> float:
    text = os.environ.get(_INTERVAL, "").strip() or str(INTERVAL_MS)
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{text!r} cannot be used: expected milliseconds above 0", "", _INTERVAL, "environment")
    return int(text) / 1000
