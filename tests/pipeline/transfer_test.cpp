// SPDX-License-Identifier: Apache-2.0
// Host memory through a device in every mode, on a device made of threads: overlap, order, chunk
// edges, work in place, forged messages, failures of every call, too little memory, many callers.
#include "pipeline/transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include <daelstrom/ctr.hpp>
#include <daelstrom/unauthenticated.hpp>

#include "pipeline/engine_state.hpp"
#include "pipeline/measure.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kChunk = 64 << 10;

Engine engine_on(HostDevice& device, std::size_t chunk = kChunk) {
    return pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                 {.backend = "threads", .threads = 3, .chunk = chunk});
}

// Runs a batch's messages through an engine, and keeps what it said.
struct Through {
    Engine& engine;
    Ran ran = {};
    Code code = Code::ok;

    Result<> operator()(const Cipher& cipher, std::span<const Key> keys,
                        std::span<const Message> messages, std::span<Code> codes) {
        auto set = engine.keys(keys);
        auto done = set ? engine.run(cipher, *set, messages, codes) : std::move(set).error();
        code = done.code();
        if (!done) return std::move(done).error();
        ran = *done;
        return {};
    }
    std::string fault_of(TestBatch& batch) {
        return batch.fault_of([this](const auto&... arguments) { return (*this)(arguments...); });
    }
};

// Page-locked memory of a test device, wiped by its owner as the device asks.
class Pinned {
  public:
    Pinned(HostDevice& device, std::size_t size)
        : device_(device), bytes(static_cast<std::uint8_t*>(*device.allocate_pinned(size)), size) {}
    ~Pinned() {
        wipe(bytes.data(), bytes.size());
        device_.release_pinned(bytes.data());
    }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

  private:
    HostDevice& device_;

  public:
    HostOut bytes;
};

std::vector<std::size_t> sizes_below(std::size_t count, std::size_t limit) {
    Random random(7);
    std::vector<std::size_t> sizes(count);
    for (auto& size : sizes) size = random.below(limit);
    return sizes;
}

