"""How pages say what reports have as figures."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.pages.text import visible

DRAWN_MAX: Final = 10
"""Most clusters that are drawn; the others are rows of a table."""
_UNITS_MS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def lasted(time_ms: float) -> str:
    """In the largest unit that there is one of."""
    for unit_ms, name in _UNITS_MS:
        if time_ms >= unit_ms:
            return (
                f"{time_ms / unit_ms:,.3g} {name}" if time_ms < 1000 * unit_ms else f"{time_ms / unit_ms:,.0f} {name}"
            )
    return f"{time_ms:,.3g} ms"


def of_cluster(cluster_id: str | None) -> str:
    return "a cluster that says no id" if cluster_id is None else f"cluster {visible(cluster_id)}"


def heading_of(cluster_id: str | None) -> str:
    name = of_cluster(cluster_id)
    return name[0].upper() + name[1:]


def unproven(cluster: dict[str, Any]) -> Iterator[str]:
    """Yield why a cluster's figures may not be committed, if that is so."""
    if "unproven" in cluster:
        yield f"{heading_of(cluster['cluster_id'])}, not proven: {cluster['unproven']}."


def text(value: Any) -> str:
    """A cell of a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def counted(count: int, one: str, many: str = "") -> str:
    """1 replica, 2 replicas."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(names: Sequence[str], at_most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {more:,} more" if more > 0 else "")
