// SPDX-License-Identifier: Apache-2.0
// Messages in pieces: GCM of every backend gives OpenSSL's bytes and tag however the pieces are
// cut; and through every engine so does every mode, from any clone and after any restart.
#include "core/registry.hpp"
#include "modes/traits.hpp"
#include "support/engine_test.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Cuts of `size` bytes into runs of random sizes, empty ones among them; some are long where there
// is much.
std::vector<std::size_t> any_cuts(Random& random, std::size_t size) {
    std::vector<std::size_t> cuts;
    for (std::size_t at = 0; at < size; at += cuts.back()) {
        const std::size_t most = random.below(3) ? 40 : std::max<std::size_t>(3000, size / 20);
        cuts.push_back(std::min(size - at, random.below(most)));
    }
    return cuts;
}
// Calls work(at, size) for each.
void in_pieces(const std::vector<std::size_t>& cuts, auto work) {
    std::size_t at = 0;
    for (const std::size_t size : cuts) {
        work(at, size);
        at += size;
    }
}

class GcmStreams : public ::testing::TestWithParam<Target> {
  protected:
    void SetUp() override {
        const Target& target = GetParam();
        if (target.backend == "threads") {
            backend_ = std::make_unique<HostDeviceBackend>(device_);
            return;
        }
        auto opened = core::open_backend(target.backend, {target.form, 0});
        if (!opened) GTEST_SKIP() << opened.error().message;
        backend_ = std::move(*opened);
        if (backend_->can({Mode::gcm}, 128).answer == core::Can::no)
            GTEST_SKIP() << target.name << " has no GCM";
    }
    void TearDown() override { expect_clean(device_); }

    HostDevice device_;
    std::unique_ptr<core::Backend> backend_;
    Random random_{123456789};
};

TEST_P(GcmStreams, AnyPieces) {
    const std::size_t longest = GetParam().slow ? 200 : 20000;
    for (int i = 0; i < (GetParam().slow ? 30 : GetParam().sampled() ? 60 : 300); ++i) {
        const KeyRing keys(random_, 3);
        const auto key = static_cast<std::uint32_t>(random_.below(3));
        const auto tables = backend_->tables(keys.keys);
        ASSERT_TRUE(tables) << tables.error().message;
        std::unique_ptr<core::Pieces> used;  // is begun anew, in half of the cases
        const Bytes aad = random_.bytes(random_.below(4) ? random_.below(100) : 0);
        const bool many_pieces = GetParam().far() && i % 100 == 55;
        const Bytes plain =
            random_.bytes(many_pieces ? (GetParam().sampled() ? 5'000'001 : 9'000'001)
                          : i % 10    ? random_.below(longest)
                                      : 0);
        for (const Direction direction : kDirections) {
            const bool seal = direction == Direction::encrypt;
            const Block start = fitting_start({Mode::gcm}, random_);
            const Bytes iv = gcm_iv(keys.raw[key], start);
            const Sealed expected = gcm_oracle(keys.raw[key], iv, aad, plain);
            const Bytes& in = seal ? plain : expected.ciphertext;
            const bool in_place = random_.below(2) == 0;
            Bytes out = in_place ? in : Bytes(in.size(), Poisoned::kPoison);
            auto begun = backend_->begin({Mode::gcm, direction}, {keys.keys, tables->get()}, key,
                                         random_.below(2) ? start : Block{});
            ASSERT_TRUE(begun) << begun.error().message;
            std::unique_ptr<core::Pieces> pieces = std::move(*begun);
            if (random_.below(2)) {  // something else comes first
                ASSERT_TRUE(pieces->aad(aad));
                ASSERT_TRUE(pieces->update(in.data(), Bytes(in.size()).data(), in.size() / 2));
            }
            ASSERT_TRUE(pieces->restart(start));
            in_pieces(any_cuts(random_, aad.size()), [&](std::size_t at, std::size_t size) {
                ASSERT_TRUE(pieces->aad(std::span(aad).subspan(at, size)));
            });
            in_pieces(any_cuts(random_, in.size()), [&](std::size_t at, std::size_t size) {
                const std::uint8_t* from = (in_place ? out : in).data() + at;
                std::unique_ptr<core::Pieces> original;
                if (random_.below(8) == 0) {  // a clone goes on, and the first one elsewhere
                    auto clone = pieces->clone();
                    ASSERT_TRUE(clone) << clone.error().message;
                    original = std::exchange(pieces, std::move(*clone));
                    Bytes unused = random_.bytes(77);
                    ASSERT_TRUE(original->update(unused.data(), unused.data(), unused.size()));
                }
                ASSERT_TRUE(pieces->update(from, out.data() + at, size));
                if (original) {
                    ASSERT_TRUE(original->finish());
                }
            });
            const auto tag = pieces->finish();
            ASSERT_TRUE(tag);
            ASSERT_EQ(difference(seal ? expected.ciphertext : plain, out), "") << seal;
            ASSERT_EQ(difference(expected.tag, *tag), "")
                << "AAD of " << aad.size() << ", " << in.size() << " bytes, seals: " << seal;
        }
    }
}

