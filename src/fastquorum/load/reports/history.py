"""Results kept in a directory: one JSON file a run, named by when it began and what it was, so that they sort by time.

A file holds exactly what `--format json` prints (`result`), and can be copied, renamed and checked in like any other. A
name that is taken is not overwritten.
"""

import json
import os
from typing import Any, Final

from fastquorum.errors import UsageError
from fastquorum.load.result import FORMAT, SWEEP_FORMAT, Result
from fastquorum.pages.new_files import new_file
from fastquorum.small_files import read_small_file

_SUFFIX: Final = ".json"
BYTES_MAX: Final = 1 << 26
"""Largest result file; a sweep's has some hundred kilobytes."""


def save(directory: str, result: Result) -> str:
    """Write a result; return the path of the new file. OSError if it cannot be written."""
    os.makedirs(directory, exist_ok=True)
    name = _name(result)
    number = 1
    while True:
        path = os.path.join(directory, name + (f"-{number}" if number > 1 else "") + _SUFFIX)
        try:
            with new_file(path) as file:
                json.dump(result, file)
                file.write("\n")
        except FileExistsError:
            number += 1
            continue
        return path


def read(path: str) -> Result:
    """A result; of a directory, the newest there. UsageError naming what is wrong with it."""
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if name.endswith(_SUFFIX))
        if not names:
            raise UsageError(f"{path} holds no results", "save one with `fastquorum load --history DIR`")
        path = os.path.join(path, names[-1])
    try:
        result: Any = json.loads(read_small_file(path, BYTES_MAX).decode("utf-8"))
    except UsageError as error:
        raise UsageError(f"{path} {error.detail}", "name a result, or a history's directory") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", "name a result of `fastquorum load`") from error
    if not isinstance(result, dict) or result.get("format") not in (FORMAT, SWEEP_FORMAT):
        raise UsageError(
            f"{path} is not a result of `fastquorum load`", f"its format must be {FORMAT} or {SWEEP_FORMAT}"
        )
    return result


def _name(result: Result) -> str:
    began = result["started"].replace(":", "").replace("-", "").partition("+")[0]
    plan = (result["steps"][0] if result["format"] == SWEEP_FORMAT and result["steps"] else result).get("plan", {})
    words = [began, plan.get("driver", "none"), plan.get("api", ""), plan.get("workload", "")]
    if result["format"] == SWEEP_FORMAT:
        words.append("sweep")
    else:
        words.append(f"closed-{plan['closed']}" if plan["closed"] else f"{plan['records_per_s']:.0f}ps")
    return "-".join(word for word in words if word)
