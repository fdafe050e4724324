"""Features are finalized at other levels, all or none. KIP-584, KIP-778, KIP-966."""

from typing import Any

import pytest

from fastquorum.controller import features
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.config_changes import Operation
from fastquorum.controller.features import UpgradeType
from fastquorum.controller.image.features import METADATA_VERSIONS, SUPPORTED
from fastquorum.controller.refusals import Refused
from fastquorum.controller.requests import refused
from fastquorum.wire import decode, encode
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.brokers import BrokerRegistrationRequest, ControllerRegistrationRequest
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse
from fastquorum.wire.records.brokers import RegisterControllerRecord
from fastquorum.wire.records.cluster import ConfigRecord, FeatureLevelRecord
from tests.controller.rig import Controller, refusal, uuid
from tests.controller.test_configs import BROKER, alter, held, of

METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = UpgradeType
Update = UpdateFeaturesRequest.FeatureUpdateKey
ALL = [
    BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED.items()
]


def with_broker(**fields: Any) -> Controller:
    """One that supports everything."""
    controller = Controller(**fields)
    controller.register(1, features=ALL)
    return controller


def update(
    controller: Controller, *updates: tuple[str, int, int], validate_only: bool = False, version: int = 2
) -> UpdateFeaturesResponse:
    """(feature, level, upgrade type) of each."""
    changes = [Update(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(feature_updates=changes, validate_only=validate_only)
    answer = controller.decide(features.update_features(controller.state, request, version))
    assert isinstance(answer, UpdateFeaturesResponse)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    return decode(UpdateFeaturesResponse, version, encode(answer, version))


# --- metadata.version -------------------------------------------------------------------------------------------------


def test_the_metadata_version_is_raised_and_what_is_written_next_is_at_it() -> None:
    controller = with_broker(level=7)
    update(controller, (METADATA, 30, UPGRADE))
    assert controller.written == [FeatureLevelRecord(name=METADATA, feature_level=30)]
    assert controller.state.level == 30
    controller.register(2, features=ALL)
    assert controller.broker(2).directories


@pytest.mark.parametrize("lower", [SAFE, UNSAFE])
def test_the_metadata_version_is_lowered_where_nothing_can_be_lost(lower: int) -> None:
    controller = with_broker(level=29)
    update(controller, (METADATA, 23, lower))
    assert controller.state.level == 23


@pytest.mark.parametrize("lower", [SAFE, UNSAFE])
@pytest.mark.parametrize(("level", "below"), [(30, 29), (23, 22), (29, 22), (17, 16), (15, 14), (11, 10), (8, 7)])
def test_the_metadata_version_is_not_lowered_below_one_that_has_new_records(level: int, below: int, lower: int) -> None:
    controller = with_broker(level=level)
    assert refusal(lambda: update(controller, (METADATA, below, lower))) == ErrorCode.INVALID_UPDATE_VERSION
    assert controller.state.level == level


def test_each_level_is_lowered_as_far_as_kafka_lowers_it() -> None:
    """`MetadataVersion.didMetadataChange`, level by level."""
    lowest: dict[int, int] = {}
    for level in METADATA_VERSIONS:
        controller = Controller(level=level)
        lowest[level] = level
        while (below := lowest[level] - 1) in METADATA_VERSIONS and controller.state.level.loses_nothing_at(below):
            lowest[level] = below
    assert lowest == {
        7: 7, 8: 8, 9: 8, 10: 8, 11: 11, 12: 11, 13: 13, 14: 14, 15: 15, 16: 15, 17: 17, 18: 17, 19: 17, 20: 17,
        21: 17, 22: 17, 23: 23, 24: 23, 25: 23, 26: 23, 27: 23, 28: 23, 29: 23, 30: 30,
    }  # fmt: skip


# --- other features ---------------------------------------------------------------------------------------------------


def test_several_are_set_in_one_batch() -> None:
    controller = with_broker(level=22)
    update(controller, ("group.version", 1, UPGRADE), ("transaction.version", 2, UPGRADE), (METADATA, 25, UPGRADE))
    assert controller.state.finalized_features == {
        METADATA: 25, KRAFT: 1, "group.version": 1, "transaction.version": 2
    }  # fmt: skip
    assert len(controller.written) == 3


def test_a_feature_is_lowered_and_removed() -> None:
    controller = with_broker()
    update(controller, ("transaction.version", 2, UPGRADE))
    update(controller, ("transaction.version", 1, SAFE))
    assert controller.state.finalized_features["transaction.version"] == 1
    update(controller, ("transaction.version", 0, UNSAFE))
    assert "transaction.version" not in controller.state.finalized_features


def test_the_later_of_two_that_name_one_feature_counts_and_both_are_answered() -> None:
    controller = with_broker()
    answer = update(controller, ("group.version", 0, UPGRADE), ("group.version", 1, UPGRADE), version=1)
    assert controller.state.finalized_features["group.version"] == 1
    assert [each.feature for each in answer.results] == ["group.version", "group.version"]


def test_nothing_is_written_that_was_only_to_be_checked() -> None:
    controller = with_broker(level=7)
    update(controller, (METADATA, 30, UPGRADE), (ELR, 1, UPGRADE), validate_only=True)
    assert controller.written == []
    assert controller.state.level == 7


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_feature_is_named_to_those_who_expect_it(version: int) -> None:
    answer = update(with_broker(), ("group.version", 1, UPGRADE), version=version)
    expected = [] if version == 2 else [("group.version", ErrorCode.NONE, None)]
    assert [(each.feature, each.error_code, each.error_message) for each in answer.results] == expected


def test_nothing_is_asked_for() -> None:
    controller = with_broker()
    update(controller)
    assert controller.written == []


# --- eligible leader replicas -----------------------------------------------------------------------------------------


def test_eligible_leaders_come_with_a_least_isr_of_the_whole_cluster() -> None:
    """KIP-966."""
    controller = with_broker(min_insync_replicas=2)
    alter(controller, of(BROKER, "1", (Operation.SET, "min.insync.replicas", "3"), (Operation.SET, "x", "y")))
    update(controller, (ELR, 1, UPGRADE))
    assert controller.written == [
        ConfigRecord(resource_type=BROKER, resource_name="", name="min.insync.replicas", value="2"),
        ConfigRecord(resource_type=BROKER, resource_name="1", name="min.insync.replicas", value=None),
        FeatureLevelRecord(name=ELR, feature_level=1),
    ]
    assert (held(controller, BROKER, ""), held(controller, BROKER, "1")) == ({"min.insync.replicas": "2"}, {"x": "y"})
    assert controller.state.image.features.is_elr_enabled


def test_a_least_isr_that_is_set_stays() -> None:
    controller = with_broker()
    alter(controller, of(BROKER, "", (Operation.SET, "min.insync.replicas", "3")))
    update(controller, (ELR, 1, UPGRADE))
    assert controller.written == [FeatureLevelRecord(name=ELR, feature_level=1)]
    update(controller, (ELR, 0, SAFE))
    assert controller.written == [FeatureLevelRecord(name=ELR, feature_level=0)]
    assert not controller.state.image.features.is_elr_enabled


def test_who_was_eligible_before_is_so_no_more_when_it_comes_again() -> None:
    """What was committed meanwhile, with another least ISR, they may not have."""
    controller = with_broker(min_insync_replicas=2)
    for broker_id in (2, 3):
        controller.register(broker_id, features=ALL)
    for broker_id in (1, 2, 3):
        controller.beat(broker_id)
    controller.topic([1, 2], [3, 2])
    update(controller, (ELR, 1, UPGRADE))
    for broker_id in (1, 2):
        controller.beat(broker_id, want_fence=True)
    held_by = [(controller.partition(number).isr, controller.partition(number).elr) for number in (0, 1)]
    assert held_by == [((), (1, 2)), ((3,), (2,))]
    update(controller, (ELR, 0, SAFE))
    update(controller, (ELR, 1, UPGRADE))
    assert controller.partition(1).elr == ()
    assert controller.partition(0).elr == (1, 2), "nobody has led it"
    controller.beat(2)
    controller.alter([3, 2], partition_index=1)
    controller.beat(2, want_fence=True)
    update(controller, (ELR, 1, UPGRADE))
    assert controller.partition(1).elr == (2,), "it was not given up"


def test_a_feature_may_be_set_together_with_what_it_needs() -> None:
    controller = with_broker(level=22)
    assert refusal(lambda: update(controller, (ELR, 1, UPGRADE))) == ErrorCode.INVALID_UPDATE_VERSION
    update(controller, (ELR, 1, UPGRADE), (METADATA, 23, UPGRADE))
    assert controller.state.image.features.is_elr_enabled


# --- the quorum's own -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [UPGRADE, SAFE, UNSAFE])
def test_the_krafts_version_can_be_set_to_what_it_is(kind: int) -> None:
    controller = with_broker()
    update(controller, (KRAFT, 1, kind))
    assert controller.written == []


@pytest.mark.parametrize(("present", "level", "kind"), [(0, 1, SAFE), (1, 0, SAFE), (1, 0, UNSAFE), (1, 0, UPGRADE)])
def test_the_krafts_version_is_never_lowered(present: int, level: int, kind: int) -> None:
    controller = with_broker(fault_of_raising=lambda _: "")
    controller.state.kraft_version = present
    assert refusal(lambda: update(controller, (KRAFT, level, kind))) == ErrorCode.INVALID_UPDATE_VERSION


def test_the_krafts_version_is_raised_by_the_quorum() -> None:
    controller = with_broker(static_voters=(1,), fault_of_raising=lambda _: "")
    changes = [Update(feature=KRAFT, max_version_level=1, upgrade_type=UPGRADE)]
    decision = features.update_features(controller.state, UpdateFeaturesRequest(feature_updates=changes), 2)
    assert decision.kraft_version == 1
    assert decision.records == []
    checked = UpdateFeaturesRequest(feature_updates=changes, validate_only=True)
    decision = features.update_features(controller.state, checked, 2)
    assert (decision.kraft_version, decision.records) == (None, [])
    controller.state.kraft_version_raised(1, controller.state.next_offset + 2)
    assert controller.state.finalized_features[KRAFT] == 1
    assert controller.state.static_voters == ()


def test_what_the_quorum_says_against_it_is_told_as_kafkas_controller_tells_it() -> None:
    controller = with_broker(static_voters=(1,), fault_of_raising=lambda level: f"no {level}")
    for validate_only in (False, True):
        with pytest.raises(Refused) as error:
            update(controller, ("group.version", 1, UPGRADE), (KRAFT, 1, UPGRADE), validate_only=validate_only)
        assert error.value.code == ErrorCode.INVALID_UPDATE_VERSION
        assert error.value.text == ("The update failed for all features since the following feature had an error: no 1")
    assert "group.version" not in controller.state.finalized_features


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        (METADATA, 6, SAFE),
        (METADATA, 31, UPGRADE),
        (METADATA, 0, UNSAFE),
        (METADATA, 21, UPGRADE),
        (METADATA, 23, SAFE),
        (METADATA, 23, UNSAFE),
        (METADATA, 23, 0),
        (METADATA, 23, 4),
        ("group.version", -1, SAFE),
        ("group.version", 2, UPGRADE),
        ("group.version", 1, SAFE),
        ("no.such.version", 1, UPGRADE),
        ("no.such.version", 0, SAFE),
    ],
)
def test_what_cannot_be_is_refused_and_with_it_all_the_rest(bad: tuple[str, int, int]) -> None:
    controller = with_broker(level=22)
    before = controller.state.image
    code = refusal(lambda: update(controller, ("transaction.version", 2, UPGRADE), bad))
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert controller.state.image == before


