"""The demo of a cluster, once for all tests here; its verdict, on disks that were damaged after it; its parts."""

import io
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from fastquorum.cli.demo import stage
from fastquorum.cli.demo.cluster import acts, play
from fastquorum.cli.demo.cluster.ledger import Change, Created, FencedBroker, Left, Registered
from fastquorum.cli.demo.cluster.verdict import ClusterVerdict, judge
from fastquorum.cli.demo.screen import JsonScreen, TextScreen
from fastquorum.kernels import Kernels, load
from fastquorum.storage.images import fold_log
from fastquorum.storage.io.opening import open_offline
from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord
from tests.cli.conftest import COMMAND, Ran, environment, running_with

pytestmark = pytest.mark.slow

BROKERS = (11, 12, 13)
LOG = f"__cluster_metadata-0/{0:020}.log"
KINDS: dict[str, Callable[..., Change]] = {
    "registered": Registered,
    "created": Created,
    "fenced": FencedBroker,
    "left": Left,
}


class Played(NamedTuple):
    """A demo that is over."""

    code: int
    report: dict[str, Any]
    directory: Path

    @property
    def ledger(self) -> list[Change]:
        return [_change(json.loads(line)) for line in (self.directory / stage.LEDGER).read_text().splitlines()]

    def changes(self, kind: type[Any]) -> list[Any]:
        return [each for each in self.ledger if isinstance(each, kind)]


