"""The report of a run, and of a broken promise."""

from dataclasses import dataclass, field

from fastquorum.types import Micros


class Violation(Exception):
    """A promise was broken. `invariant` is its name in the list of `sim.invariants`: S and F safety, R lane rules,
    L progress."""

    def __init__(self, invariant: str, detail: str, node_id: int = -1) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail
        self.node_id = node_id


@dataclass(frozen=True, slots=True)
class Report:
    """One seed's outcome; plain and picklable."""

    seed: int
    ok: bool
    trace_hash: str
    voters: int
    observers: int
    events: int
    virtual_us: Micros
    elections: int
    committed_records: int
    acknowledged: int
    unknown: int
    barriers: int
    restarts: int
    brokers: int = 0
    """The number of brokers of a cluster whose controllers the nodes are; 0: there is no cluster."""
    nodes: int | None = None
    """The requested number of voters; None: the seed's choice."""
    without: tuple[str, ...] = ()
    """Faults that the seed was spared."""
    faults: dict[str, int] = field(default_factory=dict)
    """The number of injected faults, by kind."""
    invariant: str = ""
    """The broken promise of a failed run. The next fields hold where and when, and the last lines of the trace."""
    detail: str = ""
    node_id: int = -1
    trace_tail: tuple[str, ...] = ()

    @property
    def repro(self) -> str:
        """One line that reproduces a failure."""
        nodes = "" if self.nodes is None else f" --nodes {self.nodes}"
        without = f" --without {','.join(self.without)}" if self.without else ""
        return f"fastquorum sim run --seed {self.seed}{nodes}{without}{' --controller' if self.brokers else ''}"

    def __str__(self) -> str:
        if self.ok:
            return (
                f"seed {self.seed}: ok, {self.voters}+{self.observers} nodes, "
                f"{f'{self.brokers} brokers, ' if self.brokers else ''}{self.events} events, "
                f"{self.virtual_us / 1e6:.1f} virtual s, {self.elections} elections, {self.acknowledged} acknowledged, "
                f"{self.restarts} restarts, trace {self.trace_hash}"
            )
        lines = [
            f"seed {self.seed}: {self.invariant} broken at {self.virtual_us} us by node {self.node_id}: {self.detail}",
            *(f"  {line}" for line in self.trace_tail),
            f"again with: {self.repro}",
        ]
        return "\n".join(lines)