std::vector<Target> below_the_engine(Target::Family family) {
    auto list = targets(family);
    std::erase_if(list,
                  [](const Target& target) { return target.level != Target::Level::backend; });
    return list;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GcmStreams);
INSTANTIATE_TEST_SUITE_P(Host, GcmStreams,
                         ::testing::ValuesIn(below_the_engine(Target::Family::Host)), target_name);
INSTANTIATE_TEST_SUITE_P(Gpu, GcmStreams,
                         ::testing::ValuesIn(below_the_engine(Target::Family::Gpu)), target_name);
INSTANTIATE_TEST_SUITE_P(OpenCl, GcmStreams,
                         ::testing::ValuesIn(below_the_engine(Target::Family::OpenCl)),
                         target_name);

// One message, and what becomes of it.
struct Whole {
    Cipher cipher;
    Bytes raw, in, aad;
    Start start;
    Answer answer;

    Whole(Random& random, const Cipher& its_cipher, std::size_t size, Bytes key)
        : cipher(its_cipher), raw(std::move(key)), in(pattern(fitting(cipher, size))) {
        again(random);
    }
    // From another start.
    void again(Random& random) {
        start = {fitting_start(cipher, random), fitting_rest(cipher, random)};
        if (authenticates(cipher.mode)) aad = random.bytes(random.below(60));
        Message message{in.data(), nullptr, in.size(), aad.data(), aad.size()};
        message.start = start.first;
        message.start_rest = start.rest;
        answer = oracle(raw, cipher, message);
        if (authenticates(cipher.mode)) answer.tag.resize(cipher.tag);
    }
    bool seals() const { return cipher.direction == Direction::encrypt; }
    bool opens_gcm() const { return authenticates(cipher.mode) && !seals(); }
};

// Feeds what is left of a message, from byte `at` on, and compares the end. `out` has what came
// before. Opening GCM: in one pass.
std::string feed(Pieces& pieces, const Whole& w, const std::vector<std::size_t>& cuts, Bytes out,
                 std::size_t at = 0) {
    Bytes room(w.in.size() + 1);
    for (const std::size_t size : cuts) {
        const HostIn in = HostIn(w.in).subspan(at, size);
        std::size_t written = size;
        if (w.opens_gcm()) {
            if (const auto done = pieces.update_unverified(in, HostOut(room).first(size)); !done)
                return done.error().message;
        } else {
            const std::size_t whole = (pieces.held() + size) / pieces.unit() * pieces.unit();
            const auto done = pieces.update(in, HostOut(room).first(whole));
            if (!done) return done.error().message;
            if (*done != whole) return "wrote " + std::to_string(*done);
            written = *done;
        }
        out.insert(out.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(written));
        at += size;
    }
    Bytes tag(authenticates(w.cipher.mode) ? w.cipher.tag : pieces.held());
    if (w.opens_gcm()) {
        if (const auto done = pieces.verify(w.answer.tag); !done) return done.error().message;
    } else {
        const auto done = pieces.finish(tag);
        if (!done) return done.error().message;
        if (*done != tag.size()) return "finish wrote " + std::to_string(*done);
        if (authenticates(w.cipher.mode)) {
            if (tag != w.answer.tag) return "the tag is wrong";
        } else {
            out.insert(out.end(), tag.begin(), tag.end());
        }
    }
    return difference(w.answer.out, out);
}

