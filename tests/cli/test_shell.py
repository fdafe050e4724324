"""`fastquorum shell`: Kafka's paths and output over Kafka's directories and files, for one command and for lines."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.cli.shell.command import look_around
from fastquorum.client.committed import LiveImage
from fastquorum.client.endpoints import parse_endpoint
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.fold import Place
from fastquorum.kernels import load
from fastquorum.wire.message import Message
from fastquorum.wire.records.access import AccessControlEntryRecord
from fastquorum.wire.records.cluster import ClientQuotaRecord, ConfigRecord
from tests.cli.conftest import Ran, files_of, in_process
from tests.cli.controllers import controller
from tests.controller.image.test_image import FULL, ID
from tests.wire.golden import CLUSTER

DIRECTORY = CLUSTER / "c1"
LOG = DIRECTORY / "__cluster_metadata-0"
SEGMENT = LOG / "00000000000000000000.log"
CHECKPOINT = LOG / "00000000000000003829-0000000003.checkpoint"
TOPIC = "/image/topics/byName/clicks-0"
ROOT_NAMES = [
    "acls",
    "clientQuotas",
    "cluster",
    "configs",
    "delegationToken",
    "features",
    "producerIds",
    "provenance",
    "scram",
    "topics",
]
Run = Callable[..., Ran]
Printed = Callable[..., str]


def test_the_whole_tree_is_kafkas(fastquorum: Run) -> None:
    theirs = gzip.decompress((CLUSTER / "shell-c1.txt.gz").read_bytes()).decode()
    for path in (DIRECTORY, LOG, SEGMENT):
        assert fastquorum("shell", path, "tree", "/image") == Ran(0, theirs, "")


def test_every_path_that_is_found_can_be_shown(fastquorum: Run) -> None:
    found = [
        json.loads(line) for line in fastquorum("shell", DIRECTORY, "find", "/", "--format", "json").out.splitlines()
    ]
    assert len(found) == 1868
    files = [each["path"] for each in found if not each["isDirectory"]]
    shown = fastquorum("shell", DIRECTORY, "cat", *files)
    assert (shown.code, shown.err, len(shown.out.splitlines())) == (0, "", len(files))


def test_a_snapshot_stands_where_the_log_stood(fastquorum: Run, tmp_path: Path) -> None:
    """Alone, too, and Kafka's shell gives the offset of the record within the file there."""
    alone = shutil.copy(CHECKPOINT, tmp_path)
    theirs = fastquorum("shell", DIRECTORY, "--at", 3829, "tree", "/image")
    assert fastquorum("shell", alone, "tree", "/image") == theirs
    assert fastquorum("shell", alone, "--at", 3829, "tree", "/image") == theirs
    assert "  offset 3828, epoch 3, time 2026-11-21T06:35:52.608Z[UTC]\n" in theirs.out


def test_a_segment_may_be_seen_at_an_offset(fastquorum: Run) -> None:
    words = ("--at", 145, "cat", "/image/provenance")
    assert fastquorum("shell", SEGMENT, *words).out == "offset 144, epoch 1, time 2026-11-21T06:33:31.012Z[UTC]\n"
    assert fastquorum("shell", SEGMENT, *words) == fastquorum("shell", DIRECTORY, *words)


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_options_may_stand_anywhere(fastquorum: Run, kernels: str) -> None:
    options = ("--at", 145, "--format", "json", "--kernels", kernels)
    command = ("cat", "/image/producerIds/nextProducerId")
    expected = Ran(0, '{"path": "/image/producerIds/nextProducerId", "value": -1}\n', "")
    assert fastquorum("shell", *options, DIRECTORY, *command) == expected
    assert fastquorum("shell", DIRECTORY, *options, *command) == expected
    assert fastquorum("shell", DIRECTORY, *command, *options) == expected


def test_nothing_is_changed(fastquorum: Run) -> None:
    before = files_of(DIRECTORY)
    fastquorum("shell", DIRECTORY, "tree", "/")
    assert files_of(DIRECTORY) == before


