// SPDX-License-Identifier: Apache-2.0
// Pipelines of the provider: each message of one is what the default provider makes of it alone. By
// EVP, where OpenSSL has it (3.5), and by the table of functions that the provider publishes, which
// is all that there is with an older one.
#include "pipeline_ways.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael::test;

constexpr std::uint64_t kPipelines = thorough(80, 20);

struct Message {
    Bytes iv, aad, in;
    std::vector<std::size_t> cuts;
};

// Single messages of the default provider.
struct Single {
    bool ok = false;
    Bytes out, tag;
};
Single alone(const EVP_CIPHER* cipher, bool encrypts, const Bytes& key, const Message& m,
             const Bytes& tag, bool padded) {
    Single s;
    auto x = context();
    int made = 0;
    s.out.resize(m.in.size() + 16);
    const bool gcm = EVP_CIPHER_get_mode(cipher) == EVP_CIPH_GCM_MODE;
    if (EVP_CipherInit_ex2(x.get(), cipher, nullptr, nullptr, encrypts, nullptr) != 1) return s;
    EVP_CIPHER_CTX_set_padding(x.get(), padded);
    if (gcm &&
        EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_IVLEN, int(m.iv.size()), nullptr) != 1)
        return s;
    if (EVP_CipherInit_ex2(x.get(), nullptr, key.data(), m.iv.data(), encrypts, nullptr) != 1)
        return s;
    if (!m.aad.empty() &&
        EVP_CipherUpdate(x.get(), nullptr, &made, m.aad.data(), int(m.aad.size())) != 1)
        return s;
    made = 0;
    int last = 0;
    if (!m.in.empty() &&
        EVP_CipherUpdate(x.get(), s.out.data(), &made, m.in.data(), int(m.in.size())) != 1)
        return s;
    if (gcm && !encrypts)
        EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_TAG, int(tag.size()),
                            const_cast<std::uint8_t*>(tag.data()));
    s.ok = EVP_CipherFinal_ex(x.get(), s.out.data() + made, &last) == 1;
    s.out.resize(static_cast<std::size_t>(made + (s.ok ? last : 0)));
    s.tag.resize(16);
    if (gcm && encrypts) EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, s.tag.data());
    ERR_clear_error();
    return s;
}

struct Options {
    bool in_place = false, tags_first = true, padded = true, with_key = true;
    std::size_t tag_size = 16;
};
struct Outcome {
    bool ok = false, begun = true;
    std::vector<Bytes> out, tags;
};

Outcome together(Ways& way, bool encrypts, const Bytes& key, const std::vector<Message>& messages,
                 const std::vector<Bytes>& tags, const Options& o, bool gcm) {
    const std::size_t count = messages.size();
    Outcome r;
    r.begun = false;
    r.out.resize(count);
    r.tags.assign(count, Bytes(o.tag_size, 0x5a));
    std::vector<const std::uint8_t*> ivs, in(count);
    std::vector<std::uint8_t*> out(count), pointers;
    std::vector<std::size_t> written(count), room(count), size(count), at(count), made(count);
    for (const Message& m : messages) ivs.push_back(m.iv.data());
    std::vector<std::uint8_t*> given;
    for (const Bytes& tag : tags) given.push_back(const_cast<std::uint8_t*>(tag.data()));
    void* tag_list = given.data();
    const OSSL_PARAM setting[] = {
        OSSL_PARAM_construct_octet_ptr("pipeline-tag", &tag_list, o.tag_size),
        OSSL_PARAM_construct_end()};
    unsigned padding = o.padded;
    const OSSL_PARAM padder[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &padding),
                                 OSSL_PARAM_construct_end()};
    if (!way.begin(encrypts, o.with_key ? &key : nullptr, ivs, messages[0].iv.size())) return r;
    if (!gcm && !way.set(padder)) return r;
    if (gcm && !encrypts && o.tags_first && !way.set(setting)) return r;
    if (gcm && !messages[0].aad.empty()) {
        for (std::size_t i = 0; i < count; ++i) {
            in[i] = messages[i].aad.data();
            size[i] = messages[i].aad.size();
        }
        if (!way.update(nullptr, written.data(), nullptr, in.data(), size.data())) return r;
        EXPECT_EQ(written, size);
    }
    r.begun = true;
    for (std::size_t i = 0; i < count; ++i) {
        r.out[i] = o.in_place ? messages[i].in : Bytes(messages[i].in.size(), 0x77);
        r.out[i].resize(messages[i].in.size() + 16);
    }
    for (std::size_t cut = 0; cut < messages[0].cuts.size(); ++cut) {
        for (std::size_t i = 0; i < count; ++i) {
            in[i] = (o.in_place ? r.out[i].data() : messages[i].in.data()) + at[i];
            size[i] = messages[i].cuts[cut];
            out[i] = r.out[i].data() + made[i];
            room[i] = r.out[i].size() - made[i];
        }
        if (!way.update(out.data(), written.data(), room.data(), in.data(), size.data())) return r;
        for (std::size_t i = 0; i < count; ++i) {
            at[i] += size[i];
            made[i] += written[i];
        }
    }
    if (gcm && !encrypts && !o.tags_first && !way.set(setting)) return r;
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = r.out[i].data() + made[i];
        room[i] = r.out[i].size() - made[i];
    }
    r.ok = way.final(out.data(), written.data(), room.data());
    for (std::size_t i = 0; i < count; ++i) r.out[i].resize(made[i] + (r.ok ? written[i] : 0));
    if (gcm && encrypts && r.ok) {
        for (Bytes& tag : r.tags) pointers.push_back(tag.data());
        void* list = pointers.data();
        OSSL_PARAM asked[] = {OSSL_PARAM_construct_octet_ptr("pipeline-tag", &list, o.tag_size),
                              OSSL_PARAM_construct_end()};
        EXPECT_TRUE(way.get(asked));
    }
    // At the end nothing more is taken without other IVs.
    if (r.ok) {
        EXPECT_FALSE(way.update(out.data(), written.data(), room.data(), in.data(), size.data()));
        EXPECT_FALSE(way.final(out.data(), written.data(), room.data()));
    }
    ERR_clear_error();
    return r;
}

