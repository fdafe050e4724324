"""What a node draws by chance: ids, places for replicas, how long to wait."""

import random


class Chance(random.Random):
    """A faster random.Random, for creating topics: each topic id takes two numbers."""

    def randrange(self, stop: int, /) -> int:  # type: ignore[override]  # what raft/ and controller/ ask for
        """From 0 to below `stop`, which is 1 or more."""
        assert stop > 0, f"there is no number from 0 to below {stop}"
        bits = (stop - 1).bit_length()
        while (drawn := self.getrandbits(bits)) >= stop:
            pass
        return drawn
