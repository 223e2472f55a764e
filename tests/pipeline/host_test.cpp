// SPDX-License-Identifier: Apache-2.0
// Host memory on host threads: how work of every mode is shared out, that sharing it out changes no
// byte, and what is refused.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include <daelstrom/ctr.hpp>
#include <daelstrom/unauthenticated.hpp>
#include <daelstrom/xts.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/share.hpp"
#include "support/test_batch.hpp"
#include "support/whole_backend.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Messages of given sizes in memory that is hardly read, and their shares.
struct Sharing {
    Sharing(const Cipher& its_cipher, const std::vector<std::uint64_t>& sizes)
        : cipher(its_cipher), codes(sizes.size(), Code::internal) {
        const auto room = [](std::uint64_t size) {
            return std::min(size, std::uint64_t{1} << 30) + 64;
        };
        for (const std::uint64_t size : sizes) mapped += room(size);
        memory = mmap(nullptr, mapped + 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        auto* at = static_cast<std::uint8_t*>(memory);
        for (const std::uint64_t size : sizes) {
            Message& m = messages.emplace_back();
            m.in = m.out = at;
            m.size = size;
            m.tag = authenticates(cipher.mode) ? at + room(size) - 32 : nullptr;
            at += room(size);
        }
    }
    ~Sharing() { munmap(memory, mapped + 1); }
    Sharing(const Sharing&) = delete;
    Sharing& operator=(const Sharing&) = delete;
    pipeline::Request request() { return {cipher, {keys.keys}, messages, codes}; }
    pipeline::Shares shares(int threads) {
        return pipeline::share_out(request(), pipeline::survey(cipher, messages, pool), threads);
    }
    int threads_worth(int most) const {
        const auto survey = pipeline::survey(cipher, messages);
        return pipeline::threads_worth(cipher, survey.weight, messages.size(), most);
    }
    // What a share refers to.
    std::span<const Message> of(const pipeline::Shares& shares,
                                const pipeline::Share& share) const {
        const std::span<const Message> all = share.of_parts ? shares.parts : messages;
        return all.subspan(share.begin, share.end - share.begin);
    }

    const Cipher cipher;
    const KeyRing keys{{pattern_key(cipher.mode)}, cipher.mode};
    std::vector<Message> messages;
    std::vector<Code> codes;
    pipeline::ThreadPool pool{2};
    void* memory = nullptr;
    std::size_t mapped = 0;
};

std::vector<std::uint64_t> many(std::size_t count, std::uint64_t size) {
    return std::vector<std::uint64_t>(count, size);
}

TEST(ShareOut, CoversEveryByteOfEveryModeOnce) {
    Random random(1);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Cipher cipher{mode, direction};
            std::vector<std::uint64_t> sizes;
            // Lists of few, with long ones among them, and of many.
            const bool many = random.below(2) == 0;
            for (int i = 0; i < (many ? 9000 : 700); ++i)
                sizes.push_back(fitting(cipher, random.below(many ? (i % 1000 < 900 ? 100 : 9000)
                                                                  : (i % 50 ? 5000 : 3 << 20))));
            Sharing job(cipher, sizes);
            if (makes_keystream(mode))
                for (Message& m : job.messages)
                    m.skip = static_cast<std::uint8_t>(random.below(16));
            const auto shares = job.shares(4);
            std::vector<Message> parts;
            for (const auto& share : shares.shares) {
                ASSERT_LT(share.begin, share.end);
                for (const Message& m : job.of(shares, share)) parts.push_back(m);
            }
            std::ranges::sort(parts, {}, &Message::in);
            auto part = parts.begin();
            for (const Message& m : job.messages) {
                std::uint64_t done = 0;
                for (; part != parts.end() && part->in < m.in + m.size; ++part) {
                    ASSERT_EQ(part->in, m.in + done);
                    ASSERT_EQ(part->out, part->in);
                    ASSERT_TRUE(modes::takes(cipher, *part, 1));
                    if (mode == Mode::xts) {
                        ASSERT_EQ(part->start, modes::sector_add(m.start, done / cipher.sector));
                    }
                    ASSERT_TRUE(done == 0 || part->skip == 0);
                    done += part->size;
                    if (m.size == 0) break;
                }
                if (m.size == 0) {  // left out or not
                    if (part != parts.end() && part->in == m.in) ++part;
                    continue;
                }
                ASSERT_EQ(done, m.size) << name(mode);
            }
            EXPECT_EQ(part, parts.end()) << name(mode);
        }
}

