// SPDX-License-Identifier: Apache-2.0
// Where secrets lie: zeroed, wiped, left out of core dumps, in few mappings, and given back.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"
#include "support/child.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;

int mappings() {
    std::ifstream maps("/proc/self/maps");
    int lines = 0;
    for (std::string line; std::getline(maps, line);) ++lines;
    return lines;
}

// "VmRSS" of /proc/self/status, in KiB.
long kib(const std::string& what) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(what + ":")) return std::stol(line.substr(what.size() + 1));
    return -1;
}

// A mapping and what the kernel notes of it: "dd" is "left out of dumps", "lo" is "locked".
struct Mapping {
    std::uintptr_t from = 0, to = 0;
    std::string flags;
};
std::vector<Mapping> mapped() {
    std::ifstream maps("/proc/self/smaps");
    std::vector<Mapping> all;
    for (std::string line; std::getline(maps, line);) {
        Mapping m;
        char dash = 0;
        if (std::istringstream(line) >> std::hex >> m.from >> dash >> m.to && dash == '-')
            all.push_back(m);
        else if (line.starts_with("VmFlags:"))
            all.back().flags = line.substr(8) + " ";
    }
    return all;
}

std::string flags_of(const void* memory) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    for (const Mapping& m : mapped())
        if (m.from <= at && at < m.to) return m.flags;
    return {};
}

std::size_t bytes_left_out_of_dumps() {
    std::size_t sum = 0;
    for (const Mapping& m : mapped())
        if (m.flags.find(" dd ") != m.flags.npos) sum += m.to - m.from;
    return sum;
}

std::vector<std::uint8_t> raw_key(std::size_t number) {
    std::vector<std::uint8_t> raw(32);
    for (std::size_t i = 0; i < raw.size(); ++i)
        raw[i] = static_cast<std::uint8_t>(number >> 8 * (i % 4));
    return raw;
}

bool all_zero(const std::uint8_t* bytes, std::size_t size) {
    return std::all_of(bytes, bytes + size, [](std::uint8_t b) { return b == 0; });
}

TEST(SecureMemory, IsZeroedAlignedAndWiped) {
    void* memory = core::secure_allocate(5000);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
    auto* bytes = static_cast<std::uint8_t*>(memory);
    EXPECT_TRUE(all_zero(bytes, 5000));
    std::fill(bytes, bytes + 5000, std::uint8_t{0xa5});
    wipe(bytes, 4999);
    EXPECT_TRUE(all_zero(bytes, 4999));
    EXPECT_EQ(bytes[4999], 0xa5);
    core::secure_release(memory, 5000);
    wipe(nullptr, 0);  // an empty span's data() may be null
}

TEST(SecureMemory, IsLockedAndLeftOutOfDumps) {
    for (const std::size_t size : {16u, 576u, 5000u, 300u << 10}) {
        void* memory = core::secure_allocate(size);
        ASSERT_NE(memory, nullptr);
        const auto flags = flags_of(memory);
        EXPECT_NE(flags.find(" dd "), flags.npos) << size << flags;
        rlimit limit{};
        getrlimit(RLIMIT_MEMLOCK, &limit);
        if (limit.rlim_cur >= (2u << 20)) {
            EXPECT_NE(flags.find(" lo "), flags.npos) << size << flags;
        }
        core::secure_release(memory, size);
    }
}

// Every size that has a page layout of its own, and those around them, in a disorderly life: what
// is handed out is zero and nobody else's.
TEST(SecureMemory, IsNobodyElses) {
    struct Owned {
        std::uint8_t* bytes;
        std::size_t size;
        std::uint8_t mark;
    };
    std::mt19937 random(7);
    std::vector<Owned> owned;
    const auto drop = [&](std::size_t i) {
        const Owned o = owned[i];
        EXPECT_TRUE(
            std::all_of(o.bytes, o.bytes + o.size, [&](std::uint8_t b) { return b == o.mark; }));
        core::secure_release(o.bytes, o.size);
        owned[i] = owned.back();
        owned.pop_back();
    };
    for (int step = 0; step < 20000; ++step) {
        const bool many = owned.size() > 700;
        if (many || (!owned.empty() && random() % 3 == 0)) {
            drop(random() % owned.size());
            continue;
        }
        const std::size_t bits = random() % 14;  // up to 16 KiB, small ones most often
        const std::size_t size = 1 + random() % (std::size_t{2} << bits);
        auto* bytes = static_cast<std::uint8_t*>(core::secure_allocate(size));
        ASSERT_NE(bytes, nullptr);
        ASSERT_TRUE(all_zero(bytes, size)) << size;
        const auto mark = static_cast<std::uint8_t>(random() | 1);
        std::memset(bytes, mark, size);
        owned.push_back({bytes, size, mark});
    }
    while (!owned.empty()) drop(owned.size() - 1);
}

