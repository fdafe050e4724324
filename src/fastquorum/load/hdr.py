"""A high dynamic range histogram: three significant digits from a nanosecond to an hour, and the forms others read.

Values are recorded by arrays, which is why this is not the package `hdrhistogram`: that takes one at a time, and must
not be waited for while a load runs. The tests hold both together. Source: HdrHistogram's encoding V2, its log format
1.3 and its percentile output, as its tools and plotter read them.
"""

import base64
import datetime
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

LOWEST: Final = 1
HIGHEST: Final = 3_600_000_000_000
DIGITS: Final = 3
SUB_BUCKETS: Final = 2048
_HALF: Final = SUB_BUCKETS // 2
_HALF_MAGNITUDE: Final = 10
BUCKETS: Final = 32
"""2048 << 31 is the first such that exceeds HIGHEST."""
_COUNTS: Final = (BUCKETS + 1) * _HALF
_COOKIE: Final = 0x1C849313
_COMPRESSED_COOKIE: Final = 0x1C849314
_HEADER: Final = struct.Struct(">iiiiqqd")
_NS_PER_MS: Final = 1e6
PERCENTILES: Final = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9))
_TICKS_PER_HALF: Final = 5


class Histogram:
    """Counts of values, in nanoseconds. What is outside of 1 ns to 1 h counts at the edge."""

    def __init__(self) -> None:
        self.counts: npt.NDArray[np.int64] = np.zeros(_COUNTS, np.int64)

    def record(self, values: npt.NDArray[np.int64]) -> None:
        """Shape (n,), nanoseconds."""
        if len(values):
            self.counts += np.bincount(_indices(np.clip(values, LOWEST, HIGHEST)), minlength=_COUNTS)

    def add(self, other: "Histogram") -> None:
        self.counts += other.counts

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def max(self) -> int:
        """The largest value, to three digits; 0 if there is none."""
        filled = np.flatnonzero(self.counts)
        return int(_highest(filled[-1:])[0]) if len(filled) else 0

    @property
    def mean(self) -> float:
        total = self.total
        return float((self.counts * _middle()).sum() / total) if total else 0.0

    @property
    def deviation(self) -> float:
        total = self.total
        return float(np.sqrt((self.counts * (_middle() - self.mean) ** 2).sum() / total)) if total else 0.0

    def at_percentile(self, percentile: float) -> int:
        """The value that so many percent of the values do not exceed; 0 if there is none."""
        total = self.total
        if not total:
            return 0
        wanted = max(int(min(percentile, 100.0) / 100 * total + 0.5), 1)
        index = np.searchsorted(np.cumsum(self.counts), wanted)
        return int(_highest(np.array([index]))[0])

    def as_us(self) -> dict[str, float]:
        """p50, p90, p99, p999 and max, in microseconds."""
        figures = {name: self.at_percentile(percent) / 1e3 for name, percent in PERCENTILES}
        return {**figures, "max": self.max / 1e3}

    def encoded(self) -> str:
        """HdrHistogram's V2 encoding, compressed, in base64: as its logs hold it."""
        filled = np.flatnonzero(self.counts)
        payload = _zigzags(self.counts[: filled[-1] + 1].tolist() if len(filled) else [])
        header = _HEADER.pack(_COOKIE, len(payload), 0, DIGITS, LOWEST, HIGHEST, 1.0)
        packed = zlib.compress(header + payload)
        return base64.b64encode(struct.pack(">ii", _COMPRESSED_COOKIE, len(packed)) + packed).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> "Histogram":
        """The other way; also of what others encoded, to as many digits and from 1 up. ValueError if it is not that."""
        histogram = cls()
        try:
            raw = base64.b64decode(text, validate=True)
            cookie, size = struct.unpack_from(">ii", raw)
            whole = zlib.decompress(raw[8 : 8 + size])
            inner, length, _, digits, lowest, highest, _ = _HEADER.unpack_from(whole)
        except (struct.error, zlib.error) as error:
            raise ValueError(f"this is not a histogram: {error}") from error
        # Where buckets lie depends on the digits and the lowest value alone.
        if (cookie, inner, digits, lowest) != (_COMPRESSED_COOKIE, _COOKIE, DIGITS, LOWEST) or highest > HIGHEST:
            raise ValueError("this histogram has another layout")
        position = 0
        for count in _unzigzag(whole[_HEADER.size : _HEADER.size + length]):
            if position - min(count, -1) > _COUNTS:
                raise ValueError("this histogram has more counts than its layout")
            if count >= 0:
                histogram.counts[position] = count
            position += 1 if count >= 0 else -count
        return histogram

    def levels(self) -> Iterator[tuple[int, float, int]]:
        """Value, fraction and count up to it: denser and denser towards 1, as HdrHistogram's tools list them."""
        total, reached = self.total, 0
        if not total:
            return
        indices = np.flatnonzero(self.counts)
        values = _highest(indices).tolist()
        upto = np.cumsum(self.counts[indices]).tolist()
        level = 0.0
        for value, count in zip(values, upto, strict=True):
            while level <= 100.0 * count / total and reached < total:
                yield value, level / 100, count
                if count == total and level >= 100.0 - 100.0 / total / 2:
                    break
                halvings = int(np.log2(100.0 / (100.0 - level))) + 1
                level += 100.0 / (_TICKS_PER_HALF * 2**halvings)
            reached = count
        yield values[-1], 1.0, total

    def percentile_lines(self) -> Iterator[str]:
        """An `.hgrm` file, in milliseconds, line by line."""
        yield f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}"
        yield ""
        for value, fraction, count in self.levels():
            inverse = f"{1 / (1 - fraction):14.2f}" if fraction < 1 else ""
            yield f"{value / _NS_PER_MS:12.3f} {fraction:2.12f} {count:10d} {inverse}".rstrip()
        mean, deviation = self.mean / _NS_PER_MS, self.deviation / _NS_PER_MS
        yield f"#[Mean    = {mean:12.3f}, StdDeviation   = {deviation:12.3f}]"
        yield f"#[Max     = {self.max / _NS_PER_MS:12.3f}, Total count    = {self.total:12d}]"
        yield f"#[Buckets = {BUCKETS:12d}, SubBuckets     = {SUB_BUCKETS:12d}]"