def test_a_level_that_some_broker_does_not_support_is_refused() -> None:
    controller = with_broker(level=29)
    older = [
        BrokerRegistrationRequest.Feature(name=METADATA, min_supported_version=7, max_supported_version=29),
        BrokerRegistrationRequest.Feature(name="group.version", min_supported_version=0, max_supported_version=0),
        BrokerRegistrationRequest.Feature(name=KRAFT, min_supported_version=0, max_supported_version=1),
    ]
    controller.register(2, features=older)
    for change in ((METADATA, 30, UPGRADE), ("group.version", 1, UPGRADE), ("share.version", 1, UPGRADE)):
        assert refusal(lambda change=change: update(controller, change)) == ErrorCode.INVALID_UPDATE_VERSION
    controller.unregister(2)
    update(controller, (METADATA, 30, UPGRADE), ("group.version", 1, UPGRADE), ("share.version", 1, UPGRADE))


def test_a_level_that_some_controller_does_not_support_is_refused() -> None:
    controller = with_broker(level=29)
    supports = RegisterControllerRecord.ControllerFeature(
        name=METADATA, min_supported_version=7, max_supported_version=29
    )
    controller.write(RegisterControllerRecord(controller_id=3, features=[supports]))
    assert refusal(lambda: update(controller, (METADATA, 30, UPGRADE))) == ErrorCode.INVALID_UPDATE_VERSION
    update(controller, (METADATA, 28, SAFE))


