"""What a run found, and the mutants that led to it, to be sent again."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .live import Live
from .mutations import Mutant


class Finding(Exception):
    """A node did what no mutant may bring it to."""

    def __init__(self, kind: str, detail: str, mutants: Sequence[Mutant] = ()) -> None:
        """`mutants`: whom it was noticed at, if that is known."""
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.mutants = mutants


@dataclass(slots=True)
class Counts:
    """What was sent, and what came of it."""

    mutants: int = 0
    frames: int = 0
    mutant_bytes: int = 0
    connections: int = 0
    answers: int = 0
    hung_up_on: int = 0
    """Connections that the node closed."""
    left_waiting: int = 0
    """Connections on which the node waited for the rest of a frame, or a consumer for records."""
    tamed: int = 0
    appended_by_client: int = 0
    appended_by_mutants: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    apis: Counter[str] = field(default_factory=Counter)
    resident_mib: dict[str, list[float]] = field(default_factory=dict)
    """Resident memory of each node: after the warm-up, and at most."""

    def count(self, mutant: Mutant) -> None:
        self.mutants += 1
        self.mutant_bytes += len(mutant.data)
        self.ways.update(mutant.how if not mutant.how[-1].startswith(("length", "and ")) else mutant.how[:-1])
        self.apis[mutant.seed] += 1

    def as_json(self) -> dict[str, Any]:
        names = [each for each in type(self).__slots__ if each not in ("ways", "apis")]
        return {
            **{name: getattr(self, name) for name in names},
            "ways": dict(sorted(self.ways.items())),
            "seeds": len(self.apis),
        }


def role_of(live: Live, node_id: int) -> str:
    return {live.leader: "leader", live.victim: "victim", live.quiet: "quiet"}[node_id]


def write_mutants(path: Path, seed: int, live: Live, mutants: Iterable[Mutant]) -> None:
    """One JSON line each."""
    with path.open("w") as lines:
        for each in mutants:
            line = {
                "log": live.kind.value,
                "seed": seed,
                "number": each.number,
                "to": role_of(live, each.node_id),
                "from": each.seed,
                "how": each.how,
                "cuts": each.cuts,
                "bytes": each.data.hex(),
            }
            lines.write(json.dumps(line) + "\n")


def read_mutants(path: Path, live: Live) -> Iterator[Mutant]:
    """The bytes as they were; who led then may follow now."""
    for text in path.read_text().splitlines():
        line = json.loads(text)
        node_id = {"leader": live.leader, "victim": live.victim, "quiet": live.quiet}[line["to"]]
        data = bytes.fromhex(line["bytes"])
        yield Mutant(line["number"], node_id, line["from"], tuple(line["how"]), data, tuple(line["cuts"]))
