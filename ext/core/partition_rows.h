// PartitionRecords to the rows that an image keeps of them, with no message in between: a tuple of 11, whose members are
// numbers and tuples. Ids that come again and again are one object each.
//
// What is not as Kafka writes it is refused without a reason: whoever reads every record says why. Source: KIP-631, KIP-858
// (directories), KIP-966 (eligible leader replicas).
#pragma once

#include <Python.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "byte_reader.h"
#include "uuid_object.h"

namespace fastquorum {

enum class RowRead : int { taken, refused, failed };  // failed: a Python exception is set

// Objects that are used again while they are asked for often enough: a table with a few places for each key.
template <class Key>
class ObjectTable {
public:
    static constexpr std::size_t places = 4096, probes = 4;

    ObjectTable() noexcept = default;
    ObjectTable(const ObjectTable &) = delete;
    ObjectTable &operator=(const ObjectTable &) = delete;
    ~ObjectTable() {
        for (PyObject *each : objects_) {
            Py_XDECREF(each);
        }
    }

    // A reference to the object of `key`, made by `make` if it is not there. Null: `make` has failed.
    template <class Make>
    PyObject *get(const Key &key, std::size_t hash, Make make) noexcept {
        std::size_t place = hash % places;
        for (std::size_t probe = 0; probe < probes; ++probe) {
            const std::size_t at = (hash + probe) % places;
            if (objects_[at] == nullptr) {
                place = at;
                break;
            }
            if (keys_[at] == key) {
                Py_INCREF(objects_[at]);
                return objects_[at];
            }
        }
        PyObject *made = make();
        if (made != nullptr) {
            PyObject *before = objects_[place];
            Py_INCREF(made);
            objects_[place] = made;
            keys_[place] = key;
            Py_XDECREF(before);
        }
        return made;
    }

private:
    std::array<PyObject *, places> objects_{};
    std::array<Key, places> keys_{};
};

using RawUuid = std::array<std::uint8_t, uuid_bytes>;

class PartitionRows {
public:
    // Types that the caller keeps alive; `row` is a subclass of tuple that adds nothing to it.
    void set_types(PyTypeObject *row, PyTypeObject *uuid) noexcept {
        row_ = row;
        uuid_ = uuid;
    }

    // Reads the value of one record if it is a PartitionRecord, and of this topic unless `topic` is fresh: then its topic is
    // the one. `*row` is owned by the caller.
    RowRead read(const std::uint8_t *value, std::int64_t size, RawUuid *topic, bool is_fresh, std::int32_t *partition_id,
                 PyObject **row) noexcept {
        constexpr std::uint8_t frame_version = 1, partition_record = 3;
        if (size < 3 || value[0] != frame_version || value[1] != partition_record || value[2] > version_max) {
            return RowRead::refused;
        }
        ByteReader bytes(value + 3, value + size);
        RawUuid named;
        if (!bytes.take(partition_id) || *partition_id < 0 || !bytes.take_bytes(named.data(), uuid_bytes) ||
            (!is_fresh && named != *topic)) {
            return RowRead::refused;
        }
        *topic = named;
        *row = read_row(&bytes, value[2]);
        if (*row != nullptr) return RowRead::taken;
        return PyErr_Occurred() == nullptr ? RowRead::refused : RowRead::failed;
    }

private:
    static constexpr std::uint8_t version_max = 2, directories_since = 1, eligible_since = 2;
    enum Member : Py_ssize_t {
        replicas, directories, isr, leader, leader_epoch, partition_epoch, recovery, removing, adding, eligible, last_known, members
    };

    PyObject *read_row(ByteReader *bytes, std::uint8_t version) noexcept {
        PyObject *made = row_->tp_alloc(row_, members);
        if (made == nullptr) return nullptr;
        if (!fill(made, bytes, version)) {
            Py_DECREF(made);
            return nullptr;
        }
        // Nothing that it holds can refer back to it, so that the collector need not look: there may be a million.
        PyObject_GC_UnTrack(made);
        return made;
    }

    bool fill(PyObject *made, ByteReader *bytes, std::uint8_t version) noexcept {
        const std::uint8_t *replicas_from = bytes->at();
        if (!set(made, replicas, numbers(bytes))) return false;
        const std::uint8_t *isr_from = bytes->at();
        const std::int64_t size = isr_from - replicas_from;
        if (bytes->left() >= size && std::memcmp(replicas_from, isr_from, static_cast<std::size_t>(size)) == 0) {
            ByteReader behind(isr_from + size, isr_from + bytes->left());  // most partitions are in sync
            *bytes = behind;
            PyObject *all = PyTuple_GET_ITEM(made, replicas);
            Py_INCREF(all);
            set(made, isr, all);
        } else if (!set(made, isr, numbers(bytes))) {
            return false;
        }
        if (!set(made, removing, numbers(bytes)) || !set(made, adding, numbers(bytes)) || !set(made, leader, number(bytes)) ||
            !set(made, leader_epoch, number(bytes)) || !set(made, partition_epoch, number(bytes))) {
            return false;
        }
        const Py_ssize_t count = PyTuple_GET_SIZE(PyTuple_GET_ITEM(made, replicas));
        PyObject *where = version >= directories_since ? read_directories(bytes, count) : migrating(count);
        return set(made, directories, where) && read_tags(made, bytes, version) && bytes->left() == 0;
    }