class InPieces : public EngineTest {
  protected:
    template <class Visit>
    void for_each_cipher(Visit visit) {
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections) {
                const Cipher cipher{mode, direction, 16, 0, 48};
                if (mode == Mode::gcm_siv) continue;  // which has none
                // A device does sequential modes for many messages only.
                const Plan plan = engine().explain({cipher, usual_bits(mode), 4096, 1});
                if (!plan.options.front().possible) continue;
                SCOPED_TRACE(std::string(name(mode)) + " " + std::string(name(direction)));
                visit(cipher);
                if (HasFatalFailure()) return;
            }
    }
    Bytes random_key(const Cipher& cipher) {
        const auto sizes = KeysFor(cipher).sizes;
        return random_.bytes(sizes[random_.below(sizes.size())]);
    }
    Whole message(const Cipher& cipher, std::size_t size) {
        return Whole(random_, cipher, size, random_key(cipher));
    }
    Result<Pieces> begin(const Whole& w) {
        const KeyRing key({w.raw}, w.cipher.mode);  // which pieces outlive
        DAEL_LET(pieces, engine().begin(w.cipher, key.keys[0], w.start));
        if (!w.aad.empty()) DAEL_TRY(pieces.aad(w.aad));
        return std::move(pieces);
    }

    Random random_{5772156649};
};

TEST_P(InPieces, EverySplit) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 150);
        for (std::size_t at = 0; at <= w.in.size(); ++at) {
            if ((GetParam().far() || slow()) && at % 16 > 1 && at % 16 < 15 && at > 32) continue;
            auto pieces = begin(w);
            ASSERT_TRUE(pieces) << pieces.error().message;
            ASSERT_EQ(feed(*pieces, w, {at, w.in.size() - at}, {}), "") << "split at " << at;
        }
    });
}

TEST_P(InPieces, ByteByByteAndAnyPieces) {
    for_each_cipher([&](const Cipher& cipher) {
        for (int i = 0; i < (slow() || GetParam().far() ? 4 : 25); ++i) {
            const std::size_t size = random_.below(slow() ? 200 : i % 5 == 4 ? 300000 : 5000);
            const Whole w = message(cipher, size);
            auto pieces = begin(w);
            ASSERT_TRUE(pieces) << pieces.error().message;
            const std::size_t bytes = std::min<std::size_t>(w.in.size(), 100);
            auto cuts = any_cuts(random_, w.in.size());
            if (i == 0) {
                cuts.assign(bytes, 1);
                cuts.push_back(w.in.size() - bytes);
            }
            ASSERT_EQ(feed(*pieces, w, cuts, {}), "") << w.in.size() << " bytes";
        }
    });
}

TEST_P(InPieces, InPlaceWhereNothingIsHeldBack) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, slow() ? 200 : 3000);
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        Bytes data = w.in;
        std::size_t at = 0;
        while (at < data.size()) {
            const std::size_t some = (1 + random_.below(300 / pieces->unit())) * pieces->unit();
            const HostOut piece = HostOut(data).subspan(at, std::min(some, data.size() - at));
            if (piece.size() % pieces->unit() != 0) break;  // XTS's short last sector
            if (w.opens_gcm())
                ASSERT_TRUE(pieces->update_unverified(piece, piece));
            else
                ASSERT_TRUE(pieces->update(piece, piece));
            at += piece.size();
        }
        ASSERT_EQ(difference(std::span(w.answer.out).first(at), std::span(data).first(at)), "");
    });
}