def register_controller(controller: Controller, controller_id: int, level_max: int = 30) -> None:
    feature = ControllerRegistrationRequest.Feature
    supports = [feature(name=METADATA, min_supported_version=7, max_supported_version=level_max)]
    request = ControllerRegistrationRequest(
        controller_id=controller_id, incarnation_id=uuid(controller_id), features=supports
    )
    controller.decide(brokers.register_controller(controller.state, request))


def test_a_level_is_refused_until_every_static_voter_has_said_what_it_supports() -> None:
    """Kafka `FeatureControlManager.reasonNotSupported`."""
    controller = with_broker(level=29, static_voters=(1, 2, 3))
    for voter in (3, 2):
        register_controller(controller, voter)
        before = controller.state.image
        if voter == 3:
            with pytest.raises(Refused, match="controller 2 has not registered") as refused_:
                update(controller, (METADATA, 30, UPGRADE))
            assert refused_.value.code == ErrorCode.INVALID_UPDATE_VERSION
            assert controller.state.image == before
    update(controller, (METADATA, 30, UPGRADE))
    assert controller.state.level == 30


def test_below_the_level_that_knows_of_registrations_no_voter_has_to_be_registered() -> None:
    controller = with_broker(level=14, static_voters=(1, 2, 3))
    update(controller, (METADATA, 15, UPGRADE))
    assert refusal(lambda: update(controller, (METADATA, 16, UPGRADE))) == ErrorCode.INVALID_UPDATE_VERSION


