"""Says where an image stands that was asked for inside a batch or a transaction: these count as a whole or not at all,
and no controller ever had what half of one comes to."""

from fastquorum.cli.terminal.output import tell
from fastquorum.controller.image.fold import Fold
from fastquorum.storage.offline import TornTail
from fastquorum.types import Offset


def tell_where(fold: Fold, at: Offset | None) -> None:
    """On stderr, if that is not where it was asked for; None: at the end."""
    if at is not None and fold.next_offset < at:
        tell(f"offset {at} is inside a batch, and that counts as a whole: what is shown is as of {fold.next_offset}")
    if fold.is_in_transaction:
        end = fold.place.end_offset
        tell(f"a transaction is open at {fold.next_offset}, and counts when it has ended: what is shown is as of {end}")


def tell_torn(tail: TornTail | None) -> None:
    """On stderr, if the log ends with one."""
    if tail is not None:
        tell(str(tail))
