"""What needs a newer PySpark than batch reads do is imported when it is used, and says so where that is not there."""

import importlib
from types import ModuleType
from typing import Final

from fastquorum.errors import UsageError

_NEEDS: Final = {"streaming": ("streams", "4.3"), "writing": ("writes", "4.1")}
"""By module of this package: what it is for, and the PySpark that first had what it needs."""


def newer(module: str) -> ModuleType:
    """A module of `fastquorum.spark`. UsageError: it needs a newer PySpark than this one."""
    try:
        return importlib.import_module(f"fastquorum.spark.{module}")
    except ImportError as error:
        if module not in _NEEDS or not (error.name or "").startswith("pyspark."):
            raise
        import pyspark

        what, version = _NEEDS[module]
        raise UsageError(
            f"{what} need PySpark {version} or later, and this is {pyspark.__version__}",
            f"pip install 'pyspark>={version},<5'; batch reads work as they are",
        ) from error
