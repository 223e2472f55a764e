// SPDX-License-Identifier: Apache-2.0
// Sealed streams opened straight into device memory, on a device made of threads: every edge of
// segments and chunks, damage, failures of every call. After a failure the device's memory holds
// zeros. Segments are of 64 bytes here: 24 of plaintext in the first, 48 in others.
#include <cstring>

#include "core/registry.hpp"
#include "formats/keys.hpp"
#include "formats/keysets.hpp"
#include "pipeline/engine_state.hpp"
#include "support/cancelled.hpp"
#include "support/host_device.hpp"
#include "support/thorough.hpp"

namespace dael::test {
namespace {

constexpr std::size_t kSegment = 64, kChunk = 4 * kSegment;
constexpr std::uint8_t kPoison = 0xa5;

// An engine on the device, and memory there with some bytes around that nobody may touch.
class Target {
  public:
    Target(HostDevice& device, std::size_t size, std::size_t chunk = kChunk)
        : engine(pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                       {.backend = "threads", .threads = 2, .chunk = chunk})),
          device_(device),
          size_(size),
          memory_(static_cast<std::uint8_t*>(must(device.allocate(size + 2 * kMargin)))),
          stream_(must(device.create_stream())) {
        std::memset(memory_, kPoison, size + 2 * kMargin);
    }
    ~Target() {
        for (std::size_t i = 0; i < kMargin; ++i)
            EXPECT_TRUE(memory_[i] == kPoison && memory_[kMargin + size_ + i] == kPoison) << i;
        std::memset(memory_, 0, size_ + 2 * kMargin);
        device_.destroy_stream(stream_);
        device_.release(memory_);
    }
    DeviceOut out() { return {memory_ + kMargin, size_}; }
    Bytes bytes() const { return {memory_ + kMargin, memory_ + kMargin + size_}; }
    Stream stream() const { return stream_; }
    std::size_t reads = 0;

    // The whole stream; its plaintext must have the size of out().
    Result<Ran> open(const sealed::Keys& keys, const Bytes& sealed, HostIn aad = {}) {
        auto file = sealed::File::open(
            engine, keys, aad,
            [&](std::uint64_t at, HostOut out) -> Result<> {
                ++reads;
                std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            sealed.size());
        if (!file) return std::move(file).error();
        EXPECT_EQ(file->size(), size_);
        return file->read_all(out(), stream_);
    }

    Engine engine;

  private:
    static constexpr std::size_t kMargin = 7;  // odd: the memory is not aligned either
    HostDevice& device_;
    const std::size_t size_;
    std::uint8_t* const memory_;
    const Stream stream_;
};

// Shares of chunks are read by several threads; whichever of them fails is told of.
TEST(DeviceFile, ManyReadersReadWhatOneDoes) {
    constexpr std::size_t kMuch = std::size_t{1} << 20;  // bytes of a chunk: several shares
    auto host = engine();
    const auto keys = must(sealed::Keys::from_key(Bytes(32, 7), 4096));
    const Bytes plain = random_bytes(3 * kMuch + 12345, 5), sealed = seal(host, keys, plain, {});
    HostDevice device;
    {
        Target target(device, plain.size(), kMuch);
        std::atomic<std::size_t> calls = 0, bytes = 0;
        std::atomic<std::uint64_t> broken = ~std::uint64_t{0};
        auto file = must(sealed::File::open(
            target.engine, keys, {},
            [&](std::uint64_t at, HostOut out) -> Result<> {
                ++calls;
                bytes += out.size();
                if (at <= broken && broken < at + out.size())
                    return Error{Code::io, "byte " + std::to_string(broken) + " is gone"};
                std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            sealed.size()));
        for (const int readers : {-1, 0, 1, 2, 5}) {
            calls = bytes = 0;
            const auto ran = file.read_all(target.out(), target.stream(), readers);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(target.bytes(), plain) << readers;
            EXPECT_EQ(bytes, sealed.size());               // each byte once
            EXPECT_EQ(calls > 4, readers > 1) << readers;  // of four chunks
        }
        broken = 2 * kMuch + 1;
        const auto failed = file.read_all(target.out(), target.stream(), 5);
        EXPECT_EQ(failed.code(), Code::io);
        EXPECT_EQ(target.bytes(), Bytes(plain.size()));  // wiped
    }
    expect_clean(device);
}

TEST(DeviceFile, EverySizeAroundSegmentsAndChunks) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes aad = pattern(5);
    for (std::size_t size = 0; size <= 20 * kSegment; size += thorough(1u, 7u)) {
        SCOPED_TRACE(size);
        const Bytes plain = random_bytes(size, static_cast<std::uint32_t>(size));
        const Bytes sealed = seal(host, keys, plain, aad);
        HostDevice device;
        {
            Target target(device, size);
            const auto ran = target.open(keys, sealed, aad);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, "threads:0");
            EXPECT_EQ(ran->chunks, (sealed.size() + kChunk - 1) / kChunk);
            EXPECT_EQ(target.reads, 1 + ran->chunks) << "the header, and each chunk once";
            EXPECT_EQ(difference(plain, target.bytes()), "");
        }
        expect_clean(device);
    }
}

TEST(DeviceFile, ChunksOfAnySize) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = random_bytes(5000, 1);
    const Bytes sealed = seal(host, keys, plain);
    for (const std::size_t chunk : {1, 63, 64, 65, 127, 128, 1000, 6400, 1 << 20}) {
        SCOPED_TRACE(chunk);
        HostDevice device;
        {
            Target target(device, plain.size(), chunk);
            const auto ran = target.open(keys, sealed);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(difference(plain, target.bytes()), "");
        }
        expect_clean(device);
    }
}

