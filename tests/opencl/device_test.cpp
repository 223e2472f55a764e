// SPDX-License-Identifier: Apache-2.0
// One device: what is refused, memory, events, batches over several buffers.
#include <array>
#include <atomic>
#include <thread>

#include <daelstrom/gcm.hpp>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

using OpenClDevice = OpenClTest;

TEST_F(OpenClDevice, WhatReachesBeyondABufferIsRefusedAndNothingIsWritten) {
    const Key key = *Key::import(pattern(16));
    const Key xts_key = *Key::import_xts(pattern(64));
    const Bytes poison(4096, Poisoned::kPoison);
    auto* memory = put(poison);
    Bytes host(8192, 1);
    const auto refused = [&](const Result<>& done, const char* said = "beyond the end") {
        ASSERT_FALSE(done);
        expect_refused(done.error(), Code::invalid_argument, said);
    };
    refused(device_->memory().copy_in(memory, host.data(), 4097, {}));
    refused(device_->memory().copy_in(memory + 4000, host.data(), 97, {}));
    refused(device_->memory().copy_in(memory - 1, host.data(), 1, {}), "not memory of the device");
    refused(device_->memory().copy_out(host.data(), memory + 1, 4096, {}));
    refused(device_->memory().copy_within(memory, memory + 1, 4096, {}));
    refused(device_->memory().copy_within(memory + 1, memory, 4096, {}));
    refused(device_->memory().fill(memory + 1, 0, 4096, {}));
    for (const Mode mode : {Mode::ecb, Mode::ctr, Mode::cbc, Mode::cfb}) {
        const Cipher cipher{mode, Direction::decrypt};
        refused(run(cipher, key, message(memory + 16, memory + 16, 4096)));
        refused(run(cipher, key, message(memory, memory + 2048, 2064)));
        refused(run(cipher, key, message(host.data(), memory, 64)), "not memory of the device");
        refused(run(cipher, key, message(memory, host.data(), 64)), "not memory of the device");
        const Message batch[] = {message(memory, memory, 64), message(memory + 4096, memory, 16)};
        DAEL_EXPECT_REFUSED(prepare(cipher, std::span(&key, 1), batch), Code::invalid_argument,
                            "not memory of the device");
    }
    // The kernel for long messages checks for itself.
    auto* large = allocate(std::size_t{5} << 20);
    refused(run({Mode::ctr}, key, message(large, memory, std::size_t{5} << 20)));
    refused(run({Mode::ctr}, key, message(memory, large, std::size_t{5} << 20)));
    refused(run({Mode::ctr}, key, message(nullptr, memory, std::size_t{5} << 20)));
    refused(run({Mode::xts}, xts_key, message(memory, memory, 4608)));
    EXPECT_EQ(get(memory, poison.size()), poison);
    EXPECT_EQ(host, Bytes(8192, 1));
    device_->memory().release(memory);
    refused(device_->memory().fill(memory, 0, 1, {}), "not memory of the device");
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
        const cl::CommandQueue queue(static_cast<cl_command_queue>(device_->native().queue), true);
        ASSERT_TRUE(ends.begin(queue));
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
        DAEL_EXPECT_REFUSED(run({mode, Direction::encrypt}, key, message(memory, memory, 64)),
                            Code::unsupported, "batch");
    DAEL_EXPECT_REFUSED(run({Mode::gcm}, key, message(memory, memory, 64)), Code::unsupported,
                        "prepare");
}

TEST_F(OpenClDevice, BatchesAndKeysAreForTheirOwnDevice) {
    const Key key = *Key::import(pattern(16));
    auto* memory = allocate(64);
    const Message one = message(memory, memory, 64);
    const Cipher cipher{Mode::cbc, Direction::decrypt};
    const auto batch = prepare(cipher, key, one);
    ASSERT_TRUE(batch) << batch.error().message;
    const auto other = open();
    DAEL_EXPECT_REFUSED(other->run(**batch, {}), Code::invalid_argument, "of another");
    DAEL_EXPECT_REFUSED(
        other->prepare(cipher, {std::span(&key, 1), tables_.front().get()}, {&one, 1}),
        Code::invalid_argument, "of another");
    DAEL_EXPECT_REFUSED(device_->prepare(cipher, {std::span(&key, 1)}, {&one, 1}),
                        Code::invalid_argument, "of another");
}

TEST_F(OpenClDevice, TooMuchMemoryIsAnErrorAndNotTheEnd) {
    DAEL_EXPECT_REFUSED(device_->memory().allocate(std::size_t{1} << 45), Code::out_of_memory,
                        "opencl");
    DAEL_EXPECT_REFUSED(device_->memory().allocate_pinned(std::size_t{1} << 45),
                        Code::out_of_memory, "opencl");
    const std::uint64_t before = *device_->memory().free_memory();
    auto* memory = put(pattern(1000));
    EXPECT_EQ(*device_->memory().free_memory(), before - 1000);
    EXPECT_EQ(get(memory, 1000), pattern(1000));
    device_->memory().release(memory);
    EXPECT_EQ(*device_->memory().free_memory(), before);
}

