// SPDX-License-Identifier: Apache-2.0
// Addresses for memory that has none.
#include "backends/opencl/address_space.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <thread>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using opencl::AddressSpace;

class OpenClAddressSpace : public OpenClTest {
  protected:
    AddressSpace space_;
};

char* bytes(void* address) {
    return static_cast<char*>(address);
}

TEST_F(OpenClAddressSpace, RangesAreApartAndFoundUpToTheirEnds) {
    struct Known {
        char* begin;
        std::size_t size;
        cl::Buffer buffer;
    };
    std::vector<Known> all;
    for (const std::size_t size : {1, 16, 4095, 4096, 4097, 1 << 20}) {
        const cl::Buffer made = buffer(size);
        const auto begin = space_.add(made, size);
        ASSERT_TRUE(begin) << begin.error().message;
        for (const Known& other : all)
            EXPECT_TRUE(bytes(*begin) + size <= other.begin ||
                        other.begin + other.size <= bytes(*begin));
        all.push_back({bytes(*begin), size, made});
    }
    for (const auto& [begin, size, made] : all) {
        const auto whole = space_.find(begin, size);
        ASSERT_TRUE(whole) << whole.error().message;
        EXPECT_EQ(whole->buffer(), made());
        EXPECT_EQ(whole->shared, nullptr);
        EXPECT_EQ(whole->offset, 0u);
        const auto last = space_.find(begin + size - 1, 1);
        ASSERT_TRUE(last) << last.error().message;
        EXPECT_EQ(last->buffer(), made());
        EXPECT_EQ(last->offset, size - 1);
        DAEL_EXPECT_REFUSED(space_.find(begin, size + 1), Code::invalid_argument, "beyond the end");
        DAEL_EXPECT_REFUSED(
            space_.find(begin + size - 1, std::numeric_limits<std::uint64_t>::max()),
            Code::invalid_argument, "beyond the end");
        EXPECT_FALSE(space_.find(begin + size, 1));
        EXPECT_FALSE(space_.holds(begin + size));
        EXPECT_TRUE(space_.holds(begin + size - 1));
        EXPECT_FALSE(space_.find(begin - 1, 1));
    }
    int here = 0;
    DAEL_EXPECT_REFUSED(space_.find(&here, 1), Code::invalid_argument, "adopt");
    DAEL_EXPECT_REFUSED(space_.find(nullptr, 0), Code::invalid_argument, "adopt");
}

TEST_F(OpenClAddressSpace, TheHostCannotReadAnAddress) {
    const auto begin = space_.add(buffer(64), 64);
    ASSERT_TRUE(begin);
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(write(ends[1], *begin, 1), -1);
    EXPECT_EQ(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
}

TEST_F(OpenClAddressSpace, WhatIsRemovedIsGone) {
    const cl::Buffer made = buffer(64);
    const auto begin = space_.add(made, 64);
    ASSERT_TRUE(begin);
    DAEL_EXPECT_REFUSED(space_.add(made, 64), Code::invalid_argument, "already");
    EXPECT_FALSE(space_.remove(bytes(*begin) + 1));
    EXPECT_TRUE(space_.find(*begin, 64));
    EXPECT_TRUE(space_.remove(*begin));
    EXPECT_FALSE(space_.find(*begin, 1));
    EXPECT_FALSE(space_.remove(*begin));
    EXPECT_TRUE(space_.add(made, 64));
}

TEST_F(OpenClAddressSpace, SharedMemoryKeepsItsAddress) {
    alignas(64) std::array<char, 1024> memory{};
    char* const begin = memory.data() + 256;
    ASSERT_TRUE(space_.add_shared(begin, 512));
    const auto found = space_.find(begin + 500, 12);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->shared, begin);
    EXPECT_EQ(found->buffer(), nullptr);
    EXPECT_EQ(found->address(), begin + 500);
    EXPECT_FALSE(space_.find(begin + 500, 13));
    EXPECT_FALSE(space_.find(begin + 512, 1));
    // Nothing that overlaps it.
    for (const auto& [from, size] : std::initializer_list<std::pair<int, std::size_t>>{
             {256, 512}, {240, 17}, {0, 1024}, {256, 16}, {752, 16}, {752, 100}})
        DAEL_EXPECT_REFUSED(space_.add_shared(memory.data() + from, size), Code::invalid_argument,
                            "known already");
    for (const auto& [address, size] : std::initializer_list<std::pair<void*, std::size_t>>{
             {nullptr, 16}, {memory.data(), 0}, {memory.data() + 8, 16}})
        DAEL_EXPECT_REFUSED(space_.add_shared(address, size), Code::invalid_argument,
                            "multiple of 16");
    EXPECT_TRUE(space_.add_shared(memory.data() + 240, 16));  // up to it
    EXPECT_TRUE(space_.add_shared(memory.data() + 768, 16));  // behind it
    EXPECT_TRUE(space_.remove(begin));
    EXPECT_FALSE(space_.find(begin, 1));
    memory[256] = 1;  // still the caller's
}

TEST_F(OpenClAddressSpace, ManyThreads) {
    std::vector<std::thread> threads;
    std::vector<int> right(8, 0);
    for (std::size_t t = 0; t < right.size(); ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 200; ++round) {
                std::vector<std::pair<cl::Buffer, char*>> mine;
                for (const std::size_t size : {16u, 5000u, 100u}) {
                    const cl::Buffer made = buffer(size);
                    const auto begin = space_.add(made, size);
                    if (!begin) return;
                    mine.emplace_back(made, bytes(*begin));
                }
                for (const auto& [made, begin] : mine) {
                    const auto found = space_.find(begin + 5, 11);
                    if (!found || found->buffer() != made() || found->offset != 5) return;
                }
                for (const auto& [made, begin] : mine)
                    if (!space_.remove(begin)) return;
            }
            right[t] = 1;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, std::vector<int>(right.size(), 1));
}

}  // namespace