# --- what is printed --------------------------------------------------------------------------------------------------


def test_ls_lists_files_first_and_names_several_directories(fastquorum: Run) -> None:
    assert fastquorum("shell", DIRECTORY, "ls", "/image").out.splitlines() == ROOT_NAMES
    several = fastquorum("shell", DIRECTORY, "ls", "/image/acls/byId", "/image/cluster", TOPIC + "/id", "/image/acls")
    assert several.out == "id\n\ncluster:\nbrokers\ncontrollers\n\nacls:\nbyId\n"


def test_globs_stand_for_names_in_one_directory(fastquorum: Run) -> None:
    leaders = fastquorum("shell", DIRECTORY, "cat", "/image/topics/byName/clicks-1{0,1}/?").out
    assert leaders.count("PartitionRegistration(replicas=[") == 6
    assert fastquorum("shell", DIRECTORY, "find", "/image/c*r/br*").out.splitlines() == [
        "/image/cluster/brokers",
        "/image/cluster/brokers/11",
        "/image/cluster/brokers/12",
        "/image/cluster/brokers/13",
    ]


def test_find_says_paths_as_they_were_asked_for(fastquorum: Run) -> None:
    assert fastquorum("shell", DIRECTORY, "find", "image/../local").out.splitlines() == [
        "image/../local",
        "image/../local/commitId",
        "image/../local/version",
    ]
    assert fastquorum("shell", DIRECTORY, "find").out.splitlines()[:3] == [".", "./image", "./image/acls"]
    assert fastquorum("shell", DIRECTORY, "find", "/").out.splitlines()[:3] == ["/", "/image", "/image/acls"]


def test_json_says_what_is_there_as_values(fastquorum: Run) -> None:
    def printed(*words: str) -> list[object]:
        ran = fastquorum("shell", DIRECTORY, *words, "--format", "json")
        return [json.loads(line) for line in ran.out.splitlines()]

    assert printed("ls", "/image", "image/provenance") == [
        {"path": "/image", "children": ROOT_NAMES},
        {"path": "/image/provenance", "children": None},
    ]
    assert printed("tree", "/image/producerIds") == [{"path": "/image/producerIds", "value": {"nextProducerId": -1}}]
    assert printed("cat", "/image/provenance") == [
        {"path": "/image/provenance", "value": {"offset": 3835, "epoch": 3, "timestampMs": 1795242956110}}
    ]
    whole = json.loads(fastquorum("image", DIRECTORY, "--format", "json").out)
    assert printed("cat", f"{TOPIC}/0", "/image/cluster/brokers/11") == [
        {"path": f"{TOPIC}/0", "value": whole["topics"]["clicks-0"]["partitions"]["0"]},
        {"path": "/image/cluster/brokers/11", "value": whole["brokers"]["11"]},
    ]


def test_help_lists_what_a_single_command_may_be(fastquorum: Run) -> None:
    listed = [line.split()[0] for line in fastquorum("shell", DIRECTORY, "help").out.split("\n\n")[0].splitlines()]
    assert listed == ["cat", "find", "help", "ls", "man", "tree"]
    assert fastquorum("shell", DIRECTORY, "man", "ls").out == "ls: list directories\n\nusage: ls [PATH ...]\n"


# --- what the golden cluster has none of ------------------------------------------------------------------------------


