"""What all tables and pipelines need, Spark or not."""

from fastquorum.errors import UsageError


def check_arrow() -> None:
    """Raise UsageError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError("pyarrow is not installed", "pip install 'fastquorum[arrow]'") from error