TEST(Transfer, EverySizeAroundChunkEdges) {
    struct Places {
        bool pinned_in, pinned_out, in_place;
    };
    Random random(1);
    HostDevice device({.delay = std::chrono::microseconds(50)});
    {
        Engine engine = engine_on(device);
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections)
                for (const std::uint32_t sector : {512, 16, 523, 70'000, 300'000}) {
                    if (sector != 512 && mode != Mode::xts) continue;
                    if (kSanitized && (sector == 16 || sector == 300'000)) continue;
                    const Cipher cipher{mode, direction, 16, 0, sector};
                    if (!parallel_within_message(mode, direction)) continue;
                    const Bytes raw = random.bytes(32);
                    const KeyRing keys({raw}, mode);
                    for (std::size_t size :
                         {std::size_t{0}, std::size_t{16}, kChunk - 16, kChunk, kChunk + 16,
                          thorough(4, 2) * kChunk, thorough(9, 3) * kChunk + 4112}) {
                        size = fitting(cipher, size == 0 ? 0 : size - 3);
                        for (const auto& [pinned_in, pinned_out, in_place] :
                             {Places{true, true, false}, Places{true, true, true},
                              Places{true, false, false}, Places{false, true, false},
                              Places{false, false, false}, Places{false, false, true}}) {
                            const Bytes data = random.bytes(size), aad = random.bytes(33);
                            Pinned in_locked(device, size + 1), out_locked(device, size + 1);
                            Bytes in_plain(size), out_plain(size), tag(16);
                            const HostOut in =
                                pinned_in ? in_locked.bytes.first(size) : HostOut(in_plain);
                            const HostOut apart =
                                pinned_out ? out_locked.bytes.first(size) : HostOut(out_plain);
                            const HostOut out = in_place ? in : apart;
                            std::ranges::copy(data, in.begin());
                            Message message{in.data(), out.data(), size};
                            if (authenticates(mode)) {
                                message.aad = aad.data();
                                message.aad_size = aad.size();
                                message.tag = tag.data();
                            }
                            message.start = fitting_start(cipher, random);
                            const Answer answer = oracle(raw, cipher, message, in);
                            if (authenticates(mode) && direction == Direction::decrypt)
                                tag = answer.tag;
                            const auto ran = engine.run(cipher, keys.keys[0], message);
                            ASSERT_TRUE(ran) << ran.error().message;
                            EXPECT_EQ(ran->backend, "threads:0");
                            EXPECT_EQ(ran->chunks == 0, size == 0 && !authenticates(mode));
                            ASSERT_EQ(difference(answer.out, out), "")
                                << name(mode) << " " << size << " pinned " << pinned_in
                                << pinned_out << " in place " << in_place;
                            ASSERT_EQ(
                                difference(answer.tag, std::span(tag).first(answer.tag.size())),
                                "");
                        }
                    }
                }
    }
    expect_clean(device);
}

// What is page-locked, short and aligned takes one launch where it lies; what lacks one of these is
// copied as ever.
TEST(Transfer, KernelsReachForWhatIsShort) {
    constexpr std::size_t kReach = 100'000;
    Random random(17);
    for (const bool reaches : {true, false}) {
        HostDevice device({.delay = std::chrono::microseconds(50), .reach = reaches ? kReach : 0});
        {
            Engine engine = engine_on(device);
            const KeyRing keys(random, 2), xts_keys(random, 2, true);
            Pinned in(device, 8 * kReach), out(device, 8 * kReach);
            Bytes plain(8 * kReach);
            struct Case {
                bool reached;
                std::vector<std::size_t> sizes;
                std::size_t in_at = 0, out_at = 0;
                bool locked = true, in_place = false;
                std::uint8_t skip = 0;
            };
            const Case cases[] = {{true, {16}},
                                  {true, {kReach}},
                                  {true, {48}, 0, 0, true, true},
                                  {true, {1600, 0, 64, 16}},
                                  {true, {kReach / 2 / 16 * 16, kReach / 2 / 16 * 16}},
                                  {false, {kReach + 16}},
                                  {false, {kReach / 2, kReach / 2 + 16}},
                                  {false, {16, 16, 16, 16, 16}},
                                  {false, {64}, 4, 0},
                                  {false, {64}, 0, 1},
                                  {false, {64}, 0, 0, true, false, 3},
                                  {false, {64}, 0, 0, false}};
            for (const Mode mode : {Mode::ctr, Mode::gcm_ctr, Mode::ecb, Mode::xts, Mode::cbc})
                for (const Case& c : cases) {
                    const Cipher cipher{mode, Direction::decrypt};
                    if (c.skip != 0 && !makes_keystream(mode)) continue;
                    const KeyRing& ring = mode == Mode::xts ? xts_keys : keys;
                    auto set = engine.keys(ring.keys);
                    ASSERT_TRUE(set);
                    ASSERT_TRUE(in.bytes.size() >= c.sizes.size() * (kReach + 32));
                    std::vector<Message> list;
                    std::vector<Answer> answers;
                    std::vector<Code> codes(c.sizes.size());
                    for (std::size_t i = 0; i < c.sizes.size(); ++i) {
                        const std::size_t at = i * (kReach / 2 / 16 * 16 + 32);
                        Message& m = list.emplace_back();
                        std::uint8_t* const from = in.bytes.data() + at + c.in_at;
                        m.in = from;
                        m.out = c.in_place ? from
                                : c.locked ? out.bytes.data() + at + c.out_at
                                           : plain.data() + at;
                        m.size = fitting(cipher, c.sizes[i]);
                        m.start = fitting_start(cipher, random);
                        m.skip = c.skip;
                        m.key = static_cast<std::uint32_t>(i % 2);
                        std::ranges::copy(random.bytes(m.size), from);
                        answers.push_back(oracle(ring.raw[m.key], cipher, m));
                    }
                    const std::uint64_t copied = device.copied_out();
                    const auto ran = engine.run(cipher, *set, list, codes);
                    ASSERT_TRUE(ran) << ran.error().message;
                    if (list.size() == 1)  // else keys may go one after the other
                        EXPECT_EQ(device.copied_out() == copied,
                                  reaches && c.reached && mode != Mode::cbc)
                            << name(mode) << " " << c.sizes[0];
                    for (std::size_t i = 0; i < list.size(); ++i) {
                        EXPECT_EQ(codes[i], Code::ok);
                        ASSERT_EQ(difference(answers[i].out, {list[i].out, list[i].size}), "")
                            << name(mode) << " " << i << " of " << list.size();
                    }
                }
        }
        expect_clean(device);
    }
}

TEST(Transfer, FailuresWithinReachAreReported) {
    for (const char* const call :
         {"create_stream", "create_event", "allocate", "run_in_reach", "wait for stream"}) {
        HostDevice device({.fail_at = 1, .fail_call = call, .reach = 4096});
        {
            Engine engine = engine_on(device);
            const Bytes raw = pattern(32);
            const Key key = *Key::import(raw);
            Pinned data(device, 4096);
            const Message m{.in = data.bytes.data(), .out = data.bytes.data(), .size = 4096};
            const auto failed = engine.run({Mode::ctr}, key, m);
            EXPECT_EQ(failed.code(), Code::device) << call;
            EXPECT_EQ(device.failed_call(), call);
            std::ranges::fill(data.bytes, std::uint8_t{0});
            const Bytes expected = oracle(raw, {Mode::ctr}, m).out;
            ASSERT_TRUE(engine.run({Mode::ctr}, key, m)) << call;
            EXPECT_EQ(difference(expected, data.bytes), "") << call;
        }
        expect_clean(device);
    }
}

TEST(Transfer, CounterOffsetsInsideABlock) {
    const Bytes raw = random_bytes(32, 4);
    const Key key = *Key::import(raw);
    Block iv;
    iv.fill(0xff);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const std::uint64_t offset : {1, 15, 16, 4097, 1 << 20})
            for (const std::size_t size : {std::size_t{1}, kChunk - 1, kChunk, 5 * kChunk + 7}) {
                const Bytes in = random_bytes(size, 5);
                Bytes out(size);
                ASSERT_TRUE(ctr::crypt(engine, key, iv, in, out, offset));
                EXPECT_EQ(out, oracle(raw, {Mode::ctr, Direction::encrypt, iv, offset}, in));
                ASSERT_TRUE(ctr::keystream(engine, key, iv, out, offset));
                EXPECT_EQ(out,
                          oracle(raw, {Mode::ctr, Direction::encrypt, iv, offset}, Bytes(size)));
            }
        Bytes data(32);
        EXPECT_EQ(ctr::crypt(engine, key, {}, data, data, ~std::uint64_t{0} - 16).code(),
                  Code::limit);
        EXPECT_EQ(data, Bytes(32));
        // The last byte of all, and none behind it.
        const HostOut end = HostOut(data).first(16);
        EXPECT_TRUE(ctr::crypt(engine, key, {}, end, end, ~std::uint64_t{0} - 15));
        EXPECT_EQ(ctr::crypt(engine, key, {}, data, data, ~std::uint64_t{0} - 30).code(),
                  Code::limit);
    }
    expect_clean(device);
}

