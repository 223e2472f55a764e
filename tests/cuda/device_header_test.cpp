// SPDX-License-Identifier: Apache-2.0
// <daelstrom/device/aes.cuh> on a GPU: every key size by every layout of tables, against OpenSSL.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <daelstrom/device/aes.cuh>

#include "cuda/device_kernels.hpp"
#include "support/aegis_plain.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Bytes in device memory, poisoned or copied from the host.
class OnDevice {
  public:
    explicit OnDevice(const Bytes& content) : size_(content.size()) {
        EXPECT_EQ(cudaMalloc(&data_, size_), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(data_, content.data(), size_, cudaMemcpyDefault), cudaSuccess);
    }
    ~OnDevice() { cudaFree(data_); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    unsigned char* data() { return static_cast<unsigned char*>(data_); }
    Bytes bytes() {
        Bytes out(size_);
        EXPECT_EQ(cudaMemcpy(out.data(), data_, size_, cudaMemcpyDefault), cudaSuccess);
        return out;
    }

  private:
    void* data_ = nullptr;
    std::size_t size_;
};

Bytes slice(const Bytes& bytes, std::size_t at, std::size_t size) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    return {from, from + static_cast<std::ptrdiff_t>(size)};
}

class DeviceHeaderCuda : public testing::TestWithParam<std::tuple<int, int>> {  // bits, tables
  protected:
    void SetUp() override {
        limit_ = shared_memory_limit();
        if (limit_ == 0) GTEST_SKIP() << "needs an NVIDIA GPU";
        if (device::tables_that_fit(limit_) < tables_)
            GTEST_SKIP() << tables_ << " tables do not fit into " << limit_ << " bytes";
    }

    const int bits_ = std::get<0>(GetParam()), tables_ = std::get<1>(GetParam());
    const std::size_t key_size_ = static_cast<std::size_t>(bits_) / 8;
    std::size_t limit_ = 0;
    Random random_{static_cast<std::uint64_t>(bits_ + tables_)};
    Bytes key_ = random_.bytes(key_size_);
    DeviceCipher cipher_{bits_, tables_, key_.data()};
};

TEST_P(DeviceHeaderCuda, BlocksOwnKeysAndHashes) {
    const std::size_t count = 3001;  // more than threads, and no multiple of them
    const Bytes in = random_.bytes(16 * count), keys = random_.bytes(key_size_ * count);
    OnDevice blocks(in), own(keys);
    OnDevice by_key(Bytes(16 * count, 0xa5)), by_own(Bytes(16 * count, 0xa5)),
        hashes(Bytes(48 * count, 0xa5));
    const DeviceBlocks work{count,         blocks.data(), own.data(),
                            by_key.data(), by_own.data(), hashes.data()};
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        const bool decrypt = direction == Direction::decrypt;
        if (decrypt && device::tables_that_fit(limit_, true) < tables_) continue;
        ASSERT_EQ(run_blocks(cipher_, decrypt, work), cudaSuccess);
        const Use ecb{.mode = Mode::ecb, .direction = direction};
        EXPECT_EQ(difference(oracle(key_, ecb, in), by_key.bytes()), "") << name(direction);
        Bytes expected;
        for (std::size_t i = 0; i < count; ++i) {
            const Bytes one =
                oracle(slice(keys, key_size_ * i, key_size_), ecb, slice(in, 16 * i, 16));
            expected.insert(expected.end(), one.begin(), one.end());
        }
        EXPECT_EQ(difference(expected, by_own.bytes()), "") << name(direction);
    }
    // The host's twins of the hashes are held against OpenSSL in tests/kernels.
    const auto hash = [&](auto bits) {
        constexpr int kBits = decltype(bits)::value;
        const auto key = device::expand_key<kBits>(device::NoTables{}, key_.data());
        Bytes expected(48 * count);
        for (std::size_t i = 0; i < count; ++i) {
            const auto x = device::load_block(&in[16 * i]);
            const auto tweak = device::load_block(&keys[key_size_ * i]);
            device::store_block(&expected[48 * i], mmo(device::NoTables{}, key, x));
            device::store_block(&expected[48 * i + 16], mmo_sigma(device::NoTables{}, key, x));
            device::store_block(&expected[48 * i + 32], tmmo(device::NoTables{}, key, x, tweak));
        }
        EXPECT_EQ(difference(expected, hashes.bytes()), "");
    };
    bits_ == 128   ? hash(std::integral_constant<int, 128>{})
    : bits_ == 192 ? hash(std::integral_constant<int, 192>{})
                   : hash(std::integral_constant<int, 256>{});
}

