// SPDX-License-Identifier: Apache-2.0
// Envelopes: a stream's key for recipients, or for a passphrase, as an age file.
#include <fstream>

#include <nlohmann/json.hpp>

#include "formats/envelopes.hpp"
#include "formats/hybrid_kem.hpp"
#include "support/vectors.hpp"

namespace dael::test {
namespace {

using sealed::Enveloped, sealed::Identities, sealed::make_envelope, sealed::open_envelope,
    sealed::read_envelope, sealed::Recipients, sealed::rewrap_envelope;

TEST(Envelope, OpensForEachOfItsRecipients) {
    auto e = engine();
    const std::vector<Person> people{person(), person(), person()};
    const auto made = must(make_envelope(for_all(people), 4096));
    const Bytes stream = seal(e, made.keys, pattern(9000));
    for (const Person& one : people) {
        const auto keys = must(open_envelope(one.key(), made.envelope));
        EXPECT_EQ(must(open(e, keys, stream)), pattern(9000));
    }
    expect_error(open_envelope(person().key(), made.envelope), Code::authentication,
                 "the identity opens none of its 3 stanzas");
    // One of several identities is enough, whichever it is.
    auto several = person().key();
    must(several.add(person().key()));
    expect_error(open_envelope(several, made.envelope), Code::authentication,
                 "none of the 2 identities opens any of its 3 stanzas");
    must(several.add(people[1].key()));
    EXPECT_TRUE(open_envelope(several, made.envelope));
}

TEST(Envelope, OpensWithItsPassphraseAlone) {
    auto e = engine();
    const auto made = must(make_envelope(for_passphrase("open sesame"), 4096));
    const Bytes stream = seal(e, made.keys, pattern(9000));
    const auto keys = must(open_envelope(by_passphrase("open sesame"), made.envelope));
    EXPECT_EQ(must(open(e, keys, stream)), pattern(9000));
    for (const char* wrong : {"open sesam", "open sesame ", "Open sesame", "x"})
        expect_error(open_envelope(by_passphrase(wrong), made.envelope), Code::authentication,
                     "another passphrase");
}

TEST(Envelope, WhatIsMadeWithoutACostOpensWithoutALimit) {
    const auto made = must(make_envelope(must(Recipients::of_passphrase(words("pw")))));
    EXPECT_EQ(must(read_envelope(made.envelope)).work, sealed::kUsualWork);
    EXPECT_TRUE(open_envelope(must(Identities::of_passphrase(words("pw"))), made.envelope));
}

// Its size is known before it is made, and from its first bytes; what stands behind is not its own.
TEST(Envelope, TellsItsSize) {
    for (const int count : {1, 2, 9}) {
        const auto recipients =
            for_all(std::vector<Person>(static_cast<std::size_t>(count), person()));
        const auto made = must(make_envelope(recipients));
        EXPECT_EQ(made.envelope.size(), recipients.envelope_size());
        Bytes file = made.envelope;
        file.insert(file.end(), 1000, 40);
        const auto says = must(read_envelope(file));
        EXPECT_EQ(says.size, made.envelope.size());
        EXPECT_EQ(says.stanzas, static_cast<std::size_t>(count));
        EXPECT_EQ(says.work, 0);
        EXPECT_TRUE(sealed::is_envelope(HostIn(file).first(22)));
        EXPECT_FALSE(sealed::is_envelope(HostIn(file).first(21)));
        EXPECT_FALSE(sealed::is_envelope(HostIn(file).subspan(1)));
    }
    for (const int work : {1, 9, 10, 11}) {
        const auto recipients = for_passphrase("pw", work);
        const auto made = must(make_envelope(recipients));
        EXPECT_EQ(made.envelope.size(), recipients.envelope_size());
        const auto says = must(read_envelope(made.envelope));
        EXPECT_EQ(says.size, made.envelope.size());
        EXPECT_EQ(says.work, work);
        EXPECT_EQ(says.stanzas, 1u);
    }
}

// What the program age made of keys, and of what is no key.
TEST(Envelope, AsAgeMakesIt) {
    std::ifstream stream(vectors_folder() / "age.json");
    ASSERT_TRUE(stream) << "no vectors";
    const auto json = nlohmann::json::parse(stream);
    auto e = engine();
    int opened = 0, refused = 0;
    for (const auto& vector : json.at("vectors")) {
        const std::string name = vector.at("name");
        const Bytes file = from_hex(vector.at("file").get<std::string>());
        const auto identities =
            vector.contains("identity")
                ? must(Identities::parse(words(vector.at("identity").get<std::string>())))
                : by_passphrase(vector.at("passphrase").get<std::string>());
        const auto keys = open_envelope(identities, file);
        if (!vector.contains("key")) {
            expect_error(keys, Code::authentication, "age -d opens it");
            ++refused;
            continue;
        }
        ++opened;
        ASSERT_TRUE(keys) << name << ": " << keys.error().message;
        EXPECT_EQ(must(read_envelope(file)).size, file.size()) << name;
        const auto bare =
            must(sealed::Keys::from_key(from_hex(vector.at("key").get<std::string>())));
        EXPECT_EQ(must(open(e, *keys, seal(e, bare, pattern(100)))), pattern(100)) << name;
    }
    EXPECT_GE(opened, 4);
    EXPECT_GE(refused, 4);
}

// The headers of age's own test kit, c2sp.org/CCTV: those that open hold no key of sealed data,
// which is told by what is refused then. Post-quantum ones take OpenSSL 3.5.
TEST(Envelope, AsTheCommunitysVectorsHaveIt) {
    std::ifstream stream(vectors_folder() / "age_cctv.json");
    ASSERT_TRUE(stream) << "no vectors";
    const auto json = nlohmann::json::parse(stream);
    const bool post_quantum = bool(formats::check_hybrid());
    int tried = 0, left_out = 0;
    for (const auto& vector : json.at("vectors")) {
        const std::string name = vector.at("name"), expected = vector.at("expect");
        SCOPED_TRACE(name);
        Bytes file = from_hex(vector.at("file").get<std::string>());
        // A payload may be shorter than that of an envelope.
        if (expected != "header failure") file.resize(file.size() + 64);
        std::string text;
        bool skip = false;
        for (const std::string line : vector.at("identities")) {
            skip = skip || (line.starts_with("AGE-SECRET-KEY-PQ-") && !post_quantum);
            text += line + '\n';
        }
        if (skip) {
            ++left_out;
            continue;
        }
        ++tried;
        const auto identities =
            !vector.at("passphrases").empty()
                ? by_passphrase(vector.at("passphrases").at(0).get<std::string>(), 12)
            : text.empty() ? person().key()
                           : must(Identities::parse(words(text)));
        const auto keys = open_envelope(identities, file);
        ASSERT_FALSE(keys);
        const Code code = keys.code();
        const std::string& says = keys.error().message;
        const auto tells = [&](const char* what) { return says.find(what) != std::string::npos; };
        if (expected == "success")
            EXPECT_TRUE(tells("this is an age file")) << says;
        else if (expected == "HMAC failure")
            EXPECT_TRUE(tells("header of the envelope in front was altered")) << says;
        else if (expected == "no match")
            EXPECT_TRUE(tells("opens none of") || tells("another passphrase") ||
                        (code == Code::invalid_argument && tells("a passphrase does not open")))
                << says;
        else
            EXPECT_TRUE(code == Code::bad_format || code == Code::unsupported ||
                        code == Code::limit ||
                        (code == Code::invalid_argument && name == "scrypt_and_x25519"))
                << says;
    }
    EXPECT_GE(tried, 64);
    if (left_out != 0)
        std::printf("%d vectors with post-quantum keys were left out: %s\n", left_out,
                    formats::check_hybrid().error().message.c_str());
}

// Post-quantum recipients, from the text of a new identity to the key of a stream.
TEST(Envelope, PostQuantum) {
    if (const auto there = formats::check_hybrid(); !there) {
        Bytes text(sealed::kHybridIdentitySize);
        expect_error(sealed::make_hybrid_identity(text), Code::unsupported, "OpenSSL 3.5");
        GTEST_SKIP() << there.error().message;
    }
    std::vector<Identities> people;
    std::string lines;
    for (int i = 0; i < 3; ++i) {
        Bytes text(sealed::kHybridIdentitySize);
        must(sealed::make_hybrid_identity(text));
        people.push_back(must(Identities::parse(text)));
        const std::string line = must(people.back().recipients());
        EXPECT_EQ(line.size(), sealed::kHybridRecipientSize + 1);
        EXPECT_TRUE(line.starts_with("age1pq1"));
        if (i < 2) lines += line;
    }
    auto e = engine();
    const auto recipients = must(Recipients::parse(lines));
    auto made = must(make_envelope(recipients));
    EXPECT_EQ(made.envelope.size(), recipients.envelope_size());
    const Bytes sealed = seal(e, made.keys, pattern(100));
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(
            must(open(e, must(open_envelope(people[static_cast<std::size_t>(i)], made.envelope)),
                      sealed)),
            pattern(100));
    expect_error(open_envelope(people[2], made.envelope), Code::authentication, "opens none of");
    // Beside others they would protect from nothing.
    expect_error(Recipients::parse(lines + person().recipient), Code::invalid_argument, "age1pq1");
    auto others = must(Recipients::parse(person().recipient));
    EXPECT_EQ(others.add(recipients).code(), Code::invalid_argument);
    // Every part of a stanza counts.
    for (std::size_t at = 45; at < made.envelope.size(); at += 97) {
        Bytes damaged = made.envelope;
        damaged[at] ^= 1;
        EXPECT_FALSE(open_envelope(people[0], damaged)) << at;
    }
    std::string many;
    for (int i = 0; i < 90; ++i) many += lines.substr(0, sealed::kHybridRecipientSize + 1);
    expect_error(make_envelope(must(Recipients::parse(many))), Code::limit, "at most 131072");
}

// One with two recipients, and one with a passphrase, each with what opens it.
struct Sample {
    Bytes envelope;
    Identities identities;
};
std::vector<Sample> samples() {
    const std::vector<Person> people{person(), person()};
    std::vector<Sample> all;
    all.push_back({must(make_envelope(for_all(people))).envelope, people[1].key()});
    all.push_back({must(make_envelope(for_passphrase("pw"))).envelope, by_passphrase("pw", 10)});
    for (const Sample& sample : all) EXPECT_TRUE(open_envelope(sample.identities, sample.envelope));
    return all;
}

TEST(Envelope, EveryFlippedBitIsRefused) {
    for (const Sample& sample : samples())
        for (std::size_t bit = 0; bit < 8 * sample.envelope.size(); ++bit) {
            Bytes damaged = sample.envelope;
            damaged[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
            damaged.resize(damaged.size() + 100);  // what was its end may not be it any more
            const auto opened = open_envelope(sample.identities, damaged);
            ASSERT_FALSE(opened) << bit;
            ASSERT_TRUE(opened.code() == Code::authentication ||
                        opened.code() == Code::bad_format || opened.code() == Code::unsupported ||
                        opened.code() == Code::invalid_argument)
                << bit << ": " << opened.error().message;
        }
}

TEST(Envelope, EveryTruncationIsRefused) {
    for (const Sample& sample : samples())
        for (std::size_t size = 0; size < sample.envelope.size(); ++size) {
            const HostIn part = HostIn(sample.envelope).first(size);
            expect_error(open_envelope(sample.identities, part), Code::bad_format, "cut off");
            const auto says = read_envelope(part);
            ASSERT_TRUE(says) << size << ": " << says.error().message;
            EXPECT_EQ(says->size, 0u);
        }
}

TEST(Envelope, ErrorsTellWhatIsWrong) {
    const auto all = samples();
    expect_error(open_envelope(by_passphrase("pw"), all[0].envelope), Code::invalid_argument,
                 "sealed for recipients; a passphrase does not open it");
    expect_error(open_envelope(person().key(), all[1].envelope), Code::invalid_argument,
                 "sealed with a passphrase, which no identity opens");
    for (const Sample& sample : all) {
        const std::string text = text_of(sample.envelope);
        Bytes damaged = sample.envelope;
        const std::size_t mac = text.find("\n---") + 10;
        damaged[mac] = damaged[mac] == 'A' ? 'B' : 'A';
        expect_error(open_envelope(sample.identities, damaged), Code::authentication,
                     "the header of the envelope in front was altered");
        damaged = sample.envelope;
        damaged.back() ^= 1;
        expect_error(open_envelope(sample.identities, damaged), Code::authentication,
                     "this is an age file");
    }
}

// A stanza of a recipient that nobody asked for, or one that is left out, is seen.
TEST(Envelope, StanzasAreBoundTogether) {
    const std::vector<Person> people{person(), person()};
    const std::string two = text_of(must(make_envelope(for_all(people))).envelope);
    const std::size_t first = two.find("-> "), second = two.find("-> ", first + 1),
                      end = two.find("---");
    const std::string without = two.substr(0, first) + two.substr(second),
                      swapped = two.substr(0, first) + two.substr(second, end - second) +
                                two.substr(first, second - first) + two.substr(end),
                      added = two.substr(0, end) + "-> grease x\n\n" + two.substr(end);
    for (const std::string& altered : {without, swapped, added})
        expect_error(open_envelope(people[1].key(), words(altered)), Code::authentication,
                     "the header of the envelope in front was altered");
}

TEST(Envelope, WhoOpensSaysHowMuchItMayCost) {
    const std::string made = text_of(must(make_envelope(for_passphrase("pw"))).envelope);
    const auto asks_for = [&](const std::string& work) {
        std::string text = made;
        return text.replace(text.find(" 1\n"), 3, ' ' + work + '\n');
    };
    const std::string costly = asks_for("19"), most = asks_for("21"), nonsense = asks_for("64");
    for (const bool rewraps : {false, true}) {
        const auto open = [&](const std::string& text, int limit) -> Result<> {
            const auto identities = by_passphrase("pw", limit);
            if (rewraps) {
                auto again = rewrap_envelope(identities, words(text), for_passphrase("new"));
                return again ? Result<>() : std::move(again).error();
            }
            auto keys = open_envelope(identities, words(text));
            return keys ? Result<>() : std::move(keys).error();
        };
        expect_error(open(costly, sealed::kUsualWorkLimit), Code::limit,
                     "it asks scrypt for 512 MiB of memory (N = 2^19), more than 256 MiB");
        expect_error(open(most, sealed::kMaxWork), Code::limit, "more than daelstrom ever takes");
        expect_error(open(nonsense, sealed::kMaxWork), Code::bad_format, "work is not 1 to 63");
        expect_error(open(asks_for("11"), 10), Code::limit, "2 MiB of memory");
        expect_error(open(asks_for("11"), 11), Code::authentication, "another passphrase");
        EXPECT_TRUE(open(made, 1));
    }
}

TEST(Envelope, AnotherOneForTheSameKey) {
    auto e = engine();
    const Person alice = person(), bob = person();
    const auto made = must(make_envelope(alice.address(), sealed::kSmallSegment));
    const Bytes stream = seal(e, made.keys, pattern(10000));
    const auto reads = [&](const Identities& identities, HostIn envelope) {
        return must(open(e, must(open_envelope(identities, envelope)), stream)) == pattern(10000);
    };
    // Recipients, then others, then a passphrase, another, and recipients again.
    const Bytes for_bob = must(rewrap_envelope(alice.key(), made.envelope, bob.address()));
    EXPECT_TRUE(reads(bob.key(), for_bob));
    expect_error(open_envelope(alice.key(), for_bob), Code::authentication, "other recipients");
    EXPECT_TRUE(reads(alice.key(), made.envelope));
    const Bytes old = must(rewrap_envelope(bob.key(), for_bob, for_passphrase("old", 3)));
    EXPECT_TRUE(reads(by_passphrase("old"), old));
    const Bytes fresh = must(rewrap_envelope(by_passphrase("old"), old, for_passphrase("new", 2)));
    EXPECT_TRUE(reads(by_passphrase("new"), fresh));
    EXPECT_EQ(must(read_envelope(fresh)).work, 2);
    EXPECT_EQ(open_envelope(by_passphrase("old"), fresh).code(), Code::authentication);
    const Bytes both = must(rewrap_envelope(by_passphrase("new"), fresh, for_all({alice, bob})));
    EXPECT_TRUE(reads(alice.key(), both) && reads(bob.key(), both));
    // With what does not open it, there is none.
    EXPECT_EQ(rewrap_envelope(person().key(), both, alice.address()).code(), Code::authentication);
    EXPECT_EQ(rewrap_envelope(by_passphrase("new"), both, alice.address()).code(),
              Code::invalid_argument);
}

// Nothing of an envelope is ever the same again, but for its words.
TEST(Envelope, IsRandom) {
    const Person one = person();
    for (const bool passphrase : {false, true}) {
        const auto recipients = passphrase ? for_passphrase("pw") : one.address();
        const std::string a = text_of(must(make_envelope(recipients)).envelope),
                          b = text_of(must(make_envelope(recipients)).envelope);
        const std::size_t share = a.find("-> ") + 10, mac = a.find("---") + 4;
        for (const std::size_t at :
             {share, a.find('\n', share) + 1, mac, a.size() - 64, a.size() - 48})
            EXPECT_NE(a.substr(at, 15), b.substr(at, 15)) << at;
    }
}

TEST(Envelope, SegmentsOfOtherSizes) {
    auto e = engine();
    const Person one = person();
    const auto made = must(make_envelope(one.address(), 100));
    EXPECT_EQ(made.keys.segment(), 100u);
    const Bytes stream = seal(e, made.keys, pattern(1000));
    EXPECT_EQ(open(e, must(open_envelope(one.key(), made.envelope)), stream).code(),
              Code::authentication);
    EXPECT_EQ(must(open(e, must(open_envelope(one.key(), made.envelope, 100)), stream)),
              pattern(1000));
    EXPECT_EQ(make_envelope(one.address(), 56).code(), Code::invalid_argument);
    EXPECT_EQ(open_envelope(one.key(), made.envelope, 56).code(), Code::invalid_argument);
}

TEST(Envelope, AsManyRecipientsAsThereMayBe) {
    const Person first = person(), last = person();
    std::string text = first.recipient;
    for (int i = 0; i < 998; ++i) text += first.recipient;
    const auto recipients = must(Recipients::parse(text + last.recipient));
    EXPECT_LE(recipients.envelope_size(), sealed::kMaxEnvelope);
    const auto made = must(make_envelope(recipients));
    EXPECT_EQ(must(read_envelope(made.envelope)).stanzas, 1000u);
    EXPECT_TRUE(open_envelope(last.key(), made.envelope));
}

}  // namespace
}  // namespace dael::test
