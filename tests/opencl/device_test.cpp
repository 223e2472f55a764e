// SPDX-License-Identifier: Apache-2.0
// One device: what is refused, memory, events, batches over several buffers.
#include <array>

#include <daelstrom/gcm.hpp>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::uint8_t kPoison = Poisoned::kPoison;

using OpenClDevice = OpenClTest;

TEST_F(OpenClDevice, WhatReachesBeyondABufferIsRefusedAndNothingIsWritten) {
    const Key key = *Key::import(pattern(16));
    const Key xts_key = *Key::import_xts(pattern(64));
    const Bytes poison(4096, kPoison);
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
    std::fill_n(begin, size, kPoison);
    ASSERT_TRUE(device_->memory().copy_out(begin, memory, size, {}));
    ASSERT_TRUE(device_->order().wait(Stream{}));
    EXPECT_EQ(Bytes(begin, begin + size), content);
    device_->memory().release_pinned(begin);
    EXPECT_FALSE(device_->memory().is_pinned(begin, 1));
}

TEST_F(OpenClDevice, EventsOrderStreamsAndTellTimes) {
    const Key key = *Key::import(pattern(16));
    const Bytes in = pattern(1 << 20);
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
        std::vector<Message> list;
        for (std::size_t m = 0; m < 40; ++m) {
            // Inputs from buffers 0 and 1; outputs to buffer 2, or in place in buffer 0.
            const std::size_t from = m % 2, to = m % 3 == 0 ? 0 : 2;
            if (to == 0 && from != 0) continue;
            const std::size_t size = random.below(kRoom / 16) * 16, at = m * kRoom;
            const Block iv = random.block();
            list.push_back(message(buffers[from] + at, buffers[to] + at, size, iv));
            const Bytes in(contents[from].begin() + static_cast<std::ptrdiff_t>(at),
                           contents[from].begin() + static_cast<std::ptrdiff_t>(at + size));
            std::ranges::copy(oracle(raw, {mode, direction, iv, 0}, in),
                              expected[to].begin() + static_cast<std::ptrdiff_t>(at));
        }
        const std::string shape = device_->in_use();
        const auto batch = prepare({mode, direction}, std::span(&key, 1), list);
        ASSERT_TRUE(batch) << batch.error().message;
        ASSERT_TRUE(device_->use(device_->list().back()));
        const auto ran = device_->run(**batch, {});
        ASSERT_TRUE(ran) << ran.error().message;
        for (std::size_t b = 0; b < buffers.size(); ++b) {
            EXPECT_EQ(difference(expected[b], get(buffers[b], expected[b].size())), "")
                << name(mode) << " " << name(direction) << ", buffer " << b;
            device_->memory().release(buffers[b]);
        }
        ASSERT_TRUE(device_->use(shape));
    }
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

// The keystream by itself, from every kernel that makes one; nothing is read.
TEST_F(OpenClDevice, KeystreamWithoutInput) {
    for (const char* form : {"", "tables=1,teams=4"}) {
        device_ = open(form);
        ASSERT_TRUE(device_);
        const Bytes raw[] = {pattern(32), pattern(16)};
        const Key keys[] = {*Key::import(raw[0]), *Key::import(raw[1])};
        for (const std::size_t size : {std::size_t{100}, (std::size_t{4} << 20) + 5}) {
            if (*form == 0 && size > 100) continue;  // that kernel has tables
            Bytes poison(size, kPoison);
            auto *alone = put(poison), *first = put(poison), *second = put(poison);
            const Block start = random_block(1);
            ASSERT_TRUE(run({Mode::ctr}, keys[0], message(nullptr, alone, size, start)));
            Message list[] = {message(nullptr, first, size, start, 3),
                              message(nullptr, second, size, start)};
            for (const std::uint32_t second_key : {0u, 1u}) {
                list[1].key = second_key;
                const auto batch = prepare({Mode::ctr}, keys, list);
                ASSERT_TRUE(batch) << batch.error().message;
                ASSERT_TRUE(device_->run(**batch, {}));
                const Bytes zeros(size);
                const auto want = [&](const Bytes& key, std::uint64_t skip) {
                    return oracle(key, {Mode::ctr, Direction::encrypt, start, skip}, zeros);
                };
                EXPECT_EQ(difference(want(raw[0], 0), get(alone, size)), "");
                EXPECT_EQ(difference(want(raw[0], 3), get(first, size)), "");
                EXPECT_EQ(difference(want(raw[second_key], 0), get(second, size)), "");
            }
            for (auto* memory : {alone, first, second}) device_->memory().release(memory);
        }
        tables_.clear();
    }
}

