// SPDX-License-Identifier: Apache-2.0
// GCM on device memory, with every table layout, with tensor cores and without, against OpenSSL:
// every path that a message's size can take and the edges between them, many keys, lists that lie
// in device memory, and forgeries.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "kernels/gf128.hpp"
#include "support/bytes.hpp"
#include "support/gcm_test.hpp"

namespace {

using namespace dael;
using dael::test::Bytes;

constexpr std::uint8_t kPoison = 0xa5;

struct Way {
    int tables;
    bool tensor_cores;
};

// A message and where it lies, as offsets into the test's one piece of device memory.
struct Placed {
    std::size_t key = 0;
    Bytes iv, aad, plain;
    std::size_t in = 0, out = 0, aad_at = 0, tag = 0;
    test::Sealed expected;
};

class CudaGcm : public testing::TestWithParam<Way> {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        auto opened = cuda::CudaDevice::open(0, GetParam().tables, GetParam().tensor_cores);
        ASSERT_TRUE(opened) << opened.error().message;
        device_ = std::move(*opened);
        stream_ = *device_->create_stream();
    }
    void TearDown() override {
        if (!device_) return;
        device_->release(memory_);
        device_->destroy_stream(stream_);
    }

    void use_keys(std::size_t count, std::size_t size) {
        for (std::size_t i = 0; i < count; ++i) {
            raw_.push_back(random_.bytes(size));
            keys_.push_back(std::move(*Key::import(raw_.back())));
        }
        auto prepared = device_->prepare_keys(keys_);
        ASSERT_TRUE(prepared) << prepared.error().message;
        prepared_ = std::move(*prepared);
    }

    void add(std::size_t size, std::size_t aad_size, std::size_t iv_size = 12,
             std::size_t misaligned = 0, bool in_place = false) {
        Placed m;
        m.key = messages_.size() % raw_.size();
        m.iv = random_.bytes(iv_size);
        m.aad = random_.bytes(aad_size);
        m.plain = random_.bytes(size);
        const auto place = [&](std::size_t bytes) {
            const std::size_t at = used_ + 32 + misaligned;
            used_ = (at + bytes + 32 + 15) / 16 * 16;
            return at;
        };
        m.in = place(size);
        m.out = in_place ? m.in : place(size);
        m.aad_at = place(aad_size);
        m.tag = place(16);
        m.expected = test::gcm_oracle(raw_[m.key], m.iv, m.aad, m.plain);
        messages_.push_back(std::move(m));
    }

    core::GcmSegment segment(const Placed& m) const {
        return {memory_ + m.in, memory_ + m.out,
                m.plain.size(), memory_ + m.aad_at,
                m.aad.size(),   m.iv.data(),
                m.iv.size(),    memory_ + m.tag,
                kTagSize,       static_cast<std::uint32_t>(m.key)};
    }

    // The memory's image before a run: everything poisoned but the inputs.
    Bytes image(Direction direction) const {
        Bytes host(used_ + 64, kPoison);
        for (const Placed& m : messages_) {
            const Bytes& in = direction == Direction::encrypt ? m.plain : m.expected.ciphertext;
            std::ranges::copy(in, host.begin() + static_cast<std::ptrdiff_t>(m.in));
            std::ranges::copy(m.aad, host.begin() + static_cast<std::ptrdiff_t>(m.aad_at));
            if (direction == Direction::decrypt)
                std::ranges::copy(m.expected.tag,
                                  host.begin() + static_cast<std::ptrdiff_t>(m.tag));
        }
        return host;
    }

    // Runs the batch on this image and returns what the memory holds then; `results_` too.
    Bytes run(Direction direction, const Bytes& before, bool list_on_device = false) {
        if (!memory_) memory_ = static_cast<std::uint8_t*>(*device_->allocate(before.size()));
        std::unique_ptr<core::PreparedGcm> batch;
        void* list = nullptr;
        if (list_on_device) {
            std::vector<GcmMessage> descriptors;
            for (const Placed& m : messages_) {
                GcmMessage d{memory_ + m.in,
                             memory_ + m.out,
                             m.plain.size(),
                             memory_ + m.aad_at,
                             m.aad.size(),
                             memory_ + m.tag,
                             {},
                             static_cast<std::uint32_t>(m.key)};
                std::ranges::copy(m.iv, d.nonce.begin());
                descriptors.push_back(d);
            }
            const std::size_t size = descriptors.size() * sizeof(GcmMessage);
            list = *device_->allocate(size);
            EXPECT_TRUE(device_->copy_in(list, descriptors.data(), size, stream_));
            EXPECT_TRUE(device_->wait(stream_));
            auto made =
                device_->prepare_gcm(*prepared_, static_cast<const GcmMessage*>(list),
                                     static_cast<std::uint32_t>(messages_.size()), kTagSize);
            EXPECT_TRUE(made) << made.error().message;
            batch = std::move(*made);
        } else {
            std::vector<core::GcmSegment> segments;
            for (const Placed& m : messages_) segments.push_back(segment(m));
            auto made = device_->prepare_gcm(*prepared_, segments);
            EXPECT_TRUE(made) << made.error().message;
            batch = std::move(*made);
        }
        Bytes after(before.size());
        std::vector<std::uint32_t> results(messages_.size(), 77);
        EXPECT_TRUE(device_->copy_in(memory_, before.data(), before.size(), stream_));
        auto ran = device_->gcm(direction, *batch, stream_);
        EXPECT_TRUE(ran) << ran.error().message;
        EXPECT_TRUE(device_->copy_out(after.data(), memory_, after.size(), stream_));
        EXPECT_TRUE(device_->copy_out(results.data(), batch->results(),
                                      results.size() * sizeof(std::uint32_t), stream_));
        auto waited = device_->wait(stream_);
        EXPECT_TRUE(waited) << waited.error().message;
        device_->release(list);
        results_ = results;
        return after;
    }

