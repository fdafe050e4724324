"""From the core's statuses and headers to Python's errors and values."""

from libc.stdint cimport int64_t

from fastquorum.kernels.native.core cimport BatchHeader, Status, batch_size_max, header_bytes

from fastquorum.errors import CorruptionError, UsageError
from fastquorum.kernels import BatchFault, BatchInfo

cdef tuple _REASONS = (None, *BatchFault)
cdef object _new_tuple = tuple.__new__
cdef object _BatchInfo = BatchInfo


cdef object fault_reason(const Status &status):
    return _REASONS[<int>status.fault]


cdef int raise_fault(const Status &status) except -1:
    raise CorruptionError(
        fault_reason(status), status.position, status.offset, status.stored_crc, status.computed_crc
    )


cdef int check_batch_bytes_max(int64_t batch_bytes_max) except -1:
    if not header_bytes < batch_bytes_max <= batch_size_max:
        raise UsageError(f"batch_bytes_max {batch_bytes_max} lies outside {header_bytes + 1}..{batch_size_max}")
    return 0


cdef object batch_info(const BatchHeader &header, int64_t position, object crc_valid):
    # In Python's integers: a hostile base offset may leave no room for its last one.
    cdef object base_offset = header.base_offset
    return _new_tuple(_BatchInfo, (
        position,
        header.size_bytes,
        base_offset,
        base_offset + header.last_offset_delta,
        header.leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.records_count,
        crc_valid,
    ))
