// SPDX-License-Identifier: Apache-2.0
// GCM in pieces: every backend gives OpenSSL's bytes and tag however the pieces are cut; and the
// sealer and the opener above them keep the order of calls, the limits and the plaintext.
#include <daelstrom/gcm_stream.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/gcm_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Calls `work` with runs of bytes of random sizes, empty ones among them; some are long where there
// is much.
void in_pieces(Random& random, std::size_t size, auto work) {
    for (std::size_t at = 0; at < size;) {
        const std::size_t most = random.below(3) ? 40 : std::max<std::size_t>(3000, size / 20);
        const std::size_t piece = std::min(size - at, random.below(most));
        work(at, piece);
        at += piece;
    }
}

class GcmStreams : public ::testing::TestWithParam<Target> {
  protected:
    void SetUp() override {
        const Target& target = GetParam();
        auto opened = core::open_backend(target.backend, {target.isa, 0});
        if (!opened) GTEST_SKIP() << opened.error().message;
        backend_ = std::move(*opened);
    }

    std::unique_ptr<core::Backend> backend_;
    Random random_{123456789};
};

TEST_P(GcmStreams, AnyPieces) {
    const std::size_t longest = GetParam().slow ? 200 : 20000;
    for (int i = 0; i < (GetParam().slow ? 30 : 300); ++i) {
        const Bytes raw = random_.bytes(16 + 8 * random_.below(3));
        const Bytes iv = random_.bytes(random_.below(2) ? kNonceSize : 1 + random_.below(128));
        const Bytes aad = random_.bytes(random_.below(4) ? random_.below(100) : 0);
        const bool many_pieces = GetParam().far() && i % 100 == 99;
        const Bytes plain = random_.bytes(many_pieces ? 9'000'001
                                          : i % 10    ? random_.below(longest)
                                                      : 0);
        const Sealed expected = gcm_oracle(raw, iv, aad, plain);
        const Key key = *Key::import(raw);
        const auto keys = backend_->prepare_keys(std::span(&key, 1));
        ASSERT_TRUE(keys);
        for (const bool seal : {true, false}) {
            const auto direction = seal ? Direction::encrypt : Direction::decrypt;
            const Bytes& in = seal ? plain : expected.ciphertext;
            const bool in_place = random_.below(2) == 0;
            Bytes out = in_place ? in : Bytes(in.size(), Poisoned::kPoison);
            const auto stream = backend_->gcm_stream(direction, **keys, 0, iv);
            ASSERT_TRUE(stream) << stream.error().message;
            in_pieces(random_, aad.size(), [&](std::size_t at, std::size_t size) {
                ASSERT_TRUE((*stream)->aad(std::span(aad).subspan(at, size)));
            });
            in_pieces(random_, in.size(), [&](std::size_t at, std::size_t size) {
                const HostIn from = in_place ? HostIn(out) : HostIn(in);
                ASSERT_TRUE((*stream)->update(from.subspan(at, size), out.data() + at));
            });
            const auto tag = (*stream)->finish();
            ASSERT_TRUE(tag);
            ASSERT_EQ(difference(seal ? expected.ciphertext : plain, out), "") << seal;
            ASSERT_EQ(difference(expected.tag, *tag), "")
                << "AAD of " << aad.size() << ", " << in.size() << " bytes, seals: " << seal;
        }
    }
}

std::vector<Target> below_the_engine(Target::Family family) {
    auto list = targets(family);
    std::erase_if(list, [](const Target& target) { return target.level == Target::Level::engine; });
    return list;
}
INSTANTIATE_TEST_SUITE_P(Host, GcmStreams,
                         ::testing::ValuesIn(below_the_engine(Target::Family::Host)), target_name);
INSTANTIATE_TEST_SUITE_P(Gpu, GcmStreams,
                         ::testing::ValuesIn(below_the_engine(Target::Family::Gpu)), target_name);
INSTANTIATE_TEST_SUITE_P(OpenCl, GcmStreams,
                         ::testing::ValuesIn(below_the_engine(Target::Family::OpenCl)),
                         target_name);

class GcmInPieces : public ::testing::Test {
  protected:
    GcmOpener opener() { return *engine_.gcm_opener(key_, iv_); }
    GcmSealer sealer() { return *engine_.gcm_sealer(key_, iv_); }

    Engine engine_ = *Engine::open({.threads = 1, .calibrated = false});
    const Bytes raw_ = random_bytes(32, 1), iv_ = random_bytes(12, 2), aad_ = random_bytes(33, 3);
    const Bytes plain_ = random_bytes(50001, 4);
    const Key key_ = *Key::import(raw_);
    const Sealed sealed_ = gcm_oracle(raw_, iv_, aad_, plain_);
    Bytes out_ = Bytes(plain_.size(), Poisoned::kPoison), tag_ = Bytes(16);
};

TEST_F(GcmInPieces, SealsAndOpens) {
    Random random(5);
    GcmSealer sealer = this->sealer();
    in_pieces(random, aad_.size(), [&](std::size_t at, std::size_t size) {
        ASSERT_TRUE(sealer.aad(HostIn(aad_).subspan(at, size)));
    });
    in_pieces(random, plain_.size(), [&](std::size_t at, std::size_t size) {
        ASSERT_TRUE(
            sealer.update(HostIn(plain_).subspan(at, size), HostOut(out_).subspan(at, size)));
    });
    ASSERT_TRUE(sealer.finish(tag_));
    EXPECT_EQ(out_, sealed_.ciphertext);
    EXPECT_EQ(tag_, sealed_.tag);

    for (const std::size_t tag_size : {4, 12, 16}) {
        GcmOpener opener = this->opener();
        out_ = sealed_.ciphertext;
        ASSERT_TRUE(opener.aad(aad_));
        in_pieces(random, out_.size(), [&](std::size_t at, std::size_t size) {
            ASSERT_TRUE(opener.authenticate(HostIn(out_).subspan(at, size)));
        });
        ASSERT_TRUE(opener.verify(HostIn(tag_).first(tag_size)));
        EXPECT_EQ(out_, sealed_.ciphertext);
        in_pieces(random, out_.size(), [&](std::size_t at, std::size_t size) {
            const HostOut piece = HostOut(out_).subspan(at, size);
            ASSERT_TRUE(opener.decrypt(piece, piece));
        });
        EXPECT_EQ(out_, plain_);
    }
}

