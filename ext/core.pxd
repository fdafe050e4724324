"""The C++ core (ext/core), for Cython. Nothing of this module exists at run time."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libcpp.pair cimport pair
from libcpp.vector cimport vector


cdef extern from "crc32c.h" namespace "fastquorum" nogil:
    uint32_t crc32c(uint32_t crc, const void *data, size_t size) noexcept
    const char *const *crc32c_paths() noexcept
    const char *crc32c_path() noexcept
    bint crc32c_force_path(const char *name) noexcept


cdef extern from "batch.h" namespace "fastquorum" nogil:
    const int64_t header_bytes
    const int64_t framing_bytes
    const int64_t batch_size_max
    const int16_t compression_mask
    const int16_t known_attributes
    const int compression_max

    cdef enum class Fault(int):
        none
        truncated
        length
        record

    cdef cppclass Status:
        Fault fault
        int64_t position
        int64_t offset
        int64_t stored_crc
        int64_t computed_crc

    cdef cppclass BatchHeader:
        int64_t base_offset
        int64_t size_bytes
        int32_t leader_epoch
        int8_t magic
        uint32_t crc
        int16_t attributes
        int32_t last_offset_delta
        int64_t base_timestamp_ms
        int64_t max_timestamp_ms
        int64_t producer_id
        int16_t producer_epoch
        int32_t base_sequence
        int32_t records_count
        bint last_offset(int64_t *last) noexcept

    cdef cppclass Expectation:
        int64_t offset
        int64_t epoch_min
        int64_t epoch_max

    BatchHeader read_header(const uint8_t *batch) noexcept
    uint32_t batch_crc(const uint8_t *batch, const BatchHeader &header) noexcept
    void seal(uint8_t *batch, const BatchHeader &header) noexcept
    Fault framing_fault(const uint8_t *data, int64_t size, int64_t position) noexcept
    Status status_at(Fault fault, const uint8_t *data, int64_t size, int64_t position) noexcept
    Status check_batch(const uint8_t *data, int64_t size, int64_t position, bint verify_crc, int64_t batch_bytes_max,
                       const Expectation &expected, BatchHeader *header) noexcept
    Integer load_big_endian[Integer](const uint8_t *bytes) noexcept
    void store_big_endian[Integer](uint8_t *bytes, Integer value) noexcept


cdef extern from "encode.h" namespace "fastquorum" nogil:
    cdef struct Slice:
        const uint8_t *data
        int64_t size

    cdef struct HeaderSlices:
        Slice key
        Slice value

    cdef struct RecordSlices:
        int64_t timestamp_delta
        int64_t offset_delta
        Slice key
        Slice value
        int64_t headers_begin
        int64_t headers_end

    int64_t value_size(int64_t offset_delta, int64_t size) noexcept
    uint8_t *write_value(uint8_t *out, int64_t offset_delta, Slice value) noexcept
    int64_t values_size(const Slice *values, int64_t count, int64_t first_delta) noexcept
    uint8_t *write_values(uint8_t *out, const Slice *values, int64_t count, int64_t first_delta) noexcept
    bint columns_ascend[Bound](const Bound *bounds, int64_t count, int64_t data_size) noexcept
    int64_t columns_size[Bound](const Bound *bounds, int64_t count) noexcept
    uint8_t *write_columns[Bound](uint8_t *out, const uint8_t *data, const Bound *bounds, int64_t count) noexcept
    int64_t records_size(const RecordSlices *records, int64_t count, const HeaderSlices *headers) noexcept
    uint8_t *write_records(uint8_t *out, const RecordSlices *records, int64_t count, const HeaderSlices *headers) noexcept


cdef extern from "decode.h" namespace "fastquorum" nogil:
    cdef cppclass ColumnSink:
        int64_t *offsets
        int64_t *timestamps_ms
        int64_t *key_starts
        int64_t *key_lengths
        int64_t *value_starts
        int64_t *value_lengths
        int64_t *header_starts
        int64_t *header_key_starts
        int64_t *header_key_lengths
        int64_t *header_value_starts
        int64_t *header_value_lengths
        int64_t headers_max

    bint check_section(const BatchHeader &header, const uint8_t *section, const uint8_t *section_end) noexcept
    bint count_is_possible(const BatchHeader &header, int64_t section_bytes) noexcept
    bint decode_section(const BatchHeader &header, const uint8_t *origin, const uint8_t *section, const uint8_t *section_end,
                        const ColumnSink &sink, int64_t *headers_total) noexcept


cdef extern from "scan.h" namespace "fastquorum" nogil:
    cdef cppclass ScanResult:
        int64_t valid_bytes
        int64_t batch_count
        int64_t control_count
        int64_t record_count
        int64_t first_offset
        int64_t next_offset
        int64_t first_epoch
        int64_t last_epoch
        int64_t max_timestamp_ms
        vector[pair[int64_t, int64_t]] epoch_starts
        vector[pair[int64_t, int64_t]] index
        Status status

    bint scan(const uint8_t *data, int64_t size, int64_t position, Expectation expected, bint verify_crc,
              int64_t batch_bytes_max, ScanResult *result) noexcept
    pair[int64_t, int64_t] slice_batches(const uint8_t *data, int64_t size, int64_t offset, int64_t bytes_max) noexcept


cdef extern from "epochs.h" namespace "fastquorum" nogil:
    cdef cppclass EpochTable:
        int64_t size() noexcept
        int64_t epoch(int64_t i) noexcept
        int64_t start(int64_t i) noexcept
        int64_t latest_epoch() noexcept
        int64_t latest_start() noexcept
        bint append(int64_t epoch, int64_t start_offset) noexcept
        int64_t epoch_for(int64_t offset) noexcept
        pair[int64_t, int64_t] end_offset_for(int64_t epoch, int64_t log_end_offset) noexcept
        void truncate_to(int64_t end_offset) noexcept
        void truncate_before(int64_t start_offset) noexcept

    int64_t majority_reached(int64_t *end_offsets, int64_t count) noexcept


cdef extern from "offset_index.h" namespace "fastquorum" nogil:
    cdef cppclass OffsetIndex:
        int64_t base_offset() noexcept
        int64_t size() noexcept
        bint is_due(int64_t position) noexcept
        bint add_batch(const uint8_t *batch, int64_t base_offset, int64_t position) noexcept
        int64_t lookup(int64_t offset) noexcept
        void truncate_to(int64_t position) noexcept
        bint encode(vector[uint8_t] *out) noexcept

    cdef cppclass IndexRef:
        OffsetIndex *get() noexcept

    IndexRef make_index(int64_t base_offset) noexcept


cdef extern from "file.h" namespace "fastquorum" nogil:
    cdef cppclass File:
        int descriptor() noexcept
        int sync_error() noexcept
        int write(int64_t position, const uint8_t *data, int64_t size) noexcept
        int read(int64_t position, uint8_t *data, int64_t size, int64_t *done) noexcept
        int zero_fill(int64_t start, int64_t end) noexcept
        bint allocate(int64_t start, int64_t end) noexcept
        int sync() noexcept
        int close() noexcept


cdef extern from "flusher.h" namespace "fastquorum" nogil:
    cdef cppclass FileRef:
        File *get() noexcept
        void reset() noexcept
        long use_count() noexcept

    FileRef make_file(int descriptor) noexcept

    cdef struct Completion:
        int64_t token
        int error

    cdef cppclass FlushThread:
        @staticmethod
        FlushThread *start(int *error) noexcept
        bint is_in_own_process() noexcept
        bint failed() noexcept
        int descriptor() noexcept
        int submit(int64_t token, const FileRef *files, size_t count) noexcept
        bint take(Completion *completion) noexcept
        void close() noexcept


cdef inline bytes bytes_of(const vector[uint8_t] &data):
    return PyBytes_FromStringAndSize(<const char *>data.data(), data.size())
