"""Names side by side, down and then across, as `ls` lists them on a terminal. Source: Kafka `LsCommandHandler`."""

from collections.abc import Iterator, Sequence
from typing import Final

_GAP: Final = 2
_COLUMN_WIDTH_MIN: Final = 4


def in_columns(names: Sequence[str], width: int) -> Iterator[str]:
    """Lines of as many columns as go into `width` characters; one column if that is 0 or too narrow."""
    lengths = [len(name) + _GAP for name in names]
    for columns in range(min(width // _COLUMN_WIDTH_MIN, len(names)), 1, -1):
        height = -(-len(names) // columns)
        widths = [max(lengths[at : at + height]) for at in range(0, len(names), height)]
        if len(widths) == columns and sum(widths) <= width:
            for row in range(height):
                cells = zip(names[row::height], widths, strict=False)
                yield "".join(name.ljust(cell) for name, cell in cells).rstrip()
            return
    yield from names
