// SPDX-License-Identifier: Apache-2.0
// One device: what is refused, memory, events, batches over several buffers.
#include <array>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using core::Segment;

constexpr std::uint8_t kPoison = Poisoned::kPoison;

using OpenClDevice = OpenClTest;

TEST_F(OpenClDevice, WhatReachesBeyondABufferIsRefusedAndNothingIsWritten) {
    const Key key = *Key::import(pattern(16));
    const XtsKey xts_key = *XtsKey::import(pattern(64));
    const Bytes poison(4096, kPoison);
    auto* memory = put(poison);
    Bytes host(8192, 1);
    const auto refused = [&](const Result<>& done, const char* said = "beyond the end") {
        ASSERT_FALSE(done);
        expect_refused(done.error(), Code::invalid_argument, said);
    };
    refused(device_->copy_in(memory, host.data(), 4097, {}));
    refused(device_->copy_in(memory + 4000, host.data(), 97, {}));
    refused(device_->copy_in(memory - 1, host.data(), 1, {}), "not memory of the device");
    refused(device_->copy_out(host.data(), memory + 1, 4096, {}));
    refused(device_->copy_within(memory, memory + 1, 4096, {}));
    refused(device_->copy_within(memory + 1, memory, 4096, {}));
    refused(device_->fill(memory + 1, 0, 4096, {}));
    for (const Mode mode : {Mode::ecb, Mode::ctr, Mode::cbc, Mode::cfb}) {
        const core::Operation operation{mode, Direction::decrypt, &key};
        refused(device_->run(operation, Segment{memory + 16, memory + 16, 4096, {}, 0}, {}));
        refused(device_->run(operation, Segment{memory, memory + 2048, 2064, {}, 0}, {}));
        refused(device_->run(operation, Segment{host.data(), memory, 64, {}, 0}, {}),
                "not memory of the device");
        refused(device_->run(operation, Segment{memory, host.data(), 64, {}, 0}, {}),
                "not memory of the device");
        const Segment batch[] = {{memory, memory, 64, {}, 0}, {memory + 4096, memory, 16, {}, 0}};
        DAEL_EXPECT_REFUSED(device_->prepare(mode, Direction::decrypt, batch),
                            Code::invalid_argument, "not memory of the device");
    }
    // The kernel for long messages checks for itself.
    auto* large = allocate(std::size_t{5} << 20);
    refused(device_->run({Mode::ctr, Direction::encrypt, &key},
                         Segment{large, memory, std::size_t{5} << 20, {}, 0}, {}));
    refused(device_->run({Mode::ctr, Direction::encrypt, &key},
                         Segment{memory, large, std::size_t{5} << 20, {}, 0}, {}));
    refused(device_->xts({Direction::encrypt, &xts_key, 512}, Segment{memory, memory, 4608, {}, 0},
                         {}));
    EXPECT_EQ(get(memory, poison.size()), poison);
    EXPECT_EQ(host, Bytes(8192, 1));
    device_->release(memory);
    refused(device_->fill(memory, 0, 1, {}), "not memory of the device");
}

// PoCL ends the process when a kernel of ours stands behind a failure: events of our own have to
// do.
TEST_F(OpenClDevice, AFailureAmongTheEndsOfABatchIsItsOutcomeUntilTheNextRun) {
    const auto* const driver = *reinterpret_cast<cl_icd_dispatch* const*>(context()());
    const auto create = driver->clCreateUserEvent;
    const auto end = driver->clSetUserEventStatus;
    const auto event = [&](cl_int with) {
        cl_int status = CL_SUCCESS;
        cl::Event made(create(context()(), &status));
        EXPECT_EQ(status, CL_SUCCESS);
        EXPECT_EQ(end(made(), with), CL_SUCCESS);
        return made;
    };
    opencl::Ends ends;
    EXPECT_TRUE(ends.outcome());
    for (int run = 0; run < 3; ++run) {
        ends.clear();
        for (int i = 0; i < 100; ++i) ends.add(event(run == 1 && i == 7 ? -14 : CL_COMPLETE));
        for (int times = 0; times < 2; ++times) {
            const auto outcome = ends.outcome();
            EXPECT_EQ(outcome.code(), run == 1 ? Code::device : Code::ok);
        }
    }
}

