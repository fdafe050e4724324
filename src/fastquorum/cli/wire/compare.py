"""Where two JSON values differ, by path, and which paths do not count.

A path is written as `responses[0].partitions[2].errorCode`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from fastquorum.errors import UsageError
from fastquorum.wire import API, Struct

DEFAULT_IGNORED: Final = (
    "throttleTimeMs",
    "logAppendTimeMs",
    "lastFetchTimestamp",
    "lastCaughtUpTimestamp",
    "baseTimestamp",
    "maxTimestamp",
    "timestamp",
    "Fetch:sessionId",
    "ApiVersions:finalizedFeaturesEpoch",
)
"""What two honest nodes answer differently: times, numbers drawn by chance, and how far the log is."""
_BATCH_FIELDS: Final = (
    *("baseOffset", "lastOffset", "leaderEpoch", "attributes", "baseTimestamp", "maxTimestamp"),
    *("producerId", "producerEpoch", "baseSequence", "isCrcValid", "records"),
    *("offset", "timestamp", "key", "value", "headers"),
)
"""What `cli.wire.batches` finds below `records`."""
_PATTERN: Final = re.compile(r"(?:(\w+):)?(\w+(?:\[\d*\])*(?:\.\w+(?:\[\d*\])*)*)")
_SHOWN_CHARACTERS: Final = 60


class _Missing:
    """Stands where one side has nothing, which is not null."""


MISSING: Final = _Missing()


class FieldDifference(NamedTuple):
    """One place; MISSING where a side does not have it."""

    path: str
    recorded: Any
    now: Any

    def as_json(self) -> dict[str, Any]:
        sides = {"recorded": self.recorded, "now": self.now}
        return {"path": self.path} | {name: value for name, value in sides.items() if value is not MISSING}

    def __str__(self) -> str:
        if isinstance(self.recorded, str) and isinstance(self.now, str):
            at = first_difference(self.recorded, self.now)
            if max(len(self.recorded), len(self.now)) > _SHOWN_CHARACTERS:
                return f"{self.path}: {_around(self.recorded, at)} was recorded, now {_around(self.now, at)}"
        return f"{self.path}: {_shown(self.recorded)} was recorded, now {_shown(self.now)}"


def first_difference(one: Sequence[object], other: Sequence[object]) -> int:
    """Return where they begin to differ: at the end of the shorter one, if that is how the longer one begins."""
    differing = (at for at, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs)
    return next(differing, min(len(one), len(other)))


def _around(text: str, at: int) -> str:
    """A long text from where it differs on."""
    start = max(at - 8, 0)
    return f"{'...' if start else ''}{_shown(text[start:])} ({len(text)} characters)"


def _shown(value: Any) -> str:
    if value is MISSING:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def differences(recorded: Any, now: Any, path: str = "") -> Iterator[FieldDifference]:
    """Every place where they differ, in the order of the recorded one."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*recorded, *now)):
            inner = f"{path}.{name}" if path else name
            yield from differences(recorded.get(name, MISSING), now.get(name, MISSING), inner)
    elif isinstance(recorded, list) and isinstance(now, list):
        for index in range(max(len(recorded), len(now))):
            one = recorded[index] if index < len(recorded) else MISSING
            other = now[index] if index < len(now) else MISSING
            yield from differences(one, other, f"{path}[{index}]")
    elif recorded != now:
        yield FieldDifference(path, recorded, now)


class Ignored:
    """Patterns of paths that do not count.

    `errorCode` is that field wherever it stands, `brokers[].port` one path from the top, with any index or `[0]`;
    `Fetch:sessionId` is for one API. What is below an ignored field is ignored as well.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """UsageError for a pattern that cannot match anything."""
        self._patterns = [_compiled(pattern) for pattern in patterns]

    def matches(self, api_key: int, path: str) -> bool:
        return any(key in (None, api_key) and pattern.match(path) for key, pattern in self._patterns)


def _compiled(text: str) -> tuple[int | None, re.Pattern[str]]:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--ignore: {text!r} is not a path of fields",
            "write `errorCode`, `brokers[].port` or `Fetch:sessionId`, as the fields stand in response_json",
        )
    api, path = match[1], match[2]
    keys = [key for key, each in API.items() if api is None or each.name.lower() == api.lower()]
    if not keys:
        raise UsageError(f"--ignore: {api!r} is not an API", "`fastquorum wire spec` lists them")
    for name in re.findall(r"[^\W\d]\w*", path):
        if name not in _BATCH_FIELDS and not any(_has_field(API[key].response, name) for key in keys):
            where = f"the response of {API[keys[0]].name}" if api else "any answer"
            raise UsageError(f"--ignore: there is no field {name!r} in {where}", "see `fastquorum wire spec API`")
    pattern = re.escape(path).replace(r"\[\]", r"\[\d+\]")
    anywhere = "" if "." in path or "[" in path else r"(?:.*\.)?"
    return keys[0] if api else None, re.compile(rf"{anywhere}{pattern}(?![^.\[])")


def _has_field(cls: type[Struct], name: str) -> bool:
    for each in cls.__wire__.fields:
        inner = each.type if each.type.element is None else each.type.element
        if each.json_name == name or (inner.struct is not None and _has_field(inner.struct, name)):
            return True
    return False