TEST(Transfer, CopiesAndKernelsOfDifferentChunksRunAtOnce) {
    Random random(6);
    for (const Cipher& cipher : {Cipher{Mode::ecb, Direction::encrypt}, gcm::sealing()}) {
        HostDevice device({.delay = std::chrono::milliseconds(2)});
        {
            Engine engine = engine_on(device);
            const KeyRing keys(random, 1);
            TestBatch batch(random, keys, cipher);
            const bool one = cipher.mode == Mode::ecb;
            for (std::size_t i = 0; i < (one ? 1 : 2000); ++i)
                batch.add({.size = one ? 16 * kChunk : 4000, .in_place = true});
            Through through{engine};
            ASSERT_EQ(through.fault_of(batch), "");
            EXPECT_GE(through.ran.chunks, 2u);
        }
        EXPECT_GE(device.most_at_once(), cipher.mode == Mode::ecb ? 3 : 2);
        expect_clean(device);
    }
}

TEST(Transfer, BatchesOfManyMessagesUnderManyKeys) {
    Random random(8);
    std::vector<std::vector<std::size_t>> jobs{{0},
                                               {1},
                                               {kChunk},
                                               {5 * kChunk + 3},
                                               {0, 3 * kChunk, 0, 1},
                                               sizes_below(thorough(300, 60), 3000),
                                               sizes_below(thorough(2000, 300), 64),
                                               sizes_below(thorough(20, 6), 2 * kChunk)};
    std::vector<std::size_t> rising;
    for (std::size_t i = 0; i < thorough(200u, 60u); ++i)
        rising.push_back(i == 50 ? 3 * kChunk : i * 41);
    jobs.push_back(rising);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections)
                for (const auto& sizes : jobs)
                    for (const std::size_t key_count : {1, 3}) {
                        const Cipher cipher{mode, direction};
                        const KeyRing keys(random, key_count, mode);
                        TestBatch batch(random, keys, cipher);
                        batch.add_sizes(sizes);
                        Through through{engine};
                        ASSERT_EQ(through.fault_of(batch), "");
                        EXPECT_EQ(through.ran.backend, "threads:0");
                        const bool any = std::ranges::any_of(
                            batch.messages, [](const Message& m) { return m.size != 0; });
                        EXPECT_EQ(through.ran.chunks > 0, any || authenticates(mode));
                    }
    }
    EXPECT_GE(device.kernels(), 100u);
    expect_clean(device);
}

