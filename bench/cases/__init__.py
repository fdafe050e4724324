"""The kernels' cases: what is measured against what. `kernel_cases` gathers them; each module is a subject."""

from collections.abc import Iterator

from bench.cases import awaiting, batches, checksum, exchange, files, lookups, messages
from bench.cases.setting import Setting
from bench.measure import Case

SUBJECTS = (checksum, batches, messages, exchange, lookups, awaiting, files)


def kernel_cases(setting: Setting) -> Iterator[Case]:
    """One after another, each built when its turn comes, so that only one holds its data."""
    for subject in SUBJECTS:
        yield from subject.cases(setting)


__all__ = ["Setting", "kernel_cases"]