TEST_F(OpenClDevice, SerialModesOfOneMessageAreRefusedWithTheMend) {
    const Key key = *Key::import(pattern(16));
    auto* memory = allocate(64);
    for (const Mode mode : {Mode::cbc, Mode::cfb, Mode::ofb})
        DAEL_EXPECT_REFUSED(
            device_->run({mode, Direction::encrypt, &key}, Segment{memory, memory, 64, {}, 0}, {}),
            Code::unsupported, "batch");
}

TEST_F(OpenClDevice, ABatchIsForItsOwnDeviceModeAndDirection) {
    const Key key = *Key::import(pattern(16));
    auto* memory = allocate(64);
    const Segment segment{memory, memory, 64, {}, 0};
    const auto batch = device_->prepare(Mode::cbc, Direction::decrypt, std::span(&segment, 1));
    ASSERT_TRUE(batch) << batch.error().message;
    const auto other = open();
    const char* said = "prepared for another";
    DAEL_EXPECT_REFUSED(other->run({Mode::cbc, Direction::decrypt, &key}, **batch, {}),
                        Code::invalid_argument, said);
    DAEL_EXPECT_REFUSED(device_->run({Mode::cfb, Direction::decrypt, &key}, **batch, {}),
                        Code::invalid_argument, said);
    DAEL_EXPECT_REFUSED(device_->run({Mode::cbc, Direction::encrypt, &key}, **batch, {}),
                        Code::invalid_argument, said);
}

TEST_F(OpenClDevice, TooMuchMemoryIsAnErrorAndNotTheEnd) {
    DAEL_EXPECT_REFUSED(device_->allocate(std::size_t{1} << 45), Code::out_of_memory, "opencl");
    DAEL_EXPECT_REFUSED(device_->allocate_pinned(std::size_t{1} << 45), Code::out_of_memory,
                        "opencl");
    const std::uint64_t before = *device_->free_memory();
    auto* memory = put(pattern(1000));
    EXPECT_EQ(*device_->free_memory(), before - 1000);
    EXPECT_EQ(get(memory, 1000), pattern(1000));
    device_->release(memory);
    EXPECT_EQ(*device_->free_memory(), before);
}

TEST_F(OpenClDevice, PinnedMemoryIsKnownAsSuch) {
    Bytes pageable(4096);
    EXPECT_FALSE(device_->is_pinned(pageable.data()));
    const std::size_t size = 100'000;
    const auto pinned = device_->allocate_pinned(size);
    ASSERT_TRUE(pinned) << pinned.error().message;
    auto* begin = static_cast<std::uint8_t*>(*pinned);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 4096, 0u);
    EXPECT_TRUE(device_->is_pinned(begin));
    EXPECT_TRUE(device_->is_pinned(begin + size - 1));
    EXPECT_FALSE(device_->is_pinned(begin + size));
    EXPECT_FALSE(device_->is_pinned(begin - 1));
    EXPECT_FALSE(device_->owns(begin));
    const Bytes content = pattern(size);
    std::ranges::copy(content, begin);
    auto* memory = allocate(size);
    EXPECT_TRUE(device_->owns(memory));
    ASSERT_TRUE(device_->copy_in(memory, begin, size, {}));
    ASSERT_TRUE(device_->wait(Stream{}));
    std::fill_n(begin, size, kPoison);
    ASSERT_TRUE(device_->copy_out(begin, memory, size, {}));
    ASSERT_TRUE(device_->wait(Stream{}));
    EXPECT_EQ(Bytes(begin, begin + size), content);
    device_->release_pinned(begin);
    EXPECT_FALSE(device_->is_pinned(begin));
}

