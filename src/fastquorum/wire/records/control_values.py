"""The values of control records: what the quorum writes about itself into its own log.

Source: KIP-595 (leader change), KIP-630 (snapshots), KIP-853 (voters, kraft.version).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT16, INT32, INT64, STRING, UINT16, UUID, array, field, struct


class LeaderChangeMessage(Message, kind="data", versions="0-1", flexible="0+"):
    """First record of an epoch: who leads, who voted. Version 1 exists in the schema only."""

    class Voter(Struct):
        voter_id: int = field(INT32, "0+")
        voter_directory_id: Uuid = field(UUID, "1+")

    version: int = field(INT16, "0+")
    leader_id: int = field(INT32, "0+")
    voters: list[Voter] = field(array(Voter), "0+")
    granting_voters: list[Voter] = field(array(Voter), "0+")


class SnapshotHeaderRecord(Message, kind="data", versions="0", flexible="0+"):
    """First record of a snapshot."""

    version: int = field(INT16, "0+")
    last_contained_log_timestamp: int = field(INT64, "0+")


class SnapshotFooterRecord(Message, kind="data", versions="0", flexible="0+"):
    """Last record of a snapshot: it is whole."""

    version: int = field(INT16, "0+")


class KRaftVersionRecord(Message, kind="data", versions="0", flexible="0+"):
    """The finalized level of the feature kraft.version."""

    version: int = field(INT16, "0+")
    kraft_version: int = field(INT16, "0+", json="kRaftVersion")


class VotersRecord(Message, kind="data", versions="0", flexible="0+"):
    """The voter set, in force from the moment it is appended."""

    class Voter(Struct):
        class Endpoint(Struct):
            name: str = field(STRING, "0+")
            host: str = field(STRING, "0+")
            port: int = field(UINT16, "0+")

        class KRaftVersionFeature(Struct):
            min_supported_version: int = field(INT16, "0+")
            max_supported_version: int = field(INT16, "0+")

        voter_id: int = field(INT32, "0+")
        voter_directory_id: Uuid = field(UUID, "0+")
        endpoints: list[Endpoint] = field(array(Endpoint), "0+")
        kraft_version_feature: KRaftVersionFeature = field(
            struct(KRaftVersionFeature), "0+", json="kRaftVersionFeature"
        )

    version: int = field(INT16, "0+")
    voters: list[Voter] = field(array(Voter), "0+")