TEST_F(GcmInPieces, NothingButATag) {
    const Sealed expected = gcm_oracle(raw_, iv_, {}, {});
    ASSERT_TRUE(sealer().finish(tag_));
    EXPECT_EQ(tag_, expected.tag);
    GcmOpener opener = this->opener();
    ASSERT_TRUE(opener.verify(tag_));
    EXPECT_TRUE(opener.decrypt({}, {}));
}

TEST_F(GcmInPieces, ASealerIsSpentByItsTag) {
    GcmSealer sealer = this->sealer();
    ASSERT_TRUE(sealer.update(plain_, out_));
    EXPECT_EQ(sealer.aad(aad_).code(), Code::invalid_argument);  // too late
    Bytes wrong(5);
    EXPECT_EQ(sealer.finish(wrong).code(), Code::invalid_argument);  // and changes nothing
    ASSERT_TRUE(sealer.finish(tag_));
    EXPECT_EQ(tag_, gcm_oracle(raw_, iv_, {}, plain_).tag);
    EXPECT_EQ(sealer.update(plain_, out_).code(), Code::invalid_argument);
    EXPECT_EQ(sealer.aad(aad_).code(), Code::invalid_argument);
    EXPECT_EQ(sealer.finish(tag_).code(), Code::invalid_argument);
}

TEST_F(GcmInPieces, NoPlaintextBeforeTheTagIsVerified) {
    GcmOpener opener = this->opener();
    EXPECT_EQ(opener.decrypt(sealed_.ciphertext, out_).code(), Code::invalid_argument);
    ASSERT_TRUE(opener.aad(aad_));
    ASSERT_TRUE(opener.authenticate(sealed_.ciphertext));
    EXPECT_EQ(opener.decrypt(sealed_.ciphertext, out_).code(), Code::invalid_argument);
    Bytes forged = sealed_.tag;
    forged[7] ^= 1;
    EXPECT_EQ(opener.verify(forged).code(), Code::authentication);
    EXPECT_EQ(opener.decrypt(sealed_.ciphertext, out_).code(), Code::invalid_argument);
    // No second guess at the tag either.
    EXPECT_EQ(opener.verify(sealed_.tag).code(), Code::invalid_argument);
    EXPECT_EQ(out_, Bytes(out_.size(), Poisoned::kPoison));
}

TEST_F(GcmInPieces, TheSecondPassMustBeOfTheSameData) {
    GcmOpener opener = this->opener();
    ASSERT_TRUE(opener.aad(aad_));
    ASSERT_TRUE(opener.authenticate(sealed_.ciphertext));
    EXPECT_EQ(opener.verify(Bytes(3)).code(), Code::invalid_argument);  // no tag has 3 bytes
    ASSERT_TRUE(opener.verify(sealed_.tag));
    EXPECT_EQ(opener.aad(aad_).code(), Code::invalid_argument);
    EXPECT_EQ(opener.authenticate(aad_).code(), Code::invalid_argument);
    Bytes longer(plain_.size() + 1), longer_out(plain_.size() + 1);
    EXPECT_EQ(opener.decrypt(longer, longer_out).code(), Code::invalid_argument);
    Bytes other = sealed_.ciphertext;
    other.back() ^= 1;
    EXPECT_EQ(opener.decrypt(other, out_).code(), Code::authentication);
    EXPECT_EQ(out_, Bytes(out_.size()));  // wiped
    EXPECT_EQ(opener.decrypt(sealed_.ciphertext, out_).code(), Code::invalid_argument);
}

TEST_F(GcmInPieces, BadInputAndLimits) {
    EXPECT_EQ(engine_.gcm_sealer(key_, {}).code(), Code::iv_size);
    EXPECT_EQ(engine_.gcm_opener(key_, {}).code(), Code::iv_size);
    GcmSealer sealer = this->sealer();
    GcmOpener opener = this->opener();
    const std::uint8_t* const nothing = nullptr;
    // Spans of more bytes than there are: refused by their size, and never read.
    const HostIn much_data(plain_.data(), kGcmMostData), more_aad(aad_.data(), kGcmMostAad + 1);
    ASSERT_TRUE(sealer.update(HostIn(plain_).first(1), HostOut(out_).first(1)));
    const HostOut in_place(out_.data(), kGcmMostData);
    EXPECT_EQ(sealer.update(in_place, in_place).code(), Code::limit);
    EXPECT_EQ(opener.aad(more_aad).code(), Code::limit);
    ASSERT_TRUE(opener.authenticate(HostIn(plain_).first(1)));
    EXPECT_EQ(opener.authenticate(much_data).code(), Code::limit);
    EXPECT_EQ(sealer.update(plain_, HostOut(out_).first(5)).code(), Code::invalid_argument);
    EXPECT_EQ(sealer.update(HostIn(nothing, 5), HostOut(out_).first(5)).code(),
              Code::invalid_argument);
    EXPECT_EQ(sealer.update(HostIn(out_).first(20), HostOut(out_).subspan(4, 20)).code(),
              Code::overlap);
    EXPECT_EQ(opener.authenticate(HostIn(nothing, 5)).code(), Code::invalid_argument);
}

}  // namespace
