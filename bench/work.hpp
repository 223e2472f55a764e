// SPDX-License-Identifier: Apache-2.0
// What is measured, with the types that AES has for it: the other face of a measure::Point.
// bench/README.md tells what each field means.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>

#include "measure/point.hpp"
#include "measure/report.hpp"

namespace dael::bench {

using measure::Point;

struct Work {
    std::string backend;  // "cpu", "openssl", "cuda:0"
    std::string form;     // "avx2", "tables=1"; empty: the backend's own choice. JSON calls it isa
    Cipher cipher;
    bool mac_only = false;  // GMAC: the message is AAD
    int bits = 128;
    std::uint64_t keys = 0;  // modes that authenticate: under so many; else 0, for one
    std::uint64_t size = 0;  // bytes of one message; of a mix the most
    std::uint64_t messages = 1;
    std::string mix;                  // "imix": how long they are in turn; empty: all of one size
    std::string list;                 // of messages, kList* below; empty: on the host
    std::string where;                // "cache", "host", "device", "pinned", "pageable"
    std::string measure = "call";     // "kernel", "total", "async", "launch", "latency", "keys"
    std::string placement = "apart";  // "in place", "unaligned", or as kShifts has them
    int threads = 1;                  // host threads that take part
    std::string data;                 // "ramp" (0 to 255), "constant" (0xaa); empty: random

    static constexpr std::uint64_t kSlot = 1536;  // bytes for each message of a mix

    explicit Work(const Point& point);
    Point point() const;
    std::size_t bytes() const;  // of all messages; of keys, where these are what is measured
    // Message `index`: its bytes, and how far from the first it begins.
    std::uint64_t size_of(std::uint64_t index) const;
    std::uint64_t place_of(std::uint64_t index) const {
        return index * (mix.empty() ? size : kSlot);
    }
    std::size_t room() const { return static_cast<std::size_t>(place_of(messages)); }
    bool is(Mode mode) const { return cipher.mode == mode; }
    bool tagged() const { return authenticates(cipher.mode); }  // GMAC too
    bool opens() const { return tagged() && cipher.direction == Direction::decrypt; }
    bool parallel() const { return parallel_within_message(cipher.mode, cipher.direction); }
};

// How many bytes behind a multiple of 16 input and output begin, where that is a placement's name.
struct Shift {
    const char* name;
    std::size_t in, out;
};
inline constexpr Shift kShifts[] = {
    {"unaligned", 1, 3},   {"both 1 off", 1, 1},   {"both 4 off", 4, 4},  {"both 8 off", 8, 8},
    {"input 1 off", 1, 0}, {"output 1 off", 0, 1}, {"input 8 off", 8, 0}, {"output 8 off", 0, 8}};
Shift shift_of(const Work& work);

// "ctr-128", "cbc-256 decrypt", "xts-128 encrypt, 512 B sectors", "gcm-128, 1024 keys"; "16 KiB",
// "1024 x 1 MiB"; "cuda:0 cbc-128 decrypt, 1024 x 1 MiB, device".
std::string cipher_name(const Work& work);
std::string size_name(const Work& work);
std::string describe(const Work& work);
const measure::Columns& columns();

// Keys made for the measurement: no secrets, the same in every run. As many bytes as the cipher
// takes; key `index` of a set.
std::vector<std::uint8_t> key_bytes(const Work& work, std::uint64_t index = 0);
Result<std::vector<Key>> make_keys(const Work& work);

// Where a list of messages lies in device memory: told of it, or also how long they are at most.
inline constexpr const char *kListThere = "device", *kListBound = "device, bound";

// The sectors of XTS: of this number on, in every measurement.
inline constexpr std::uint64_t kFirstSector = 1'000'000;

// `work.messages` messages side by side from `in` to `out`, their tags side by side as well; keys
// take turns. No two share a counter.
std::vector<Message> lay_out(const Work& work, const std::uint8_t* in, std::uint8_t* out,
                             std::uint8_t* tags = nullptr);
// A mode that authenticates: gives each message the next nonce, from number `next` on. lay_out()
// begins with 0.
void renew(Mode mode, std::span<Message> messages, std::uint64_t& next) noexcept;

}  // namespace dael::bench