    // Both directions; nothing outside of outputs and tags may change.
    void check_batch(bool list_on_device = false) {
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            Bytes expected = image(direction);
            const Bytes after = run(direction, expected, list_on_device);
            for (const Placed& m : messages_) {
                const Bytes& out =
                    direction == Direction::encrypt ? m.expected.ciphertext : m.plain;
                std::ranges::copy(out, expected.begin() + static_cast<std::ptrdiff_t>(m.out));
                if (direction == Direction::encrypt)
                    std::ranges::copy(m.expected.tag,
                                      expected.begin() + static_cast<std::ptrdiff_t>(m.tag));
            }
            for (std::size_t i = 0; i < messages_.size(); ++i) {
                const Placed& m = messages_[i];
                const auto same = [&](std::size_t at, std::size_t size) {
                    return std::equal(after.begin() + static_cast<std::ptrdiff_t>(at),
                                      after.begin() + static_cast<std::ptrdiff_t>(at + size),
                                      expected.begin() + static_cast<std::ptrdiff_t>(at));
                };
                ASSERT_TRUE(same(m.out, m.plain.size()) && same(m.tag, 16) && results_[i] == 0)
                    << name(direction) << " message " << i << ", " << m.plain.size()
                    << " bytes, AAD " << m.aad.size() << ", IV " << m.iv.size() << ": data "
                    << same(m.out, m.plain.size()) << ", tag " << same(m.tag, 16) << ", result "
                    << results_[i];
            }
            ASSERT_EQ(after, expected) << "something else was written";
        }
    }

    std::unique_ptr<cuda::CudaDevice> device_;
    Stream stream_;
    std::uint8_t* memory_ = nullptr;
    std::size_t used_ = 0;
    test::Random random_{20070613};
    std::vector<Bytes> raw_;
    std::vector<Key> keys_;
    std::unique_ptr<core::PreparedKeys> prepared_;
    std::vector<Placed> messages_;
    std::vector<std::uint32_t> results_;
};

TEST_P(CudaGcm, EveryShortLength) {
    for (const std::size_t key_size : {16, 24, 32}) {
        SCOPED_TRACE(key_size);
        messages_.clear();
        raw_.clear();
        keys_.clear();
        used_ = 0;
        device_->release(memory_);
        memory_ = nullptr;
        use_keys(1, key_size);
        for (std::size_t size = 0; size <= 1100; ++size) add(size, size * 7 % 97, 12, size % 5);
        check_batch();
    }
}

TEST_P(CudaGcm, AroundEveryEdge) {
    use_keys(1, 16);
    for (const std::size_t edge : {512, 4096, 8192, 16384, 32768, 65536, 1 << 20})
        for (const int by : {-33, -32, -16, -1, 0, 1, 15, 16, 31, 32, 33})
            add(edge + static_cast<std::size_t>(by), by < 0 ? 0 : 13, 12, by == 1 ? 1 : 0,
                by == 15);
    check_batch();
}

TEST_P(CudaGcm, AadOfEverySize) {
    use_keys(1, 32);
    for (const std::size_t aad : {0, 1, 15, 16, 17, 8191, 8192, 8193, 16384, 100000, 1 << 20})
        for (const std::size_t size : {0, 1, 100, 8192, 20000, 300001}) add(size, aad);
    check_batch();
}

TEST_P(CudaGcm, OneLongMessage) {
    use_keys(1, 16);
    add((std::size_t{48} << 20) + 12345, 77);
    check_batch();
}

