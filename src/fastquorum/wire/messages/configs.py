"""Configurations: IncrementalAlterConfigs, DescribeConfigs, AlterConfigs.

Source: KIP-133, KIP-339, KIP-226 (synonyms).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT8, INT16, INT32, STRING, array, field


class DescribeConfigsRequest(Message, api_key=32, kind="request", versions="1-4", flexible="4+"):
    """Ask for configurations."""

    class DescribeConfigsResource(Struct):
        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")
        configuration_keys: list[str] | None = field(array(STRING), "0+", nullable="0+")

    resources: list[DescribeConfigsResource] = field(array(DescribeConfigsResource), "0+")
    include_synonyms: bool = field(BOOL, "1+")
    include_documentation: bool = field(BOOL, "3+")


class DescribeConfigsResponse(Message, api_key=32, kind="response", versions="1-4", flexible="4+"):
    """The configurations, with their origin."""

    class DescribeConfigsResult(Struct):
        class DescribeConfigsResourceResult(Struct):
            class DescribeConfigsSynonym(Struct):
                name: str = field(STRING, "1+")
                value: str | None = field(STRING, "1+", nullable="0+")
                source: int = field(INT8, "1+")

            name: str = field(STRING, "0+")
            value: str | None = field(STRING, "0+", nullable="0+")
            read_only: bool = field(BOOL, "0+")
            config_source: int = field(INT8, "1+", default=-1, ignorable=True)
            is_sensitive: bool = field(BOOL, "0+")
            synonyms: list[DescribeConfigsSynonym] = field(array(DescribeConfigsSynonym), "1+", ignorable=True)
            config_type: int = field(INT8, "3+", ignorable=True)
            documentation: str | None = field(STRING, "3+", nullable="0+", ignorable=True)

        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")
        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")
        configs: list[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    results: list[DescribeConfigsResult] = field(array(DescribeConfigsResult), "0+")


class AlterConfigsRequest(Message, api_key=33, kind="request", versions="0-2", flexible="2+"):
    """Replace whole configurations."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: str = field(STRING, "0+")
            value: str | None = field(STRING, "0+", nullable="0+")

        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")
        configs: list[AlterableConfig] = field(array(AlterableConfig), "0+")

    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource), "0+")
    validate_only: bool = field(BOOL, "0+")


class AlterConfigsResponse(Message, api_key=33, kind="response", versions="0-2", flexible="2+"):
    """What became of each."""

    class AlterConfigsResourceResponse(Struct):
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")
        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")

    throttle_time_ms: int = field(INT32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse), "0+")


class IncrementalAlterConfigsRequest(Message, api_key=44, kind="request", versions="0-1", flexible="1+"):
    """Set, delete, append to or subtract from single values."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: str = field(STRING, "0+")
            config_operation: int = field(INT8, "0+")
            value: str | None = field(STRING, "0+", nullable="0+")

        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")
        configs: list[AlterableConfig] = field(array(AlterableConfig), "0+")

    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource), "0+")
    validate_only: bool = field(BOOL, "0+")


class IncrementalAlterConfigsResponse(Message, api_key=44, kind="response", versions="0-1", flexible="1+"):
    """What became of each."""

    class AlterConfigsResourceResponse(Struct):
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")
        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")

    throttle_time_ms: int = field(INT32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse), "0+")