def _change(fields: dict[str, Any]) -> Change:
    kind = KINDS[fields.pop("change")]
    return kind(**{name: Uuid.parse(value) if name == "id" else value for name, value in fields.items()})


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return load("native")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp("demo") / "kept"
    command = [*COMMAND, "demo", "--brokers", str(len(BROKERS)), "--keep", str(directory), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.stdout, done.stderr
    return Played(done.returncode, json.loads(done.stdout), directory)


def test_nothing_is_lost_and_nobody_leads_who_is_fenced(played: Played) -> None:
    report = played.report
    assert report["problems"] == []
    assert (played.code, report["verdict"]) == (0, "green")
    assert (report["lost"], report["fenced_leads"], report["images_equal"]) == (0, 0, True)
    assert (report["controllers"], report["brokers"], report["kills"], report["leaves"]) == (3, 3, 2, 1)
    assert report["elections"] >= 2
    counts = [report[name] for name in ("registrations", "topics", "fencings", "leaves")]
    assert (counts, report["acknowledged"], len(played.ledger)) == ([4, 5, 1, 1], 11, 11)


def test_who_acts_under_a_token_that_is_over_is_refused(played: Played) -> None:
    assert played.report["refusals"] == ["FENCED_LEADER_EPOCH", "STALE_BROKER_EPOCH"]


def test_the_killed_broker_returns_under_a_larger_epoch(played: Played) -> None:
    killed = played.changes(FencedBroker)[0]
    epochs = [each.epoch for each in played.changes(Registered) if each.broker_id == killed.broker_id]
    assert epochs == [killed.epoch, max(epochs)]
    assert len(set(epochs)) == 2


def test_every_disk_tells_of_the_cluster_as_it_was_left(played: Played, fastquorum: Callable[..., Ran]) -> None:
    epochs = {each.broker_id: each.epoch for each in played.changes(Registered)}
    (left,) = [each.broker_id for each in played.changes(Left)]
    for number in (1, 2, 3):
        node = played.directory / f"node-{number}"
        verified = json.loads(fastquorum("log", "verify", "--format", "json", node).out)
        assert (verified["sound"], verified["closed"]) == (True, True)
        image = json.loads(fastquorum("image", node, "--format", "json").out)
        assert {int(broker_id): each["epoch"] for broker_id, each in image["brokers"].items()} == epochs
        assert [int(broker_id) for broker_id, each in image["brokers"].items() if each["fenced"]] == [left]
        assert {name: topic["id"] for name, topic in image["topics"].items()} == {
            each.name: str(each.id) for each in played.changes(Created)
        }
        leaders = [each["leader"] for topic in image["topics"].values() for each in topic["partitions"].values()]
        assert len(leaders) == played.report["partitions"] == 20
        assert set(leaders) <= set(BROKERS) - {left}


# --- the verdict ------------------------------------------------------------------------------------------------------


class Disks:
    """The controllers' directories after the demo, to be damaged; and the verdict on them."""

    def __init__(self, directories: Sequence[str], ledger: Sequence[Change], kernels: Kernels) -> None:
        self.directories = directories
        self.ledger = list(ledger)
        self._kernels = kernels

    def judge(self) -> ClusterVerdict:
        return judge(self.directories, self.ledger, self._kernels)

    def path(self, at: int) -> Path:
        return Path(self.directories[at]) / LOG

    def cut(self, at: int, batches: int = 1) -> None:
        """Take the last batches of records off one disk's log, and what an election wrote behind them."""
        cut_batches(self.directories[at], self._kernels, batches)

    def cut_to_what_all_have(self) -> None:
        """Take off what the last leader wrote as it was stopped, a no-op perhaps, and nobody fetched any more."""
        logs = [self.path(at).read_bytes() for at in range(len(self.directories))]
        infos = [self._kernels.batch_headers(data) for data in logs]
        end = min(each[-1].last_offset for each in infos)
        for at, (data, found) in enumerate(zip(logs, infos, strict=True)):
            last = max((info for info in found if info.last_offset <= end), key=lambda info: info.position)
            self.path(at).write_bytes(data[: last.position + last.size_bytes])

    def append(self, at: int, record: Message) -> None:
        data = self.path(at).read_bytes()
        last = self._kernels.batch_headers(data)[-1]
        batch = self._kernels.encode_values(
            [encode_metadata_record(record, 0)],
            base_offset=last.last_offset + 1,
            leader_epoch=last.leader_epoch,
            timestamp_ms=last.max_timestamp_ms,
        )
        self.path(at).write_bytes(data + batch)


def cut_batches(directory: str, kernels: Kernels, count: int) -> None:
    path = Path(directory) / LOG
    data = path.read_bytes()
    records = [info for info in kernels.batch_headers(data) if not info.is_control]
    path.write_bytes(data[: records[-count].position])


@pytest.fixture
def disks(played: Played, tmp_path: Path, kernels: Kernels) -> Disks:
    directories = []
    for number in (1, 2, 3):
        shutil.copytree(played.directory / f"node-{number}", tmp_path / f"node-{number}")
        directories.append(str(tmp_path / f"node-{number}"))
    disks = Disks(directories, played.ledger, kernels)
    disks.cut_to_what_all_have()
    return disks


def test_the_untouched_disks_are_green(disks: Disks, played: Played) -> None:
    verdict = disks.judge()
    assert not verdict.problems
    assert (verdict.lost, verdict.end_offset) == (0, played.report["end_offset"])


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_disk_without_the_last_change_is_red(disks: Disks, victim: int) -> None:
    disks.cut(victim)
    verdict = disks.judge()
    assert (bool(verdict.problems), verdict.lost, verdict.images_equal) == (True, 1, True)
    assert any("the leave of broker" in problem and "is missing" in problem for problem in verdict.problems)


def test_the_same_loss_on_every_disk_is_red(disks: Disks) -> None:
    for at in range(3):
        disks.cut(at)
    verdict = disks.judge()
    assert (bool(verdict.problems), verdict.lost, verdict.images_equal) == (True, 1, True)


@pytest.mark.parametrize(
    "never",
    [
        Registered(11, 10**6),
        Created("invoices", Uuid(bytes(15) + b"9"), 4),
        FencedBroker(12, 10**6, 10),
        Left(12, 10**6, 10),
    ],
    ids=lambda change: type(change).__name__,
)
def test_an_acknowledged_change_that_is_nowhere_is_red(disks: Disks, never: Change) -> None:
    disks.ledger.append(never)
    verdict = disks.judge()
    assert (verdict.lost, len(verdict.problems)) == (1, 3)


def test_a_topic_under_another_id_is_not_the_one_that_was_created(disks: Disks) -> None:
    at = next(at for at, each in enumerate(disks.ledger) if isinstance(each, Created))
    disks.ledger[at] = disks.ledger[at]._replace(id=Uuid(bytes(15) + b"9"))  # type: ignore[call-arg]
    assert disks.judge().lost == 1


def test_a_broker_that_is_fenced_without_a_reason_is_red(disks: Disks) -> None:
    killed = next(each for each in disks.ledger if isinstance(each, FencedBroker))
    disks.ledger.remove(killed)
    verdict = disks.judge()
    assert verdict.lost == 0
    assert sum(f"broker {killed.broker_id} is fenced, and was neither killed" in each for each in verdict.problems) == 3


def test_a_leave_without_a_handover_is_red(disks: Disks) -> None:
    """The killed broker led until it was fenced."""
    killed = next(each for each in disks.ledger if isinstance(each, FencedBroker))
    disks.ledger[disks.ledger.index(killed)] = Left(*killed)
    verdict = disks.judge()
    assert verdict.lost == 1
    assert all(f"the leave of broker {killed.broker_id} " in problem for problem in verdict.problems)
    assert len(verdict.problems) == 3


def test_a_fenced_broker_that_is_made_a_leader_is_red(disks: Disks, kernels: Kernels) -> None:
    left = next(each for each in disks.ledger if isinstance(each, Left))
    image = fold_log(open_offline(disks.directories[0], kernels), kernels).image
    shard = next(each for each in acts.shards_of(image) if left.broker_id in each.partition.replicas)
    lead = PartitionChangeRecord(topic_id=shard.topic_id, partition_id=shard.number, leader=left.broker_id)
    for at in range(3):
        disks.append(at, lead)
    verdict = disks.judge()
    assert (verdict.lost, verdict.images_equal, verdict.fenced_leads) == (0, True, 1)
    assert sum(f"leads {shard.topic}-{shard.number}, and is fenced" in problem for problem in verdict.problems) == 3


def test_a_leader_that_is_fenced_and_goes_on_leading_is_red(disks: Disks, kernels: Kernels) -> None:
    image = fold_log(open_offline(disks.directories[0], kernels), kernels).image
    leader = image.brokers[acts.shards_of(image)[0].partition.leader]
    fencing = BrokerRegistrationChangeRecord(broker_id=leader.id, broker_epoch=leader.epoch, fenced=1)
    for at in range(3):
        disks.append(at, fencing)
    disks.ledger.append(FencedBroker(leader.id, leader.epoch, disks.judge().end_offset))
    verdict = disks.judge()
    assert (verdict.lost, verdict.images_equal) == (0, True)
    assert verdict.fenced_leads == len(acts.led_by(image, leader.id)) > 0


def test_images_that_differ_are_red(disks: Disks) -> None:
    for at, value in enumerate(("1", "1", "2")):
        disks.append(at, ConfigRecord(resource_type=4, resource_name="", name="log.retention.hours", value=value))
    verdict = disks.judge()
    assert (verdict.lost, verdict.images_equal) == (0, False)
    assert len(verdict.problems) == 1
    assert "differ: config " in verdict.problems[0]
    assert "log.retention.hours 1 -> 2" in verdict.problems[0]


def test_a_flipped_bit_is_red(disks: Disks) -> None:
    data = bytearray(disks.path(1).read_bytes())
    data[len(data) // 2] ^= 4
    disks.path(1).write_bytes(data)
    verdict = disks.judge()
    assert verdict.problems
    assert verdict.lost > 0


def test_a_missing_disk_is_red(disks: Disks) -> None:
    shutil.rmtree(disks.directories[2])
    verdict = disks.judge()
    assert verdict.lost == len(disks.ledger)
    assert verdict.end_offset == 0


def test_an_induced_loss_makes_the_whole_demo_red_and_exit_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kernels: Kernels
) -> None:
    """With one broker there is nobody to take over from it: also that is played to its end."""

    def forget(directories: Sequence[str]) -> None:
        cut_batches(directories[1], kernels, 1)

    assert play.play_cluster(1, str(tmp_path / "kept"), kernels, JsonScreen(), before_verdict=forget) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["lost"], report["leaves"], report["kills"]) == ("red", 1, 1, 2)
    assert all(problem.startswith(str(tmp_path / "kept" / "node-2")) for problem in report["problems"])
    assert sum("the leave of broker 11" in problem for problem in report["problems"]) == 1


