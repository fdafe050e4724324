"""What every module that reads batches shares: the one raiser of each error, and a header as Python sees it."""

from libc.stdint cimport int64_t

from fastquorum.kernels.native.core cimport BatchHeader, Status


# CorruptionError with the status' fields; only called with a fault in it.
cdef int raise_fault(const Status &status) except -1

# The BatchFault of a status, None if it has none.
cdef object fault_reason(const Status &status)

# UsageError where no batch can be of this size.
cdef int check_batch_bytes_max(int64_t batch_bytes_max) except -1

# kernels.BatchInfo; crc_valid is None, True or False.
cdef object batch_info(const BatchHeader &header, int64_t position, object crc_valid)