TEST(ShareOut, SequentialMessagesFillTheLanesWhereThereAreEnough) {
    for (const std::size_t count : {64, 100, 1000, 5000}) {
        Sharing job({Mode::cbc, Direction::encrypt}, many(count, 4096));
        for (std::size_t i = 0; i < count; ++i)  // whatever their keys
            job.messages[i].key = 0;
        const auto shares = job.shares(4);
        EXPECT_TRUE(shares.parts.empty());  // as they stand
        for (std::size_t i = 0; i + 1 < shares.shares.size(); ++i)
            EXPECT_GE(shares.shares[i].end - shares.shares[i].begin, pipeline::kLanes) << count;
    }
}

TEST(ShareOut, FewSequentialMessagesAreDividedEvenly) {
    Sharing job({Mode::ofb}, many(8, 1 << 20));
    const auto shares = job.shares(4);
    ASSERT_EQ(shares.shares.size(), 4u);
    for (const auto& share : shares.shares) EXPECT_EQ(share.end - share.begin, 2u);
}

TEST(ShareOut, SequentialMessagesComeLongestFirst) {
    auto sizes = many(40, 16);
    sizes[33] = 1 << 20;
    Sharing job({Mode::cfb, Direction::encrypt}, sizes);
    const auto shares = job.shares(2);
    EXPECT_EQ(job.of(shares, shares.shares[0])[0].size, std::uint64_t{1} << 20);
    EXPECT_EQ(shares.parts.size(), sizes.size());
    EXPECT_TRUE(std::ranges::is_sorted(shares.parts, std::ranges::greater{}, &Message::size));
}

// GCM: messages stay whole and in order, and the heaviest shares come first.
TEST(ShareOut, MessagesWithTagsStayWholeAndTheHeaviestComeFirst) {
    Random random(1);
    std::vector<std::uint64_t> sizes(5000);
    for (auto& size : sizes) size = random.below(5000);
    sizes[4999] = 50 << 20;
    sizes[17] = ~std::uint64_t{0};  // refused later; until then it must not overflow
    Sharing job({Mode::gcm}, sizes);
    const auto shares = job.shares(4);
    EXPECT_TRUE(shares.parts.empty());
    EXPECT_GE(shares.shares.size(), 6u);
    EXPECT_TRUE(
        std::ranges::is_sorted(shares.shares, std::ranges::greater{}, &pipeline::Share::weight));
    std::vector<int> seen(sizes.size());
    for (const auto& share : shares.shares)
        for (std::size_t i = share.begin; i < share.end; ++i) ++seen[i];
    EXPECT_EQ(std::ranges::count(seen, 1), 5000);
    EXPECT_EQ(shares.shares[0].begin, 17u);
    EXPECT_EQ(shares.shares[1].begin, 4999u);
}

TEST(ShareOut, ALongMessageIsCutWhereTheModeAllowsIt) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            Sharing job({mode, direction}, {std::uint64_t{8} << 20});
            const auto shares = job.shares(4);
            if (modes::can_cut(job.cipher))
                EXPECT_GE(shares.shares.size(), 4u) << name(mode);
            else
                EXPECT_EQ(shares.shares.size(), 1u) << name(mode);
        }
}

TEST(ShareOut, WhatIsRefusedGetsItsCodeAndNoShare) {
    Sharing job({Mode::cbc, Direction::encrypt}, many(100, 4096));
    job.messages[7].key = 1;
    job.messages[8].size = 17;
    job.messages[99].out = nullptr;
    job.messages[50].size = 8192;  // so that they are put in order
    const auto shares = job.shares(3);
    EXPECT_EQ(shares.parts.size(), 97u);
    std::vector<Code> expected(100, Code::ok);
    expected[7] = expected[99] = Code::invalid_argument;
    expected[8] = Code::ragged_length;
    EXPECT_EQ(job.codes, expected);
}