class Interval(NamedTuple):
    """A part of a run; times in seconds since its start."""

    start_s: float
    length_s: float
    histogram: Histogram


def log_lines(started: datetime.datetime, intervals: Iterable[Interval], tag: str) -> Iterator[str]:
    """An `.hlog` file (log format 1.3), line by line. Values are in nanoseconds, maxima in milliseconds as always."""
    yield f"#[fastquorum load: {tag}; latencies in nanoseconds]"
    yield "#[Histogram log format version 1.3]"
    yield f"#[StartTime: {started.timestamp():.3f} (seconds since epoch), {started.isoformat(timespec='seconds')}]"
    yield '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    for each in intervals:
        maximum = each.histogram.max / _NS_PER_MS
        yield f"{each.start_s:.3f},{each.length_s:.3f},{maximum:.3f},{each.histogram.encoded()}"


# --- the layout -------------------------------------------------------------------------------------------------------


def _indices(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bucket n holds [2^n x 1024, 2^n x 2048) in steps of 2^n; the first one begins at 0."""
    exponents = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(exponents - 1 - _HALF_MAGNITUDE, 0)
    return (shifts << _HALF_MAGNITUDE) + (values >> shifts)


def value_at(buckets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The largest value, in nanoseconds, that each of these buckets counts."""
    return _highest(buckets)


def _highest(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The largest value that is counted there."""
    shifts = np.maximum((indices >> _HALF_MAGNITUDE) - 1, 0)
    highest: npt.NDArray[np.int64] = ((indices - (shifts << _HALF_MAGNITUDE) + 1) << shifts) - 1
    return highest


def _middle() -> npt.NDArray[np.float64]:
    """What a count stands for on average."""
    indices = np.arange(_COUNTS)
    shifts = np.maximum((indices >> _HALF_MAGNITUDE) - 1, 0)
    lowest = (indices - (shifts << _HALF_MAGNITUDE)) << shifts
    middle: npt.NDArray[np.float64] = (lowest + ((1 << shifts) >> 1)).astype(np.float64)
    return middle


# --- ZigZag LEB128, at most 9 bytes, runs of zeros as one negative number ---------------------------------------------


def _zigzags(counts: list[int]) -> bytes:
    out = bytearray()
    zeros = 0
    for count in counts:
        if count == 0:
            zeros += 1
            continue
        if zeros:
            # A single zero is written as such.
            _put(out, -zeros if zeros > 1 else 0)
            zeros = 0
        _put(out, count)
    return bytes(out)


def _put(out: bytearray, value: int) -> None:
    rest = (value << 1) ^ (value >> 63)
    for _ in range(8):
        if rest < 0x80:
            out.append(rest)
            return
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest & 0xFF)


def _unzigzag(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        is_ninth = shift == 56
        value |= (byte if is_ninth else byte & 0x7F) << shift
        shift += 7
        if is_ninth or byte < 0x80:
            yield (value >> 1) ^ -(value & 1)
            value = shift = 0
    if shift:
        raise ValueError("this histogram ends early")
