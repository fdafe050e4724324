"""Tables of transitions as diagrams."""

from collections.abc import Mapping
from typing import TypeVar

State = TypeVar("State", bound=str)
Cause = TypeVar("Cause", bound=str)


def mermaid(table: Mapping[tuple[State, Cause], State], first: State, last: State | None = None) -> str:
    """A mermaid state diagram from `first` to `last`, if there is an end; causes of one arrow share its label."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, cause), target in table.items():
        arrows.setdefault((state, target), []).append(str(cause))
    lines = ["stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {state} --> {target}: {', '.join(causes)}" for (state, target), causes in arrows.items()]
    if last is not None:
        lines.append(f"    {last} --> [*]")
    return "\n".join(lines) + "\n"