TEST(ThreadsWorth, AreWokenForEnoughWorkOnly) {
    const auto worth = [](const Cipher& cipher, const std::vector<std::uint64_t>& sizes, int most) {
        return Sharing(cipher, sizes).threads_worth(most);
    };
    EXPECT_EQ(worth({Mode::ctr}, {64 << 10}, 16), 1);
    EXPECT_EQ(worth({Mode::ctr}, {1 << 20}, 16), 8);
    EXPECT_EQ(worth({Mode::ctr}, {1 << 30}, 16), 16);
    EXPECT_EQ(worth({Mode::xts}, {1 << 30}, 16), 16);
    EXPECT_EQ(worth({Mode::cbc, Direction::encrypt}, {1 << 30}, 16), 1);
    EXPECT_EQ(worth({Mode::cbc, Direction::decrypt}, {1 << 30}, 16), 16);
    EXPECT_EQ(worth({Mode::gcm}, {}, 8), 1);
    EXPECT_EQ(worth({Mode::gcm}, {64 << 10}, 8), 1);
    EXPECT_EQ(worth({Mode::gcm}, {64 << 20}, 8), 1);  // a message is never cut
    EXPECT_EQ(worth({Mode::gcm}, many(3, 1 << 20), 8), 3);
    EXPECT_EQ(worth({Mode::gcm}, many(10000, 0), 8), 8);  // nothing but first and last steps
    EXPECT_EQ(worth({Mode::gcm}, many(10000, 0), 1), 1);
}

// Passes everything on to OpenSSL and notes what it was asked.
class Recorder final : public core::Backend {
  public:
    struct Notes {
        std::mutex mutex;
        std::vector<std::size_t> calls;  // messages of each
        std::uint64_t bytes = 0;
    };
    explicit Recorder(Notes& notes, bool shared = true)
        : notes_(notes),
          profile_{"recorder", "notes what it is asked", shared},
          inner_(std::make_unique<WholeBackend>()) {}
    const core::Profile& profile() const override { return profile_; }
    core::Can can(const Cipher& cipher, int bits) const override {
        return inner_->can(cipher, bits);
    }
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        return inner_->tables(keys);
    }
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        {
            const std::lock_guard lock(notes_.mutex);
            notes_.calls.push_back(messages.size());
            for (const auto& message : messages) {
                notes_.bytes += message.size;
                EXPECT_TRUE(modes::takes(cipher, message, keys.list.size()));
            }
            EXPECT_NE(cipher.mode, Mode::gcm_ctr);
        }
        return inner_->run(cipher, keys, messages, codes);
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        return inner_->begin(cipher, keys, key, start);
    }

  private:
    Notes& notes_;
    const core::Profile profile_;
    std::unique_ptr<core::Backend> inner_;
};

auto through(Engine& engine, std::string& backend) {
    return [&](const Cipher& cipher, std::span<const Key> keys, std::span<const Message> messages,
               std::span<Code> codes) -> Result<> {
        DAEL_LET(set, engine.keys(keys));
        DAEL_LET(ran, engine.run(cipher, set, messages, codes));
        backend = ran.backend;
        return {};
    };
}

TEST(HostRun, LongMessagesAreCutForAllThreadsAndEveryByteIsRight) {
    Random random(3);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (const bool in_place : {false, true}) {
                const Cipher cipher{mode, direction};
                const KeyRing keys(random, 1, mode);
                Recorder::Notes notes;
                Engine engine =
                    pipeline::make_engine(std::make_unique<Recorder>(notes), {.threads = 4});
                TestBatch batch(random, keys, cipher);
                batch.add({.size = (1 << 20) + 48, .in_place = in_place});
                std::string backend;
                ASSERT_EQ(batch.fault_of(through(engine, backend)), "");
                EXPECT_EQ(backend, "recorder");
                EXPECT_EQ(notes.bytes, batch.messages[0].size);
                EXPECT_EQ(notes.calls.size() > 1, modes::can_cut(cipher)) << name(mode);
            }
}

