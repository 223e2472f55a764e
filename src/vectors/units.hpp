// SPDX-License-Identifier: Apache-2.0
// Which vector units there are, asked in one place: of the processor by CPUID, and whether the
// system saves their registers by XGETBV, without which their use would trap. Not by the compiler's
// __builtin_cpu_supports(), which knows no VAES where it is old (clang 14), and answers no to
// everything where nobody fills its table (zig).
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>

namespace dael::vectors {

struct alignas(8) Units {
    bool sse42 = false, aes = false, pclmul = false;
    bool avx2 = false, bmi2 = false;
    bool avx512 = false;  // F, BW, VL and DQ
    bool vaes = false;    // VAES and VPCLMULQDQ, in the registers that there are
    bool asked = false;   // rather than not known yet
};

#if defined(__x86_64__)
inline Units ask_for_units() noexcept {
    Units units;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) return units;
    const auto bit = [](unsigned word, int n) { return (word >> n & 1) != 0; };
    units.sse42 = bit(c, 20);
    units.aes = bit(c, 25);
    units.pclmul = bit(c, 1);
    if (!bit(c, 27)) return units;  // OSXSAVE: XGETBV may be asked
    unsigned saved = 0, upper = 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
    constexpr unsigned kYmm = 0x06, kZmm = 0xe6;  // XCR0: XMM and YMM; and masks and both of ZMM
    const bool ymm = bit(c, 28) && (saved & kYmm) == kYmm;
    const bool zmm = ymm && (saved & kZmm) == kZmm;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return units;
    units.bmi2 = bit(b, 8);
    units.avx2 = ymm && bit(b, 5);
    units.avx512 = zmm && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);
    units.vaes = ymm && bit(c, 9) && bit(c, 10);
    return units;
}
#else
inline Units ask_for_units() noexcept {
    return {};
}
#endif

// Asked once, or by several threads at once: a static object of a function's would be waited for by
// a child of fork() that another thread's first call was amid.
inline Units units() noexcept {
    constinit static std::atomic<Units> known{Units{}};
    Units all = known.load(std::memory_order_relaxed);
    if (all.asked) return all;
    all = ask_for_units();
    all.asked = true;
    known.store(all, std::memory_order_relaxed);
    return all;
}

}  // namespace dael::vectors