// GCM in two passes: nothing is decrypted before all of it has been authenticated.
TEST_P(InPieces, TwoPasses) {
    for_each_cipher([&](Cipher cipher) {
        if (!authenticates(cipher.mode) || cipher.direction == Direction::encrypt) return;
        for (const int tag_size : {4, 12, 16, 32}) {
            cipher.tag = static_cast<std::uint8_t>(tag_size);
            if (!modes::valid_tag_size(cipher.mode, cipher.tag)) continue;
            const Whole w = message(cipher, slow() ? 300 : 50001);
            auto pieces = begin(w);
            ASSERT_TRUE(pieces) << pieces.error().message;
            Bytes data = w.in;
            in_pieces(any_cuts(random_, data.size()), [&](std::size_t at, std::size_t size) {
                ASSERT_TRUE(pieces->authenticate(HostIn(data).subspan(at, size)));
            });
            ASSERT_TRUE(pieces->verify(w.answer.tag));
            EXPECT_EQ(data, w.in);
            in_pieces(any_cuts(random_, data.size()), [&](std::size_t at, std::size_t size) {
                const HostOut piece = HostOut(data).subspan(at, size);
                ASSERT_TRUE(pieces->update(piece, piece));
            });
            ASSERT_TRUE(pieces->finish());
            EXPECT_EQ(data, w.answer.out);
        }
    });
}

// A clone at any point ends as the original does, whichever goes on first.
TEST_P(InPieces, ClonesGoTheirOwnWay) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 130);
        for (std::size_t at = 0; at <= w.in.size(); at += slow() || GetParam().far() ? 27 : 1) {
            auto pieces = begin(w);
            ASSERT_TRUE(pieces) << pieces.error().message;
            Bytes room(w.in.size());
            std::size_t written = at;
            const HostIn first = HostIn(w.in).first(at);
            if (w.opens_gcm())
                ASSERT_TRUE(pieces->update_unverified(first, HostOut(room).first(at)));
            else
                written = *pieces->update(first, room);
            room.resize(written);
            auto clone = pieces->clone();
            ASSERT_TRUE(clone) << clone.error().message;
            EXPECT_EQ(clone->held(), pieces->held());
            const std::size_t rest = w.in.size() - at;
            auto one = feed(*(at % 2 ? pieces : clone), w, {rest / 2, rest - rest / 2}, room, at);
            auto other = feed(*(at % 2 ? clone : pieces), w, any_cuts(random_, rest), room, at);
            ASSERT_EQ(one, "") << at;
            ASSERT_EQ(other, "") << at;
        }
    });
}

TEST_P(InPieces, RestartFromAnywhere) {
    for_each_cipher([&](const Cipher& cipher) {
        Whole w = message(cipher, 200);
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        for (int i = 0; i < 8; ++i) {
            // In the midst, after the end, after an error, and at the very beginning.
            Bytes room(w.in.size());
            const HostIn some = HostIn(w.in).first(i % 2 ? 37 : 0);
            if (w.opens_gcm()) {
                bool done = true;
                if (i % 4 == 1)
                    done = bool(pieces->update_unverified(some, HostOut(room).first(37)));
                if (i % 4 == 3) done = bool(pieces->authenticate(some));
                if (i % 4 == 2) done = !pieces->verify(Bytes(cipher.tag));
                ASSERT_TRUE(done);
            } else {
                ASSERT_TRUE(pieces->update(some, room));
                const bool ended = i % 4 != 2 || pieces->finish(HostOut(room).first(16));
                ASSERT_TRUE(ended);
            }
            w.again(random_);
            ASSERT_TRUE(pieces->restart(w.start));
            EXPECT_EQ(pieces->held(), 0u);
            ASSERT_TRUE(w.aad.empty() || pieces->aad(w.aad));
            ASSERT_EQ(feed(*pieces, w, any_cuts(random_, w.in.size()), {}), "") << i;
            ASSERT_TRUE(pieces->restart(w.start));
        }
    });
}