TEST(HostRun, BatchesOfUnequalMessagesUnderManyKeys) {
    Random random(6);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Cipher cipher{mode, direction};
            const KeyRing keys(random, 4, mode);
            Recorder::Notes notes;
            Engine engine =
                pipeline::make_engine(std::make_unique<Recorder>(notes), {.threads = 3});
            TestBatch batch(random, keys, cipher);
            std::vector<std::size_t> sizes;
            for (std::size_t i = 0; i < 150; ++i)
                sizes.push_back(i == 77 ? std::size_t{1} << 19 : i * 37);
            batch.add_sizes(sizes);
            std::string backend;
            ASSERT_EQ(batch.fault_of(through(engine, backend)), "");
            EXPECT_GT(notes.calls.size(), 1u);
        }
}

TEST(HostRun, BackendsThatAreParallelByThemselvesGetWholeMessages) {
    const Key key = *Key::import(random_bytes(16, 1));
    Recorder::Notes notes;
    Engine engine = pipeline::make_engine(std::make_unique<Recorder>(notes, false), {.threads = 4});
    Bytes data = random_bytes(4 << 20, 2);
    const auto ran = ctr::crypt(engine, key, {}, data, data);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->threads, 1);
    EXPECT_EQ(ran->chunks, 0u);
    EXPECT_EQ(notes.calls, std::vector<std::size_t>{1});
    EXPECT_EQ(notes.bytes, data.size());
    const Plan plan = engine.explain({{Mode::ctr}, 128, data.size()});
    EXPECT_EQ(plan.options.front().threads, 1);
}

TEST(HostRun, CounterOffsetsInsideABlock) {
    const Bytes raw = random_bytes(16, 4);
    const Key key = *Key::import(raw);
    Block iv;
    iv.fill(0xff);  // the first step carries through every byte
    Engine engine = *Engine::open({.backend = "openssl", .threads = 3});
    for (const std::uint64_t offset : {1, 15, 16, 17, 4097})
        for (const std::size_t size : {0, 1, 14, 15, 16, 17, 1000, 700001}) {
            const Bytes in = random_bytes(size, 5);
            Bytes out(size);
            ASSERT_TRUE(ctr::crypt(engine, key, iv, in, out, offset));
            EXPECT_EQ(out, oracle(raw, {Mode::ctr, Direction::encrypt, iv, offset}, in))
                << offset << " " << size;
            ASSERT_TRUE(ctr::keystream(engine, key, iv, out, offset));
            EXPECT_EQ(out, oracle(raw, {Mode::ctr, Direction::encrypt, iv, offset}, Bytes(size)))
                << offset << " " << size;
        }
}

// The named calls are what they say.
TEST(HostRun, TheModesNamedCalls) {
    Engine engine = *Engine::open({.backend = "openssl", .threads = 2});
    const Bytes raw = random_bytes(32, 1), in = random_bytes(4800, 2);
    const Key key = *Key::import(raw);
    const Block iv = random_block(3);
    Bytes out(in.size());
    const auto expect = [&](const Result<Ran>& ran, const Use& use) {
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(difference(oracle(raw, use, in), out), "") << name(use.mode);
    };
    const auto [forth, back] = std::pair{Direction::encrypt, Direction::decrypt};
    expect(ecb::encrypt(engine, key, in, out), {Mode::ecb, forth});
    expect(ecb::decrypt(engine, key, in, out), {Mode::ecb, back});
    expect(cbc::encrypt(engine, key, iv, in, out), {Mode::cbc, forth, iv});
    expect(cbc::decrypt(engine, key, iv, in, out), {Mode::cbc, back, iv});
    expect(cfb::encrypt(engine, key, iv, in, out), {Mode::cfb, forth, iv});
    expect(cfb::decrypt(engine, key, iv, in, out), {Mode::cfb, back, iv});
    expect(ofb::crypt(engine, key, iv, in, out), {Mode::ofb, forth, iv});
    expect(ctr::crypt(engine, key, iv, in, out), {Mode::ctr, forth, iv});
    const Key xts_key = *Key::import_xts(raw);
    const xts::Sectors sectors{7, 520, 1};
    ASSERT_TRUE(xts::encrypt(engine, xts_key, sectors, in, out));
    EXPECT_EQ(difference(oracle_xts(raw, forth, sectors, in), out), "");
    ASSERT_TRUE(xts::decrypt(engine, xts_key, sectors, out, out));
    EXPECT_EQ(out, in);
    const Sealed sealed = gcm_oracle(raw, Bytes(33, 5), raw, in);
    Bytes tag(12);
    ASSERT_TRUE(gcm::seal(engine, key, Bytes(33, 5), raw, in, out, tag));
    EXPECT_EQ(out, sealed.ciphertext);
    EXPECT_TRUE(std::equal(tag.begin(), tag.end(), sealed.tag.begin()));
    ASSERT_TRUE(gcm::open(engine, key, Bytes(33, 5), raw, out, out, tag));
    EXPECT_EQ(out, in);
}

