// The lane's ports as C functions: how tests and the simulator put their own log under it, and look at what it brings about.
#pragma once

#include <cstdint>

#include "ports.h"

namespace fastquorum::lane {

enum class Number : int { start_offset, end_offset, flushed_end, generation, last_epoch, is_flushing };

struct LogCalls {
    std::int64_t (*number)(void *self, int which);
    bool (*fits)(void *self, std::int64_t size_bytes, std::int64_t record_count);
    bool (*append)(void *self, const std::uint8_t *data, std::int64_t size, std::int64_t base_offset, std::int64_t next_offset,
                   std::int32_t epoch, std::int64_t timestamp_ms);
    bool (*read)(void *self, std::int64_t offset, std::int64_t bytes_max, const std::uint8_t **data, std::int64_t *size);
    bool (*request_flush)(void *self);
};

class CalledLog final : public Log {
   public:
    CalledLog(void *self, LogCalls calls) noexcept : self_(self), calls_(calls) {}

    Offset start_offset() noexcept override { return number(Number::start_offset); }
    Offset end_offset() noexcept override { return number(Number::end_offset); }
    Offset flushed_end() noexcept override { return number(Number::flushed_end); }
    std::int64_t generation() noexcept override { return number(Number::generation); }
    std::int32_t last_epoch() noexcept override { return static_cast<std::int32_t>(number(Number::last_epoch)); }
    bool is_flushing() noexcept override { return number(Number::is_flushing) != 0; }
    bool fits(std::int64_t size_bytes, std::int64_t record_count) noexcept override { return calls_.fits(self_, size_bytes, record_count); }
    bool append(Span batches, Offset base_offset, Offset next_offset, std::int32_t epoch, std::int64_t timestamp_ms) noexcept override {
        return calls_.append(self_, batches.data, batches.size, base_offset, next_offset, epoch, timestamp_ms);
    }
    bool read(Offset offset, std::int64_t bytes_max, Span *batches) noexcept override {
        return calls_.read(self_, offset, bytes_max, &batches->data, &batches->size);
    }
    bool request_flush() noexcept override { return calls_.request_flush(self_); }

   private:
    std::int64_t number(Number which) noexcept { return calls_.number(self_, static_cast<int>(which)); }

    void *self_;
    LogCalls calls_;
};

struct OutputCalls {
    void (*send)(void *self, std::int64_t connection, const Frame *frame);
    void (*hand_up)(void *self, std::int64_t connection, const std::uint8_t *data, std::int64_t size);
    void (*advanced)(void *self, std::int64_t high_watermark);
    void (*barrier_done)(void *self, std::int64_t barrier, std::int64_t high_watermark);
    void (*unparked)(void *self, std::int64_t connection, std::int32_t correlation_id, int api_version);
    void (*observers_informed)(void *self);
};

class CalledOutputs final : public Outputs {
   public:
    CalledOutputs(void *self, OutputCalls calls) noexcept : self_(self), calls_(calls) {}

    void send(Connection connection, const Frame &frame) noexcept override { calls_.send(self_, connection, &frame); }
    void hand_up(Connection connection, Span frame) noexcept override { calls_.hand_up(self_, connection, frame.data, frame.size); }
    void advanced(Offset high_watermark) noexcept override { calls_.advanced(self_, high_watermark); }
    void barrier_done(std::int64_t barrier, Offset high_watermark) noexcept override { calls_.barrier_done(self_, barrier, high_watermark); }
    void unparked(Connection connection, std::int32_t correlation_id, int api_version) noexcept override {
        calls_.unparked(self_, connection, correlation_id, api_version);
    }
    void observers_informed() noexcept override { calls_.observers_informed(self_); }

   private:
    void *self_;
    OutputCalls calls_;
};

}  // namespace fastquorum::lane
