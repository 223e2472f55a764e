// SPDX-License-Identifier: Apache-2.0
// The Internet checksum's sums. 32 bits at a time into sums of 64 bits: carries are folded once, at
// the end (RFC 1071, 2(C)).
#include "vpn/path/inet.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

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

template <bool kCopies>
__attribute__((target("avx2"))) inline std::uint64_t wide(std::uint8_t* to,
                                                          const std::uint8_t* from,
                                                          std::size_t size,
                                                          std::uint64_t start) noexcept {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i even = _mm256_setzero_si256(), odd = even;
    for (; size >= 32; from += 32, size -= 32) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        if constexpr (kCopies) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
            to += 32;
        }
        even = _mm256_add_epi64(even, _mm256_and_si256(v, low));
        odd = _mm256_add_epi64(odd, _mm256_srli_epi64(v, 32));
    }
    alignas(32) std::uint64_t lane[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lane), _mm256_add_epi64(even, odd));
    start += lane[0] + lane[1] + lane[2] + lane[3];
    if constexpr (kCopies) return plain_copy(to, from, size, start);
    return plain_sum(from, size, start);
}

__attribute__((target("avx2"))) std::uint64_t wide_sum(const std::uint8_t* from, std::size_t size,
                                                       std::uint64_t start) noexcept {
    return wide<false>(nullptr, from, size, start);
}
__attribute__((target("avx2"))) std::uint64_t wide_copy(std::uint8_t* to, const std::uint8_t* from,
                                                        std::size_t size,
                                                        std::uint64_t start) noexcept {
    return wide<true>(to, from, size, start);
}

// Asked of the processor itself: __builtin_cpu_supports() says no to everything under some
// compilers. AVX2 needs the system to keep the registers' upper halves, which XCR0 says.
bool has_avx2() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kOsxsave = 1u << 27, kAvx2 = 1u << 5;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return false;
    unsigned low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kAvx2) != 0;
}

[[maybe_unused]] const bool chosen = [] {
    if (has_avx2()) sum_form = wide_sum, copy_form = wide_copy;
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
