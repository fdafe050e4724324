"""Settings from a file and from the environment. The first that has a setting decides it: arguments, file,
environment.
"""

import logging
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fastquorum.errors import ConfigError, UsageError
from fastquorum.home import expanded
from fastquorum.node.settings.environment import from_environment
from fastquorum.node.settings.kafka_file import Ignored, ignored_text, translated
from fastquorum.node.settings.settings import NodeSettings, SettingsSource, combine, from_arguments, from_file
from fastquorum.small_files import read_small_file
from fastquorum.storage.properties import parse_properties


def read_settings(
    arguments: Mapping[str, object],
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
    on_ignored: Ignored | None = None,
) -> NodeSettings:
    """All settings of a node. ConfigError names the key, where it was said, and the nearest key there is.

    `on_ignored` is called with what means nothing here, in a file of Kafka's own controllers or in the environment.
    None: in such a file that is an error, and of variables a warning is logged.
    """
    settings = combine(
        from_arguments(arguments),
        from_file(translated(read_file(file), on_ignored)) if file is not None else {},
        from_environment(
            SettingsSource("environment", os.environ if environment is None else environment), on_ignored or _warn
        ),
    )
    return settings if settings.path is None else replace(settings, path=expanded(settings.path))


def _warn(source: str, keys: Sequence[str]) -> None:
    logging.getLogger("fastquorum").warning("%s", ignored_text(source, keys))


def read_file(path: str) -> SettingsSource:
    """A TOML file (`.toml`; tables are joined by dots), else a properties file."""
    whole = expanded(path)
    try:
        data = read_small_file(whole)
    except UsageError as error:
        raise ConfigError(error.detail, error.hint, source=path, key="config file") from error
    try:
        if path.endswith(".toml"):
            return SettingsSource(path, _flattened(tomllib.loads(data.decode("utf-8"))))
        return SettingsSource(path, parse_properties(data))
    except ValueError as error:
        raise ConfigError(f"is not valid: {error}", "", "config file", path) from error


def _flattened(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