TEST(DeviceFile, TinksSegments) {
    auto host = engine();
    for (const auto segment : {sealed::kSmallSegment, sealed::kLargeSegment}) {
        const auto keys = must(sealed::Keys::from_key(Bytes(32, 3), segment));
        const Bytes plain = random_bytes(5'300'000, segment);
        const Bytes sealed = seal(host, keys, plain);
        HostDevice device;
        {
            Target target(device, plain.size(), 2 * sealed::kLargeSegment);
            const auto ran = target.open(keys, sealed);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(difference(plain, target.bytes()), "");
            // A result for each segment came back, and no plaintext: not when the right size of
            // segments was looked for, either.
            EXPECT_LT(device.copied_out(), 4 * (sealed.size() / segment + 1) + 200);
            // And again with the same engine, whose slots are kept.
            ASSERT_TRUE(target.open(keys, sealed));
            EXPECT_EQ(difference(plain, target.bytes()), "");
        }
        expect_clean(device);
    }
}

TEST(DeviceFile, SeveralChunksAreUnderWayAtOnce) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = random_bytes(100 * kSegment, 9);
    const Bytes sealed = seal(host, keys, plain);
    HostDevice device({.delay = std::chrono::milliseconds(1)});
    {
        Target target(device, plain.size());
        const auto ran = target.open(keys, sealed);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(difference(plain, target.bytes()), "");
    }
    EXPECT_GE(device.most_at_once(), 2);
    expect_clean(device);
}

class DeviceDamage : public ::testing::Test {
  protected:
    // Refused with these words, and the plaintext's place is all zeros.
    void refused(const Bytes& damaged, std::size_t size, const std::string& says, HostIn aad = {}) {
        HostDevice device;
        {
            Target target(device, size);
            const auto ran = target.open(keys_, damaged, aad);
            ASSERT_FALSE(ran);
            EXPECT_EQ(ran.code(), Code::authentication);
            EXPECT_NE(ran.error().message.find(says), std::string::npos) << ran.error().message;
            EXPECT_EQ(target.bytes(), Bytes(size, 0));
        }
        expect_clean(device);
    }

    Engine host_ = engine();
    sealed::Keys keys_ = small_keys();
    Bytes plain_ = random_bytes(24 + 12 * 48 + 11, 4);  // 14 segments, 4 chunks
    Bytes sealed_ = seal(host_, keys_, plain_);
};

TEST_F(DeviceDamage, AFlippedBitAnywhereNamesItsSegment) {
    for (std::size_t at = 1; at < sealed_.size(); at += thorough(3u, 11u)) {
        Bytes damaged = sealed_;
        damaged[at] ^= static_cast<std::uint8_t>(1 << at % 8);
        const std::size_t segment = at / kSegment;
        refused(damaged, plain_.size(),
                "segment " + std::to_string(segment) +
                    (segment == 13 ? ", the last one," : " is not authentic"));
    }
}

TEST_F(DeviceDamage, TheFirstOfSeveralIsNamed) {
    Bytes damaged = sealed_;
    for (const std::size_t segment : {3, 6, 7, 13}) damaged[segment * kSegment + 9] ^= 4;
    refused(damaged, plain_.size(), "segment 3 is not authentic");
}

TEST_F(DeviceDamage, CutOffAnywhereItIsRefused) {
    const auto layout = keys_.state().keys.front().layout();
    std::size_t tried = 0;
    for (std::size_t size = 40; size < sealed_.size(); size += thorough(1u, 5u)) {
        const auto plain = layout.plain_size(size);
        if (!plain) continue;  // File::open refuses it
        const std::size_t last = (size - 1) / kSegment;
        refused(Bytes(sealed_.begin(), sealed_.begin() + static_cast<std::ptrdiff_t>(size)), *plain,
                last == 0 ? "segment 0" : "segment " + std::to_string(last));
        ++tried;
    }
    EXPECT_GT(tried, thorough(500u, 100u));
}

