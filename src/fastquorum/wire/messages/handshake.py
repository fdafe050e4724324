"""ApiVersions: which APIs and features a node speaks. The first request on a connection.

Source: KIP-35, KIP-511 (client software), KIP-584 (features).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, INT64, STRING, array, field


class ApiVersionsRequest(Message, api_key=18, kind="request", versions="0-4", flexible="3+"):
    """Ask what a node speaks."""

    client_software_name: str = field(STRING, "3+", ignorable=True)
    client_software_version: str = field(STRING, "3+", ignorable=True)


class ApiVersionsResponse(Message, api_key=18, kind="response", versions="0-4", flexible="3+"):
    """The APIs and features a node speaks; its header is v0 in every version."""

    class ApiVersion(Struct):
        """One API and its range of versions."""

        api_key: int = field(INT16, "0+")
        min_version: int = field(INT16, "0+")
        max_version: int = field(INT16, "0+")

    class SupportedFeatureKey(Struct):
        """A feature and the levels a node supports."""

        name: str = field(STRING, "3+")
        min_version: int = field(INT16, "3+")
        max_version: int = field(INT16, "3+")

    class FinalizedFeatureKey(Struct):
        """A feature and the levels the cluster has agreed on."""

        name: str = field(STRING, "3+")
        max_version_level: int = field(INT16, "3+")
        min_version_level: int = field(INT16, "3+")

    error_code: int = field(INT16, "0+")
    api_keys: list[ApiVersion] = field(array(ApiVersion), "0+")
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(array(SupportedFeatureKey), "3+", tag=0, ignorable=True)
    finalized_features_epoch: int = field(INT64, "3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(array(FinalizedFeatureKey), "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field(BOOL, "3+", tag=3, ignorable=True)
