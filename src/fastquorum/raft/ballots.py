"""The count of one election or pre-vote. Knows ids and answers; no time, no epochs. Source: KIP-996; Kafka
`EpochElection`."""

from fastquorum.types import NodeId


class Ballots:
    """The votes granted and rejected by a fixed set of voters. A voter's latest answer counts."""

    __slots__ = ("_answers",)

    def __init__(self, voter_ids: tuple[NodeId, ...], own_id: NodeId) -> None:
        self._answers: dict[NodeId, bool | None] = dict.fromkeys(voter_ids)
        self.record(own_id, granted=True)

    def record(self, voter_id: NodeId, *, granted: bool) -> None:
        """Answers of others than the voters do not count."""
        if voter_id in self._answers:
            self._answers[voter_id] = granted

    def _count(self, answer: bool | None) -> int:
        return sum(each is answer for each in self._answers.values())

    @property
    def _majority(self) -> int:
        return len(self._answers) // 2 + 1

    @property
    def is_won(self) -> bool:
        return self._count(True) >= self._majority

    @property
    def is_lost(self) -> bool:
        """True once a majority cannot be reached any more."""
        return self._count(True) + self._count(None) < self._majority

    @property
    def has_refusals(self) -> bool:
        return self._count(False) > 0

    def forget_refusals(self) -> None:
        """Count them as not answered yet."""
        for voter_id, answer in self._answers.items():
            if answer is False:
                self._answers[voter_id] = None

    @property
    def unanswered(self) -> tuple[NodeId, ...]:
        return tuple(voter for voter, answer in self._answers.items() if answer is None)

    @property
    def granting(self) -> tuple[NodeId, ...]:
        return tuple(voter for voter, answer in self._answers.items() if answer)