// Messages side by side in memory, which one copy takes.
TEST(Transfer, NeighboursInPlace) {
    constexpr std::size_t kCount = 200, kSize = 512;
    Random random(9);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections) {
                const Cipher cipher{mode, direction};
                const KeyRing keys(random, 1, mode);
                Bytes data = random.bytes(kCount * kSize), tags(kCount * 16), expected;
                std::vector<Message> messages;
                for (std::size_t i = 0; i < kCount; ++i) {
                    std::uint8_t* const here = data.data() + i * kSize;
                    Message& m = messages.emplace_back(Message{here, here, kSize});
                    m.start = fitting_start(cipher, random);
                    m.start_rest = fitting_rest(cipher, random);
                    if (authenticates(mode)) m.tag = tags.data() + 16 * i;
                    const Answer answer = oracle(keys.raw[0], cipher, m, {here, kSize});
                    expected.insert(expected.end(), answer.out.begin(), answer.out.end());
                    std::ranges::copy(answer.tag,
                                      tags.begin() + static_cast<std::ptrdiff_t>(16 * i));
                }
                auto set = engine.keys(keys.keys);
                ASSERT_TRUE(set);
                std::vector<Code> codes(kCount);
                const auto ran = engine.run(cipher, *set, messages, codes);
                ASSERT_TRUE(ran) << ran.error().message;
                EXPECT_EQ(codes, std::vector(kCount, Code::ok));
                EXPECT_EQ(difference(expected, data), "") << name(mode) << " " << name(direction);
            }
    }
    expect_clean(device);
}

TEST(Transfer, ASingleSequentialMessageIsRefusedWithTheMend) {
    HostDevice device;
    {
        Engine engine = engine_on(device);
        const Key key = *Key::import(random_bytes(16, 9));
        Bytes data(64);
        const auto ran = cbc::encrypt(engine, key, {}, data, data);
        EXPECT_EQ(ran.code(), Code::unsupported);
        EXPECT_NE(ran.error().message.find("cbc"), std::string::npos) << ran.error().message;
        EXPECT_EQ(data, Bytes(64));
        EXPECT_FALSE(engine.explain({{Mode::cbc}, 128, 64}).options.front().possible);
    }
    expect_clean(device);
}

// As a batch it is one of its kind, and taken.
TEST(Transfer, ABatchOfOneSequentialMessageIsTaken) {
    Random random(3);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const Cipher& cipher : {Cipher{Mode::cbc}, Cipher{Mode::cfb}, Cipher{Mode::ofb}}) {
            const KeyRing keys(random, 1);
            TestBatch batch(random, keys, cipher);
            batch.add({.size = 64});
            EXPECT_EQ(Through{engine}.fault_of(batch), "");
        }
    }
    expect_clean(device);
}

