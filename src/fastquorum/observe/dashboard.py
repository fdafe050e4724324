"""The Grafana dashboard that comes with the package."""

from importlib import resources
from typing import Final

NAME: Final = "grafana.json"


def dashboard() -> str:
    """Return the dashboard as JSON that Grafana imports."""
    return resources.files("fastquorum.observe").joinpath(NAME).read_text(encoding="utf-8")