TEST_F(OpenClDevice, PinnedMemoryIsKnownAsSuch) {
    Bytes pageable(4096);
    EXPECT_FALSE(device_->memory().is_pinned(pageable.data(), 1));
    const std::size_t size = 100'000;
    const auto pinned = device_->memory().allocate_pinned(size);
    ASSERT_TRUE(pinned) << pinned.error().message;
    auto* begin = static_cast<std::uint8_t*>(*pinned);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 4096, 0u);
    EXPECT_TRUE(device_->memory().is_pinned(begin, 1));
    EXPECT_TRUE(device_->memory().is_pinned(begin + size - 1, 1));
    EXPECT_FALSE(device_->memory().is_pinned(begin + size, 1));
    EXPECT_FALSE(device_->memory().is_pinned(begin - 1, 1));
    EXPECT_FALSE(device_->memory().owns(begin));
    const Bytes content = pattern(size);
    std::ranges::copy(content, begin);
    auto* memory = allocate(size);
    EXPECT_TRUE(device_->memory().owns(memory));
    ASSERT_TRUE(device_->memory().copy_in(memory, begin, size, {}));
    ASSERT_TRUE(device_->order().wait(Stream{}));
    std::fill_n(begin, size, Poisoned::kPoison);
    ASSERT_TRUE(device_->memory().copy_out(begin, memory, size, {}));
    ASSERT_TRUE(device_->order().wait(Stream{}));
    EXPECT_EQ(Bytes(begin, begin + size), content);
    device_->memory().release_pinned(begin);
    EXPECT_FALSE(device_->memory().is_pinned(begin, 1));
}

TEST_F(OpenClDevice, EventsOrderStreamsAndTellTimes) {
    const Key key = *Key::import(pattern(16));
    const Bytes in = pattern(1 << 18);
    auto* memory = put(in);
    const Stream first = *device_->order().create_timed_stream(),
                 second = *device_->order().create_stream();
    const Event begin = *device_->order().create_event(), end = *device_->order().create_event();
    EXPECT_TRUE(device_->order().wait(begin));  // never recorded: nothing to wait for
    EXPECT_TRUE(device_->order().wait(second, begin));
    ASSERT_TRUE(device_->order().record(begin, first));
    for (int round = 0; round < 4; ++round)
        ASSERT_TRUE(run({Mode::ecb}, key, message(memory, memory, in.size()), first));
    ASSERT_TRUE(device_->order().record(end, first));
    ASSERT_TRUE(device_->order().wait(second, end));
    const Bytes got = get(memory, in.size(), second);
    Bytes expected = in;
    for (int round = 0; round < 4; ++round)
        expected = oracle(pattern(16), {Mode::ecb, Direction::encrypt, {}, 0}, expected);
    EXPECT_EQ(difference(expected, got), "");
    ASSERT_TRUE(device_->order().wait(end));
    const auto elapsed = device_->order().elapsed_ms(begin, end);
    ASSERT_TRUE(elapsed) << elapsed.error().message;
    EXPECT_GT(*elapsed, 0.0f);
    EXPECT_LT(*elapsed, 60'000.0f);
    device_->order().destroy_event(begin);
    device_->order().destroy_event(end);
    device_->order().destroy_stream(first);
    device_->order().destroy_stream(second);
}

// All calls may come from any thread: what one waits for, another may record again.
TEST_F(OpenClDevice, AnEventIsRecordedWhileOthersWaitForIt) {
    Order& order = device_->order();
    const Stream stream = *order.create_stream();
    const Event event = *order.create_event();
    std::atomic<bool> recording{true};
    std::atomic<int> failures{0}, waiting{0};
    {
        std::vector<std::jthread> threads;
        for (int waits = 0; waits < 2; ++waits)
            threads.emplace_back([&, waits] {
                for (++waiting; recording;)
                    if (!(waits != 0 ? order.wait(event) : order.wait(Stream{}, event))) ++failures;
            });
        for (int i = 0; i < 20'000 || waiting != 2; ++i)
            if (!order.record(event, stream)) ++failures;
        recording = false;
    }
    EXPECT_EQ(failures, 0);
    EXPECT_TRUE(order.wait(Stream{}));
    order.destroy_event(event);
    order.destroy_stream(stream);
}

TEST_F(OpenClDevice, AFormThatThereIsNotLeavesTheOld) {
    const std::string shape = device_->in_use();
    EXPECT_EQ(device_->list().front(), shape);
    DAEL_EXPECT_REFUSED(device_->use("teams=7"), Code::invalid_argument, "'teams=7'");
    EXPECT_EQ(device_->in_use(), shape);
    // One that there is, but that is not tried on this device: on a CPU every one with tables,
    // whose lookups its caches would tell of.
    const std::string odd = "tables=0,teams=1,held=1,groups=63";
    ASSERT_TRUE(try_open(odd)) << "by name";
    DAEL_EXPECT_REFUSED(device_->use(odd), Code::unsupported, "none of the forms");
    EXPECT_EQ(device_->in_use(), shape);
    for (const std::string& each : device_->list()) {
        ASSERT_TRUE(device_->use(each)) << each;
        EXPECT_EQ(device_->in_use(), each);
    }
}

}  // namespace