    static bool set(PyObject *made, Member at, PyObject *owned) noexcept {
        PyTuple_SET_ITEM(made, at, owned);
        return owned != nullptr;
    }

    static bool take_count(ByteReader *bytes, std::int64_t item_bytes, std::int64_t *count) noexcept {
        if (!bytes->take_uvarint(count) || *count == 0) return false;
        --*count;
        return *count <= bytes->left() / item_bytes;
    }

    PyObject *id_of(std::int32_t value) noexcept {
        return ids_.get(value, static_cast<std::uint32_t>(value), [&] { return PyLong_FromLong(value); });
    }

    PyObject *number(ByteReader *bytes) noexcept {
        std::int32_t value;
        return bytes->take(&value) ? id_of(value) : nullptr;
    }

    PyObject *numbers(ByteReader *bytes) noexcept {
        std::int64_t count;
        if (!take_count(bytes, sizeof(std::int32_t), &count)) return nullptr;
        return tuple_of(count, [&] { return number(bytes); });
    }

    PyObject *uuid_of(const RawUuid &raw) noexcept {
        std::uint64_t high, low;
        std::memcpy(&high, raw.data(), sizeof high);
        std::memcpy(&low, raw.data() + sizeof high, sizeof low);
        constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
        std::uint64_t hash = high ^ (low * odd);
        hash = (hash ^ (hash >> 32)) * odd;  // whichever of its bytes differ
        return uuids_.get(raw, hash >> 32, [&] { return new_uuid(uuid_, raw.data()); });
    }

    // One for each replica. None at all, or all of them migrating (zero), stands for as many migrating ones.
    PyObject *read_directories(ByteReader *bytes, std::int64_t replica_count) noexcept {
        std::int64_t count;
        if (!take_count(bytes, uuid_bytes, &count)) return nullptr;
        bool is_none = true;
        for (const std::uint8_t *at = bytes->at(), *end = at + count * uuid_bytes; is_none && at != end; ++at) {
            is_none = *at == 0;
        }
        if (is_none) {
            ByteReader behind(bytes->at() + count * uuid_bytes, bytes->at() + bytes->left());
            *bytes = behind;
            return migrating(replica_count);
        }
        if (count != replica_count) return nullptr;
        return tuple_of(count, [&] {
            RawUuid raw{};
            bytes->take_bytes(raw.data(), uuid_bytes);
            return uuid_of(raw);
        });
    }

    PyObject *migrating(std::int64_t count) noexcept {
        return tuple_of(count, [&] { return uuid_of(RawUuid{}); });
    }

    template <class Next>
    static PyObject *tuple_of(std::int64_t count, Next next) noexcept {
        PyObject *made = PyTuple_New(count);
        for (Py_ssize_t i = 0; made != nullptr && i < count; ++i) {
            PyObject *item = next();
            if (item == nullptr) {
                Py_CLEAR(made);
            } else {
                PyTuple_SET_ITEM(made, i, item);
            }
        }
        if (made != nullptr && count > 0) {
            PyObject_GC_UnTrack(made);
        }
        return made;
    }

    bool read_tags(PyObject *made, ByteReader *bytes, std::uint8_t version) noexcept {
        std::int64_t count, last = -1;
        if (!bytes->take_uvarint(&count)) return false;
        for (std::int64_t i = 0; i < count; ++i) {
            std::int64_t tag, size;
            if (!bytes->take_uvarint(&tag) || !bytes->take_uvarint(&size) || tag <= last || size > bytes->left()) return false;
            ByteReader inside(bytes->at(), bytes->at() + size);
            if (!read_tag(made, tag, &inside, version) || inside.left() != 0) return false;
            *bytes = ByteReader(bytes->at() + size, bytes->at() + bytes->left());
            last = tag;
        }
        return set_absent(made, recovery, id_of(0)) && set_absent(made, eligible, PyTuple_New(0)) &&
               set_absent(made, last_known, PyTuple_New(0));
    }

    static bool set_absent(PyObject *made, Member at, PyObject *owned) noexcept {
        if (PyTuple_GET_ITEM(made, at) == nullptr) return set(made, at, owned);
        Py_XDECREF(owned);
        return true;
    }

    bool read_tag(PyObject *made, std::int64_t tag, ByteReader *bytes, std::uint8_t version) noexcept {
        if (tag == 0) {
            std::uint8_t state;
            return bytes->take(&state) && state <= 1 && set(made, recovery, id_of(state));
        }
        if (tag > 2 || version < eligible_since) return false;
        const Member at = tag == 1 ? eligible : last_known;
        if (bytes->left() == 1 && *bytes->at() == 0) {  // null
            *bytes = ByteReader(bytes->at() + 1, bytes->at() + 1);
            return set(made, at, PyTuple_New(0));
        }
        return set(made, at, numbers(bytes));
    }

    PyTypeObject *row_ = nullptr;
    PyTypeObject *uuid_ = nullptr;
    ObjectTable<std::int32_t> ids_;
    ObjectTable<RawUuid> uuids_;
};

}  // namespace fastquorum