TEST_F(DeviceDamage, AddedToMovedAndOfAnotherStream) {
    Bytes longer = sealed_;
    longer.resize(longer.size() + 5);
    refused(longer, plain_.size() + 5, "segment 13, the last one,");
    Bytes swapped = sealed_;
    std::swap_ranges(swapped.begin() + 5 * kSegment, swapped.begin() + 6 * kSegment,
                     swapped.begin() + 8 * kSegment);
    refused(swapped, plain_.size(), "segment 5 is not authentic");
    const Bytes other = seal(host_, keys_, plain_);
    std::copy(other.begin() + 10 * kSegment, other.begin() + 11 * kSegment,
              swapped.begin() + 10 * kSegment);
    std::swap_ranges(swapped.begin() + 5 * kSegment, swapped.begin() + 6 * kSegment,
                     swapped.begin() + 8 * kSegment);
    refused(swapped, plain_.size(), "segment 10 is not authentic");
}

TEST_F(DeviceDamage, AnotherKeyOrAssociatedData) {
    refused(sealed_, plain_.size(), "segment 0", pattern(3));
    keys_ = small_keys(8);
    refused(sealed_, plain_.size(), "another key or other associated data");
}

TEST_F(DeviceDamage, AnEmptyStreamIsVerifiedToo) {
    Bytes empty = seal(host_, keys_, {});
    empty.back() ^= 1;
    refused(empty, 0, "segment 0, the only one,");
}

TEST(DeviceFile, WhatIsRefusedUpFrontTouchesNothing) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = pattern(1000), sealed = seal(host, keys, plain);
    const auto read = [&](std::uint64_t at, HostOut out) -> Result<> {
        std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
        return {};
    };
    HostDevice device;
    {
        Target target(device, plain.size() + 1);
        auto file = must(sealed::File::open(target.engine, keys, {}, read, sealed.size()));
        for (const std::size_t size : {0, 999, 1001}) {
            const auto ran = file.read_all({target.out().data, size}, target.stream());
            EXPECT_EQ(ran.code(), Code::invalid_argument);
            EXPECT_NE(ran.error().message.find("1000 bytes"), std::string::npos);
        }
        Bytes elsewhere(plain.size(), kPoison);
        const auto ran = file.read_all({elsewhere.data(), 1000}, target.stream());
        EXPECT_EQ(ran.code(), Code::invalid_argument);
        EXPECT_NE(ran.error().message.find("threads:0"), std::string::npos);
        EXPECT_EQ(elsewhere, Bytes(1000, kPoison));
        auto on_host = must(sealed::File::open(host, keys, {}, read, sealed.size()));
        EXPECT_EQ(on_host.read_all({target.out().data, 1000}, target.stream()).code(),
                  Code::unsupported);
        EXPECT_EQ(target.bytes(), Bytes(1001, kPoison));
    }
    expect_clean(device);
}

TEST(DeviceFile, AReadThatFailsLeavesNothing) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = pattern(1000), sealed = seal(host, keys, plain);
    for (std::size_t good = 1; good < 6; ++good) {
        HostDevice device;
        {
            Target target(device, plain.size());
            std::size_t reads = 0;
            auto file = must(sealed::File::open(
                target.engine, keys, {},
                [&](std::uint64_t at, HostOut out) -> Result<> {
                    if (reads++ == good) return Error{Code::io, "the disk is gone"};
                    std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                                out.begin());
                    return {};
                },
                sealed.size()));
            const auto ran = file.read_all(target.out(), target.stream());
            EXPECT_EQ(ran.code(), Code::io);
            EXPECT_EQ(ran.error().message, "the disk is gone");
            EXPECT_EQ(target.bytes(), Bytes(plain.size(), 0));
        }
        expect_clean(device);
    }
}

TEST(DeviceFile, AThreadThatIsCancelledInAReadLeavesNothing) {
    if (kSanitized) GTEST_SKIP() << "AddressSanitizer does not know that stacks are unwound so";
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = pattern(1000), sealed = seal(host, keys, plain);
    for (std::size_t good = 1; good < 6; ++good) {
        HostDevice device;
        {
            Target target(device, plain.size());
            EXPECT_TRUE(cancelled([&] {
                std::size_t reads = 0;
                auto file = must(sealed::File::open(
                    target.engine, keys, {},
                    [&](std::uint64_t at, HostOut out) -> Result<> {
                        if (reads++ == good) cancel_me();
                        std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                                    out.begin());
                        return {};
                    },
                    sealed.size()));
                (void)file.read_all(target.out(), target.stream());
            }));
            EXPECT_EQ(target.bytes(), Bytes(plain.size(), 0));
        }
        expect_clean(device);
    }
}