TEST(Transfer, NothingToDoIsNeverRefused) {
    Random random(1);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections) {
                const Cipher cipher{mode, direction};
                const KeyRing keys(random, 1, mode);
                auto set = engine.keys(keys.keys);
                ASSERT_TRUE(set);
                for (const std::size_t messages : {0, 1, 5}) {
                    if (authenticates(mode) && messages != 0) continue;  // which has tags to make
                    const std::vector<Message> empty(messages);          // null pointers, no bytes
                    std::vector<Code> codes(messages, Code::internal);
                    const auto ran = engine.run(cipher, *set, empty, codes);
                    ASSERT_TRUE(ran) << name(mode) << ": " << ran.error().message;
                    EXPECT_EQ(ran->backend, "threads:0");
                    EXPECT_EQ(ran->chunks, 0u);
                    EXPECT_EQ(codes, std::vector(messages, Code::ok));
                }
                if (authenticates(mode)) continue;
                const auto ran = engine.run(cipher, keys.keys[0], {});
                EXPECT_TRUE(ran) << name(mode) << ": " << ran.error().message;
            }
    }
    EXPECT_EQ(device.kernels(), 0u);
    expect_clean(device);
}

TEST(Transfer, TooLittleMemoryMeansSmallerChunks) {
    Random random(10);
    for (const std::uint64_t memory :
         {std::uint64_t{3} << 20, std::uint64_t{600} << 10, std::uint64_t{130} << 10})
        for (const bool device_memory : {true, false}) {
            HostDevice device(device_memory ? HostDeviceOptions{.memory = memory}
                                            : HostDeviceOptions{.pinned = memory});
            {
                Engine engine = engine_on(device, 1 << 20);
                const KeyRing keys(random, 1);
                TestBatch batch(random, keys, {Mode::ctr});
                batch.add({.size = 4 << 20});
                Through through{engine};
                ASSERT_EQ(through.fault_of(batch), "") << memory;
                EXPECT_LE(through.ran.chunks, 64u + 4u);  // 64 KiB each, and the small ones
                EXPECT_GT(through.ran.chunks, 5u);
            }
            expect_clean(device);
        }
    HostDevice device({.memory = 1000});
    {
        Engine engine = engine_on(device, 1 << 20);
        const Key key = *Key::import(random.bytes(16));
        Bytes data(1 << 20);
        EXPECT_EQ(ctr::crypt(engine, key, {}, data, data).code(), Code::out_of_memory);
    }
    expect_clean(device);
}

