"""`fastquorum shell` prints what kafka-metadata-shell prints, for the same commands on the same files.

Not compared, as they differ on purpose: what is said of mistakes; the paths that `find` says of a glob; `/local`; and
the provenance in a snapshot, for which Kafka's shell says the offset of the last record within the file; and names of
configurations that Kafka does not know, which its shell leaves out.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.controller.image import EMPTY
from fastquorum.controller.image.fold import Place
from fastquorum.kernels import load
from fastquorum.storage.images import snapshot_batches
from fastquorum.storage.log.checkpoint import CheckpointTimes
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name, segment_name
from fastquorum.types import OffsetAndEpoch, Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.access import AccessControlEntryRecord, DelegationTokenRecord, UserScramCredentialRecord
from fastquorum.wire.records.brokers import RegisterBrokerRecord
from fastquorum.wire.records.cluster import ClientQuotaRecord, ConfigRecord, ProducerIdsRecord
from tests.cli.conftest import in_process
from tests.controller.image.test_image import FULL, ID, change
from tests.wire.golden import CLUSTER

from .kafka import Kafka
from .metadata_shell import SHELL_TRIES, answers, printed

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

LOG = CLUSTER / "c1" / LOG_DIRECTORY
COMMANDS = (
    "ls",
    "ls /",
    "ls image",
    "ls /image/*",
    "ls /image/provenance /image/features/metadataVersion",
    "ls /image/features/metadataVersion /image/scram /image/acls/byId /image/cluster",
    "ls /image/topics/byName/clicks-?? /image/topics/byName/{clicks-1,clicks-2}",
    "ls '/image/configs/TOPIC:clicks-1'",
    "tree /image/features /image/cluster",
    "tree /image/topics",
    "tree /image/configs",
    "tree /image/acls /image/scram /image/clientQuotas /image/delegationToken /image/producerIds",
    "tree /image/features/metadataVersion",
    "cat /image/features/*",
    "cat /image/cluster/*/*",
    "cat /image/topics/byName/clicks-1{0,1}/*",
    "cat /image/topics/byName/clicks-1?/{0,id}",
    "cat /image/features/finalized_no.such",
    "find /image",
    "find image/topics/../cluster",
    "find /image/producerIds/ /image/provenance",
    "cd /image/topics/byName/../byId",
    "pwd",
    "find ..",
    "find",
    "cd ../../features/./",
    "pwd",
    "ls",
    "cat *version",
    "cd",
    "pwd",
    "cd /image/clus*",
    "pwd",
    "ls ../../",
)


def ours(file: Path, commands: tuple[str, ...]) -> Iterator[str]:
    """What our shell prints for each, told apart by a line of another's."""
    mark = "/local/version\n"
    ran = in_process("shell", file, stdin="".join(f"{each}\nfind /local/version\n" for each in commands))
    assert (ran.code, ran.err) == (0, "")
    return iter(ran.out.split(mark)[:-1])


def assert_same(theirs: list[str], mine: Iterator[str], commands: tuple[str, ...]) -> None:
    for command, expected, found in zip(commands, theirs, mine, strict=True):
        assert found == expected, command


def test_a_segment_is_seen_as_by_kafkas_shell(kafka: Kafka) -> None:
    file = LOG / segment_name(0)
    commands = (*COMMANDS, "cat /image/provenance", "tree /image")
    assert_same(answers(kafka, file, commands, "offset 3835, epoch 3, "), ours(file, commands), commands)


def test_a_snapshot_is_seen_as_by_kafkas_shell(kafka: Kafka) -> None:
    file = LOG / checkpoint_name(OffsetAndEpoch(3829, 3))
    assert_same(answers(kafka, file, COMMANDS, "offset 790, epoch 3, "), ours(file, COMMANDS), COMMANDS)