def test_where_voters_come_and_go_only_those_count_that_are_registered() -> None:
    """Kafka checks `controller.quorum.voters`, which such a quorum has not."""
    controller = with_broker(level=29)
    register_controller(controller, 2)
    update(controller, (METADATA, 30, UPGRADE))


def test_what_the_active_one_said_in_a_former_life_does_not_count() -> None:
    controller = with_broker(level=29)
    register_controller(controller, 1, level_max=29)
    update(controller, (METADATA, 30, UPGRADE))


def test_version_0_never_lowers() -> None:
    """What it says of downgrades is not heeded in Kafka either."""
    controller = with_broker()
    update(controller, ("transaction.version", 2, UPGRADE))
    downgrade = UpdateFeaturesRequest(
        feature_updates=[Update(feature="transaction.version", max_version_level=1, allow_downgrade=True)]
    )
    request = decode(UpdateFeaturesRequest, 0, encode(downgrade, 0))
    code = refusal(lambda: features.update_features(controller.state, request, 0))
    assert code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_refusal_stands_on_top(version: int) -> None:
    response = refused(UpdateFeaturesRequest(), version, ErrorCode.INVALID_UPDATE_VERSION, "why")
    read = decode(UpdateFeaturesResponse, version, encode(response, version))
    assert (read.error_code, read.error_message) == (ErrorCode.INVALID_UPDATE_VERSION, "why")