// What cannot be cut finds room or not: whole messages with tags, whole sectors.
TEST(Transfer, TooLittleMemoryForWhatIsNotCut) {
    Random random(11);
    for (const Cipher& cipher :
         {gcm::sealing(), gcm::opening(), Cipher{Mode::xts, Direction::encrypt, 16, 0, 200'000}}) {
        HostDevice device({.memory = std::uint64_t{700} << 10});
        {
            Engine engine = engine_on(device, 1 << 20);
            const bool xts = cipher.mode == Mode::xts;
            const KeyRing keys(random, 2, xts);
            TestBatch batch(random, keys, cipher), large(random, keys, cipher);
            if (xts)
                batch.add({.size = 2 << 20});
            else
                batch.add_sizes(sizes_below(1000, 4000));
            Through through{engine};
            ASSERT_EQ(through.fault_of(batch), "");
            EXPECT_GE(through.ran.chunks, 3u);
            Cipher wide = cipher;
            wide.sector = 1 << 20;
            Bytes data(2 << 20), tag(16);
            Message message{data.data(), data.data(), data.size()};
            if (!xts) message.tag = tag.data();
            EXPECT_EQ(engine.run(wide, keys.keys[0], message).code(), Code::out_of_memory);
        }
        expect_clean(device);
    }
}

// A short message takes no more memory than a short message needs, however many callers there are.
TEST(Transfer, SlotsAreNoLargerThanTheJob) {
    HostDevice device;
    {
        Engine engine = engine_on(device, 16 << 20);
        const Key key = *Key::import(pattern(32));
        for (int i = 0; i < 5; ++i) {
            Bytes data(1024);
            ASSERT_TRUE(ctr::crypt(engine, key, {}, data, data));
        }
        EXPECT_LE(device.most_memory(), std::uint64_t{1} << 20);
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < 20; ++caller)
            callers.emplace_back([&] {
                for (int i = 0; i < 5; ++i) {
                    Bytes data(1024), tag(16);
                    ASSERT_TRUE(ctr::crypt(engine, key, {}, data, data));
                    ASSERT_TRUE(gcm::seal(engine, key, Bytes(12), {}, data, data, tag));
                }
            });
    }
    EXPECT_LE(device.most_memory(), std::uint64_t{32} << 20);
    expect_clean(device);
}

// One call of each kind; every one may fail, and says so.
std::vector<TestBatch> calls_of_every_kind(Random& random, const KeyRing& keys,
                                           const KeyRing& xts_keys) {
    std::vector<TestBatch> calls;
    calls.emplace_back(random, keys, Cipher{Mode::cbc, Direction::decrypt})
        .add({.size = 10 * 4096, .in_place = true, .key = 0});
    TestBatch& many = calls.emplace_back(random, keys, Cipher{Mode::cbc});
    for (int i = 0; i < 40; ++i) many.add({.size = 512});
    TestBatch& other = calls.emplace_back(random, keys, Cipher{Mode::cfb, Direction::decrypt});
    for (std::uint32_t i = 0; i < 6; ++i) other.add({.size = 300, .key = i % 2});
    TestBatch& opened = calls.emplace_back(random, keys, gcm::opening());
    for (std::size_t i = 0; i < 60; ++i) opened.add({.size = 4000, .aad_size = 20});
    for (std::size_t i = 0; i < 60; i += 2) opened.forge(i);
    calls.emplace_back(random, xts_keys, Cipher{Mode::xts}).add({.size = 6 * kChunk, .key = 0});
    return calls;
}

// Makes the first call that can fail do so, then the second, and so on, until a run passes with
// none. Under sanitizers the first call of each kind, and later ones.
TEST(Transfer, EveryFailureIsReportedAndLeavesNothingBehind) {
    std::set<std::string> failed;
    // Whether a call failed.
    const auto run_all = [&](const HostDeviceOptions& options) {
        Random random(12);
        const KeyRing keys(random, 2), xts_keys(random, 1, true);
        HostDevice device(options);
        std::string call;
        {
            Engine engine = engine_on(device, 4096);
            int errors = 0;
            for (TestBatch& batch : calls_of_every_kind(random, keys, xts_keys)) {
                Through through{engine};
                const std::string fault = through.fault_of(batch);
                if (through.code == Code::ok) {
                    EXPECT_EQ(fault, "") << device.failed_call();
                    continue;
                }
                ++errors;
                EXPECT_EQ(through.code, Code::device) << fault;
                EXPECT_NE(fault.find(device.failed_call()), std::string::npos) << fault;
                for (std::size_t i = 0; i < batch.size(); ++i)  // what is done is right
                    EXPECT_EQ(batch.codes[i] == Code::ok ? batch.fault(i) : "", "");
            }
            call = device.failed_call();
            // What fails while slots are wiped and released is passed over.
            const bool passed_over = call == "fill" || call == "wait for stream";
            EXPECT_TRUE(errors == (call.empty() ? 0 : 1) || (errors == 0 && passed_over)) << call;
            failed.insert(call);
        }
        expect_clean(device);
        return !call.empty();
    };
    const char* const kinds[] = {"allocate",
                                 "allocate_pinned",
                                 "create_stream",
                                 "create_event",
                                 "copy_in",
                                 "copy_out",
                                 "run",
                                 "run batch",
                                 "prepare",
                                 "tables",
                                 "record",
                                 "wait for event",
                                 "wait for stream",
                                 "stream waits for event"};
    if (kSanitized) {
        for (const char* const kind : kinds)
            for (const int nth : {1, 2, 7}) run_all({.fail_at = nth, .fail_call = kind});
    } else {
        for (int nth = 1; run_all({.fail_at = nth}); ++nth) {
        }
    }
    for (const char* const kind : kinds)
        EXPECT_EQ(failed.count(kind), 1u) << kind << " was never made to fail";
}

// Nothing is handed out of a batch whose kernels failed while every wait went well.
TEST(Transfer, AFailureThatTheBatchAloneTells) {
    Random random(13);
    const KeyRing keys(random, 2);
    for (const Cipher& cipher : {gcm::sealing(), gcm::opening(), Cipher{Mode::cbc}}) {
        HostDevice device({.silent_failures = true});
        {
            Engine engine = engine_on(device);
            TestBatch batch(random, keys, cipher);
            for (int i = 0; i < 100; ++i) batch.add({.size = 4000});
            Through through{engine};
            EXPECT_NE(through.fault_of(batch), "");
            EXPECT_EQ(through.code, Code::device);
            EXPECT_EQ(batch.codes, std::vector(100, Code::device));  // nothing was touched
            for (const Message& m : batch.messages)
                EXPECT_EQ(Bytes(m.out, m.out + m.size), Bytes(4000, Poisoned::kPoison));
        }
        expect_clean(device);
    }
}

// What failed is left as it was, and no plaintext crossed the bus; its neighbours are right.
TEST(Transfer, ForgedAndInvalidMessagesFailAlone) {
    Random random(14);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const bool in_place : {false, true}) {
            const KeyRing keys(random, 2);
            TestBatch batch(random, keys, gcm::opening());
            for (const std::size_t size : sizes_below(200, 2000))
                batch.add({.size = size, .in_place = in_place, .aad_size = size % 40});
            std::uint64_t verified = 0;
            for (std::size_t i = 0; i < 200; i += 5) batch.forge(i);
            batch.messages[7].key = 2;
            batch.messages[33].tag = nullptr;
            batch.messages[34].size = gcm::kMaxData + 1;
            batch.messages[34].in = batch.messages[34].out;
            batch.expect(7, Code::invalid_argument);
            batch.expect(33, Code::invalid_argument);
            batch.expect(34, Code::limit);
            const std::uint64_t before = device.copied_out();
            Through through{engine};
            ASSERT_EQ(through.fault_of(batch), "");
            for (std::size_t i = 0; i < 200; ++i)
                if (batch.codes[i] == Code::ok) verified += (batch.messages[i].size + 15) / 16 * 16;
            EXPECT_LE(device.copied_out() - before, verified + 200 * 4);
        }
    }
    expect_clean(device);
}