def quota(*entity: tuple[str, str | None]) -> ClientQuotaRecord:
    parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key="producer_byte_rate", value=2e7)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """What a command prints of an image with these records."""

    def run(*words: str, records: tuple[Message, ...] = FULL, as_json: bool = False) -> str:
        seen: tuple[Image, Place] = EMPTY.apply(records), Place(8, 2, 1000)
        assert look_around(lambda: seen, words, as_json=as_json) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            f"acls/byId/{ID}",
            "StandardAcl[resourceType=UNKNOWN, resourceName=, patternType=UNKNOWN, principal=User:a, host=*, "
            "operation=UNKNOWN, permissionType=UNKNOWN]",
        ),
        ("scram/SCRAM-SHA-256/a", "ScramCredentialData(salt=73616c74, storedKey=, serverKey=, iterations=4096)"),
        (
            "delegationToken/x",
            "DelegationTokenDatatokenId=x(owner=User:a(tokenRequester=(renewers=User:b, issueTimestamp=0, "
            "maxTimestamp=0), expiryTimestamp=0",
        ),
        ("clientQuotas/user()/k", "0.5"),
        ("provenance", "offset 7, epoch 2, time 1970-01-01T00:00:01Z[UTC]"),
        ("features/finalized_no.such.feature", "0"),
        ("features/metadataVersion", "Optional[4.3-IV0]"),
    ],
)
def test_what_cat_shows(printed: Printed, path: str, text: str) -> None:
    assert printed("cat", f"/image/{path}") == f"{text}\n"


def test_an_access_control_entry_has_kafkas_names(printed: Printed) -> None:
    acl = AccessControlEntryRecord(
        id=ID, resource_type=2, resource_name="t", pattern_type=4, principal="User:a", host="*", operation=15,
        permission_type=3,
    )  # fmt: skip
    assert printed("cat", "/image/acls/byId/*", records=(acl,)) == (
        "StandardAcl[resourceType=TOPIC, resourceName=t, patternType=PREFIXED, principal=User:a, host=*, "
        "operation=TWO_PHASE_COMMIT, permissionType=ALLOW]\n"
    )


def test_a_quota_is_named_by_whom_it_is_for(printed: Printed) -> None:
    records = (quota(("user", "u(1)"), ("client-id", "a\\b")), quota(("ip", "10.0.0.1")), quota(("user", None)))
    names = ["clientId(a\\\\b)_user(u\\(1\\))", "ip(10.0.0.1)", "user()"]
    assert printed("ls", "/image/clientQuotas", records=records).splitlines() == names
    for name in names:
        assert printed("cat", f"/image/clientQuotas/{name}/producer_byte_rate", records=records) == "2.0E7\n"


def test_a_default_configuration_has_no_name(printed: Printed) -> None:
    records = [ConfigRecord(resource_type=kind, resource_name=name, name=key, value="1") for kind, name, key in
               ((4, "", "k"), (4, "1", "k"), (2, "t", "retention.ms"), (32, "g", "share.isolation.level"))]  # fmt: skip
    names = ["BROKER", "BROKER:1", "GROUP:g", "TOPIC:t"]
    assert printed("ls", "/image/configs", records=tuple(records)).splitlines() == names


def test_json_keeps_secrets(printed: Printed) -> None:
    report = json.loads(printed("tree", "/image/scram", as_json=True))
    assert report["value"] == {"SCRAM-SHA-256": {"a": {"iterations": 4096}}, "SCRAM-SHA-512": {}}


def test_names_come_in_javas_order(printed: Printed) -> None:
    """By UTF-16: a sign beyond 16 bits goes before U+FFFD."""
    names = ["B", "a", "\U0001f600", "\ufffd"]
    records = [ConfigRecord(resource_type=4, name=name, value="v") for name in reversed(names)]
    assert printed("ls", "/image/configs/BROKER", records=tuple(records)).splitlines() == names


def test_an_empty_image_is_looked_at_too(printed: Printed) -> None:
    assert printed("tree", "/image/features", records=()) == "metadataVersion:\n  Optional.empty\n"


def test_each_command_sees_the_image_as_it_is_then(capsys: pytest.CaptureFixture[str]) -> None:
    moving = iter([(EMPTY, Place(1, 1, 0)), (EMPTY, Place(2, 1, 0))])
    for expected in ("offset 0, epoch 1", "offset 1, epoch 1"):
        look_around(lambda: next(moving), ["cat", "/image/provenance", "/image/provenance"])
        assert [line.partition(", time")[0] for line in capsys.readouterr().out.splitlines()] == [expected] * 2


