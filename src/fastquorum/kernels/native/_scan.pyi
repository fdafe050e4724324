from fastquorum.kernels import BatchInfo, Buffer, Scan

def batch_headers(
    buffer: Buffer, position: int = 0, *, verify_crc: bool = True, producers_only: bool = False
) -> list[BatchInfo]: ...
def scan(
    buffer: Buffer,
    position: int = 0,
    *,
    expected_offset: int = -1,
    epoch_min: int = 0,
    epoch_max: int = ...,
    verify_crc: bool = True,
    batch_bytes_max: int = ...,
) -> Scan: ...
def slice_batches(buffer: Buffer, offset: int, bytes_max: int) -> tuple[int, int]: ...
def stamp_batch(batch: bytearray, base_offset: int, leader_epoch: int) -> None: ...