TEST(Transfer, ManyCallersAtOnce) {
    HostDevice device;
    {
        Engine engine = engine_on(device, 16 << 10);
        std::vector<std::string> faults(6);
        {
            std::vector<std::jthread> callers;
            for (std::size_t caller = 0; caller < faults.size(); ++caller)
                callers.emplace_back([&, caller] {
                    Random random(caller);
                    for (int round = 0; round < 5 && faults[caller].empty(); ++round)
                        for (const Cipher& cipher :
                             {Cipher{Mode::cfb, Direction::decrypt}, gcm::sealing()}) {
                            const KeyRing keys(random, 2);
                            TestBatch batch(random, keys, cipher);
                            batch.add({.size = 100000 + caller, .in_place = true});
                            batch.add_sizes(sizes_below(50, 3000));
                            faults[caller] += Through{engine}.fault_of(batch);
                        }
                });
        }
        EXPECT_EQ(faults, std::vector(6, std::string()));
    }
    expect_clean(device);
}

TEST(Measure, BusAndKernelsOfEveryMode) {
    HostDevice device({.delay = std::chrono::microseconds(500)});
    {
        HostDeviceBackend backend(device);
        pipeline::ThreadPool pool(2);
        pipeline::Transfer transfer(device, pool);
        Pinned in(device, 16 * kChunk), out(device, 16 * kChunk);
        std::ranges::copy(random_bytes(16 * kChunk, 20), in.bytes.begin());
        const auto bus = pipeline::measure_bus(device, transfer, in.bytes, out.bytes, kChunk);
        ASSERT_TRUE(bus) << bus.error().message;
        // 64 KiB in at least 500 us: no copy rate can be above 0.14 GB/s.
        for (const double rate : {bus->copy_in, bus->copy_out}) {
            EXPECT_GT(rate, 0);
            EXPECT_LT(rate, 0.14);
        }
        EXPECT_GT(bus->duplex, 0);
        EXPECT_TRUE(std::ranges::equal(in.bytes, out.bytes));  // the bytes did cross
        EXPECT_EQ(device.kernels(), 0u);
        for (const Mode mode : kModes) {
            const KeyRing keys({pattern_key(mode)}, mode);
            const auto seconds =
                pipeline::measure_kernel(backend, {mode}, keys.keys[0], 1 << 16, 3);
            ASSERT_TRUE(seconds) << name(mode) << ": " << seconds.error().message;
            EXPECT_GE(*seconds, 500e-6);
        }
        EXPECT_EQ(device.kernels(), 4u * kModes.size());
    }
    expect_clean(device);
}

}  // namespace
