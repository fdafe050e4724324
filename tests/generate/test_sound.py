"""Nothing planted: what is generated is whole, sound and the same each time, and nothing in it looks like a fault."""

import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastquorum as fq
from fastquorum import sync
from fastquorum.generate import GenerateOptions, Span, generate
from fastquorum.kernels import load
from fastquorum.storage.images import fold_log, fold_snapshot
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.offline import OfflineLog
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.topics import PartitionChangeRecord
from tests.api.nodes import QUICK, WAIT_S
from tests.generate.stored import checkpoints, judged, log_batches, wrong_checkpoints

KERNELS = load()
HOUR_MS = 3_600_000
OWN = {"meta.properties", "quorum-state.mdb"}


def options(**given: object) -> GenerateOptions:
    plain = {"brokers": Span(6, 6), "partitions": Span(40, 40), "hours": 8, "seed": 11}
    return GenerateOptions(**{**plain, **given})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound") / "out"
    generate(str(root), options(), KERNELS)
    return root / "cluster-001"


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def offline(replica: Path) -> OfflineLog:
    return OfflineLog(RealDisk(str(replica), KERNELS), KERNELS)


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    wanted = options(clusters=2, brokers=Span(4, 9), partitions=Span(1, 60), faults={}, hours=6)
    for name in ("one", "two"):
        generate(str(tmp_path / name), wanted, KERNELS)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    generate(str(tmp_path / "three"), options(clusters=2, hours=6, seed=12), KERNELS)
    assert files(tmp_path / "three") != files(tmp_path / "one")


def test_either_kernels_make_the_same_bytes(tmp_path: Path) -> None:
    wanted = options(hours=2, partitions=Span(9, 9))
    for name in ("native", "pure"):
        generate(str(tmp_path / name), wanted, load(name))  # type: ignore[arg-type]
    assert files(tmp_path / "native") == files(tmp_path / "pure")


def test_another_start_moves_the_times_and_nothing_else(tmp_path: Path) -> None:
    for name, start_ms in (("one", 1_000_000_000_000), ("two", 1_000_000_003_000)):
        generate(str(tmp_path / name), options(hours=2, start_ms=start_ms), KERNELS)
    one, two = (log_batches(tmp_path / name / "cluster-001/controller-1") for name in ("one", "two"))
    assert [each.timestamp_ms + 3000 for each in one] == [each.timestamp_ms for each in two]
    assert [each.base_offset for each in one] == [each.base_offset for each in two]


def test_every_replica_is_sound_closed_and_the_same_but_for_whose_it_is(cluster: Path) -> None:
    replicas = sorted(cluster.iterdir())
    assert [each.name for each in replicas] == ["controller-1", "controller-2", "controller-3"]
    for replica in replicas:
        verified = offline(replica).verify()
        assert verified.findings == []
        assert verified.is_closed
        assert verified.segment_count > 4
        assert 0 < verified.start_offset < verified.end_offset
    for other in replicas[1:]:
        first, second = files(replicas[0]), files(other)
        assert first.keys() == second.keys()
        assert {name for name in first if first[name] != second[name]} == OWN


def test_every_snapshot_is_the_folded_log_at_its_offset(cluster: Path) -> None:
    log = offline(cluster / "controller-2")
    kept = log.checkpoints
    assert len(kept) == 20
    fold = fold_snapshot(log, KERNELS, kept[0])
    for snapshot in kept[1:]:
        fold = fold_log(log, KERNELS, snapshot.offset, after=fold)
        held = fold_snapshot(log, KERNELS, snapshot)
        assert held.image == fold.image
        assert held.place == fold.place


def test_in_the_end_there_is_what_was_asked_for_and_everybody_is_in_sync(cluster: Path) -> None:
    image = fold_log(offline(cluster / "controller-1"), KERNELS).image
    partitions = [partition for topic in image.topics.sorted() for _, partition in topic.partitions.items()]
    assert len(partitions) == 40
    assert len(image.brokers) == 6
    assert len({broker.rack for broker in image.brokers.values()}) == 3
    assert all(broker.is_active for broker in image.brokers.values())
    assert all(len(each.isr) == len(each.replicas) == 3 and not each.is_reassigning for each in partitions)
    assert len(image.controllers) == 3


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**32),
    brokers=st.integers(1, 9),
    partitions=st.integers(1, 60),
    hours=st.integers(1, 30),
    replicas=st.sampled_from([1, 3, 5]),
)
def test_whatever_the_seed_nothing_breaks_an_invariant_or_looks_like_a_story(
    tmp_path_factory: pytest.TempPathFactory, seed: int, brokers: int, partitions: int, hours: int, replicas: int
) -> None:
    root = tmp_path_factory.mktemp("any") / "out"
    wanted = options(
        seed=seed, brokers=Span(brokers, brokers), partitions=Span(partitions, partitions), hours=hours,
        replicas=replicas,
    )  # fmt: skip
    listed = generate(str(root), wanted, KERNELS)
    replica = root / "cluster-001/controller-1"
    world = judged(replica)
    assert world.violations == []
    assert wrong_checkpoints(replica) == []
    assert offline(replica).verify().findings == []
    assert listed["planted"] == []
    assert listed["clusters"][0]["partitions"] == partitions == len(world.partitions)
    batches = log_batches(replica)
    assert all(each.is_whole for each in batches)
    assert all(a.last_offset + 1 == b.base_offset for a, b in itertools.pairwise(batches))
    assert all(a.timestamp_ms <= b.timestamp_ms for a, b in itertools.pairwise(batches))
    check_rates(replica)


def check_rates(replica: Path) -> None:
    """No hour has what a story would."""
    fenced, shrunk, configs, leaders = Counter[object](), Counter[object](), Counter[object](), Counter[object]()
    for batch in log_batches(replica):
        hour = batch.timestamp_ms // HOUR_MS
        for _, record in batch.records():
            match record:
                case BrokerRegistrationChangeRecord(fenced=1):
                    fenced[hour, record.broker_id] += 1
                case PartitionChangeRecord() if record.isr is not None:
                    shrunk[hour, record.topic_id, record.partition_id] += 1
                case ConfigRecord():
                    configs[hour] += 1
                case LeaderChangeMessage():
                    leaders[hour] += 1
    assert max(fenced.values(), default=0) <= 1
    assert max(shrunk.values(), default=0) <= 12
    first = min(configs, default=0)  # that is when the topics are made
    assert max((count for hour, count in configs.items() if hour != first), default=0) <= 3
    assert max(leaders.values(), default=0) <= 1
    times = [_covers_ms(path) for path in checkpoints(replica).values()]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert max(gaps, default=0) <= 2 * min(gaps, default=0) + 60_000


def _covers_ms(path: Path) -> int:
    log = offline(path.parents[1])
    snapshot = next(each for each in log.checkpoints if each.offset == int(path.name[:20]))
    return log.checkpoint_state(snapshot).last_contained_ms


def test_a_real_node_runs_on_it_and_goes_on_in_a_later_epoch(tmp_path: Path) -> None:
    root = tmp_path / "out"
    generate(str(root), options(replicas=1, hours=3), KERNELS)
    replica = root / "cluster-001/controller-1"
    before = offline(replica).verify()
    end, image = before.end_offset, fq.log.open(replica).image()
    with sync.open(replica, **QUICK, controller=True, listen="127.0.0.1:0") as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(WAIT_S)
        assert quorum.role == "leader"
        assert quorum.epoch > before.last_epoch
    assert offline(replica).verify().end_offset > end
    assert fq.log.open(replica).image(at=end) == image
