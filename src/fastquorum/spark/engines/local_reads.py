"""Tables of stored logs read in this process, cluster by cluster, by several threads.

Of one cluster at a time there is in memory what its pipeline looks at, and no more. A log is found once: what its node
appends meanwhile is not looked at, and what it removes meanwhile has the cluster looked at again.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import choosing
from fastquorum.spark.pipelines.candidates import OfImage
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stored.live_logs import settled
from fastquorum.spark.stored.logs import FoundLogs, find_all
from fastquorum.spark.stored.splits import SPLIT_BYTES

T = TypeVar("T")
Mapping = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What becomes of the batches of one task."""
_SPLIT_BYTES_MIN: Final = 1 << 20


class LocalCluster(NamedTuple):
    """The directories of one cluster, or those whose cluster is not known."""

    id: str | None
    found: FoundLogs
    threads: int

    def read(
        self,
        table: str,
        columns: Sequence[str],
        *,
        directories: Iterable[str] | None = None,
        mapped: tuple[Mapping, pa.Schema] | None = None,
        **options: Any,
    ) -> pa.Table:
        """Read these columns, or what `mapped` makes of their batches; of these directories alone, if any are named."""
        wanted = None if directories is None else set(directories)
        found = self.found if wanted is None else self.found.only(wanted)
        scan = TableScan.of(
            {
                "path": ",",  # whatever it says: the logs are found already
                "table": table,
                "columns": ",".join(columns),
                "mode": "quarantine",
                "fromOffset": "earliest",
                "splitBytes": str(self._split_bytes(found)),
                **{name: str(value) for name, value in options.items()},
            }
        )
        schema = scan.schema if mapped is None else mapped[1]
        read = scan.read if mapped is None else (lambda task: mapped[0](scan.read(task)))
        batches = in_order(lambda task: list(read(task)), scan.tasks(found), self.threads)
        return pa.Table.from_batches([batch for each in batches for batch in each], schema)

    def directory_rows(self) -> pa.Table:
        """Return what else is known of the directories (`audit_replicas.DIRECTORY_COLUMNS`, and LOG_KIND)."""
        present = self.read("quorum_state", (*auditing.PRESENT_COLUMNS, choosing.LOG_KIND))
        snapshots = self.read("checkpoints", auditing.SNAPSHOT_COLUMNS)
        return auditing.joined(self.read("voters", auditing.VOTER_COLUMNS), present, snapshots)

    def batches(self) -> pa.Table:
        """Return the headers of all batches (`audit_replicas.BATCH_COLUMNS`)."""
        return self.read("batches", auditing.BATCH_COLUMNS)

    def judged(self) -> pa.Table:
        """Return a verdict on each replica (`audit_replicas.SCHEMA`)."""
        known = self.directory_rows()  # marks before batches: a node that runs goes on meanwhile
        return auditing.audit_cluster(self.batches(), known)

    def choice(self, image: OfImage | None = None) -> pa.Table:
        """Choose which replica is read, and how far (`choosing.CHOICE`). `image`: as of `choice_of`."""
        known = self.directory_rows()
        return choosing.choice_of(self.batches(), known, image)

    def _split_bytes(self, found: FoundLogs) -> int:
        size_bytes = sum(entry.size_bytes for log in found.logs for entry in log.files)
        return min(max(size_bytes // self.threads, _SPLIT_BYTES_MIN), SPLIT_BYTES)


def of_each(
    path: str,
    threads: int | None,
    look: Callable[[LocalCluster], T],
    is_of_two_moments: Callable[[T], bool] | None = None,
) -> list[T]:
    """Return what `look` makes of each cluster at a path. A cluster is looked at again if its node removes files, or
    appends, meanwhile, as of `live_logs.settled`. Errors as of `logs.find_all`, and DirectoryError."""

    def of(first: LocalCluster) -> T:
        looks = 0

        def found() -> FoundLogs:
            nonlocal looks
            looks += 1
            return first.found if looks == 1 else _of_cluster(find_all(path), first.id)

        return settled(found, lambda each: look(first._replace(found=each)), is_of_two_moments)

    return [of(each) for each in clusters_at(path, threads)]


def clusters_at(path: str, threads: int | None = None) -> list[LocalCluster]:
    """Find all logs that `path` means, by cluster. `threads`: None: one a core. Errors as of `logs.find_all`."""
    found = find_all(path)
    ids = {log.cluster_id for log in found.logs} | {each.log.cluster_id if each.log else None for each in found.faults}
    threads = threads or os.cpu_count() or 1
    in_order = sorted(ids, key=lambda each: (each is not None, each or ""))
    return [LocalCluster(cluster_id, _of_cluster(found, cluster_id), threads) for cluster_id in in_order]


def _of_cluster(found: FoundLogs, cluster_id: str | None) -> FoundLogs:
    return FoundLogs(
        [log for log in found.logs if log.cluster_id == cluster_id],
        [each for each in found.faults if (each.log.cluster_id if each.log else None) == cluster_id],
    )


def in_order(work: Callable[[Any], Any], tasks: Sequence[Any], threads: int) -> Iterator[Any]:
    """Yield the results of tasks, in their order. At most `threads` tasks run, or wait to be taken, at once."""
    if threads == 1 or len(tasks) <= 1:
        yield from map(work, tasks)
        return
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads, "fastquorum-read") as pool:
        try:
            for task in tasks:
                if len(waiting) >= threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(work, task))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