// Kernels with several keys count in 32 bits, as GCM does.
TEST_F(OpenClDevice, SeveralKeysAreForThoseModesThatTakeThem) {
    const Key keys[] = {*Key::import(pattern(16)), *Key::import(pattern(24))};
    auto* memory = allocate(256);
    Message list[] = {message(memory, memory, 64), message(memory + 64, memory + 64, 64)};
    list[1].key = 1;
    for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::cbc, Direction::decrypt},
                                 Cipher{Mode::cfb}, Cipher{Mode::ofb}})
        DAEL_EXPECT_REFUSED(prepare(cipher, keys, list), Code::unsupported, "divide");
    EXPECT_TRUE(prepare({Mode::ctr}, keys, list));
    list[0].start.fill(0xff);
    DAEL_EXPECT_REFUSED(prepare({Mode::ctr}, keys, list), Code::unsupported, "wrap");
    list[0].start[15] = 0xfc;  // the last of four blocks is the last before the wrap
    EXPECT_TRUE(prepare({Mode::ctr}, keys, list));
}

// What has been launched has the old key, what is launched next the new one, of any size.
TEST_F(OpenClDevice, AKeyIsReplacedInTheStreamsOrder) {
    const Bytes in = pattern(5000), raw[] = {pattern(16), pattern(24), pattern(32)};
    const Key keys[] = {*Key::import(raw[0]), *Key::import(raw[0])}, second = *Key::import(raw[1]),
              third = *Key::import(raw[2]);
    auto& set = tables(keys);
    const Block start = random_block(5);
    for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::cbc}, Cipher{Mode::ctr}}) {
        // A batch under one key, which kernels take as an argument, and one under two.
        for (const std::uint32_t last_key : {0u, 1u}) {
            if (last_key == 1 && cipher.mode == Mode::ecb) continue;
            ASSERT_TRUE(set.replace(0, keys[0], {}));
            auto *from = put(in), *to = allocate(in.size()), *other = allocate(in.size());
            const std::size_t size = in.size() / 16 * 16;
            Message list[] = {message(from, to, size, start), message(from, other, 64, start)};
            list[1].key = last_key;
            auto batch = device_->prepare(cipher, {keys, &set}, {list, 2});
            ASSERT_TRUE(batch) << batch.error().message;
            for (std::size_t n = 0; n < 3; ++n) {
                ASSERT_TRUE(device_->run(**batch, {}));
                const Bytes made = oracle(raw[n], {cipher.mode, Direction::encrypt, start},
                                          std::span(in).first(size));
                EXPECT_EQ(difference(made, get(to, size)), "") << n << " " << name(cipher.mode);
                ASSERT_TRUE(set.replace(0, n == 0 ? second : third, {}));
            }
            batch = Error{};
            for (auto* memory : {from, to, other}) device_->memory().release(memory);
        }
    }
    DAEL_EXPECT_REFUSED(set.replace(2, second, {}), Code::invalid_argument, "no such key");
}

// A batch has one workspace: its runs follow each other, whichever streams they are on.
TEST_F(OpenClDevice, RunsOfABatchOnSeveralStreamsFollowEachOther) {
    const Bytes raw = pattern(16), in = pattern(300'000);
    const Key key = *Key::import(raw);
    auto *memory = put(in), *tag = allocate(gcm::kTagSize);
    Message what = message(memory, memory, in.size(), gcm::start(gcm::Nonce{}));
    what.tag = tag;
    const auto batch = prepare(gcm::sealing(), key, what);
    ASSERT_TRUE(batch) << batch.error().message;
    const Stream streams[] = {*device_->order().create_stream(), *device_->order().create_stream()};
    Bytes expected = in, last_tag;
    for (int n = 0; n < 6; ++n) {
        ASSERT_TRUE(device_->run(**batch, streams[n % 2]));
        Sealed sealed = gcm_oracle(raw, gcm::Nonce{}, {}, expected);
        expected = std::move(sealed.ciphertext);
        last_tag = std::move(sealed.tag);
    }
    EXPECT_EQ(difference(expected, get(memory, in.size(), streams[1])), "");
    EXPECT_EQ(difference(last_tag, get(tag, gcm::kTagSize, streams[1])), "");
    EXPECT_TRUE((*batch)->outcome());
    for (const Stream stream : streams) device_->order().destroy_stream(stream);
}

}  // namespace
