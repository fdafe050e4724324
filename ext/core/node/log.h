// The end of the log while a lane works on it: lent by storage.Log, which takes it back before it does anything else.
//
// It writes into the active segment, samples what a sync will make durable before that begins, and counts it when it has
// ended (rule 4). It neither rolls nor truncates. All of it under the lane lock, but for the syncs themselves.
//
// An append goes into zeros that are there, written or allocated: a file system that is full is noticed before anything is
// written that would end half-way, and storage.Log, which has to do with it, is asked for room.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "../codes.h"
#include "../flusher.h"
#include "../lane/mutation.h"
#include "../lane/ports.h"
#include "../offset_index.h"
#include "../producers.h"
#include "../scan.h"
#include "hooks.h"
#include "tail.h"
#include "trace.h"

namespace fastquorum::node {

// An exclusive offset and where it lies; ascends in all three together.
struct Position {
    Offset offset = 0;
    Offset segment_base = 0;
    std::int64_t position = 0;
};

struct SegmentRef {
    Offset base_offset = 0;
    FileRef file;
    IndexRef index;
    std::int64_t size_bytes = 0;
};

// A sync: what it has to do, and what is durable when it has ended.
struct Ticket {
    std::int64_t token = 0;
    std::int64_t generation = 0;
    Position at;
};

// What storage.Log lends and takes back.
struct Loan {
    std::vector<SegmentRef> segments;
    Offset start_offset = 0;
    Offset end_offset = 0;
    Position flushed;
    std::int64_t generation = 0;
    std::int32_t last_epoch = 0;
    std::int64_t prepared_bytes = 0;   // of the active segment
    std::int64_t max_timestamp_ms = -1;  // of the active segment
    std::int64_t segment_bytes = 0;
    std::int64_t zeros_least = 0;  // an append leaves so many in front of the writer, and makes a step at a time
    std::int64_t zeros_step = 0;
    ProducersRef producers;  // told of every batch that is appended
    bool is_flushing = false;
    Ticket ticket;
    bool is_flush_wanted = false;
    std::int64_t next_token = 1;
};

class NodeLog final : public lane::Log {
   public:
    static constexpr std::int64_t disk_read_max = 1024 * 1024;  // at a time: everybody else waits
    static constexpr std::int64_t segment_records_max = std::int64_t{INT32_MAX} + 1;  // offsets from its base on that an index can address

    bool is_lent() const noexcept { return is_lent_; }
    const Loan &loan() const noexcept { return loan_; }
    Failure failure() const noexcept { return failure_; }
    int failure_errno() const noexcept { return errno_; }
    Offset failure_offset() const noexcept { return failure_offset_; }
    Trace &trace() noexcept { return trace_; }

    void lend(Loan loan) {
        if (loan.generation != loan_.generation) trace_.forget();
        trace_.flushed(loan.flushed.offset, now_ns());
        loan_ = std::move(loan);
        is_lent_ = true;
        if (tail_.end_offset() != loan_.end_offset || tail_generation_ != loan_.generation) tail_.clear();
        tail_generation_ = loan_.generation;
        lacks_room_ = false;
    }

    void take_back() noexcept { is_lent_ = false; }

    // Are zeros there for so many more bytes, and do they fit into the active segment?
    bool has_zeros(std::int64_t size_bytes) noexcept {
        return is_lent_ && loan_.segments.back().size_bytes + size_bytes <= loan_.prepared_bytes && fits(size_bytes, size_bytes);
    }

    // Do so many more bytes and records fit into the active segment, and are there zeros for them, or can they be made? False:
    // the segment is full, or the file system is; or the disk has failed.
    bool make_room(std::int64_t size_bytes, std::int64_t record_count) noexcept {
        if (!fits(size_bytes, record_count)) return false;
        const std::int64_t end = loan_.segments.back().size_bytes + size_bytes;
        return end <= loan_.prepared_bytes || (allocate(end) && end <= loan_.prepared_bytes);
    }