TEST(HostRun, BadCallsAreErrors) {
    const Key key = *Key::import(random_bytes(16, 7));
    Engine engine = *Engine::open({.backend = "openssl"});
    Bytes in(32), small(16);
    EXPECT_EQ(ctr::crypt(engine, key, {}, in, small).code(), Code::invalid_argument);
    EXPECT_EQ(ecb::encrypt(engine, key, HostIn(in).first(17), HostOut(in).first(17)).code(),
              Code::ragged_length);
    EXPECT_EQ(ctr::crypt(engine, key, {}, HostIn(in).first(16), HostOut(in).subspan(8, 16)).code(),
              Code::overlap);
    // An input that is forgotten is no wish for the keystream.
    const HostIn nothing(static_cast<const std::uint8_t*>(nullptr), 32);
    EXPECT_EQ(ctr::crypt(engine, key, {}, nothing, in).code(), Code::invalid_argument);
    // The last byte that an offset can name.
    EXPECT_EQ(ctr::crypt(engine, key, {}, in, in, ~std::uint64_t{0} - 16).code(), Code::limit);
    EXPECT_EQ(ctr::keystream(engine, key, {}, in, ~std::uint64_t{0} - 16).code(), Code::limit);
    EXPECT_EQ(in, Bytes(32));
    EXPECT_TRUE(ctr::crypt(engine, key, {}, in, in, ~std::uint64_t{0} - 32));
    EXPECT_EQ(Engine::open({.backend = "openssl", .threads = -1}).code(), Code::invalid_argument);
    EXPECT_EQ(Engine::open({.backend = "abacus"}).code(), Code::unknown_backend);
}

class OneCall : public testing::Test {
  protected:
    Result<KeySet> keys(Engine& engine) { return engine.keys(std::span(&key_, 1)); }

    const Key key_ = *Key::import(random_bytes(16, 1));
    Bytes data_ = Bytes(100), tag_ = Bytes(16), iv_ = Bytes(12);
    Message message_{data_.data(), data_.data(), 100, nullptr, 0, tag_.data()};
    Code code_ = Code::internal;
};

TEST_F(OneCall, IsRefusedAsAWhole) {
    Engine engine = *Engine::open({.backend = "openssl"});
    Engine other = *Engine::open({.backend = "openssl"});
    const auto set = keys(engine), of_other = keys(other);
    ASSERT_TRUE(set && of_other);
    EXPECT_EQ(set->size(), 1u);
    EXPECT_EQ(set->bits(0), 128);
    const std::span messages(&message_, 1);
    const std::span codes(&code_, 1);
    const Cipher seal = gcm::sealing();
    EXPECT_EQ(engine.keys({}).code(), Code::invalid_argument);
    for (const Cipher& cipher : {seal, Cipher{Mode::ctr}, Cipher{Mode::cbc}}) {
        EXPECT_EQ(engine.run(cipher, *of_other, messages, codes).code(), Code::invalid_argument);
        EXPECT_EQ(engine.run(cipher, *set, messages, {}).code(), Code::invalid_argument);
        EXPECT_EQ(engine.run(cipher, *set, {}, codes).code(), Code::invalid_argument);
        EXPECT_EQ(engine.prepare(cipher, *of_other, {}).code(), Code::invalid_argument);
        EXPECT_EQ(code_, Code::invalid_argument);  // the call's: nothing was touched
    }
    EXPECT_EQ(engine.run(gcm::sealing(11), *set, messages, codes).code(), Code::invalid_argument);
    EXPECT_EQ(engine.run({Mode::xts}, *set, messages, codes).code(), Code::invalid_argument);
    EXPECT_EQ(engine.run({static_cast<Mode>(99)}, *set, messages, codes).code(),
              Code::invalid_argument);
    std::vector<Key> mixed;
    mixed.push_back(std::move(*key_.duplicate()));
    mixed.push_back(*Key::import_xts(random_bytes(32, 1)));
    EXPECT_EQ(engine.keys(mixed).code(), Code::invalid_argument);
    EXPECT_EQ(data_, Bytes(100));
    EXPECT_TRUE(engine.run(seal, *set, {}, {}));
    EXPECT_TRUE(engine.run(seal, *set, messages, codes));
    EXPECT_EQ(code_, Code::ok);
}