std::vector<Message> messages_of(Numbers& numbers, const std::string& name) {
    const bool gcm = name.find("GCM") != std::string::npos;
    const std::size_t count = 1 + numbers.below(32),
                      pieces = 1 + (numbers.one_in(3) ? numbers.below(3) : 0);
    const std::size_t iv_size = !gcm ? 16 : numbers.one_in(8) ? 1 + numbers.below(40) : 12;
    const std::size_t aad = !gcm ? 0 : numbers.one_in(6) ? 200 : numbers.below(20);
    const bool even = numbers.one_in(2), tiny = numbers.one_in(4);
    const std::size_t all = tiny ? numbers.below(40) : numbers.size();
    std::vector<Message> list(count);
    for (Message& m : list) {
        m.iv = numbers.bytes(iv_size);
        m.aad = numbers.bytes(aad);
        std::size_t total = 0;
        for (std::size_t i = 0; i < pieces; ++i) {
            m.cuts.push_back(even ? all : tiny ? numbers.below(40) : numbers.size() / 4);
            total += m.cuts.back();
        }
        m.in = numbers.bytes(total);
    }
    if (numbers.one_in(10)) list.back().iv = list.front().iv;  // a fault of the caller's, not ours
    return list;
}

class Pipelines : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ciphers, Pipelines,
                         ::testing::Values("AES-128-GCM", "AES-192-GCM", "AES-256-GCM",
                                           "AES-128-CBC", "AES-256-CBC", "AES-192-CTR",
                                           "AES-256-CTR"));

TEST_P(Pipelines, EachMessageIsTheDefaultProvidersAndBack) {
    const std::string name = GetParam();
    const bool gcm = name.find("GCM") != std::string::npos,
               cbc = name.find("CBC") != std::string::npos;
    const auto cipher = fetch(theirs(), name);
    ASSERT_TRUE(cipher);
    const auto before = counter("daelstrom-parallel-updates");
    for (int kind = 0; kind < kWays; ++kind) {
        const auto way = way_to(name, kind == 0);
        Bytes key;
        for (std::uint64_t seed = 1; seed <= kPipelines; ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed) + (kind == 0 ? ", table" : ", EVP"));
            Numbers numbers(seed);
            Options o;
            o.with_key = key.empty() || numbers.one_in(2);
            const auto bits = static_cast<std::size_t>(std::stoi(name.substr(4)));
            if (o.with_key && (key.empty() || numbers.one_in(2))) key = numbers.bytes(bits / 8);
            // With padding the output of CBC does not lie where its input does.
            o.padded = numbers.one_in(2);
            static constexpr std::size_t kTags[] = {16, 16, 12, 8, 4, 5};
            o.tag_size = kTags[numbers.below(6)];
            std::vector<Message> messages = messages_of(numbers, name);
            o.in_place = !(cbc && messages[0].cuts.size() > 1) && numbers.one_in(2);
            std::vector<Single> right;
            bool all = true;
            for (const Message& m : messages) {
                right.push_back(alone(cipher.get(), true, key, m, {}, o.padded));
                all = all && right.back().ok;
            }
            const Outcome mine = together(*way, true, key, messages, {}, o, gcm);
            ASSERT_TRUE(mine.begun);
            ASSERT_EQ(mine.ok, all);
            if (!all) continue;
            std::vector<Message> back = messages;
            std::vector<Bytes> tags;
            for (std::size_t i = 0; i < messages.size(); ++i) {
                ASSERT_TRUE(mine.out[i] == right[i].out) << "message " << i;
                back[i].in = right[i].out;
                if (cbc) back[i].cuts = {right[i].out.size()};
                tags.push_back(right[i].tag);
                tags[i].resize(o.tag_size);
                if (gcm) {
                    ASSERT_EQ(mine.tags[i], tags[i]) << "message " << i;
                }
            }
            if (cbc) o.in_place = false;
            o.tags_first = !numbers.one_in(3);
            const Outcome opened = together(*way, false, key, back, tags, o, gcm);
            ASSERT_TRUE(opened.ok);
            for (std::size_t i = 0; i < messages.size(); ++i)
                ASSERT_TRUE(opened.out[i] == messages[i].in) << "message " << i;
            if (!gcm) continue;
            tags[numbers.below(tags.size())][0] ^= 1;
            ASSERT_FALSE(together(*way, false, key, back, tags, o, gcm).ok);
        }
    }
    EXPECT_GT(counter("daelstrom-parallel-updates"), before);
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

