// SPDX-License-Identifier: Apache-2.0
// The Internet checksum's sums. 32 bits at a time into sums of 64 bits: carries are folded once, at
// the end (RFC 1071, 2(C)).
#include "vpn/path/inet.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "vectors/units.hpp"

namespace dael::vpn::inet {
namespace {

template <class T>
std::uint64_t load(const std::uint8_t* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

std::uint64_t plain_sum(const std::uint8_t* from, std::size_t size, std::uint64_t start) noexcept {
    for (; size >= 8; from += 8, size -= 8) {
        const std::uint64_t word = load<std::uint64_t>(from);
        start += (word & 0xffffffff) + (word >> 32);
    }
    if ((size & 4) != 0) {
        start += load<std::uint32_t>(from);
        from += 4;
    }
    if ((size & 2) != 0) {
        start += load<std::uint16_t>(from);
        from += 2;
    }
    if ((size & 1) != 0) {
        const std::uint8_t last[2] = {*from, 0};
        start += load<std::uint16_t>(last);
    }
    return start;
}

std::uint64_t plain_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t size,
                         std::uint64_t start) noexcept {
    if (size != 0) std::memcpy(to, from, size);
    return plain_sum(to, size, start);
}

using Sum = std::uint64_t (*)(const std::uint8_t*, std::size_t, std::uint64_t) noexcept;
using Copy = std::uint64_t (*)(std::uint8_t*, const std::uint8_t*, std::size_t,
                               std::uint64_t) noexcept;
// Right before anything is initialised, too.
constinit Sum sum_form = plain_sum;
constinit Copy copy_form = plain_copy;

#ifdef __x86_64__

__attribute__((target("avx2"))) inline std::uint64_t total(__m256i lanes) noexcept {
    alignas(32) std::uint64_t lane[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lane), lanes);
    // Compilers leave it out before a call that ends a function. What uses SSE next would wait for
    // the upper halves each time, and takes several times as long.
    _mm256_zeroupper();
    return lane[0] + lane[1] + lane[2] + lane[3];
}

__attribute__((target("avx2"))) inline __m256i words(__m256i block) noexcept {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    return _mm256_add_epi64(_mm256_and_si256(block, low), _mm256_srli_epi64(block, 32));
}

__attribute__((target("avx2"))) std::uint64_t wide_sum(const std::uint8_t* from, std::size_t size,
                                                       std::uint64_t start) noexcept {
    const std::size_t blocks = size & ~std::size_t{31};
    __m256i lanes = _mm256_setzero_si256();
    for (std::size_t at = 0; at < blocks; at += 32)
        lanes = _mm256_add_epi64(
            lanes, words(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at))));
    return plain_sum(from + blocks, size - blocks, start + total(lanes));
}

__attribute__((target("avx2"))) std::uint64_t wide_copy(std::uint8_t* to, const std::uint8_t* from,
                                                        std::size_t size,
                                                        std::uint64_t start) noexcept {
    const std::size_t blocks = size & ~std::size_t{31};
    __m256i lanes = _mm256_setzero_si256();
    // Forwards, or backwards where a load would otherwise have the lower 12 bits of a store that is
    // still on its way: processors take it for the same address, and wait (Intel's optimisation
    // manual, "4-KByte aliasing"), which makes it four times as slow.
    constexpr std::uintptr_t kPage = 4096;
    const std::uintptr_t ahead =
        (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % kPage;
    const bool backwards = ahead < kPage / 2;
    for (std::size_t done = 0; done < blocks; done += 32) {
        const std::size_t at = backwards ? blocks - 32 - done : done;
        const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), block);
        lanes = _mm256_add_epi64(lanes, words(block));
    }
    return plain_copy(to + blocks, from + blocks, size - blocks, start + total(lanes));
}

[[maybe_unused]] const bool chosen = [] {
    if (vectors::units().avx2) sum_form = wide_sum, copy_form = wide_copy;
    return true;
}();

#endif

}  // namespace

std::uint64_t sum(const std::uint8_t* from, std::size_t size, std::uint64_t start) noexcept {
    return size < 64 ? plain_sum(from, size, start) : sum_form(from, size, start);
}

std::uint64_t copy_and_sum(std::uint8_t* to, const std::uint8_t* from, std::size_t size,
                           std::uint64_t start) noexcept {
    return size < 64 ? plain_copy(to, from, size, start) : copy_form(to, from, size, start);
}

std::uint16_t changed(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) noexcept {
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m')
    std::uint32_t s = static_cast<std::uint16_t>(~checksum);
    s += static_cast<std::uint16_t>(~before);
    s += after;
    s = (s & 0xffff) + (s >> 16);
    s = (s & 0xffff) + (s >> 16);
    return static_cast<std::uint16_t>(~s);
}

}  // namespace dael::vpn::inet
