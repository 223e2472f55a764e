// SPDX-License-Identifier: Apache-2.0
// <daelstrom/device/aegis.cuh>, compiled for the host: without tables, and by tables as a lane of a
// warp sees them, against plain AEGIS.
#include <gtest/gtest.h>

#include <cstring>

#include <daelstrom/device/aegis.cuh>

#include "support/aegis_plain.hpp"

namespace dael::test {
namespace {

template <int kBits, class Cipher>
void check(const Cipher& cipher, Random& random) {
    const std::size_t degree = kBits == 128 ? 1 : 0;
    for (std::size_t size = 0; size < 130; ++size) {
        const std::uint32_t tag_size = size % 2 != 0 ? 32 : 16;
        const Bytes key = random.bytes(kBits / 8), nonce = random.bytes(kBits / 8),
                    aad = random.bytes(size * 7 % 70), in = random.bytes(size);
        device::AegisSecret<kBits> secret{};
        std::memcpy(secret.key, key.data(), key.size());
        std::memcpy(secret.nonce, nonce.data(), nonce.size());
        const auto want = plain::aegis_seal(degree, key, nonce, aad, in, tag_size);
        Poisoned out(size, size % 16), back(size, size % 5), tag(tag_size, size % 3);
        device::aegis_seal(cipher, secret, aad.data(), aad.size(), in.data(), out.data(), size,
                           tag.data(), tag_size);
        ASSERT_EQ(out.bytes(), want.out) << size;
        ASSERT_EQ(tag.bytes(), want.tag) << size;
        ASSERT_TRUE(device::aegis_open(cipher, secret, aad.data(), aad.size(), out.data(),
                                       back.data(), size, tag.data(), tag_size));
        ASSERT_EQ(back.bytes(), in) << size;
        // Forged: apart and in place.
        tag.data()[size % tag_size] ^= 8;
        ASSERT_FALSE(device::aegis_open(cipher, secret, aad.data(), aad.size(), out.data(),
                                        back.data(), size, tag.data(), tag_size));
        ASSERT_EQ(back.bytes(), Bytes(size, 0)) << size;
        ASSERT_FALSE(device::aegis_open(cipher, secret, aad.data(), aad.size(), out.data(),
                                        out.data(), size, tag.data(), tag_size));
        ASSERT_EQ(out.bytes(), want.out) << size;
        ASSERT_TRUE(out.intact() && back.intact() && tag.intact()) << size;
    }
}

TEST(DeviceAegis, WithoutTables) {
    Random random(1);
    check<128>(device::NoTables{}, random);
    check<256>(device::NoTables{}, random);
}

TEST(DeviceAegis, ByTables) {
    Random random(2);
    using Tables = device::SharedTables<4>;
    std::vector<device::Block> image(Tables::kBytes / sizeof(device::Block));
    Tables::fill(image.data(), 0, 1);
    check<128>(Tables::view(image.data(), 7), random);
    check<256>(Tables::view(image.data(), 31), random);
    using One = device::SharedTables<1>;
    One::fill(image.data(), 0, 1);
    check<128>(One::view(image.data(), 0), random);
}

}  // namespace
}  // namespace dael::test