TEST_P(DeviceHeaderCuda, CounterModeAtEveryOffset) {
    Bytes counter(16, 0xff);  // carries through all bytes, and wraps at 2^128
    counter[15] = 0xf0;
    Block iv;
    std::ranges::copy(counter, iv.begin());
    const std::size_t total = 70001;
    const Bytes plain = pattern(total + 64);
    OnDevice in(plain);
    for (const std::size_t piece : {std::size_t{0}, std::size_t{512}, std::size_t{777}})
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{15},
                                       std::size_t{16}, std::size_t{100}, total})
            for (const std::uint64_t offset : {0u, 1u, 15u, 16u, 4097u})
                for (const std::size_t shift : {0u, 3u, 4u}) {
                    OnDevice out(Bytes(total + 64, 0xa5));
                    const DeviceCtr work{counter.data(),     offset, in.data() + shift,
                                         out.data() + shift, size,   piece};
                    ASSERT_EQ(run_ctr(cipher_, work), cudaSuccess);
                    Bytes expected(total + 64, 0xa5);
                    const Bytes done =
                        oracle(key_, Use{.mode = Mode::ctr, .start = iv, .offset = offset},
                               slice(plain, shift, size));
                    std::ranges::copy(done, expected.begin() + static_cast<std::ptrdiff_t>(shift));
                    ASSERT_EQ(difference(expected, out.bytes()), "")
                        << size << " bytes from " << offset << ", at " << shift << ", pieces of "
                        << piece;
                }
}

// Sealed, opened apart and in place, and forged, at addresses of every kind.
TEST_P(DeviceHeaderCuda, AegisOfAMessageToAThread) {
    if (bits_ == 192) GTEST_SKIP() << "AEGIS has no keys of 192 bits";
    const std::size_t count = 800, stride = 817, key_size = key_size_;
    const Bytes secrets = random_.bytes(2 * key_size * count), aad = random_.bytes(count + 53),
                plain = random_.bytes(stride * count);
    OnDevice secrets_there(secrets), aad_there(aad), plain_there(plain);
    for (const std::uint32_t tag_size : {16u, 32u}) {
        Bytes sealed(stride * count, 0xa5), tags(32 * count, 0xa5);
        for (std::size_t i = 0; i < count; ++i) {
            const Bytes key = slice(secrets, 2 * key_size * i, key_size),
                        nonce = slice(secrets, 2 * key_size * i + key_size, key_size);
            const auto one =
                plain::aegis_seal(bits_ == 128 ? 1 : 0, key, nonce, slice(aad, i, i % 53),
                                  slice(plain, stride * i, i), tag_size);
            std::ranges::copy(one.out, sealed.begin() + static_cast<std::ptrdiff_t>(stride * i));
            std::ranges::copy(one.tag, tags.begin() + static_cast<std::ptrdiff_t>(32 * i));
        }
        OnDevice out(Bytes(stride * count, 0xa5)), made(Bytes(32 * count, 0xa5));
        DeviceAegis work{count,
                         stride,
                         secrets_there.data(),
                         aad_there.data(),
                         plain_there.data(),
                         out.data(),
                         made.data(),
                         tag_size,
                         nullptr};
        ASSERT_EQ(run_aegis(bits_, tables_, work), cudaSuccess);
        ASSERT_EQ(difference(sealed, out.bytes()), "");
        ASSERT_EQ(difference(tags, made.bytes()), "");

        // Every third is forged, in its data or its tag.
        Bytes forged = sealed, forged_tags = tags, verdicts(count, 1);
        for (std::size_t i = 2; i < count; i += 3) {
            verdicts[i] = 0;
            if (i % 2)
                forged[stride * i + i / 2] ^= 2;
            else
                forged_tags[32 * i + i % tag_size] ^= 0x80;
        }
        for (const bool in_place : {false, true}) {
            OnDevice in(forged), apart(Bytes(stride * count, 0xa5)), its_tags(forged_tags),
                authentic(Bytes(count, 0xee));
            work.in = in.data();
            work.out = in_place ? in.data() : apart.data();
            work.tags = its_tags.data();
            work.authentic = authentic.data();
            ASSERT_EQ(run_aegis(bits_, tables_, work), cudaSuccess);
            EXPECT_EQ(authentic.bytes(), verdicts);
            Bytes expected = in_place ? forged : Bytes(stride * count, 0xa5);
            for (std::size_t i = 0; i < count; ++i)
                for (std::size_t k = stride * i; k < stride * i + i; ++k)
                    expected[k] = verdicts[i] ? plain[k] : in_place ? forged[k] : 0;
            EXPECT_EQ(difference(expected, (in_place ? in : apart).bytes()), "") << in_place;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DeviceHeaderCuda,
                         testing::Combine(testing::Values(128, 192, 256), testing::Values(4, 2, 1)),
                         [](const auto& instance) {
                             return "Aes" + std::to_string(std::get<0>(instance.param)) + "By" +
                                    std::to_string(std::get<1>(instance.param) * 32) + "KiB";
                         });

}  // namespace