# --- a running quorum -------------------------------------------------------------------------------------------------


def test_a_running_quorum_is_looked_at_as_a_directory_is(fastquorum: Run, tmp_path: Path) -> None:
    names = ("ls", "/image/topics/byName")
    with controller(tmp_path) as cluster:
        cluster.join(11)
        assert fastquorum("shell", *cluster.at, *names) == Ran(0, "", "")
        for name in ("one", "two"):
            assert fastquorum("topic", "create", name, *cluster.at).code == 0
        assert fastquorum("shell", *cluster.at, *names) == Ran(0, "one\ntwo\n", "")
        ran = fastquorum("shell", *names, *cluster.at, "--format", "json")
        assert json.loads(ran.out)["children"] == ["one", "two"]
        lines = in_process("shell", *cluster.at, stdin="cd /image/topics/byName/one\npwd\ncat name\n")
        tree = fastquorum("shell", *cluster.at, "tree", "/image")
        at = cluster.end_offset
        then = fastquorum("shell", *cluster.at, "--at", at, "tree", "/image")
        assert fastquorum("shell", *cluster.at, "--at", 3, "tree", "/image/topics").out == "byId:\nbyName:\n"
    assert then == tree == fastquorum("shell", tmp_path / "n1", "--at", at, "tree", "/image")
    assert (lines.code, lines.err) == (0, "")
    assert lines.out == "/image/topics/byName/one\none\n"


def test_what_a_running_quorum_has_committed_since_is_seen_and_the_rest_is_not_read_anew(tmp_path: Path) -> None:
    kernels = load("pure")
    with (
        controller(tmp_path) as cluster,
        QuorumClient([parse_endpoint("--bootstrap", cluster.address)], kernels) as client,
    ):
        live = LiveImage(client, kernels, 10.0)
        before = live.at()
        features = before.image.features
        assert not before.image.brokers
        cluster.join(11)
        after = live.at()
        assert (list(after.image.brokers), after.next_offset) == ([11], cluster.end_offset)
        assert after.image.features is features, "the same image went on"