TEST(DeviceFile, EveryCallMayFailAndNothingStaysBehind) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = random_bytes(1000, 2), sealed = seal(host, keys, plain);
    int before = 0, after = 0;  // calls of the device until read_all() begins, and until it ends
    for (int fail_at = 0; fail_at == 0 || fail_at < after; ++fail_at) {
        if (fail_at != 0 && fail_at <= before) continue;
        HostDevice device({.fail_at = fail_at});
        {
            Target target(device, plain.size());
            auto file = must(sealed::File::open(
                target.engine, keys, {},
                [&](std::uint64_t at, HostOut out) -> Result<> {
                    std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                                out.begin());
                    return {};
                },
                sealed.size()));
            if (fail_at == 0) before = device.calls();
            const auto ran = file.read_all(target.out(), target.stream());
            if (fail_at == 0) {
                ASSERT_TRUE(ran) << ran.error().message;
                after = device.calls();
            } else if (!ran) {
                EXPECT_EQ(ran.code(), Code::device) << ran.error().message;
                EXPECT_EQ(target.bytes(), Bytes(plain.size(), 0)) << device.failed_call();
            } else {  // only waiting for what is done already may fail and be passed over
                EXPECT_EQ(device.failed_call(), "wait for stream");
                EXPECT_EQ(target.bytes(), plain);
            }
        }
        EXPECT_EQ(device.live(), 0u) << device.failed_call();
        for (const auto& violation : device.violations())
            ADD_FAILURE() << violation << ", after " << device.failed_call();
    }
    EXPECT_GT(after - before, 50);
}

// The slots are in use by the caller's stream, and stay if that cannot be waited for.
TEST(DeviceFile, WhatCannotBeWaitedForIsKept) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes sealed = seal(host, keys, random_bytes(5000, 1));
    HostDevice device({.gives_up = true, .delay = std::chrono::milliseconds(1)});
    {
        Target target(device, 5000);
        // Work of the caller's that comes first.
        void* const his = must(device.allocate(16));
        for (int i = 0; i < 40; ++i) ASSERT_TRUE(device.fill(his, 0, 16, target.stream()));
        // For the first chunk, for the slots' three streams, and twice for the caller's.
        device.fail(1, "wait for*", 6);
        EXPECT_EQ(target.open(keys, sealed).code(), Code::device);
        EXPECT_EQ(device.given_up(), 6);
        EXPECT_EQ(target.bytes(), Bytes(5000)) << "by who opens it, once it can be waited for";
        device.release(his);
    }
    EXPECT_NE(device.live(), 0u);
    EXPECT_TRUE(device.violations().empty()) << *device.violations().begin();
}

TEST(DeviceFile, LittleMemoryMakesSmallerChunksAndNoneIsAnError) {
    auto host = engine();
    const auto keys = keys_of({{.key = Bytes(16, 3), .segment = 4096}});
    const Bytes plain = random_bytes(300'000, 1), sealed = seal(host, keys, plain);
    for (const std::uint64_t spare : {std::uint64_t{40'000}, std::uint64_t{3000}}) {
        HostDevice device({.memory = plain.size() + spare});
        {
            Target target(device, plain.size(), 1 << 20);
            const auto ran = target.open(keys, sealed);
            if (spare > 10'000) {
                ASSERT_TRUE(ran) << ran.error().message;
                EXPECT_GT(ran->chunks, 5u);
                EXPECT_EQ(difference(plain, target.bytes()), "");
            } else {
                EXPECT_EQ(ran.code(), Code::out_of_memory);
                EXPECT_EQ(target.bytes(), Bytes(plain.size(), 0));
            }
        }
        expect_clean(device);
    }
}

TEST(DeviceFile, UnderAutoTheDeviceThatHoldsTheMemory) {
    auto host = engine();
    const auto keys = small_keys();
    const Bytes plain = pattern(3000), sealed = seal(host, keys, plain);
    HostDevice device;
    {
        pipeline::Backends hosts;
        hosts.push_back(must(core::open_backend("openssl")));
        auto chooses = pipeline::make_auto_engine(std::move(hosts), [&] {
            pipeline::Backends devices;
            devices.push_back(std::make_unique<HostDeviceBackend>(device));
            return devices;
        });
        auto file = must(sealed::File::open(
            chooses, keys, {},
            [&](std::uint64_t at, HostOut out) -> Result<> {
                std::copy_n(sealed.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            sealed.size()));
        Target target(device, plain.size());
        const auto ran = file.read_all(target.out(), target.stream());
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "threads:0");
        EXPECT_EQ(target.bytes(), plain);
    }
    expect_clean(device);
}

}  // namespace
}  // namespace dael::test
