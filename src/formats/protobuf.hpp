// SPDX-License-Identifier: Apache-2.0
// Messages in protobuf's encoding, field by field, with what Tink's own reader takes and refuses.
// What this branches on are tags, lengths and numbers, never the bytes of a key.
#pragma once

#include <cstdint>
#include <span>

namespace dael::formats {

class ProtobufFields {
  public:
    using Bytes = std::span<const std::uint8_t>;

    explicit ProtobufFields(Bytes bytes) : bytes_(bytes) {}

    // The next number or string; false at the end, or where the encoding is none (then damaged() is
    // true). What has other types is of no field that is known here, and passed over.
    bool next() {
        is_number = is_bytes = false;
        for (std::uint64_t tag = 0; !bytes_.empty() && read_tag(tag);) {
            field = tag >> 3;
            if (!skip_or_take(tag, kMaxGroups)) return fail();
            if (is_number || is_bytes) return true;
        }
        return false;
    }
    bool damaged() const { return damaged_; }

    // A field of the right number and another type is not that field.
    bool number_of(std::uint64_t which) const { return is_number && field == which; }
    bool bytes_of(std::uint64_t which) const { return is_bytes && field == which; }

    std::uint64_t field = 0, number = 0;
    Bytes payload;

  private:
    static constexpr int kMaxGroups = 100;  // within one another

    bool skip_or_take(std::uint64_t tag, int groups) {
        switch (tag & 7) {
            case 0:
                return is_number = read(number);
            case 1:
                return skip(8);
            case 2:
                if (!read(number) || number > bytes_.size()) return false;
                payload = bytes_.first(number);
                bytes_ = bytes_.subspan(number);
                return is_bytes = true;
            case 3:
                return skip_group(tag >> 3, groups);
            case 5:
                return skip(4);
            default:
                return false;  // the end of a group that never began, or no type at all
        }
    }
    bool skip(std::size_t size) {
        if (bytes_.size() < size) return false;
        bytes_ = bytes_.subspan(size);
        return true;
    }
    bool skip_group(std::uint64_t which, int groups) {
        if (groups == 0) return false;
        for (std::uint64_t tag = 0; read_tag(tag);) {
            if ((tag & 7) == 4) return tag >> 3 == which;
            if (!skip_or_take(tag, groups - 1)) return false;
            is_number = is_bytes = false;  // fields of the group are not the message's
        }
        return false;
    }
    bool read_tag(std::uint64_t& tag) {
        return (read(tag) && tag >> 3 != 0 && tag >> 32 == 0) || fail();
    }
    bool read(std::uint64_t& value) {  // a varint
        value = 0;
        for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
            const std::uint8_t byte = bytes_[0];
            bytes_ = bytes_.subspan(1);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return true;
        }
        return fail();
    }
    bool fail() {
        damaged_ = true;
        return false;
    }

    Bytes bytes_;
    bool is_number = false, is_bytes = false, damaged_ = false;
};

}  // namespace dael::formats
