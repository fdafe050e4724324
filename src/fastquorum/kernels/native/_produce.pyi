from collections.abc import Mapping
from typing import Self, final

@final
class ProduceApi:
    def __new__(
        cls,
        topic: str,
        topic_id: bytes,
        answers: Mapping[int, tuple[bytes, int, int, int]],
        *,
        batch_bytes_max: int,
        unanswered_max: int,
    ) -> Self: ...
    def parse(self, frame: bytes) -> tuple[int, int, int, int, bytes] | None: ...
    def takes(self, records: bytes) -> bool: ...
    def answer(
        self, version: int, correlation_id: int, error: int, base_offset: int, log_start_offset: int
    ) -> bytes: ...
