// SPDX-License-Identifier: Apache-2.0
// AEGIS, XAES-256-GCM and AES-GCM-SIV over OpenCL's buffers: messages spread over several of them,
// of which a work-group takes the longest; forgeries, apart and in place; keys that are replaced.
#include "opencl/fixture.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr Mode kAead[] = {Mode::aegis128l,  Mode::aegis256,   Mode::aegis128x2,
                          Mode::aegis128x4, Mode::xaes256gcm, Mode::gcm_siv};

// A message, in buffers of its own.
struct Apart {
    Bytes plain, aad, sealed, tag;  // as the oracle has them
    Message message;
};

class AeadOpenCl : public OpenClShapeTest {
  protected:
    static constexpr std::uint32_t kOk = static_cast<std::uint32_t>(Code::ok);

    Apart make(const Cipher& cipher, const KeyRing& ring, std::size_t size, std::size_t aad_size) {
        Apart made{random_.bytes(size), random_.bytes(aad_size), {}, {}, {}};
        Message& m = made.message;
        m.start = fitting_start(cipher, random_);
        m.start_rest = fitting_rest(cipher, random_);
        m.key = static_cast<std::uint32_t>(random_.below(ring.keys.size()));
        m.size = size;
        m.aad_size = aad_size;
        m.in = made.plain.data();
        m.aad = made.aad.data();
        Answer answer = oracle(ring.raw[m.key], {cipher.mode, Direction::encrypt, cipher.tag}, m);
        made.sealed = std::move(answer.out);
        made.tag = std::move(answer.tag);
        made.tag.resize(cipher.tag);
        return made;
    }
    // Where nothing is, there is no buffer either.
    std::uint8_t* put_some(const Bytes& bytes) { return bytes.empty() ? nullptr : put(bytes); }

    std::vector<std::uint32_t> run(const Cipher& cipher, const opencl::OpenClKeys& tables,
                                   std::span<const Key> keys, const std::vector<Apart>& all) {
        std::vector<Message> list;
        for (const Apart& each : all) list.push_back(each.message);
        auto batch = device_->prepare(cipher, {keys, &tables},
                                      {list.data(), static_cast<std::uint32_t>(list.size())});
        EXPECT_TRUE(batch) << batch.error().message;
        if (!batch) return {};
        const auto ran = device_->run(**batch, {});
        EXPECT_TRUE(ran) << ran.error().message;
        const Bytes codes = get((*batch)->results(), list.size() * sizeof(std::uint32_t));
        std::vector<std::uint32_t> result(list.size());
        std::memcpy(result.data(), codes.data(), codes.size());
        return result;
    }

    Random random_{20261127};
};

TEST_P(AeadOpenCl, ABatchAcrossManyBuffers) {
    for (const Mode mode : kAead) {
        const Cipher sealing{mode, Direction::encrypt,
                             static_cast<std::uint8_t>(mode == Mode::aegis128x2 ? 32 : 16)};
        Cipher opening = sealing;
        opening.direction = Direction::decrypt;
        SCOPED_TRACE(name(mode));
        const KeyRing ring(random_, 3, sealing);
        const opencl::OpenClKeys& tables = this->tables(ring.keys);
        std::vector<Apart> all;
        for (const std::size_t size : {0, 1, 16, 33, 500, 70001, 0, 2000, 66000, 70, 65, 129})
            all.push_back(make(sealing, ring, size, all.size() * 37 % 113));
        all.push_back(make(sealing, ring, 17, 66003));

        for (Apart& each : all) {
            Message& m = each.message;
            m.in = put_some(each.plain);
            m.out = put_some(Bytes(m.size, Poisoned::kPoison));
            m.aad = put_some(each.aad);
            m.tag = put(Bytes(sealing.tag, Poisoned::kPoison));
        }
        EXPECT_EQ(run(sealing, tables, ring.keys, all),
                  std::vector<std::uint32_t>(all.size(), kOk));
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Message& m = all[i].message;
            if (m.size != 0) {
                ASSERT_EQ(difference(all[i].sealed, get(m.out, m.size)), "") << i;
            }
            ASSERT_EQ(difference(all[i].tag, get(m.tag, sealing.tag)), "") << i;
        }

        // One in three in place; one in two forged, in its tag, or in its data where there is some.
        std::vector<std::uint32_t> codes;
        for (std::size_t i = 0; i < all.size(); ++i) {
            Apart& each = all[i];
            const bool forged = i % 2 == 1;
            codes.push_back(forged ? static_cast<std::uint32_t>(Code::authentication) : kOk);
            if (forged) {
                Bytes& changed = i % 4 == 1 && !each.sealed.empty() ? each.sealed : each.tag;
                changed[random_.below(changed.size())] ^= 0x40;
            }
            Message& m = each.message;
            m.in = put_some(each.sealed);
            m.out = i % 3 == 0 ? const_cast<std::uint8_t*>(m.in)
                               : put_some(Bytes(m.size, Poisoned::kPoison));
            m.tag = put(each.tag);
        }
        EXPECT_EQ(run(opening, tables, ring.keys, all), codes);
        // XAES decrypts what is authentic; the others have decrypted before they know.
        const std::uint8_t left = mode == Mode::xaes256gcm ? Poisoned::kPoison : 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Message& m = all[i].message;
            if (m.size == 0) continue;
            const Bytes wanted = codes[i] == kOk ? all[i].plain
                                 : m.in == m.out ? all[i].sealed
                                                 : Bytes(m.size, left);
            ASSERT_EQ(difference(wanted, get(m.out, m.size)), "") << i;
        }
    }
}

// Keys of other sizes that have been put in the place of a set's are not taken for the mode's.
TEST_P(AeadOpenCl, AReplacedKeyOfAnotherSizeIsNotUsed) {
    for (const Mode mode : {Mode::aegis128l, Mode::aegis256, Mode::xaes256gcm, Mode::gcm_siv}) {
        SCOPED_TRACE(name(mode));
        const Cipher cipher{mode, Direction::encrypt};
        const KeyRing ring(random_, 1, cipher);
        opencl::OpenClKeys& tables = this->tables(ring.keys);
        std::vector<Apart> one{make(cipher, ring, 100, 10)};
        Message& m = one.front().message;
        m.in = put(one.front().plain);
        m.out = put(Bytes(m.size, Poisoned::kPoison));
        m.aad = put(one.front().aad);
        m.tag = put(Bytes(cipher.tag, Poisoned::kPoison));
        const Key other = *Key::import(random_.bytes(mode == Mode::gcm_siv     ? 24
                                                     : mode == Mode::aegis128l ? 32
                                                                               : 16));
        ASSERT_TRUE(tables.replace(0, other, {}));
        EXPECT_EQ(run(cipher, tables, ring.keys, one),
                  std::vector{static_cast<std::uint32_t>(Code::internal)});
        EXPECT_EQ(get(m.out, m.size), Bytes(m.size, Poisoned::kPoison));
        EXPECT_EQ(get(m.tag, cipher.tag), Bytes(cipher.tag, Poisoned::kPoison));
        ASSERT_TRUE(tables.replace(0, ring.keys[0], {}));
        EXPECT_EQ(run(cipher, tables, ring.keys, one), std::vector{kOk});
        EXPECT_EQ(difference(one.front().sealed, get(m.out, m.size)), "");
    }
}

INSTANTIATE_TEST_SUITE_P(OpenCl, AeadOpenCl, ::testing::Values("tables=-1", "tables=1,teams=4"),
                         [](const auto& shape) {
                             return shape.index == 0 ? "computed" : "tables";
                         });

}  // namespace