def test_of_a_quorum_that_is_not_there_it_says_so(fastquorum: Run) -> None:
    ran = fastquorum("shell", "--bootstrap", "127.0.0.1:1", "--timeout", 0.2, "ls")
    assert (ran.code, ran.out) == (3, "")
    assert "127.0.0.1:1" in ran.err


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((DIRECTORY, "ls", "/image/nope"), "ls: /image/nope: no such file or directory"),
        ((DIRECTORY, "ls", f"{TOPIC}/id/x"), f"ls: {TOPIC}/id/x: no such file or directory"),
        ((DIRECTORY, "ls", "/*/*/zz*"), "ls: /*/*/zz*: no such file or directory"),
        (
            (DIRECTORY, "cat", "/image/cluster/brokers/011"),
            "cat: /image/cluster/brokers/011: no such file or directory",
        ),
        ((DIRECTORY, "cat", "/image"), "cat: /image: is a directory"),
        ((DIRECTORY, "cat", "/loc*"), "cat: /local: is a directory"),
        ((DIRECTORY, "cat"), "usage: cat PATH ..."),
        ((DIRECTORY, "man", "cat", "ls"), "usage: man COMMAND"),
        ((DIRECTORY, "man", "rm"), "man: rm: no such command; help lists them"),
        ((DIRECTORY, "ls", "-l"), "ls: there is no option -l; usage: ls [PATH ...]"),
        ((DIRECTORY, "cat", "-la"), "cat: there is no option -la; usage: cat PATH ..."),
        ((DIRECTORY, "lss"), "lss: no such command; did you mean ls? help lists them"),
        ((DIRECTORY, "rm", "/image"), "rm: no such command; help lists them"),
        ((DIRECTORY, "cd", "/image"), "cd: only at the prompt of the shell"),
        ((DIRECTORY, "help", "--format", "json"), "help: has no JSON output"),
        ((DIRECTORY, "--format", "json"), "--format json is for one command; fastquorum shell DIR ls /image"),
        ((), "name a directory or file, or a quorum with --bootstrap; see fastquorum shell --help"),
        ((DIRECTORY, "--at", 3837, "ls"), "offset 3837 lies outside 0..3836"),
        ((SEGMENT, "--at", 3837, "ls"), "offset 3837 lies outside 0..3836"),
        ((CHECKPOINT, "--at", 3828, "ls"), "a snapshot holds one offset, 3829; name the log's directory to see others"),
        (
            (Path(__file__), "ls"),
            "test_shell.py: holds no record batches; name a segment, a snapshot, or the directory",
        ),
        ((DIRECTORY / "nowhere", "ls"), "nowhere: there is no such directory or file\n"),
    ],
    ids=str,
)
def test_a_mistake_is_told_in_one_line(fastquorum: Run, words: tuple[object, ...], why: str) -> None:
    ran = fastquorum("shell", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("fastquorum shell: ")
    assert why in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("words", [("--nope",), ("ls", "--nope"), ("--at", "x"), ("--at", "-1", "ls")])
def test_unknown_options_are_wrong_usage(fastquorum: Run, words: tuple[str, ...]) -> None:
    ran = fastquorum("shell", DIRECTORY, *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("usage: ")


def test_what_is_there_is_shown_beside_what_is_not(fastquorum: Run) -> None:
    ran = fastquorum("shell", DIRECTORY, "cat", "/nope", "/image/producerIds/nextProducerId")
    assert ran == Ran(2, "-1\n", "fastquorum shell: cat: /nope: no such file or directory\n")


def test_a_damaged_file_is_named(fastquorum: Run, tmp_path: Path) -> None:
    damaged = tmp_path / CHECKPOINT.name
    data = bytearray(CHECKPOINT.read_bytes())
    data[1000] ^= 1
    damaged.write_bytes(data)
    ran = fastquorum("shell", damaged, "ls")
    assert (ran.code, ran.out) == (4, "")
    assert str(damaged) in ran.err


# --- lines ------------------------------------------------------------------------------------------------------------


def test_lines_are_commands_that_go_on_after_a_mistake() -> None:
    lines = "cd /image/topics\n\npwd\ncat 'byName/clicks-0/name'\ncd nowhere\ncd byName/clicks-0/id\npwd\nhistory 2\n"
    ran = in_process("shell", DIRECTORY, stdin=lines)
    assert ran.out.splitlines() == ["/image/topics", "clicks-0", "/image/topics", "    7  pwd", "    8  history 2"]
    assert ran.err.splitlines() == [
        "cd: nowhere: no such file or directory",
        "cd: byName/clicks-0/id: not a directory",
    ]
    assert ran.code == 2


@pytest.mark.parametrize(
    ("line", "err"),
    [
        ("ls 'image", "no closing quotation\n"),
        ("history x", "history: x: not a number of lines\n"),
        ("cd /image/c*", "cd: /image/c*: matches 3 directories\n"),
        ("cd /image /local", "usage: cd [PATH]\n"),
        ("exit\nls /nope", ""),
    ],
)
def test_a_line_that_cannot_be_done(line: str, err: str) -> None:
    ran = in_process("shell", DIRECTORY, stdin=f"{line}\n")
    assert (ran.code, ran.out, ran.err) == (2 if err else 0, "", err)


def test_without_a_path_cd_goes_to_the_root_and_dots_lead_up() -> None:
    lines = "cd image/./cluster/../topics/\npwd\ncd ..\npwd\ncd ../../..\npwd\ncd image\ncd\npwd\n"
    assert in_process("shell", DIRECTORY, stdin=lines).out.split() == ["/image/topics", "/image", "/", "/"]
