// SPDX-License-Identifier: Apache-2.0
// The provider in a program whose allocator gives no more than 8-byte alignment, as OpenSIPS has
// it, and fills what it gives: what a context takes for its own was then written by it.
#include <cstdlib>

#include "evp.hpp"
#include "evp_walk.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael::test;

constexpr std::size_t kFront = 24;  // malloc()'s 16 bytes of alignment, and 8 more

std::size_t& size_of(void* p) {
    return *reinterpret_cast<std::size_t*>(static_cast<char*>(p) - kFront);
}
void* give(std::size_t size, const char*, int) {
    char* const p = size == 0 ? nullptr : static_cast<char*>(std::malloc(size + kFront));
    if (!p) return nullptr;
    size_of(p + kFront) = size;
    std::memset(p + kFront, 0xa7, size);
    return p + kFront;
}
void take(void* p, const char*, int) {
    if (!p) return;
    std::memset(p, 0x9b, size_of(p));
    std::free(static_cast<char*>(p) - kFront);
}
void* change(void* p, std::size_t size, const char* file, int line) {
    void* const fresh = give(size, file, line);
    if (p && fresh) std::memcpy(fresh, p, std::min(size, size_of(p)));
    if (fresh || size == 0) take(p, file, line);
    return fresh;
}
// Before libcrypto has anything.
const int set = CRYPTO_set_mem_functions(give, change, take);

TEST(AnAllocatorOfEightBytes, IsEnough) {
    ASSERT_EQ(set, 1);
    void* const given = OPENSSL_malloc(100);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(given) % 16, 8u);
    OPENSSL_free(given);
    for (const char* name :
         {"AES-256-ECB", "AES-128-CBC", "AES-192-CFB", "AES-256-CTR", "AES-128-GCM", "AES-256-GCM"})
        for (std::uint64_t seed = 1; seed <= thorough(150u, 30u); ++seed) {
            Numbers numbers(seed);
            Walk<Numbers> walk(numbers, name);
            ASSERT_EQ(walk.run(24, [] { return true; }), "") << "seed " << seed;
        }
}

}  // namespace
