// SPDX-License-Identifier: Apache-2.0
// What is GCM's own, on every backend, against OpenSSL: IVs, AAD, tags, counters that wrap, and
// that what was tampered with is refused. Lengths and alignments: xbackend_test.cpp.
#include "support/gcm_test.hpp"

#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kTagSizes[] = {4, 8, 12, 13, 14, 15, 16};

class XGcm : public GcmTest {
  protected:
    // A message with everything but its size and AAD at random.
    GcmCase message(std::size_t size, std::size_t aad_size) {
        return {random_.bytes(kKeySizes[random_.below(3)]),
                random_.bytes(gcm::kNonceSize),
                pattern(aad_size, random_.below(251)),
                pattern(size, random_.below(251)),
                gcm::kTagSize,
                random_.below(16),
                random_.below(16),
                random_.below(3) == 0};
    }
};

TEST_P(XGcm, EveryAadLength) {
    for (std::size_t size = 0; size <= 600; size = next_length(size)) {
        check_gcm(message(random_.below(3) ? random_.below(100) : 0, size));
        if (HasFatalFailure()) return;
    }
    for (const std::size_t size : {4095, 4096, 4097, 65535, 100003}) {
        if (slow() && size > 5000) continue;
        check_gcm(message(33, size));
        if (HasFatalFailure()) return;
    }
}

TEST_P(XGcm, EveryIvLengthThatTheOracleTakes) {
    for (std::size_t size = 1; size <= 128; ++size) {
        GcmCase c = message(random_.below(200), random_.below(40));
        c.iv = random_.bytes(size);
        check_gcm(c);
        if (HasFatalFailure()) return;
    }
}

// OpenSSL stops at 128 bytes of IV, so the reference judges, and itself by the other way to J0.
TEST_P(XGcm, LongIvs) {
    std::vector<std::size_t> sizes{1000, 4096, 4097, 9999, 70000};
    for (std::size_t size = 129; size <= 300; size = next_length(size)) sizes.push_back(size);
    for (const std::size_t size : sizes) {
        GcmCase c = message(random_.below(100), random_.below(40));
        c.iv = random_.bytes(size);
        check_gcm(c, gcm_oracle(c.key, gcm_iv(c.key, c.start()), c.aad, c.plain));
        if (HasFatalFailure()) return;
    }
}

// The counter's low 32 bits wrap inside the message and carry nothing on (SP 800-38D 6.2): IVs
// solved for, so that the first counter is wherever the test wants it.
TEST_P(XGcm, CountersWrapAt32Bits) {
    for (const std::uint32_t before :
         {0u,  1u,  2u,  3u,  7u,  8u,   15u,  16u,  17u,  31u,  32u, 33u,
          47u, 48u, 63u, 64u, 65u, 127u, 128u, 200u, 255u, 256u, 300u})
        for (const std::size_t key_size : kKeySizes) {
            GcmCase c = message(slow() ? 80 : 16 * before + 1 + random_.below(900), 20);
            c.key = random_.bytes(key_size);
            Block j0 = random_.block();
            if (random_.below(2)) std::fill_n(j0.begin(), 12, std::uint8_t{0xff});
            const std::uint32_t low = 0xffffffffu - before;
            for (std::size_t i = 0; i < 4; ++i)
                j0[12 + i] = static_cast<std::uint8_t>(low >> (24 - 8 * i));
            c.iv = gcm_iv(c.key, j0);
            ASSERT_EQ(c.start(), j0);
            check_gcm(c);
            if (HasFatalFailure()) return;
        }
}

TEST_P(XGcm, ShortTags) {
    for (const std::size_t tag_size : kTagSizes)
        for (const std::size_t size : {0, 1, 16, 100}) {
            GcmCase c = message(size, 13);
            c.tag_size = tag_size;
            check_gcm(c);
            if (HasFatalFailure()) return;
            Sealed forged = gcm_oracle(c.key, c.iv, c.aad, c.plain);
            forged.tag[tag_size - 1] ^= 1;
            check_refused(c, forged, "a short tag's last bit");
            if (HasFatalFailure()) return;
        }
}

TEST_P(XGcm, NothingButATag) {
    for (const std::size_t key_size : kKeySizes) {
        GcmCase c = message(0, 0);
        c.key = random_.bytes(key_size);
        check_gcm(c);
        const Sealed sealed = gcm_oracle(c.key, c.iv, {}, {});
        const auto key = Key::import(c.key);
        Bytes tag(gcm::kTagSize, Poisoned::kPoison);
        const Message nothing{nullptr, nullptr, 0, nullptr, 0, tag.data(), c.start()};
        for (const Cipher& cipher : {gcm::sealing(), gcm::opening()}) {
            ASSERT_TRUE(subject().run(cipher, *key, nothing));
            ASSERT_EQ(tag, sealed.tag);
        }
    }
}

TEST_P(XGcm, AroundEdges) {
    std::vector<std::size_t> edges{4096, 64 << 10, 256 << 10, 1 << 20};
    if (sampled())
        edges.erase(edges.begin() + 2);
    else
        edges.push_back(16 << 20);
    if (slow()) edges = {2048};
    for (const std::size_t edge : edges)
        for (const std::size_t size : {edge - 16, edge - 1, edge, edge + 1, edge + 21}) {
            check_gcm(message(size, 20));
            if (HasFatalFailure()) return;
        }
}

TEST_P(XGcm, LongMessageWithALongIv) {
    GcmCase c = message(slow() ? 3001 : ((sampled() ? 4 : 40) << 20) + 5, 77);
    c.iv = random_.bytes(33);
    check_gcm(c);
}

TEST_P(XGcm, OneWrongBitAnywhereIsRefused) {
    for (const std::size_t size : {1, 15, 16, 17, 64, 255, 1024}) {
        const GcmCase c = message(size, 29);
        const Sealed sealed = gcm_oracle(c.key, c.iv, c.aad, c.plain);
        const auto flip = [&](Bytes& bytes) {
            bytes[random_.below(bytes.size())] ^= static_cast<std::uint8_t>(1 << random_.below(8));
        };
        for (int i = 0; i < (slow() ? 2 : sampled() ? 5 : 20); ++i) {
            Sealed bad_tag = sealed, bad_data = sealed;
            flip(bad_tag.tag);
            check_refused(c, bad_tag, "the tag");
            flip(bad_data.ciphertext);
            check_refused(c, bad_data, "the ciphertext");
            GcmCase other = c;
            flip(other.aad);
            check_refused(other, sealed, "the AAD");
            other = c;
            flip(other.iv);
            check_refused(other, sealed, "the IV");
            other = c;
            flip(other.key);
            check_refused(other, sealed, "the key");
            other = c;
            other.aad.pop_back();
            check_refused(other, sealed, "the AAD's length");
            if (HasFatalFailure()) return;
        }
    }
}

DAEL_FOR_EVERY_BACKEND(XGcm);

}  // namespace