def test_what_ends_the_play_is_in_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, kernels: Kernels
) -> None:
    monkeypatch.setattr(acts, "TOPICS", ("orders", "orders"))
    assert play.play_cluster(1, str(tmp_path / "kept"), kernels, JsonScreen()) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["lost"], report["acknowledged"]) == ("red", 0, 2)
    assert len(report["problems"]) == 1
    assert "the controller refuses: TOPIC_ALREADY_EXISTS" in report["problems"][0]


# --- its parts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("--brokers", "0"), ("--brokers", "6"), ("--brokers", "3", "--nodes", "3")])
def test_bad_arguments_start_nothing(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def never(*_: object) -> int:
        raise AssertionError("it is played")

    monkeypatch.setattr(play, "play_cluster", never)
    ran = fastquorum("demo", *words)
    assert (ran.code, ran.out) == (2, "")
    assert "--brokers" in ran.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_leaves_no_process_and_no_file(tmp_path: Path, number: int, code: int) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "demo", "--brokers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(TMPDIR=str(tmp_path)),
        text=True,
    )
    assert demo.stdout is not None
    while "brokers are registered" not in demo.stdout.readline():
        assert demo.poll() is None
    assert len(running_with(tmp_path)) == 6, "the demo, three controllers, two brokers"
    demo.send_signal(number)
    _, err = demo.communicate(timeout=30)
    assert (demo.returncode, err) == (code, "")
    assert os.listdir(tmp_path) == []
    assert running_with(tmp_path) == []


def test_what_people_see(played: Played) -> None:
    shown = io.StringIO()
    screen = TextScreen(Console(file=shown, force_terminal=False, width=100, highlight=False, soft_wrap=True))
    outcome = play.ClusterOutcome(**played.report)
    screen.verdict(play.ended(outcome), None)
    screen.verdict(play.ended(outcome._replace(images_equal=False, problems=["the images differ"])), "/kept")
    text = shown.getvalue()
    assert "registrations 4, topics 5, fencings 1, leaves 1" in text
    assert f"equal at offset {outcome.end_offset}" in text
    assert text.index("GREEN") < text.index("/kept") < text.index("! the images differ") < text.index("RED")
