"""The one place that says which version this is; packaging reads it here."""

__version__ = "0.1.0"
