from typing import Any, final

from fastquorum.kernels.partitions import PartitionRun

@final
class PartitionRows:
    def __init__(self, row_type: type[Any]) -> None: ...
    def read(self, values: list[Any], at: int = 0) -> PartitionRun | None: ...

def untracked(items: list[Any]) -> tuple[Any, ...]: ...