    // A sync that the shell has to have done; once.
    bool take_job(std::vector<FileRef> *files, std::int64_t *token) {
        if (!has_job_) return false;
        has_job_ = false;
        files->clear();
        allocate_at(Point::memory_for_sync);
        for (const SegmentRef &segment : loan_.segments)
            if (segment.base_offset > loan_.flushed.segment_base ||
                (segment.base_offset == loan_.flushed.segment_base && segment.size_bytes > loan_.flushed.position))
                files->push_back(segment.file);
        *token = loan_.ticket.token;
        return true;
    }
    bool has_job() const noexcept { return has_job_; }

    // Is it this log's sync that ended, or one that storage.Log has begun?
    bool owns(std::int64_t token) const noexcept { return is_lent_ && loan_.is_flushing && loan_.ticket.token == token; }

    // A sync ended well. The next, if one is wanted, is to be done.
    void flush_done() noexcept {
        loan_.is_flushing = false;
        if (lane::mutated(lane::Mutation::samples_the_end_after_the_sync)) loan_.ticket.at = written_end();
        if (loan_.ticket.generation == loan_.generation && loan_.ticket.at.offset > loan_.flushed.offset) loan_.flushed = loan_.ticket.at;
        trace_.flushed(loan_.flushed.offset, trace_.sync_ended_ns());
        if (loan_.is_flush_wanted) {
            loan_.is_flush_wanted = false;
            request_flush();
        }
    }

    void flush_failed(int error) noexcept {
        loan_.is_flushing = false;
        fail(Failure::sync, error);
    }

    // Zeros up to `end`, in front of the writer, if the file system has room for them: `prepared_bytes` says where they end. False:
    // the disk has failed.
    bool prepare(std::int64_t end) noexcept {
        SegmentRef &active = loan_.segments.back();
        const std::int64_t from = std::max(loan_.prepared_bytes, active.size_bytes);
        if (end <= from) return true;
        int error = hit(Point::before_segment_zero_fill);
        if (error == 0) error = active.file->zero_fill(from, end);
        if (error == 0) error = hit(Point::after_segment_zero_fill);
        if (File::lacks_room(error)) {
            error = active.file->truncate(from);  // the little that was left is for what cannot wait: a vote, the mark
            lacks_room_ = true;
            if (error == 0) return true;
        }
        if (error != 0) return fail(Failure::write, error);
        loan_.prepared_bytes = end;
        lacks_room_ = false;
        return true;
    }

    // --- lane::Log ---------------------------------------------------------------------------------------------------

    Offset start_offset() noexcept override { return loan_.start_offset; }
    Offset end_offset() noexcept override { return loan_.end_offset; }
    Offset flushed_end() noexcept override { return loan_.flushed.offset; }
    std::int64_t generation() noexcept override { return loan_.generation; }
    std::int32_t last_epoch() noexcept override { return loan_.last_epoch; }
    bool is_flushing() noexcept override { return loan_.is_flushing; }

    // Into the active segment. An empty one takes any number of bytes.
    bool fits(std::int64_t size_bytes, std::int64_t record_count) noexcept override {
        const SegmentRef &active = loan_.segments.back();
        if (loan_.end_offset + record_count - active.base_offset > segment_records_max) return false;
        return active.size_bytes == 0 || active.size_bytes + size_bytes <= loan_.segment_bytes;
    }

    bool append(Span batches, Offset base_offset, Offset next_offset, std::int32_t epoch, std::int64_t timestamp_ms) override {
        SegmentRef &active = loan_.segments.back();
        if (failure_ != Failure::none || !is_lent_ || base_offset != loan_.end_offset || next_offset <= base_offset || epoch != loan_.last_epoch)
            return fail(Failure::write, EINVAL);
        int error = hit(Point::before_segment_write);
        if (error == 0) error = active.file->sync_error();
        if (error == 0) error = active.file->write(active.size_bytes, batches.data, batches.size);
        if (error == 0) error = hit(Point::after_segment_write);
        if (error != 0) return fail(Failure::write, error);
        trace_.written(base_offset, next_offset, epoch, now_ns());
        if (!active.index->add_batch(batches.data, base_offset, active.size_bytes)) throw std::bad_alloc();
        loan_.producers->read(batches.data, batches.size, base_offset, next_offset);
        active.size_bytes += batches.size;
        loan_.max_timestamp_ms = std::max(loan_.max_timestamp_ms, timestamp_ms);
        allocate_at(Point::memory_for_record);
        tail_.append(batches, base_offset, next_offset);
        loan_.end_offset = next_offset;
        if (active.size_bytes + loan_.zeros_least <= loan_.prepared_bytes || lacks_room_) return true;
        // The upkeep does not keep up: a step of zeros, so that the next syncs need not grow the file.
        loan_.prepared_bytes = std::max(loan_.prepared_bytes, active.size_bytes);
        return prepare(std::min(loan_.prepared_bytes + loan_.zeros_step, loan_.segment_bytes));
    }

