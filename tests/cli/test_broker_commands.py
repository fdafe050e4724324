"""broker list, describe, fence and unregister, as those who run a cluster meet them."""

import json
from pathlib import Path

import pytest

from tests.cli.controllers import Run, controller


def test_brokers_are_listed(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        assert fastquorum("broker", "list", *cluster.at).out.split() == [
            "BROKER",
            "STATE",
            "EPOCH",
            "RACK",
            "LISTENERS",
        ]
        epochs = cluster.join(11)
        epochs[12] = cluster.register(12)
        ran = fastquorum("broker", "list", *cluster.at)
        assert (ran.code, ran.err) == (0, "")
        assert [line.split() for line in ran.out.splitlines()[1:]] == [
            ["11", "active", str(epochs[11]), "r11", "PLAINTEXT://b11:9092"],
            ["12", "fenced", str(epochs[12]), "r12", "PLAINTEXT://b12:9092"],
        ]
        shown = [
            json.loads(line) for line in fastquorum("broker", "list", *cluster.at, "--format", "json").out.splitlines()
        ]
        assert [(each["id"], each["fenced"], each["epoch"]) for each in shown] == [
            (11, False, epochs[11]),
            (12, True, epochs[12]),
        ]


def test_a_broker_is_described(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        epochs = cluster.join(11, 12)
        assert fastquorum("topic", "create", "t", "--assignment", "11:12,12:11,12:11", *cluster.at).code == 0
        ran = fastquorum("broker", "describe", 12, *cluster.at)
        assert ran.code == 0
        report = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
        assert report["BROKER"] == "12"
        assert (report["State"], report["Epoch"], report["Rack"]) == ("active", str(epochs[12]), "r12")
        assert (report["ReplicaCount"], report["LeaderCount"], report["IsrCount"]) == ("3", "2", "3")
        shown = json.loads(fastquorum("broker", "describe", 11, *cluster.at, "--format", "json").out)
        assert (shown["id"], shown["replicaCount"], shown["leaderCount"], shown["configs"]) == (11, 3, 1, {})


def test_a_fenced_broker_leads_nothing_until_it_beats_again(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        epochs = cluster.join(11, 12)
        fastquorum("topic", "create", "t", "--assignment", "11:12", *cluster.at)
        ran = fastquorum("broker", "fence", 11, *cluster.at)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == "Broker 11 is fenced. If it lives, its next heartbeat unfences it.\n"
        partition = json.loads(fastquorum("topic", "describe", "t", *cluster.at, "--format", "json").out)["partitions"][
            "0"
        ]
        assert (partition["leader"], partition["isr"]) == (12, [12])
        end = cluster.end_offset
        again = fastquorum("broker", "fence", 11, *cluster.at, "--format", "json")
        assert json.loads(again.out) == {"id": 11, "epoch": epochs[11], "fenced": True, "wasFenced": True}
        assert cluster.end_offset == end
        assert not cluster.beat(11, epochs[11]).is_fenced
        assert json.loads(fastquorum("broker", "fence", 11, *cluster.at, "--format", "json").out)["wasFenced"] is False


def test_a_broker_that_is_shutting_down_is_left_to_it(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        epochs = cluster.join(11, 12)
        fastquorum("topic", "create", "t", "--assignment", "11", *cluster.at)
        assert not cluster.beat(11, epochs[11], want_shut_down=True).should_shut_down
        ran = fastquorum("broker", "fence", 11, *cluster.at)
        assert ran.code == 1
        assert "is not fenced: it is shutting down" in ran.out


def test_a_broker_is_forgotten(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12)
        ran = fastquorum("broker", "unregister", 11, *cluster.at)
        assert (ran.code, ran.out, ran.err) == (0, "Broker 11 is no longer registered.\n", "")
        listed = fastquorum("broker", "list", *cluster.at, "--format", "json").out.splitlines()
        assert [json.loads(line)["id"] for line in listed] == [12]
        shown = fastquorum("broker", "unregister", 12, *cluster.at, "--format", "json")
        assert json.loads(shown.out) == {"id": 12, "unregistered": True}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("describe", 7), "broker 7 is not registered; `fastquorum broker list` lists those that are"),
        (("fence", 7), "broker 7 is not registered; `fastquorum broker list` lists those that are"),
        (
            ("unregister", 7),
            "the controller refuses: BROKER_ID_NOT_REGISTERED: broker 7 is not registered; `fastquorum broker list` "
            "shows what there is",
        ),
        (("describe", "x"), "'x' is not a whole number from 0"),
        (("fence", "-1"), "'-1' is not a whole number from 0"),
        (("unregister",), "the following arguments are required: ID"),
    ],
)
def test_what_cannot_be_changes_nothing(
    fastquorum: Run, tmp_path: Path, words: tuple[object, ...], complaint: str
) -> None:
    with controller(tmp_path) as cluster:
        end = cluster.end_offset
        ran = fastquorum("broker", *words, *cluster.at)
        assert (ran.code, ran.out) == (2, "")
        assert complaint in ran.err
        assert cluster.end_offset == end