def test_one_command_given_by_its_words_is_answered_as_by_kafkas_shell(kafka: Kafka) -> None:
    file = LOG / checkpoint_name(OffsetAndEpoch(3829, 3))
    for command in (("ls", "/image/cluster/brokers"), ("cat", "/image/topics/byName/clicks-1/0")):
        expected = in_process("shell", file, *command).out
        assert expected
        assert any(printed(kafka, file, *command) == expected for _ in range(SHELL_TRIES))


def quota(**entity: str) -> ClientQuotaRecord:
    parts = [
        ClientQuotaRecord.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in entity.items()
    ]
    return ClientQuotaRecord(entity=parts, key="consumer_byte_rate", value=12345678.5)


def acl(number: int, **fields: object) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=Uuid(bytes([number]) * 16), host="*", **fields)  # type: ignore[arg-type]


EVERYTHING: tuple[Message, ...] = (
    *(record for record in FULL if not isinstance(record, ClientQuotaRecord | DelegationTokenRecord)),
    RegisterBrokerRecord(
        broker_id=10,
        broker_epoch=77,
        incarnation_id=ID,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(name="B", host="::1", port=9092, security_protocol=3),
            RegisterBrokerRecord.BrokerEndpoint(name="A", host="h", port=9093, security_protocol=1),
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(name="one", min_supported_version=2, max_supported_version=2),
            RegisterBrokerRecord.BrokerFeature(name="all", min_supported_version=1, max_supported_version=32767),
        ],
        fenced=True,
        in_controlled_shutdown=True,
        log_dirs=[Uuid(bytes([200]) + bytes(15)), Uuid(bytes([100]) + bytes(15))],
        cordoned_log_dirs=[Uuid(bytes([200]) + bytes(15))],
    ),
    change(leader=-1, removing_replicas=[1], adding_replicas=[3]),
    ConfigRecord(resource_type=4, resource_name="", name="ssl.keystore.password", value="a secret"),
    ConfigRecord(resource_type=16, resource_name="m", name="interval.ms", value="1000"),
    ConfigRecord(resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value="45000"),
    quota(user="u (1)\\"),
    quota(client_id="c", user="u"),
    quota(ip="10.0.0.1"),
    ProducerIdsRecord(next_producer_id=2000),
    acl(1, resource_type=2, resource_name="t", pattern_type=3, principal="User:a", operation=3, permission_type=3),
    acl(2, resource_type=4, resource_name="k", pattern_type=4, principal="User:b", operation=15, permission_type=2),
    acl(200, resource_type=99, resource_name="", pattern_type=99, principal="", operation=99, permission_type=99),
    UserScramCredentialRecord(
        name="b", mechanism=2, salt=b"\x00\xff", stored_key=b"\x01", server_key=b"\x80", iterations=8192
    ),
    DelegationTokenRecord(
        owner="User:a",
        requester="User:c",
        token_id="x",
        renewers=["User:b", "User:d"],
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
    ),
)


def test_whatever_an_image_may_hold_is_seen_as_by_kafkas_shell(kafka: Kafka, tmp_path: Path) -> None:
    kernels, image = load("native"), EMPTY.apply(EVERYTHING)
    file = tmp_path / checkpoint_name(OffsetAndEpoch(100, 5))
    batches = snapshot_batches(kernels, image, Place(100, 5, 1000), CheckpointTimes.at(1234567890123), 0, None)
    file.write_bytes(b"".join(batches))
    parts = ("acls", "clientQuotas", "cluster", "configs", "delegationToken", "features", "producerIds", "scram")
    commands = (
        "tree " + " ".join(f"/image/{part}" for part in (*parts, "topics")),
        "find /image",
        "cat /image/clientQuotas/user(u*/* /image/clientQuotas/ip(10.0.0.1)/consumer_byte_rate",
        "ls /image/clientQuotas/ /image/configs/",
    )
    last = sum(1 for _ in image.records())
    assert_same(answers(kafka, file, commands, f"offset {last}, epoch 5, "), ours(file, commands), commands)