TEST_P(CudaGcm, ManyKeysAndLengthsInOneList) {
    use_keys(37, 32);
    for (std::size_t i = 0; i < 300; ++i) {
        const std::size_t kinds[] = {i, 1500, 9000 + i, 70000, 16384};
        add(kinds[i % 5], i % 3 == 0 ? 20 : 0, 12, i % 7 == 0 ? 3 : 0, i % 4 == 1);
    }
    check_batch();
    check_batch(true);
}

TEST_P(CudaGcm, ALargeSetOfKeys) {
    use_keys(4200, 16);
    for (std::size_t i = 0; i < 4200; ++i) add(i % 50 == 0 ? 30000 : 200, 12);
    check_batch();
}

// The IV of 16 bytes that makes this J0: the hash of IVs (SP 800-38D 7.1), solved for the IV.
Bytes iv_for(const Block& j0, const Block& subkey) {
    const auto element = [](const Block& block) {
        kernels::Words4 w;
        std::memcpy(&w, block.data(), sizeof w);
        return w;
    };
    const kernels::Words4 inverse = kernels::gf_inverse(element(subkey));
    const kernels::Words4 length{0, 0, 0, 0x80000000};  // 128 bits, big-endian
    const kernels::Words4 iv =
        kernels::gf_multiply(kernels::gf_multiply(element(j0), inverse) ^ length, inverse);
    Bytes bytes(16);
    std::memcpy(bytes.data(), &iv, bytes.size());
    return bytes;
}

TEST_P(CudaGcm, IvsOfEveryLengthAndCountersThatWrap) {
    use_keys(1, 16);
    for (std::size_t iv = 1; iv <= 128; ++iv) add(iv * 40, 5, iv);
    for (const std::uint32_t left : {0u, 1u, 2u, 5u, 100u, 255u, 256u, 600u, 3000u, 70000u})
        for (const std::size_t size : {1000, 8000, 60000, 1200000}) {
            Block j0 = random_.block();
            for (int i = 0; i < 4; ++i)
                j0[static_cast<std::size_t>(15 - i)] = static_cast<std::uint8_t>(~left >> (8 * i));
            add(size, 5, 16);
            Placed& m = messages_.back();
            m.iv = iv_for(j0, test::gcm_subkey(raw_[0]));
            m.expected = test::gcm_oracle(raw_[0], m.iv, m.aad, m.plain);
        }
    check_batch();
}

TEST_P(CudaGcm, AForgeryReleasesNothingAndDisturbsNobody) {
    use_keys(3, 16);
    for (std::size_t i = 0; i < 60; ++i)
        add(i % 3 == 0 ? 40000 + i : 100 + i * 16, i % 2 ? 9000 : 20, 12, 0, i % 6 == 5);
    Bytes before = image(Direction::decrypt);
    std::vector<bool> forged(messages_.size());
    for (std::size_t i = 0; i < messages_.size(); i += 4) {
        const Placed& m = messages_[i];
        const std::size_t where[] = {m.in + m.plain.size() - 1, m.aad_at, m.tag + 15, m.in};
        before[where[i / 4 % 4]] ^= 1;
        forged[i] = true;
    }
    const Bytes after = run(Direction::decrypt, before);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        const Placed& m = messages_[i];
        const auto* out = after.data() + m.out;
        if (forged[i]) {
            EXPECT_EQ(results_[i], static_cast<std::uint32_t>(Code::authentication)) << i;
            EXPECT_EQ(0, std::memcmp(out, before.data() + m.out, m.plain.size())) << i;
        } else {
            EXPECT_EQ(results_[i], 0u) << i;
            EXPECT_EQ(0, std::memcmp(out, m.plain.data(), m.plain.size())) << i;
        }
    }
}

TEST_P(CudaGcm, ListsMadeOnTheDeviceAreChecked) {
    use_keys(2, 16);
    for (int i = 0; i < 4; ++i) add(100, 0);
    messages_[1].key = 5;  // there is none
    const Bytes before = image(Direction::encrypt);
    const Bytes after = run(Direction::encrypt, before, true);
    EXPECT_EQ(results_[0], 0u);
    EXPECT_EQ(results_[1], static_cast<std::uint32_t>(Code::invalid_argument));
    EXPECT_EQ(0,
              std::memcmp(after.data() + messages_[1].out, before.data() + messages_[1].out, 100));
    EXPECT_EQ(results_[2], 0u);
}

std::string way_name(const testing::TestParamInfo<Way>& info) {
    return "tables" + std::to_string(info.param.tables) +
           (info.param.tensor_cores ? "_tensor" : "_plain");
}
INSTANTIATE_TEST_SUITE_P(Ways, CudaGcm,
                         testing::Values(Way{4, true}, Way{4, false}, Way{2, true}, Way{1, false}),
                         way_name);

}  // namespace
