"""The active controller has the quorum raise kraft.version, in the middle of its lead: the control batch stands where
nothing of the controller's was to stand. KIP-853."""

from typing import Any

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import Overloaded
from fastquorum.node.records import control_batches as control
from fastquorum.node.replica import ROOM_LOOK_US
from fastquorum.types import VoterSet
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import BrokerRegistrationResponse
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.records.control_values import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from tests.node.rig import Rig, key
from tests.node.test_controller_role import beat, leader, register, registration, rig_of


def raise_it(**fields: Any) -> UpdateFeaturesRequest:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    return UpdateFeaturesRequest(feature_updates=[update], **fields)


def raised(rig: Rig, **fields: Any) -> UpdateFeaturesResponse:
    connection = rig.accept()
    rig.ask(connection, raise_it(**fields), 2)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer


def control_records(rig: Rig) -> list[tuple[int, type]]:
    data = rig.log.read(0, 1 << 20)
    return [(offset, type(message)) for offset, message in control.control_records(rig.kernels, data)]


def test_what_the_controller_decides_next_stands_behind_the_control_batch() -> None:
    rig = leader()
    register(rig)
    end = rig.log.end_offset
    assert raised(rig).error_code == ErrorCode.NONE
    assert control_records(rig) == [(0, LeaderChangeMessage), (end, KRaftVersionRecord), (end + 1, VotersRecord)]
    assert rig.log.end_offset == end + 3, "a no-op, which the answer waited for, is behind them"
    epoch = register(rig, broker_id=2)
    assert epoch == end + 3
    assert not beat(rig, epoch, broker_id=2).is_fenced
    assert rig.replica.raft.quorum_at(end) == (VoterSet(rig.replica.raft.voters), 0)
    assert rig.replica.raft.quorum_at(end + 2)[1] == 1
    versions = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 4)
    assert ("kraft.version", 1) in [(each.name, each.max_version_level) for each in versions.finalized_features]
    assert rig.replica.error is None


def test_the_answer_waits_for_the_commit() -> None:
    rig = leader()
    connection = rig.accept()
    rig.ask(connection, raise_it(), 2)
    assert rig.answers(connection) == []
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, UpdateFeaturesResponse)
    assert answer.error_code == ErrorCode.NONE


def test_what_waits_to_be_appended_comes_first() -> None:
    """A registration on a replica's connection is decided while the lane stands, and waits."""
    rig = leader()
    connection = rig.accept()
    rig.fetch(connection, 2, rig.log.end_offset)
    end = rig.log.end_offset
    rig.ask_together(
        (connection, rig.frame_of(registration(), 4)),
        (connection, rig.frame_of(raise_it(), 2)),
    )
    rig.sync()
    answers = {type(answer): answer for answer in rig.answers(connection)}
    registered, update = answers[BrokerRegistrationResponse], answers[UpdateFeaturesResponse]
    assert isinstance(registered, BrokerRegistrationResponse)
    assert isinstance(update, UpdateFeaturesResponse)
    assert (registered.error_code, registered.broker_epoch, update.error_code) == (0, end, 0)
    assert [offset for offset, _ in control_records(rig)] == [0, end + 1, end + 2]
    assert rig.replica.error is None


def test_it_is_only_checked_or_has_been_done_and_nothing_is_appended() -> None:
    rig = leader()
    end = rig.log.end_offset
    assert raised(rig, validate_only=True).error_code == ErrorCode.NONE
    assert rig.log.end_offset == end
    assert raised(rig).error_code == ErrorCode.NONE
    end = rig.log.end_offset
    assert raised(rig).error_code == ErrorCode.NONE
    assert rig.log.end_offset == end


def test_voters_that_were_not_heard_are_in_the_way() -> None:
    rig = leader(1, 2, 3)
    connection = rig.accept()
    for node_id in (2, 3):
        rig.fetch(rig.accept(), node_id, rig.log.end_offset)
    rig.pass_time(1)
    end = rig.log.end_offset
    rig.ask(connection, raise_it(), 2)
    (answer,) = rig.answers(connection)
    assert isinstance(answer, UpdateFeaturesResponse)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert rig.log.end_offset == end
    assert rig.replica.raft.voters.is_voter(key(2))


def test_where_the_file_system_has_no_room_nothing_is_appended_and_the_node_lives_on() -> None:
    rig = rig_of(config=QuorumConfig(preallocate_bytes=0)).lead()
    end = rig.log.end_offset
    rig.disk.room_bytes = 0
    assert raised(rig).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert rig.log.end_offset == end
    assert (rig.replica.stopped, rig.replica.is_leader) == (False, False)
    rig.disk.room_bytes = 1 << 20
    rig.pass_time(4 * ROOM_LOOK_US)
    rig.lead()
    assert raised(rig).error_code == ErrorCode.NONE


def test_what_is_asked_for_with_it_is_written_first_and_if_it_cannot_be_nothing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = leader()
    end = rig.log.end_offset
    group = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    request = raise_it()
    request.feature_updates.append(group)

    def takes_nothing(*_: object, **__: object) -> None:
        raise Overloaded

    shell = rig.replica.shell
    monkeypatch.setattr(type(shell), "append", takes_nothing)
    answer = rig.answer_to(UpdateFeaturesResponse, request, 2)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert rig.log.end_offset == end
    monkeypatch.undo()
    connection = rig.accept()
    rig.ask(connection, request, 2)
    rig.sync()
    assert [each.error_code for each in rig.answers(connection)] == [ErrorCode.NONE]
    assert control_records(rig)[1:] == [(end + 1, KRaftVersionRecord), (end + 2, VotersRecord)]