// What comes out of order is an error, and changes nothing.
TEST_P(InPieces, CallsOutOfOrder) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 96);
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        Bytes room(w.in.size()), tag(16);
        const auto refused = [](const auto& result) {
            EXPECT_EQ(result.code(), Code::invalid_argument);
            EXPECT_TRUE(result || !result.error().message.empty());
        };
        if (!authenticates(cipher.mode)) {
            refused(pieces->aad(tag));
            refused(pieces->aad({}));
        }
        if (!w.opens_gcm()) {
            refused(pieces->authenticate(w.in));
            refused(pieces->update_unverified(w.in, room));
            refused(pieces->verify(tag));
            ASSERT_EQ(feed(*pieces, w, {48, w.in.size() - 48}, {}), "");
            refused(pieces->update(w.in, room));  // it is at its end
            refused(pieces->finish(tag));
            refused(pieces->aad({}));
            return;
        }
        refused(pieces->update(w.in, room));
        refused(pieces->finish());
        auto one_pass = pieces->clone();
        ASSERT_TRUE(one_pass);
        ASSERT_TRUE(one_pass->update_unverified(HostIn(w.in).first(5), HostOut(room).first(5)));
        refused(one_pass->authenticate(w.in));
        refused(one_pass->aad(tag));
        refused(one_pass->update(w.in, room));
        ASSERT_TRUE(pieces->authenticate(HostIn(w.in).first(50)));
        refused(pieces->update_unverified(w.in, room));
        refused(pieces->aad(tag));
        refused(pieces->update(w.in, room));
        refused(pieces->finish());
        refused(pieces->verify(Bytes(3)));  // no tag has 3 bytes
        ASSERT_TRUE(pieces->authenticate(HostIn(w.in).subspan(50)));
        ASSERT_TRUE(pieces->verify(w.answer.tag));
        refused(pieces->aad(tag));
        refused(pieces->authenticate(w.in));
        refused(pieces->verify(w.answer.tag));
        Bytes longer(w.in.size() + 1), longer_out(w.in.size() + 1);
        refused(pieces->update(longer, longer_out));
        ASSERT_TRUE(pieces->update(w.in, room));
        EXPECT_TRUE(pieces->update({}, {}));  // an empty last piece
        ASSERT_TRUE(pieces->finish());
        EXPECT_EQ(room, w.answer.out);
        refused(pieces->update({}, {}));
        // The rest of the one pass, in which nothing was changed.
        ASSERT_EQ(feed(*one_pass, w, {w.in.size() - 5},
                       {w.answer.out.begin(), w.answer.out.begin() + 5}, 5),
                  "");
        refused(one_pass->update(w.in, room));
        refused(one_pass->update_unverified(w.in, room));
    });
}

TEST_P(InPieces, WhatIsHeldBack) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 480);
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        EXPECT_EQ(pieces->unit(), whole_blocks_only(cipher.mode) ? 16u
                                  : cipher.mode == Mode::xts     ? 48u
                                                                 : 1u);
        EXPECT_EQ(pieces->held(), 0u);
        if (pieces->unit() == 1) return;
        Bytes out(w.in.size());
        EXPECT_EQ(*pieces->update(HostIn(w.in).first(7), {}), 0u);
        EXPECT_EQ(pieces->held(), 7u);
        // Too little room for what is now whole: an error that changes nothing.
        EXPECT_EQ(pieces->update(HostIn(w.in).subspan(7, 50), HostOut(out).first(15)).code(),
                  Code::invalid_argument);
        EXPECT_EQ(pieces->held(), 7u);
        Bytes data = w.in;  // and while something is held back, not in place
        const HostOut piece = HostOut(data).subspan(7, 96);
        EXPECT_EQ(pieces->update(piece, piece).code(), Code::overlap);
        EXPECT_EQ(data, w.in);
        EXPECT_EQ(pieces->held(), 7u);
        ASSERT_EQ(feed(*pieces, w, {w.in.size() - 7}, {}, 7), "");

        pieces = begin(w);
        ASSERT_TRUE(pieces);
        ASSERT_TRUE(pieces->update(HostIn(w.in).first(3), {}));
        EXPECT_EQ(pieces->finish(out).code(), Code::ragged_length);
        ASSERT_EQ(feed(*pieces, w, {w.in.size() - 3}, {}, 3), "");  // which goes on
        if (cipher.mode != Mode::xts) return;
        ASSERT_TRUE(pieces->restart(w.start));
        ASSERT_TRUE(pieces->update(HostIn(w.in).first(20), {}));
        EXPECT_EQ(pieces->finish(HostOut(out).first(19)).code(), Code::invalid_argument);
        ASSERT_EQ(*pieces->finish(out), 20u);  // a last sector that is short
        EXPECT_EQ(
            Bytes(out.begin(), out.begin() + 20),
            oracle(w.raw, cipher, {w.in.data(), nullptr, 20, nullptr, 0, nullptr, w.start.first})
                .out);
    });
}