TEST_F(OpenClDevice, EventsOrderStreamsAndTellTimes) {
    const Key key = *Key::import(pattern(16));
    const Bytes in = pattern(1 << 20);
    auto* memory = put(in);
    const Stream first = *device_->create_timed_stream(), second = *device_->create_stream();
    const core::Event begin = *device_->create_event(), end = *device_->create_event();
    EXPECT_TRUE(device_->wait(begin));  // never recorded: nothing to wait for
    EXPECT_TRUE(device_->wait(second, begin));
    ASSERT_TRUE(device_->record(begin, first));
    for (int round = 0; round < 4; ++round)
        ASSERT_TRUE(device_->run({Mode::ecb, Direction::encrypt, &key},
                                 Segment{memory, memory, in.size(), {}, 0}, first));
    ASSERT_TRUE(device_->record(end, first));
    ASSERT_TRUE(device_->wait(second, end));
    const Bytes got = get(memory, in.size(), second);
    Bytes expected = in;
    for (int round = 0; round < 4; ++round)
        expected = oracle(pattern(16), {Mode::ecb, Direction::encrypt, {}, 0}, expected);
    EXPECT_EQ(difference(expected, got), "");
    ASSERT_TRUE(device_->wait(end));
    const auto elapsed = device_->elapsed_ms(begin, end);
    ASSERT_TRUE(elapsed) << elapsed.error().message;
    EXPECT_GT(*elapsed, 0.0f);
    EXPECT_LT(*elapsed, 60'000.0f);
    device_->destroy_event(begin);
    device_->destroy_event(end);
    device_->destroy_stream(first);
    device_->destroy_stream(second);
}

// One batch whose messages lie in several buffers, some in place, every mode; and the shape of
// kernels changed between prepare() and run(), which is to hold for later work only.
TEST_F(OpenClDevice, ABatchOverSeveralBuffers) {
    const Bytes raw = pattern(24);
    const Key key = *Key::import(raw);
    constexpr std::size_t kRoom = 3000;
    Random random(31415);
    for (const auto& [mode, direction] :
         std::initializer_list<std::pair<Mode, Direction>>{{Mode::ecb, Direction::decrypt},
                                                           {Mode::ctr, Direction::encrypt},
                                                           {Mode::cbc, Direction::decrypt},
                                                           {Mode::cfb, Direction::decrypt},
                                                           {Mode::cbc, Direction::encrypt},
                                                           {Mode::cfb, Direction::encrypt},
                                                           {Mode::ofb, Direction::encrypt}}) {
        std::array<std::uint8_t*, 3> buffers{};
        std::array<Bytes, 3> contents;
        for (std::size_t b = 0; b < buffers.size(); ++b) {
            contents[b] = random.bytes(40 * kRoom);
            buffers[b] = put(contents[b]);
        }
        std::array<Bytes, 3> expected = contents;
        std::vector<Segment> segments;
        for (std::size_t m = 0; m < 40; ++m) {
            // Inputs from buffers 0 and 1; outputs to buffer 2, or in place in buffer 0.
            const std::size_t from = m % 2, to = m % 3 == 0 ? 0 : 2;
            if (to == 0 && from != 0) continue;
            const std::size_t size = random.below(kRoom / 16) * 16, at = m * kRoom;
            const Block iv = random.block();
            segments.push_back({buffers[from] + at, buffers[to] + at, size, iv, 0});
            const Bytes in(contents[from].begin() + static_cast<std::ptrdiff_t>(at),
                           contents[from].begin() + static_cast<std::ptrdiff_t>(at + size));
            std::ranges::copy(oracle(raw, {mode, direction, iv, 0}, in),
                              expected[to].begin() + static_cast<std::ptrdiff_t>(at));
        }
        const std::string shape = device_->shape();
        const auto batch = device_->prepare(mode, direction, segments);
        ASSERT_TRUE(batch) << batch.error().message;
        ASSERT_TRUE(device_->use_shape(device_->shapes().back()));
        const auto ran = device_->run({mode, direction, &key}, **batch, {});
        ASSERT_TRUE(ran) << ran.error().message;
        for (std::size_t b = 0; b < buffers.size(); ++b) {
            EXPECT_EQ(difference(expected[b], get(buffers[b], expected[b].size())), "")
                << name(mode) << " " << name(direction) << ", buffer " << b;
            device_->release(buffers[b]);
        }
        ASSERT_TRUE(device_->use_shape(shape));
    }
}

TEST_F(OpenClDevice, AShapeThatThereIsNotLeavesTheOld) {
    const std::string shape = device_->shape();
    EXPECT_EQ(device_->shapes().front(), shape);
    DAEL_EXPECT_REFUSED(device_->use_shape("teams=7"), Code::invalid_argument, "'teams=7'");
    EXPECT_EQ(device_->shape(), shape);
    // One that there is, but that is not tried on this device: on a CPU every one with tables,
    // whose lookups its caches would tell of.
    const std::string odd = "tables=0,teams=1,held=1,groups=63";
    ASSERT_TRUE(try_open(odd)) << "by name";
    DAEL_EXPECT_REFUSED(device_->use_shape(odd), Code::unsupported, "none of the shapes");
    EXPECT_EQ(device_->shape(), shape);
    for (const std::string& each : device_->shapes()) {
        ASSERT_TRUE(device_->use_shape(each)) << each;
        EXPECT_EQ(device_->shape(), each);
    }
}

}  // namespace
