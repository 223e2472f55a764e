// SPDX-License-Identifier: Apache-2.0
// Tensors in the host's memory: read, decrypted in place and encrypted by all cores.
#include "weights.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "beside.hpp"
#include "scratch.hpp"

namespace daelpy {
namespace {

// Runs the pieces that are encrypted, from and to what `place` says.
template <typename Place>
WeightFault run(const Engine& engine, const KeySet& keys, std::uint8_t direction,
                const WeightPiece* pieces, std::size_t count, Place place) {
    std::vector<dael_message> messages;
    std::vector<const WeightPiece*> of;
    for (std::size_t i = 0; i < count; ++i) {
        if (pieces[i].tensor->plain) continue;
        const auto [in, out] = place(i);
        messages.push_back(pieces[i].message(in, out, pieces[i].tag()));
        of.push_back(&pieces[i]);
    }
    if (messages.empty()) return {};
    std::vector<std::int32_t> codes(messages.size(), DAEL_INTERNAL);
    const dael_cipher cipher{DAEL_GCM, direction, DAEL_TAG_SIZE, 0, 0};
    const auto status = dael_run_batch(engine.get(), &cipher, keys.get(), messages.data(),
                                       messages.size(), codes.data(), nullptr);
    if (status != DAEL_OK) return WeightFault::of(status);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        if (codes[i] == DAEL_OK) continue;
        if (codes[i] == DAEL_AUTHENTICATION) return {DAEL_OK, 0, of[i], false};
        return {static_cast<dael_status>(codes[i]), 0, nullptr, true};
    }
    return {};
}

// pread(2) or pwrite(2) until all has gone; 0 or an errno.
template <typename Move, typename Byte>
int move_all(Move move, int descriptor, Byte* bytes, std::uint64_t size, std::uint64_t at) {
    while (size != 0) {
        const ssize_t moved = move(descriptor, bytes, size, static_cast<off_t>(at));
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0) return errno;
        if (moved == 0) return ENODATA;
        at += static_cast<std::uint64_t>(moved);
        bytes += moved;
        size -= static_cast<std::uint64_t>(moved);
    }
    return 0;
}

}  // namespace

std::uint32_t WeightTensor::count() const {
    return std::uint32_t{iv[8]} << 24 | std::uint32_t{iv[9]} << 16 | std::uint32_t{iv[10]} << 8 |
           iv[11];
}

dael_message WeightPiece::message(const std::uint8_t* in, std::uint8_t* out,
                                  std::uint8_t* tag) const {
    dael_message message{};
    message.in = in;
    message.out = out;
    message.size = size;
    message.tag = tag;
    message.key = tensor->key;
    // base_iv[0..8] || (u32 of base_iv[8..12] + number); then GCM's J0 (SP 800-38D 7.1).
    const std::uint32_t count = tensor->count() + static_cast<std::uint32_t>(number);
    std::memcpy(message.start, tensor->iv, 8);
    for (int i = 0; i < 4; ++i)
        message.start[8 + i] = static_cast<std::uint8_t>(count >> (24 - 8 * i));
    message.start[15] = 1;
    return message;
}

std::vector<WeightPiece> pieces_of(const std::vector<WeightTensor>& tensors) {
    std::vector<WeightPiece> pieces;
    for (const WeightTensor& tensor : tensors) {
        if (tensor.plain && tensor.size == 0) continue;
        for (std::uint64_t i = 0; i < tensor.chunks(); ++i)
            pieces.push_back({&tensor, i, i * tensor.chunk,
                              std::min(tensor.chunk, tensor.size - i * tensor.chunk)});
    }
    return pieces;
}

std::size_t window_of(const std::vector<WeightPiece>& pieces, std::size_t first,
                      std::uint64_t bytes) {
    std::uint64_t size = 0;
    while (first < pieces.size() && size < bytes) size += pieces[first++].size;
    return first;
}

int pwrite_all(int descriptor, const std::uint8_t* from, std::uint64_t size, std::uint64_t at) {
    return move_all(pwrite, descriptor, from, size, at);
}

int read_pieces(int descriptor, const WeightPiece* pieces, std::uint8_t* const* to,
                std::size_t count) {
    constexpr std::uint64_t kShare = 2 << 20;  // of one read(2)
    constexpr unsigned kMax = 8;               // threads: beyond, memory has no more to give
    struct Share {
        std::uint8_t* to;
        std::uint64_t size, at;
    };
    std::vector<Share> shares;
    for (std::size_t i = 0; i < count; ++i)
        for (std::uint64_t from = 0; from < pieces[i].size; from += kShare)
            shares.push_back({to[i] + from, std::min(kShare, pieces[i].size - from),
                              pieces[i].file_at() + from});
    std::atomic<std::size_t> next{0};
    std::atomic<int> failed{0};
    const auto work = [&] {
        for (std::size_t i; failed == 0 && (i = next++) < shares.size();)
            if (const int is =
                    move_all(pread, descriptor, shares[i].to, shares[i].size, shares[i].at))
                failed = is;
    };
    const std::size_t threads = std::min<std::size_t>(
        {std::max(1u, std::thread::hardware_concurrency() / 2), kMax, shares.size()});
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(kBeside, work));
    work();
    for (auto& other : others) other.wait();
    return failed;
}

WeightFault open_on_host(const Engine& engine, const KeySet& keys, int descriptor,
                         const std::vector<WeightPiece>& pieces, std::uint64_t window) {
    const auto read = [&](std::size_t first, std::size_t end) {
        std::vector<std::uint8_t*> to;
        for (std::size_t i = first; i < end; ++i) to.push_back(pieces[i].data());
        return read_pieces(descriptor, &pieces[first], to.data(), end - first);
    };
    std::size_t first = 0, end = window_of(pieces, 0, window);
    WeightFault fault;
    fault.error_number = first < end ? read(first, end) : 0;
    while (!fault.any() && first < end) {
        const std::size_t next = window_of(pieces, end, window);
        auto reading = end < next ? std::async(kBeside, read, end, next) : std::future<int>();
        fault = run(engine, keys, DAEL_DECRYPT, &pieces[first], end - first, [&](std::size_t i) {
            auto* const data = pieces[first + i].data();
            return std::pair{data, data};
        });
        if (reading.valid()) {
            const int failed = reading.get();
            if (!fault.any()) fault.error_number = failed;
        }
        first = end;
        end = next;
    }
    return fault;
}

WeightFault seal_on_host(const Engine& engine, const KeySet& keys, int descriptor,
                         const std::vector<WeightPiece>& pieces, std::uint64_t window) {
    WeightFault fault;
    for (std::size_t first = 0; first < pieces.size() && !fault.any();) {
        const std::size_t end = window_of(pieces, first, window);
        std::vector<std::uint64_t> offsets;
        std::uint64_t room = 0;
        for (std::size_t i = first; i < end; ++i) {
            offsets.push_back(room);
            room += pieces[i].tensor->plain ? 0 : pieces[i].size;
        }
        const Scratch sealed(room, Scratch::open);
        fault = run(engine, keys, DAEL_ENCRYPT, &pieces[first], end - first, [&](std::size_t i) {
            return std::pair{pieces[first + i].data(), sealed.get() + offsets[i]};
        });
        for (std::size_t i = first; i < end && !fault.any(); ++i) {
            const WeightPiece& piece = pieces[i];
            const auto* from =
                piece.tensor->plain ? piece.data() : sealed.get() + offsets[i - first];
            fault.error_number = pwrite_all(descriptor, from, piece.size, piece.file_at());
        }
        first = end;
    }
    return fault;
}

}  // namespace daelpy