TEST_P(InPieces, NoPlaintextBeforeTheTagIsVerified) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 1000);
        if (!w.opens_gcm()) return;
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        Bytes out(w.in.size(), Poisoned::kPoison);
        ASSERT_TRUE(pieces->authenticate(w.in));
        Bytes forged = w.answer.tag;
        forged[7] ^= 1;
        EXPECT_EQ(pieces->verify(forged).code(), Code::authentication);
        EXPECT_EQ(pieces->update(w.in, out).code(), Code::invalid_argument);
        // No second guess at the tag either.
        EXPECT_EQ(pieces->verify(w.answer.tag).code(), Code::invalid_argument);
        EXPECT_EQ(pieces->finish().code(), Code::invalid_argument);
        EXPECT_EQ(out, Bytes(out.size(), Poisoned::kPoison));

        auto one_pass = begin(w);
        ASSERT_TRUE(one_pass);
        ASSERT_TRUE(one_pass->update_unverified(w.in, out));
        EXPECT_EQ(one_pass->verify(forged).code(), Code::authentication);
        EXPECT_EQ(one_pass->verify(w.answer.tag).code(), Code::invalid_argument);
    });
}

// What differs from the first pass, or is less of it, does not pass for it.
TEST_P(InPieces, TheSecondPassMustBeOfTheSameData) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 1000);
        if (!w.opens_gcm()) return;
        for (const bool less : {false, true}) {
            auto pieces = begin(w);
            ASSERT_TRUE(pieces) << pieces.error().message;
            ASSERT_TRUE(pieces->authenticate(w.in));
            ASSERT_TRUE(pieces->verify(w.answer.tag));
            Bytes other = w.in, out(w.in.size());
            if (less)
                other.pop_back();
            else
                other.back() ^= 1;
            ASSERT_TRUE(pieces->update(other, HostOut(out).first(other.size())));
            EXPECT_EQ(pieces->finish().code(), Code::authentication);
            EXPECT_EQ(pieces->finish().code(), Code::invalid_argument);
            EXPECT_EQ(pieces->update(w.in, out).code(), Code::invalid_argument);
        }
    });
}

TEST_P(InPieces, NothingButATag) {
    for_each_cipher([&](const Cipher& cipher) {
        Whole w = message(cipher, 0);
        if (!authenticates(cipher.mode)) return;
        w.aad.clear();
        Message nothing;
        nothing.start = w.start.first;
        nothing.start_rest = w.start.rest;
        w.answer = oracle(w.raw, cipher, nothing);
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        Bytes tag(16);
        if (w.seals()) {
            EXPECT_EQ(pieces->finish(HostOut(tag).first(5)).code(),
                      Code::invalid_argument);  // changes nothing
            ASSERT_EQ(*pieces->finish(tag), 16u);
            EXPECT_EQ(tag, w.answer.tag);
            return;
        }
        ASSERT_TRUE(pieces->verify(w.answer.tag));
        EXPECT_TRUE(pieces->update({}, {}));
        EXPECT_TRUE(pieces->finish());
    });
}

