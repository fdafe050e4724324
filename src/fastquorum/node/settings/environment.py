"""Settings from environment variables that begin with FASTQUORUM_. Pure: names and texts in, values out.

The platform writes variables with that prefix, too: Kubernetes for every service of the namespace whose name begins
with `fastquorum` (Kubernetes, "Accessing the Service"), Docker for a container that is linked under that name
(docker run --link). These are nobody's mistake and are passed over. Of the others, one that is nearly a setting's is
refused with that name, since a mistyped setting must not be dropped; any other is reported and passed over.
"""

import difflib
import re
from typing import Final

from fastquorum.errors import ConfigError
from fastquorum.node.settings.kafka_file import Ignored
from fastquorum.node.settings.parsing import Value
from fastquorum.node.settings.settings import VARIABLE_PREFIX, VARIABLES, SettingsSource, collect

NOT_SETTINGS: Final = frozenset(VARIABLE_PREFIX + name for name in ("FAILPOINTS", "BUILD_KIND"))
"""Variables of our own that other parts read."""
_INJECTED: Final = re.compile(
    VARIABLE_PREFIX + r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
)
_LINKED: Final = re.compile(VARIABLE_PREFIX + r"(\w+_)?(NAME|ENV_\w+)")
"""Docker's --link: FASTQUORUM_NAME=/container/alias, and every variable of the other container behind ENV_."""
_NEAR: Final = 0.8
"""From here on a name is rather a setting's, mistyped, than something else (`difflib`, the prefix left out)."""


def from_environment(source: SettingsSource, on_ignored: Ignored | None = None) -> dict[str, Value]:
    """Return settings by name, from variables that begin with FASTQUORUM_.

    Args:
        on_ignored: is called with the variables that begin like that, and are neither settings nor the platform's.
    Raises:
        ConfigError: a variable is nearly one of the settings', or its value is bad. Names the variable.
    """
    mine: dict[str, object] = {}
    unknown = []
    for name, value in source.values.items():
        if not name.startswith(VARIABLE_PREFIX) or name in NOT_SETTINGS:
            continue
        if name in VARIABLES:
            mine[name] = value
        elif not _is_of_the_platform(name, str(value)):
            _check_not_mistyped(name, source.name)
            unknown.append(name)
    if unknown and on_ignored is not None:
        on_ignored(source.name, sorted(unknown))
    return collect(SettingsSource(source.name, mine), VARIABLES, frozenset())


def _is_of_the_platform(name: str, value: str) -> bool:
    if _INJECTED.fullmatch(name):
        return True
    return _LINKED.fullmatch(name) is not None and (not name.endswith("_NAME") or value.startswith("/"))


def _check_not_mistyped(name: str, source: str) -> None:
    known = {each.removeprefix(VARIABLE_PREFIX): each for each in VARIABLES}
    near = difflib.get_close_matches(name.removeprefix(VARIABLE_PREFIX), known, n=1, cutoff=_NEAR)
    if near:
        raise ConfigError("there is no such setting", f"did you mean {known[near[0]]}?", name, source)
