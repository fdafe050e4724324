"""What `cat` shows of the things in an image: the text that Kafka's own classes make of them.

Source: `toString` of Kafka's `BrokerRegistration`, `ControllerRegistration`, `PartitionRegistration`, `StandardAcl`;
`print` of `ProvenanceNode`, `ScramCredentialDataNode`, `DelegationTokenDataNode`.
"""

import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from fastquorum.controller.image.access import Acl, DelegationToken, ScramCredential
from fastquorum.controller.image.fold import Place
from fastquorum.controller.image.partition import Partition, Recovery
from fastquorum.controller.image.registrations import Broker, Controller, Feature, Listener
from fastquorum.types import Uuid

_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_RESOURCE_TYPES: Final = (
    *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
)
_PATTERN_TYPES: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS: Final = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
_PERMISSION_TYPES: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
_ANY_LEVEL: Final = (1 << 15) - 1
"""The largest int16: a feature without an upper bound."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def place_text(place: Place) -> str:
    """The last record that the image holds: its offset, epoch, and time in UTC."""
    return f"offset {place.end_offset - 1}, epoch {place.epoch}, time {_time(place.timestamp_ms)}"


def broker_text(broker: Broker) -> str:
    directories, cordoned = sorted(broker.directories, key=_halves), broker.cordoned_directories
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, incarnationId={broker.incarnation_id}, "
        f"listeners={_listeners(broker.listeners)}, supportedFeatures={_features(broker.features)}, "
        f"rack={optional(broker.rack)}, fenced={_java(broker.fenced)}, "
        f"inControlledShutdown={_java(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_java(broker.is_migrating_zk_broker)}, "
        f"directories={_list(directories)}, "
        f"cordonedDirectories={'null' if cordoned is None else _list(cordoned)})"
    )


def controller_text(controller: Controller) -> str:
    return (
        f"ControllerRegistration(id={controller.id}, incarnationId={controller.incarnation_id}, "
        f"zkMigrationReady={_java(controller.zk_migration_ready)}, listeners={_listeners(controller.listeners)}, "
        f"supportedFeatures={_features(controller.features)})"
    )


def partition_text(partition: Partition) -> str:
    return (
        f"PartitionRegistration(replicas={_list(partition.replicas)}, directories={_list(partition.directories)}, "
        f"isr={_list(partition.isr)}, removingReplicas={_list(partition.removing)}, "
        f"addingReplicas={_list(partition.adding)}, elr={_list(partition.elr)}, "
        f"lastKnownElr={_list(partition.last_known_elr)}, leader={partition.leader}, "
        f"leaderRecoveryState={Recovery(partition.recovery).name}, leaderEpoch={partition.leader_epoch}, "
        f"partitionEpoch={partition.partition_epoch})"
    )


def acl_text(acl: Acl) -> str:
    return (
        f"StandardAcl[resourceType={_name(_RESOURCE_TYPES, acl.resource_type)}, resourceName={acl.resource_name}, "
        f"patternType={_name(_PATTERN_TYPES, acl.pattern_type)}, principal={acl.principal}, host={acl.host}, "
        f"operation={_name(_OPERATIONS, acl.operation)}, "
        f"permissionType={_name(_PERMISSION_TYPES, acl.permission_type)}]"
    )


def scram_text(credential: ScramCredential) -> str:
    """Return SCRAM data with its secrets, as Kafka's shell does: a reader of the file has them anyway."""
    return (
        f"ScramCredentialData(salt={credential.salt.hex()}, storedKey={credential.stored_key.hex()}, "
        f"serverKey={credential.server_key.hex()}, iterations={credential.iterations})"
    )


def token_text(token_id: str, token: DelegationToken) -> str:
    """The brackets stand where Kafka's shell has them."""
    return (
        f"DelegationTokenDatatokenId={token_id}(owner={token.owner}(tokenRequester={token.requester}"
        f"(renewers={' '.join(token.renewers)}, issueTimestamp={token.issue_timestamp}, "
        f"maxTimestamp={token.max_timestamp}), expiryTimestamp={token.expiration_timestamp}"
    )


def optional(value: object) -> str:
    """Java's `Optional`, None being the empty one."""
    return "Optional.empty" if value is None else f"Optional[{value}]"


def _listeners(listeners: tuple[Listener, ...]) -> str:
    return _list(
        f"Endpoint(listenerName='{each.name}', securityProtocol={_name(_SECURITY_PROTOCOLS, each.security_protocol)}, "
        f"host='{each.host}', port={each.port})"
        for each in listeners
    )


def _features(features: tuple[Feature, ...]) -> str:
    return "{" + ", ".join(f"{each.name}: {_levels(each)}" for each in features) + "}"


def _levels(feature: Feature) -> str:
    if feature.level_min == feature.level_max:
        return str(feature.level_min)
    return f"{feature.level_min}+" if feature.level_max == _ANY_LEVEL else f"{feature.level_min}-{feature.level_max}"


def _list(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "UNKNOWN"


def _java(flag: bool) -> str:
    return "true" if flag else "false"


def _halves(uuid: Uuid) -> tuple[int, int]:
    """Kafka orders its ids as pairs of signed numbers."""
    high, low = struct.unpack(">qq", uuid)
    return high, low


def _time(timestamp_ms: int) -> str:
    """Format as Java's ISO_ZONED_DATE_TIME: `2026-11-23T17:47:05.12Z[UTC]`; beyond the calendar the bare number."""
    try:
        at = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    fraction = f".{at.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"
