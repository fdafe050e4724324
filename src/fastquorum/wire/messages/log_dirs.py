"""DescribeLogDirs: what lies in a broker's log directories.

Source: KIP-113; KIP-827 (sizes).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, INT64, STRING, array, field


class DescribeLogDirsRequest(Message, api_key=35, kind="request", versions="1-5", flexible="2+"):
    """Ask for some topics (null: for all)."""

    class DescribableLogDirTopic(Struct):
        topic: str = field(STRING, "0+")
        partitions: list[int] = field(array(INT32), "0+")

    topics: list[DescribableLogDirTopic] | None = field(array(DescribableLogDirTopic), "0+", nullable="0+")


class DescribeLogDirsResponse(Message, api_key=35, kind="response", versions="1-5", flexible="2+"):
    """Directories, their replicas and sizes."""

    class DescribeLogDirsResult(Struct):
        class DescribeLogDirsTopic(Struct):
            class DescribeLogDirsPartition(Struct):
                partition_index: int = field(INT32, "0+")
                partition_size: int = field(INT64, "0+")
                offset_lag: int = field(INT64, "0+")
                is_future_key: bool = field(BOOL, "0+")

            name: str = field(STRING, "0+")
            partitions: list[DescribeLogDirsPartition] = field(array(DescribeLogDirsPartition), "0+")

        error_code: int = field(INT16, "0+")
        log_dir: str = field(STRING, "0+")
        topics: list[DescribeLogDirsTopic] = field(array(DescribeLogDirsTopic), "0+")
        total_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
        usable_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
        is_cordoned: bool = field(BOOL, "5+", ignorable=True)

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(array(DescribeLogDirsResult), "0+")
