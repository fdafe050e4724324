"""What differs between two images: in the words of `controller.image.diff`, whose slow way is the oracle."""

import json
from typing import Any

import pyarrow as pa
import pytest

from fastquorum.controller.image import Image
from fastquorum.controller.image.diff import Difference, differences
from fastquorum.spark.pipelines.image_diff import (
    CHANGE_COLUMNS,
    IMAGE_COLUMNS,
    SCHEMA,
    as_report,
    changes_of,
    compared,
)
from fastquorum.spark.scan import read_table
from fastquorum.spark.tables import TABLES
from tests.controller.image.logs import folded
from tests.controller.image.test_diff import full
from tests.wire.golden import CLUSTER

OFFSETS = [(0, 30), (30, 988), (988, 1820), (1820, 1836), (1836, 3068), (3068, 3836), (0, 3836)]
LOG = CLUSTER / "c1"


def image_at(offset: int) -> Image:
    return folded(LOG / "__cluster_metadata-0" / "00000000000000000000.log", offset).image


def image_rows(offset: int, columns: tuple[str, ...] = IMAGE_COLUMNS, **options: int) -> pa.Table:
    return read_table(str(LOG), "image", columns=",".join(columns), asOfOffset=offset, **options)


def stated(rows: pa.Table) -> list[tuple[str, str, Any]]:
    """Return everything that a Difference states."""
    return sorted((row["words"], row["change"], row["fields"]) for row in rows.to_pylist())


def expected(found: list[Difference]) -> list[tuple[str, str, Any]]:
    return sorted((each.words, each.as_view()["change"], list(each.changes)) for each in found)


@pytest.mark.parametrize(("start", "end"), OFFSETS)
def test_between_two_offsets_all_is_told_in_the_words_of_image_diff(start: int, end: int) -> None:
    found = changes_of(image_rows(end, CHANGE_COLUMNS, diffFrom=start), start)
    assert stated(found) == expected(list(differences(image_at(start), image_at(end))))
    assert found.schema == SCHEMA


@pytest.mark.parametrize(("start", "end"), OFFSETS)
def test_two_images_differ_in_the_same_things(start: int, end: int) -> None:
    found = compared(image_rows(start), image_rows(end), everything=True)
    assert stated(found) == expected(list(differences(image_at(start), image_at(end))))


def rows_of(image: Image, cluster_id: str = "c") -> pa.Table:
    """Return rows as table `image` has them."""
    from fastquorum.spark.tables.image import _things

    rows = [
        {"cluster_id": cluster_id, "end_offset": 9, "section": section, "key": key or None, "data": data}
        for (section, key), data in _things(image)
    ]
    return pa.Table.from_pylist(rows, pa.schema([TABLES["image"].schema.field(name) for name in IMAGE_COLUMNS]))


def test_every_kind_of_thing_is_compared() -> None:
    found = compared(rows_of(Image()), rows_of(full()))
    assert stated(found) == expected(list(differences(Image(), full())))
    kinds = {"feature", "broker", "controller", "topic", "config", "client quota", "producer ids", "acl", "scram"}
    assert kinds | {"delegation token"} == set(found["kind"].to_pylist())
    assert compared(rows_of(full()), rows_of(full())).num_rows == 0
    # Nothing of it is all that another cluster cannot have.
    assert set(compared(rows_of(Image()), rows_of(full()), everything=False)["kind"].to_pylist()) == kinds - {
        "producer ids"
    } | {"delegation token"}


def test_of_two_clusters_only_what_they_could_have_in_common_counts() -> None:
    text = lambda **more: json.dumps({"id": "A", "partitions": {"0": {"leader": 1, "leaderEpoch": 3} | more}})  # noqa: E731
    row = {"end_offset": 5, "section": "topics", "key": "t"}
    schema = rows_of(Image()).schema

    def side(cluster_id: str, data: str) -> pa.Table:
        return pa.Table.from_pylist([row | {"cluster_id": cluster_id, "data": data}], schema)

    alike = side("b", text(leaderEpoch=9).replace('"A"', '"B"'))
    assert compared(side("a", text()), alike).num_rows == 0
    (change,) = compared(side("a", text()), side("b", text(leader=2))).to_pylist()
    assert (change["words"], change["before"], change["after"]) == (
        "partition t-0: leader 1 -> 2",
        '{"leader":1}',
        '{"leader":2}',
    )
    both = compared(side("a", text()), alike, everything=True)["change"].to_pylist()
    assert both == ["gone", "created"]


def test_what_could_not_be_read_is_told_and_the_rest_compared() -> None:
    damage = {"cluster_id": "c", "error": "corrupt at 7"}
    rows = pa.concat_tables([rows_of(Image()), pa.Table.from_pylist([damage], rows_of(Image()).schema)])
    report = as_report(compared(rows, rows_of(Image())))
    assert [each["errors"] for each in report["clusters"]] == [["corrupt at 7"]]
    damaged = pa.Table.from_pylist([damage], image_rows(30, CHANGE_COLUMNS, diffFrom=30).schema)
    assert changes_of(damaged, 3)["error"].to_pylist() == ["corrupt at 7"]


def test_the_report_counts_by_kind() -> None:
    report = as_report(changes_of(image_rows(1836, CHANGE_COLUMNS, diffFrom=1800), 1800), changes_max=2)
    (cluster,) = report["clusters"]
    assert (cluster["from_offset"], cluster["to_offset"]) == (1800, 1836)
    assert cluster["counts"]["broker"] == {"created": 0, "gone": 0, "changed": 1}
    assert cluster["total"] == sum(sum(each.values()) for each in cluster["counts"].values())
    assert len(cluster["changes"]) == 2
    assert set(cluster["changes"][0]) == {"kind", "name", "change", "fields", "words", "before", "after"}
    json.dumps(report)