// The kernel gives a process some 65,000 mappings: were each key one, sets of more would be
// refused, and with every second one gone the others could not even be joined.
TEST(SecureMemory, ManyKeysShareFewMappingsAndGiveTheirPagesBack) {
    constexpr std::size_t kKeys = 150'000;
    const int before = mappings();
    std::vector<Key> keys;
    keys.reserve(kKeys);
    const long resident = kib("VmRSS");
    for (std::size_t i = 0; i < kKeys; ++i) {
        auto key = Key::import(raw_key(i));
        ASSERT_TRUE(key) << key.error().message;
        keys.push_back(std::move(*key));
    }
    EXPECT_LT(mappings() - before, 200);
    EXPECT_GT(bytes_left_out_of_dumps(), 80u << 20);

    std::vector<Key> second;
    for (std::size_t i = 0; i < kKeys; i += 2) second.push_back(std::move(keys[i]));
    second.clear();
    EXPECT_LT(mappings() - before, 200);
    std::thread([] {}).join();  // which needs mappings of its own
    for (std::size_t i = 1; i < kKeys; i += 2)
        ASSERT_TRUE(std::ranges::equal(keys[i].schedule().key(), raw_key(i))) << i;

    // A few that remain keep no more than their own pages.
    for (std::size_t i = 0; i < kKeys; ++i)
        if (i % 10'000 != 1) {
            const Key gone = std::move(keys[i]);
        }
    // Of 84 MiB; the vectors are in it. A sanitizer keeps for a while what was freed, and terabytes
    // of its own out of dumps.
    if (!test::kSanitized) {
        EXPECT_LT(kib("VmRSS") - resident, 12 << 10);
    }
    for (std::size_t i = 1; i < kKeys; i += 10'000)
        EXPECT_TRUE(std::ranges::equal(keys[i].schedule().key(), raw_key(i))) << i;
    keys.clear();
    if (!test::kSanitized) {
        EXPECT_LT(bytes_left_out_of_dumps(), 48u << 20);
    }
}

TEST(SecureMemory, SetsOfKeysShareMappingsToo) {
    constexpr std::size_t kSize = 5000;
    const int before = mappings();
    std::vector<void*> memories(20'000);
    for (void*& memory : memories) {
        memory = core::secure_allocate(kSize);
        ASSERT_NE(memory, nullptr);
        std::memset(memory, 0xa5, kSize);
    }
    EXPECT_LT(mappings() - before, 200);
    std::ranges::shuffle(memories, std::mt19937(3));
    for (void* memory : memories) core::secure_release(memory, kSize);
    EXPECT_LT(mappings() - before, 200);
}

TEST(SecureMemory, ServesManyThreads) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&wrong, t] {
            std::vector<Key> keys;
            for (std::size_t i = 0; i < 5000; ++i) {
                auto key = Key::import(raw_key(i * 4 + t));
                if (!key) {
                    ++wrong;
                    continue;
                }
                keys.push_back(std::move(*key));
                if (i % 3 == 0) keys.erase(keys.begin());
            }
            for (const Key& key : keys) wrong += key.schedule().key()[0] % 4 != t;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

// Whatever other threads were at, a child has its parent's keys, and may make and release some.
TEST(SecureMemory, OutlivesForkBesideThreadsThatMakeKeys) {
    auto own = Key::import(raw_key(11));
    ASSERT_TRUE(own);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&over] {
            while (!over) (void)Key::import(raw_key(1));
        });
    for (int i = 0; i < test::thorough(300, 60) && !testing::Test::HasFailure(); ++i)
        test::expect_in_a_child([&] {
            const bool same = std::ranges::equal(own->schedule().key(), raw_key(11));
            const auto fresh = own->duplicate();
            *own = std::move(*Key::import(raw_key(12)));
            return same && fresh && std::ranges::equal(own->schedule().key(), raw_key(12));
        });
    over = true;
    for (auto& thread : threads) thread.join();
}

// A process that may lock no memory, or little, still gets its keys.
TEST(SecureMemory, ServesWhereNothingCanBeLocked) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    for (const rlim_t bytes : {rlim_t{0}, rlim_t{64} << 10}) {
        const rlimit little{std::min(bytes, before.rlim_max), before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &little), 0);
        std::vector<Key> keys;
        for (std::size_t i = 0; i < 3000; ++i) {
            auto key = Key::import(raw_key(i));
            ASSERT_TRUE(key);
            keys.push_back(std::move(*key));
        }
        setrlimit(RLIMIT_MEMLOCK, &before);
    }
}

}  // namespace