    bool read(Offset offset, std::int64_t bytes_max, Span *batches) override {
        if (tail_.read(offset, bytes_max, batches)) return true;
        return read_disk(offset, std::min(bytes_max, disk_read_max), batches) || (failure_offset_ = offset, fail(Failure::read, EIO));
    }

    // As above, from memory alone.
    bool read_recent(Offset offset, std::int64_t bytes_max, Span *batches) noexcept { return tail_.read(offset, bytes_max, batches); }

    bool request_flush() noexcept override {
        if (loan_.is_flushing) {
            loan_.is_flush_wanted = true;
        } else if (loan_.flushed.offset < loan_.end_offset) {
            loan_.is_flushing = true;
            loan_.ticket = {loan_.next_token++, loan_.generation, written_end()};
            has_job_ = true;
        }
        return failure_ == Failure::none;
    }

   private:
    // Zeros up to `end` that nobody has to write, for an append that is larger than those in front of the writer: it would be
    // written twice. No more than that, as written ones sync faster. Where they cannot be had, as `prepare`.
    bool allocate(std::int64_t end) noexcept {
        SegmentRef &active = loan_.segments.back();
        if (!active.file->allocate(std::max(loan_.prepared_bytes, active.size_bytes), end)) return prepare(end);
        loan_.prepared_bytes = end;
        return true;
    }

    Position written_end() const noexcept {
        const SegmentRef &active = loan_.segments.back();
        return {loan_.end_offset, active.base_offset, active.size_bytes};
    }

    bool fail(Failure failure, int error) noexcept {
        if (failure_ == Failure::none) {
            failure_ = failure;
            errno_ = error;
        }
        return false;
    }

    // Whole, checked batches of one segment.
    bool read_disk(Offset offset, std::int64_t bytes_max, Span *batches) {
        const SegmentRef *segment = &loan_.segments.front();
        for (const SegmentRef &each : loan_.segments)
            if (each.base_offset <= offset) segment = &each;
        const std::int64_t position = segment->index->lookup(offset);
        for (std::int64_t size = 2 * index_interval_bytes + bytes_max;; size *= 4) {
            const std::int64_t wanted = std::min(size, segment->size_bytes - position);
            if (wanted <= 0) return false;
            if (static_cast<std::int64_t>(scratch_.size()) < wanted) scratch_.resize(static_cast<std::size_t>(wanted));
            std::int64_t done = 0;
            if (segment->file->read(position, scratch_.data(), wanted, &done) != 0) return false;
            const Pair found = slice_batches(scratch_.data(), done, offset, bytes_max);
            if (found.first < found.second) {
                *batches = Span{scratch_.data() + found.first, found.second - found.first};
                ScanResult seen;
                return scan(batches->data, batches->size, 0, Expectation{}, true, batch_size_max, &seen) &&
                       seen.status.fault == Fault::none && seen.first_offset <= offset && offset < seen.next_offset;
            }
            if (position + size >= segment->size_bytes) return false;
        }
    }

    bool is_lent_ = false;
    bool lacks_room_ = false;  // the file system had none; storage.Log looks again
    bool has_job_ = false;
    Loan loan_;
    Trace trace_;
    RecentTail tail_;
    std::int64_t tail_generation_ = -1;
    std::vector<std::uint8_t> scratch_;
    Failure failure_ = Failure::none;
    int errno_ = 0;
    Offset failure_offset_ = -1;
};

}  // namespace fastquorum::node
