"""What the pipelines read: tables of logs, of all of them or of one for each cluster."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import choosing
from fastquorum.spark.pipelines.candidates import OfImage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MEANS_OTHERS: Final = frozenset("*?[,")
"""A directory with such a character in its name cannot be named by a path."""


class Choice(NamedTuple):
    """Which directory of each cluster is read, and how far."""

    directories: list[str]
    starts: dict[str | None, int | None]
    """By cluster: where the log that is read begins; None: none is read, or it is not known."""
    ends: dict[str | None, int | None]
    """By cluster: how far its records are committed, exclusive; None: it could not be decided, and none is read."""
    owners: dict[str, str | None]
    """By directory that is read: its cluster."""
    unread: dict[str | None, str]
    """By cluster: why no directory could be chosen."""
    unproven: dict[str | None, str]
    """By cluster: why what is read may not be committed. A cluster that is not named here is proven."""

    @classmethod
    def of(cls, chosen: pa.Table) -> Self:
        """Collect the rows of `choosing.CHOICE`."""
        rows = sorted(chosen.to_pylist(), key=lambda row: row["directory"])
        return cls(
            [row["directory"] for row in rows if row["unread"] is None],
            {row["cluster_id"]: row["start_offset"] for row in rows},
            {row["cluster_id"]: row["end_offset"] for row in rows},
            {row["directory"]: row["cluster_id"] for row in rows if row["unread"] is None},
            {row["cluster_id"]: row["unread"] for row in rows if row["unread"] is not None},
            {row["cluster_id"]: row["unproven"] for row in rows if row["unproven"] is not None},
        )

    @property
    def compared(self) -> list[str | None]:
        """Clusters that can be compared with others; clusters of user records only if there are no others."""
        others = [each for each in self.ends if self.unread.get(each) != choosing.USER_RECORDS]
        return others or list(self.ends)

    def reach(self, cluster_id: str | None) -> tuple[int | None, int | None, str | None]:
        """Return where a cluster's log begins, up to where it is committed, and why that may be unproven."""
        return self.starts.get(cluster_id), self.ends.get(cluster_id), self.unproven.get(cluster_id)

    def of_cluster(self, cluster_id: str | None) -> "Choice":
        owners = {directory: owner for directory, owner in self.owners.items() if owner == cluster_id}
        starts, ends = ({cluster_id: each.get(cluster_id)} for each in (self.starts, self.ends))
        return Choice(list(owners), starts, ends, owners, {}, {})

    def end_of(self, cluster_id: str | None, at: int | None) -> int | None:
        """Return where an image as of offset `at`, if any, ends."""
        end = self.ends.get(cluster_id)
        return end if at is None or end is None else min(at, end)


def pairs_of(path: str, other: str, one: Choice, two: Choice) -> list[tuple[str | None, str | None]]:
    """Return which clusters at two paths are compared: those of one id, or the only one on each side. UsageError:
    nothing on one side belongs to anything on the other."""
    ids, others = one.compared, two.compared
    if len(ids) == len(others) == 1:
        return list(zip(ids, others, strict=True))
    if not set(ids) & set(others):
        raise UsageError(
            f"the {len(ids)} clusters at {path} and the {len(others)} at {other} have no id in common",
            "name one cluster on each side",
        )
    return [(each, each) for each in ids if each in others]


def why_not(chosen: Sequence[Choice], pair: tuple[str | None, str | None]) -> str | None:
    """Return why two clusters cannot be compared; None: they can."""
    return next((its.unread[each] for its, each in zip(chosen, pair, strict=True) if each in its.unread), None)


def unproven_of(
    chosen: Sequence[Choice], pair: tuple[str | None, str | None], at: int | None
) -> list[tuple[tuple[int | None, int | None], str]]:
    """Return where the images of two clusters end, and why one of them may not be committed; nothing if both are."""
    one, other = (its.end_of(cluster_id, at) for its, cluster_id in zip(chosen, pair, strict=True))
    both = zip(chosen, pair, strict=True)
    return [((one, other), its.unproven[cluster_id]) for its, cluster_id in both if cluster_id in its.unproven]


def table(spark: "SparkSession", path: str, name: str, columns: Sequence[str] = (), **options: Any) -> "DataFrame":
    """A table of the logs at `path`; only these columns, if any are named."""
    # From where each log begins: what was before, or that it is not known, table `base` says.
    reader = spark.read.format("fastquorum").option("table", name).option("fromOffset", "earliest")
    if columns:
        reader = reader.option("columns", ",".join(columns))
    for option, value in options.items():
        reader = reader.option(option, str(value))
    return reader.load(path)


def of_directories(
    spark: "SparkSession", path: str, directories: Iterable[str], name: str, columns: tuple[str, ...], **options: Any
) -> "DataFrame":
    """A table of these directories alone."""
    directories = list(directories)
    can_be_named = not any(_MEANS_OTHERS & set(each) for each in directories)
    whole = ",".join(directories) if directories and can_be_named else path
    wanted = columns if "directory" in columns else ("directory", *columns)
    rows = table(spark, whole, name, wanted, **options)
    rows = rows.where(rows["directory"].isin(directories))
    return rows if "directory" in columns else rows.drop("directory")


def directory_rows(spark: "SparkSession", path: str) -> "DataFrame":
    """Return what is known of directories besides the headers of batches (`audit_replicas.DIRECTORY_COLUMNS`, and
    `choosing.LOG_KIND`): voters, snapshots, where each log begins, and up to where it was synced. The rows are read at
    once, so that no durable mark is newer than the batches, which are read later while nodes go on."""
    voters = table(spark, path, "voters", auditing.VOTER_COLUMNS, mode="quarantine")
    columns = (*auditing.PRESENT_COLUMNS, choosing.LOG_KIND)
    present = table(spark, path, "quorum_state", columns, mode="quarantine")
    snapshots = table(spark, path, "checkpoints", auditing.SNAPSHOT_COLUMNS, mode="quarantine").where(
        "is_good and offset > 0"
    )
    snapshots = snapshots.withColumnsRenamed({"offset": "snapshot_offset", "epoch": "snapshot_epoch"}).drop("is_good")
    for more in (present, snapshots):
        voters = voters.unionByName(more, allowMissingColumns=True)
    return read_now(voters)


def read_now(rows: "DataFrame") -> "DataFrame":
    """Read the rows now, however late they are used; there must be few of them."""
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)


def choice(spark: "SparkSession", path: str, image: OfImage | None = None) -> Choice:
    """Choose one directory for each cluster, where headers of batches and the rows of its directories allow it. Of the
    other directories nothing else is read, or shuffled. `image`: what is read of it; None: its records are."""
    from pyspark.sql.pandas.types import from_arrow_schema

    known = directory_rows(spark, path)
    batches = table(spark, path, "batches", auditing.BATCH_COLUMNS, mode="quarantine")

    def choose(batches: pa.Table, known: pa.Table) -> pa.Table:
        return choosing.choice_of(batches, known, image)

    both = batches.groupBy("cluster_id").cogroup(known.groupBy("cluster_id"))
    return Choice.of(both.applyInArrow(choose, from_arrow_schema(choosing.CHOICE)).toArrow())


def with_rows(rows: "DataFrame", more: Sequence[pa.Table]) -> "DataFrame":
    """Append rows, of the same schema, that this process has already."""
    if not more:
        return rows
    return rows.unionAll(rows.sparkSession.createDataFrame(pa.concat_tables(more), rows.schema))
