"""The dialect of a broker, by the version of its registration: KIP-343's BrokerInfo, 4 or 5.

There it is the version of a broker's entry in ZooKeeper. Here a broker registers with BrokerRegistration, and reports
it as a feature that it supports from 0 up to that version, so that its registration record holds it and the next
controller knows it, too. No other node names that feature, and it is never finalized. Source: KIP-343.
"""

from typing import Final

from fastquorum.controller.image.registrations import Broker, Feature

BROKER_INFO_VERSION: Final = "broker.info.version"
LEGACY_VERSION: Final = 4
"""With this version or below, a broker neither sends heartbeats nor fences itself, and counts as active."""
BEATING_VERSION: Final = 5
INTER_BROKER_PROTOCOL_MIN: Final = (2, 2)
"""From this one on, brokers register with version 5. KIP-343 names none; this is KIP-380's, of the same year."""


def broker_info_feature(inter_broker_protocol: tuple[int, int]) -> Feature:
    """Return the feature that a broker adds to its registration, by its configured inter-broker protocol."""
    is_new = inter_broker_protocol >= INTER_BROKER_PROTOCOL_MIN
    return Feature(BROKER_INFO_VERSION, 0, BEATING_VERSION if is_new else LEGACY_VERSION)


def broker_info_version(broker: Broker) -> int | None:
    """Return the version that a broker registered with; None: a broker of KIP-631, which follows the metadata log
    itself."""
    return next((each.level_max for each in broker.features if each.name == BROKER_INFO_VERSION), None)


def is_legacy(broker: Broker) -> bool:
    """Return whether the broker registered with a version that is too old to send heartbeats."""
    version = broker_info_version(broker)
    return version is not None and version <= LEGACY_VERSION