TEST_F(OneCall, SaysWhatIsWrongWithItsMessage) {
    Engine engine = *Engine::open({.backend = "openssl"});
    const auto refusal = [&](std::span<const std::uint8_t> iv, HostIn in, HostOut out,
                             std::span<std::uint8_t> tag) {
        const auto ran = gcm::seal(engine, key_, iv, {}, in, out, tag);
        return ran ? std::string() : ran.error().message;
    };
    EXPECT_EQ(refusal(iv_, data_, data_, tag_), "");
    EXPECT_NE(refusal({}, data_, data_, tag_).find("IV is empty"), std::string::npos);
    EXPECT_NE(refusal(iv_, data_, HostOut(data_).first(9), tag_).find("must be the same"),
              std::string::npos);
    EXPECT_NE(refusal(iv_, data_, data_, HostOut(tag_).first(3)).find("tag of 3 bytes"),
              std::string::npos);
    EXPECT_NE(refusal(iv_, data_, data_, HostOut(data_).first(16)).find("tag overlaps"),
              std::string::npos);
    tag_[0] ^= 1;
    const auto opened = gcm::open(engine, key_, iv_, {}, data_, data_, tag_);
    EXPECT_EQ(opened.code(), Code::authentication);
    EXPECT_NE(opened.error().message.find("does not match"), std::string::npos);
    Engine engine_of_nothing = *Engine::open({.backend = "openssl"});
    const HostIn null_iv(static_cast<const std::uint8_t*>(nullptr), 5);
    EXPECT_EQ(gcm::seal(engine, key_, null_iv, {}, data_, data_, tag_).code(),
              Code::invalid_argument);
}

// A backend without GCM and XTS: the next one serves, and without a next one the reason is said.
class Plain final : public core::Backend {
  public:
    const core::Profile& profile() const override { return profile_; }
    core::Can can(const Cipher& cipher, int) const override {
        if (cipher.mode == Mode::ctr) return {};
        return {core::Can::no, "it has CTR alone; use the backend 'openssl'"};
    }
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key>) override {
        return core::cannot("plain", gcm::sealing(), can(gcm::sealing(), 128));
    }
    Result<> run(const Cipher&, const core::KeyList&, std::span<const Message>,
                 std::span<Code>) override {
        return {};
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher&, const core::KeyList&, std::uint32_t,
                                                const Start&) override {
        return core::cannot("plain", gcm::sealing(), can(gcm::sealing(), 128));
    }

  private:
    const core::Profile profile_{"plain", "CTR alone"};
};

TEST_F(OneCall, ABackendThatLacksTheModeSaysSo) {
    Engine engine = pipeline::make_engine(std::make_unique<Plain>());
    const auto set = keys(engine);
    ASSERT_TRUE(set) << set.error().message;
    const auto ran =
        engine.run(gcm::sealing(), *set, std::span(&message_, 1), std::span(&code_, 1));
    ASSERT_EQ(ran.code(), Code::unsupported);
    for (const char* word : {"plain", "gcm", "'openssl'"})
        EXPECT_NE(ran.error().message.find(word), std::string::npos) << ran.error().message;
    EXPECT_EQ(data_, Bytes(100));
    EXPECT_EQ(engine.begin(gcm::sealing(), key_, {}).code(), Code::unsupported);
    const Key xts_key = *Key::import_xts(random_bytes(32, 1));
    EXPECT_EQ(xts::encrypt(engine, xts_key, {}, data_, data_).code(), Code::unsupported);
    EXPECT_FALSE(engine.explain({gcm::sealing(), 128, 100}).options.front().possible);
}

}  // namespace
