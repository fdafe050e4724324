"""Metadata logs as a data source of Spark, through PySpark. Needs the extra: `pip install 'fastquorum[spark]'`.

`session` starts a Spark that needs no Java of the system's, `register` makes the data source known to a session that is
there; a session whose Pythons have fastquorum installed knows it by itself (`pyspark_fastquorum`). `read` and
`plain_errors` are for programs that want fastquorum's own errors, not Spark's about them.
Everything is loaded when it is first used: this package can be imported where there is no PySpark.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fastquorum.spark.plain import plain_errors, read
    from fastquorum.spark.sessions.environment import Environment, prepare
    from fastquorum.spark.sessions.opening import register, session
    from fastquorum.spark.stream.streaming import lag

_MODULES: Final = {
    "Environment": "sessions.environment",
    "prepare": "sessions.environment",
    "register": "sessions.opening",
    "session": "sessions.opening",
    "read": "plain",
    "plain_errors": "plain",
    "lag": "stream.streaming",
}

__all__ = ["session", "register", "prepare", "read", "plain_errors", "lag", "Environment"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fastquorum.spark.newer import newer

    return getattr(newer(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