TEST_P(InPieces, BadInputAndLimits) {
    for_each_cipher([&](const Cipher& cipher) {
        const Whole w = message(cipher, 96);
        auto pieces = begin(w);
        ASSERT_TRUE(pieces) << pieces.error().message;
        const std::uint8_t* const nothing = nullptr;
        Bytes in = pattern(64), out(64);
        if (!w.opens_gcm()) {
            EXPECT_EQ(pieces->update(HostIn(nothing, 48), out).code(), Code::invalid_argument);
            EXPECT_EQ(pieces->update(HostIn(in).first(48), HostOut(out).first(5)).code(),
                      Code::invalid_argument);
            EXPECT_EQ(pieces->update(HostIn(out).first(48), HostOut(out).subspan(4, 48)).code(),
                      Code::overlap);
        }
        if (authenticates(cipher.mode)) {
            EXPECT_EQ(pieces->aad(HostIn(nothing, 5)).code(), Code::invalid_argument);
            // Spans of more bytes than there are: refused by their size, and never read.
            EXPECT_EQ(pieces->aad(HostIn(in.data(), gcm::kMaxAad + 1)).code(), Code::limit);
            const std::uint64_t most = modes::most(cipher.mode).data;
            const HostOut much(out.data(), most + 1);
            EXPECT_EQ(w.seals() ? pieces->update(much, much).code()
                                : pieces->update_unverified(much, much).code(),
                      Code::limit);
            ASSERT_TRUE(pieces->restart(w.start));
            if (!w.seals()) {
                EXPECT_EQ(pieces->authenticate(HostIn(nothing, 5)).code(), Code::invalid_argument);
                ASSERT_TRUE(pieces->authenticate(HostIn(in).first(1)));
                EXPECT_EQ(pieces->authenticate(HostIn(in.data(), most)).code(), Code::limit);
            }
        }
        if (cipher.mode == Mode::gcm_ctr && w.seals()) {  // its counter of 32 bits would wrap
            Block last = w.start.first;
            std::fill(last.end() - 4, last.end(), std::uint8_t{0xff});
            ASSERT_TRUE(pieces->restart(last));
            EXPECT_TRUE(pieces->update(HostIn(in).first(9), HostOut(out).first(9)));
            EXPECT_EQ(pieces->update(HostIn(in).first(8), HostOut(out).first(8)).code(),
                      Code::limit);
            // What is refused changes nothing; and the end of a piece is no way past the limit.
            EXPECT_TRUE(pieces->update(HostIn(in).first(7), HostOut(out).first(7)));
            EXPECT_EQ(pieces->update(HostIn(in).first(1), HostOut(out).first(1)).code(),
                      Code::limit);
            EXPECT_TRUE(pieces->finish());
        }
        if (cipher.mode == Mode::xts) {  // neither do numbers of sectors begin anew
            Block last;
            last.fill(0xff);
            ASSERT_TRUE(pieces->restart(last));
            EXPECT_TRUE(pieces->update(HostIn(in).first(48), HostOut(out).first(48)));
            EXPECT_EQ(pieces->update(HostIn(in).first(48), HostOut(out).first(48)).code(),
                      Code::limit);
            EXPECT_TRUE(pieces->update(HostIn(in).first(20), {}));
            EXPECT_EQ(pieces->finish(out).code(), Code::limit);
        }
    });
}

// What a forced backend does not do for one message it says at the first piece, if not before.
TEST_P(InPieces, WhatCannotBeDoneIsSaid) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Cipher cipher{mode, direction};
            if (engine().explain({cipher, usual_bits(mode), 4096, 1}).options.front().possible)
                continue;
            const KeyRing key({pattern_key(mode)}, mode);
            Bytes in = pattern(2048), out(2048, Poisoned::kPoison);
            auto pieces = engine().begin(cipher, key.keys[0], {});
            const Code code = pieces ? pieces->update(in, out).code() : pieces.code();
            EXPECT_EQ(code, Code::unsupported) << name(mode);
            EXPECT_EQ(out, Bytes(2048, Poisoned::kPoison));
        }
}

DAEL_FOR_EVERY_ENGINE(InPieces);

}  // namespace