TEST(PipelinesOfTheProvider, AreNotCopiedUntilTheyEnd) {
    for (const char* name : {"AES-128-GCM", "AES-128-CTR", "AES-128-CBC"}) {
        ByTable way(name);
        const Bytes key(16, 1), iv(16, 2);
        std::vector<const std::uint8_t*> ivs(1, iv.data());
        Bytes data(64, 4), end(16);
        std::uint8_t *out[] = {data.data()}, *last[] = {end.data()};
        const std::uint8_t* in[] = {data.data()};
        std::size_t written[1], room[] = {64}, rest[] = {16}, size[] = {64};
        EXPECT_TRUE(way.copies()) << name;
        for (int round = 0; round < 2; ++round) {
            const std::size_t iv_size = std::strcmp(name, "AES-128-GCM") == 0 ? 12 : 16;
            ASSERT_TRUE(way.begin(true, &key, ivs, iv_size, true)) << name;
            EXPECT_FALSE(way.copies()) << name;
            ASSERT_TRUE(way.update(out, written, room, in, size)) << name;
            EXPECT_FALSE(way.copies()) << name;
            ASSERT_TRUE(way.final(last, written, rest)) << name;
            EXPECT_TRUE(way.copies()) << name;
        }
    }
}

TEST(PipelinesOfTheProvider, WhatMakesNoSenseIsRefused) {
    for (int kind = 0; kind < kWays; ++kind) {
        const auto way = way_to("AES-128-GCM", kind == 0);
        const Bytes key(16, 1), iv(12, 2), other(32, 3);
        std::vector<const std::uint8_t*> ivs(33, iv.data()), one(1, iv.data()), none(1, nullptr);
        Bytes data(64, 4);
        std::uint8_t* out[] = {data.data()};
        const std::uint8_t* in[] = {data.data()};
        std::size_t written[1], room[] = {63}, size[] = {64};
        EXPECT_FALSE(way->update(out, written, room, in, size));  // not begun
        EXPECT_FALSE(way->begin(true, &key, ivs, 12));            // too many
        EXPECT_FALSE(way->begin(true, nullptr, one, 12));         // no key
        EXPECT_FALSE(way->begin(true, &other, one, 12));          // another size
        EXPECT_FALSE(way->begin(true, &key, none, 12));           // an IV that is none
        EXPECT_FALSE(way->begin(true, &key, one, 0));
        ASSERT_TRUE(way->begin(true, &key, one, 12));
        EXPECT_FALSE(way->update(out, written, room, in, size));  // no room
        EXPECT_EQ(data, Bytes(64, 4));
        Bytes tag(16);
        std::uint8_t* tags[] = {tag.data()};
        void* list = tags;
        OSSL_PARAM asked[] = {OSSL_PARAM_construct_octet_ptr("pipeline-tag", &list, 16),
                              OSSL_PARAM_construct_end()};
        EXPECT_FALSE(way->get(asked));  // no end yet
        EXPECT_FALSE(way->set(asked));  // encryption makes it
        ASSERT_TRUE(way->begin(false, &key, one, 12));
        room[0] = 64;
        EXPECT_TRUE(way->update(out, written, room, in, size));
        EXPECT_FALSE(way->final(out, written, room));  // no tag
    }
    ERR_clear_error();
}

}  // namespace
