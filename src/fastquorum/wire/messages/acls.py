"""Access control entries: DescribeAcls, CreateAcls, DeleteAcls.

Source: KIP-140, KIP-290 (pattern types), KIP-373 (users as resources).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT8, INT16, INT32, STRING, array, field

_LITERAL = 3


class DescribeAclsRequest(Message, api_key=29, kind="request", versions="1-3", flexible="2+"):
    """Ask which entries match."""

    resource_type_filter: int = field(INT8, "0+")
    resource_name_filter: str | None = field(STRING, "0+", nullable="0+")
    pattern_type_filter: int = field(INT8, "1+", default=_LITERAL)
    principal_filter: str | None = field(STRING, "0+", nullable="0+")
    host_filter: str | None = field(STRING, "0+", nullable="0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class DescribeAclsResponse(Message, api_key=29, kind="response", versions="1-3", flexible="2+"):
    """The entries, by resource."""

    class DescribeAclsResource(Struct):
        class AclDescription(Struct):
            principal: str = field(STRING, "0+")
            host: str = field(STRING, "0+")
            operation: int = field(INT8, "0+")
            permission_type: int = field(INT8, "0+")

        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")
        pattern_type: int = field(INT8, "1+", default=_LITERAL)
        acls: list[AclDescription] = field(array(AclDescription), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resources: list[DescribeAclsResource] = field(array(DescribeAclsResource), "0+")


class CreateAclsRequest(Message, api_key=30, kind="request", versions="1-3", flexible="2+"):
    """Make entries."""

    class AclCreation(Struct):
        resource_type: int = field(INT8, "0+")
        resource_name: str = field(STRING, "0+")
        resource_pattern_type: int = field(INT8, "1+", default=_LITERAL)
        principal: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        operation: int = field(INT8, "0+")
        permission_type: int = field(INT8, "0+")

    creations: list[AclCreation] = field(array(AclCreation), "0+")


class CreateAclsResponse(Message, api_key=30, kind="response", versions="1-3", flexible="2+"):
    """What became of each, in their order."""

    class AclCreationResult(Struct):
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")

    throttle_time_ms: int = field(INT32, "0+")
    results: list[AclCreationResult] = field(array(AclCreationResult), "0+")


class DeleteAclsRequest(Message, api_key=31, kind="request", versions="1-3", flexible="2+"):
    """Remove the entries that match."""

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = field(INT8, "0+")
        resource_name_filter: str | None = field(STRING, "0+", nullable="0+")
        pattern_type_filter: int = field(INT8, "1+", default=_LITERAL)
        principal_filter: str | None = field(STRING, "0+", nullable="0+")
        host_filter: str | None = field(STRING, "0+", nullable="0+")
        operation: int = field(INT8, "0+")
        permission_type: int = field(INT8, "0+")

    filters: list[DeleteAclsFilter] = field(array(DeleteAclsFilter), "0+")


class DeleteAclsResponse(Message, api_key=31, kind="response", versions="1-3", flexible="2+"):
    """What each filter removed, in their order."""

    class DeleteAclsFilterResult(Struct):
        class DeleteAclsMatchingAcl(Struct):
            error_code: int = field(INT16, "0+")
            error_message: str | None = field(STRING, "0+", nullable="0+")
            resource_type: int = field(INT8, "0+")
            resource_name: str = field(STRING, "0+")
            pattern_type: int = field(INT8, "1+", default=_LITERAL)
            principal: str = field(STRING, "0+")
            host: str = field(STRING, "0+")
            operation: int = field(INT8, "0+")
            permission_type: int = field(INT8, "0+")

        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")
        matching_acls: list[DeleteAclsMatchingAcl] = field(array(DeleteAclsMatchingAcl), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    filter_results: list[DeleteAclsFilterResult] = field(array(DeleteAclsFilterResult), "0+")
