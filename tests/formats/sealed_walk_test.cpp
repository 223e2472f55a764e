// SPDX-License-Identifier: Apache-2.0
// Random walks over sealed streams, against a model: what is stored is changed under the readers
// (cut, lengthened, spliced of two streams, put back in an older version), and whatever is read is
// what one version says, or an error; an emptiness and an end included. Refused arguments cost
// nothing, whoever seals writes one stream however its chunks are cut, and a child of fork() reads
// on, but does not write on.
#include <thread>

#include "formats/keysets.hpp"
#include "support/child.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace dael::test {
namespace {

using sealed::Chunk;
using sealed::Opener;
using sealed::Sealer;

constexpr std::uint8_t kPoison = 0xa5;

struct Version {
    Bytes plain, sealed;
};

// Some versions of one object under one key, and what is stored at the moment.
class Walk {
  public:
    explicit Walk(std::uint64_t seed) : random_(seed) {
        const std::size_t versions = 2 + random_.below(2);
        for (std::size_t i = 0; i < versions; ++i) {
            Version version;
            version.plain = random_.bytes(any_size());
            version.sealed = write(version.plain);
            versions_.push_back(std::move(version));
        }
        store(random_.below(versions));
    }

    void step() {
        switch (random_.below(12)) {
            case 0:
                return store(random_.below(versions_.size()));
            case 1:
                return damage();
            case 2:
                return open_file();
            case 3:
            case 4:
            case 5:
                return read_file();
            case 6:
                return check_file();
            case 7:
                return open_whole();
            case 8:
                return open_stream();
            case 9:
                return open_chunk();
            case 10:
                return seal_stream();
            default:
                return in_a_child();
        }
    }

  private:
    std::size_t any_size() {
        constexpr std::size_t kEdges[] = {0, 0, 1, 24, 25, 72, 73, 24 + 48 * 5};
        return random_.below(3) != 0 ? kEdges[random_.below(std::size(kEdges))]
                                     : random_.below(700);
    }

    // A stream in chunks of any sizes, with calls between that are refused.
    Bytes write(const Bytes& plain) {
        auto sealer = must(Sealer::start(engine_, keys_, aad_));
        const auto& layout = sealer.layout();
        const std::uint64_t end = layout.segments(plain.size());
        Bytes stream;
        for (std::uint64_t first = 0; first < end;) {
            const std::uint64_t count = 1 + random_.below(4);
            const bool last = first + count >= end;
            const std::uint64_t from = layout.plain_at(first);
            const std::uint64_t to = last ? plain.size() : layout.plain_at(first + count);
            const HostIn part = HostIn(plain).subspan(from, to - from);
            const Chunk chunk = must(sealer.next(part.size(), last));
            Bytes out(chunk.sealed.size, kPoison);
            if (random_.below(4) == 0) {
                const Bytes wrong = random_.bytes(part.size() + 1);
                EXPECT_EQ(sealer.seal(wrong, out, false).code(), Code::invalid_argument);
                EXPECT_EQ(sealer.seal(part, HostOut(out).first(out.size() - 1), last).code(),
                          Code::invalid_argument);
                EXPECT_EQ(out, Bytes(out.size(), kPoison)) << "refused, but written";
            }
            must(sealer.seal(part, out, last));
            stream.insert(stream.end(), out.begin(), out.end());
            first += count;
        }
        EXPECT_FALSE(sealer.seal({}, {}, false)) << "after the last chunk";
        return stream;
    }

    void store(std::size_t version) { stored_ = versions_[version].sealed; }

    void damage() {
        if (stored_.empty()) return;
        const std::size_t at = random_.below(stored_.size());
        switch (random_.below(5)) {
            case 0:
                stored_.resize(at);
                break;
            case 1: {
                const Bytes more = random_.bytes(1 + random_.below(130));
                stored_.insert(stored_.end(), more.begin(), more.end());
                break;
            }
            case 2:
                stored_[at] ^= static_cast<std::uint8_t>(1 + random_.below(255));
                break;
            case 3: {  // one version's beginning and another's rest, at a segment's border
                const Bytes& other = versions_[random_.below(versions_.size())].sealed;
                const std::size_t cut = 64 * random_.below(1 + stored_.size() / 64);
                stored_.resize(std::min(cut, stored_.size()));
                if (other.size() > cut)
                    stored_.insert(stored_.end(), other.begin() + static_cast<std::ptrdiff_t>(cut),
                                   other.end());
                break;
            }
            default:  // a segment moved over another
                if (stored_.size() >= 128) {
                    const std::size_t to = 64 * random_.below(stored_.size() / 64);
                    const std::size_t from = 64 * random_.below(stored_.size() / 64);
                    std::copy_n(Bytes(stored_).begin() + static_cast<std::ptrdiff_t>(from), 64,
                                stored_.begin() + static_cast<std::ptrdiff_t>(to));
                }
        }
    }

    const Version* intact() const {
        for (const Version& version : versions_)
            if (version.sealed == stored_) return &version;
        return nullptr;
    }
    const Version* of_header() const {
        for (const Version& version : versions_)
            if (stored_.size() >= 24 &&
                std::equal(version.sealed.begin(), version.sealed.begin() + 24, stored_.begin()))
                return &version;
        return nullptr;
    }
    // Whether the store has these bytes of a version's. Those of the header count when a stream is
    // opened, and are not looked at again.
    bool same(const Version& version, std::uint64_t at, std::uint64_t size) const {
        const auto from = static_cast<std::ptrdiff_t>(std::max(at, layout_.header));
        return at + size <= version.sealed.size() && at + size <= stored_.size() &&
               std::equal(stored_.begin() + from,
                          stored_.begin() + static_cast<std::ptrdiff_t>(at + size),
                          version.sealed.begin() + from);
    }

    void open_file() {
        file_.reset();
        opened_ = of_header();
        size_ = stored_.size();
        auto file = sealed::File::open(
            engine_, keys_, aad_,
            [this](std::uint64_t at, HostOut out) -> Result<> {
                if (at + out.size() > stored_.size())
                    return Error{Code::io, "the store has no such bytes"};
                std::copy_n(stored_.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            size_);
        if (file) file_.emplace(std::move(*file));
        if (intact()) {
            EXPECT_TRUE(file_.has_value());
        }
    }

    // What a range of an opened file may say: its version's bytes, if all of their segments are
    // there, and if the end is where its version has it.
    bool may_read(std::uint64_t at, std::uint64_t size) const {
        const auto chunk = layout_.covering({at, size}, file_->size());
        if (!opened_ || !chunk || !same(*opened_, chunk->sealed.at, chunk->sealed.size))
            return false;
        return chunk->last == (chunk->sealed.at + chunk->sealed.size == opened_->sealed.size());
    }

    void read_file() {
        if (!file_) return open_file();
        const std::uint64_t all = file_->size();
        const std::uint64_t at = random_.below(3) == 0 ? all : random_.below(all + 1);
        const std::uint64_t size = random_.below(3) == 0 ? 0 : random_.below(all - at + 1);
        Bytes out(size, kPoison);
        const auto ran = file_->read(at, out);
        EXPECT_EQ(bool(ran), may_read(at, size)) << size << " bytes from " << at << " of " << all;
        if (ran && opened_)
            EXPECT_TRUE(std::equal(out.begin(), out.end(),
                                   opened_->plain.begin() + static_cast<std::ptrdiff_t>(at)));
        else
            EXPECT_EQ(out, Bytes(size, 0));
        Bytes beyond(1, kPoison);
        EXPECT_EQ(file_->read(all, beyond).code(), Code::invalid_argument);
        EXPECT_EQ(beyond[0], kPoison);
    }

    void check_file() {
        if (!file_) return open_file();
        EXPECT_EQ(bool(file_->check_size()), may_read(file_->size(), 0));
    }

    void open_whole() {
        const Version* const version = intact();
        Bytes out(stored_.size() + 1, kPoison);
        const auto done = sealed::open(engine_, keys_, aad_, stored_, out);
        EXPECT_EQ(bool(done), version != nullptr);
        if (!done) {
            const bool forged = done.code() == Code::authentication;
            EXPECT_EQ(out, Bytes(out.size(), forged ? 0 : kPoison)) << done.error().message;
            return;
        }
        ASSERT_EQ(done->size, version->plain.size());
        EXPECT_TRUE(std::equal(version->plain.begin(), version->plain.end(), out.begin()));
        if (version->plain.empty()) return;
        Bytes small(version->plain.size() - 1, kPoison);
        EXPECT_EQ(sealed::open(engine_, keys_, aad_, stored_, small).code(),
                  Code::invalid_argument);
        EXPECT_EQ(small, Bytes(small.size(), kPoison)) << "refused, but wiped";
    }

    void open_stream() {
        std::size_t at = 0;
        Bytes out;
        const auto done = sealed::open(
            engine_, keys_, aad_,
            [&](HostOut room) -> Result<std::size_t> {
                const std::size_t size =
                    std::min({room.size(), stored_.size() - at, 1 + random_.below(100)});
                std::copy_n(stored_.begin() + static_cast<std::ptrdiff_t>(at), size, room.begin());
                at += size;
                return size;
            },
            [&](HostIn bytes) -> Result<> {
                out.insert(out.end(), bytes.begin(), bytes.end());
                return {};
            });
        const Version* const whole = intact();
        EXPECT_EQ(bool(done), whole != nullptr);
        const Version* const version = of_header();
        ASSERT_TRUE(out.empty() || version);
        if (!out.empty()) {
            ASSERT_LE(out.size(), version->plain.size());
            EXPECT_TRUE(std::equal(out.begin(), out.end(), version->plain.begin()));
        }
        if (done) {
            EXPECT_EQ(out.size(), whole->plain.size());
            EXPECT_EQ(done->size, out.size());
        }
    }

    // Chunks in any order, of an opener that outlives what is stored.
    void open_chunk() {
        if (!opener_ || random_.below(4) == 0) {
            opener_version_ = of_header();
            const std::size_t head = std::min(stored_.size(), Opener::head_size(keys_));
            auto opener = Opener::start(engine_, keys_, aad_, HostIn(stored_).first(head),
                                        head == stored_.size());
            opener_.reset();
            if (!opener) return;
            opener_.emplace(std::move(*opener));
        }
        const std::uint64_t segments = (stored_.size() + 63) / 64;
        if (segments == 0) return;
        const std::uint64_t first = random_.below(segments);
        const std::uint64_t count = 1 + random_.below(segments - first);
        const std::uint64_t size = std::min<std::uint64_t>(count * 64, stored_.size() - first * 64);
        const bool last = random_.below(5) == 0 ? random_.below(2) == 0 : first + count == segments;
        const auto chunk = opener_->layout().of_sealed(first, size, last);
        if (!chunk) return;
        const HostIn bytes = HostIn(stored_).subspan(first * 64, size);
        Bytes out(chunk->plain.size, kPoison), place(bytes.begin(), bytes.end());
        const bool right = opener_version_ && same(*opener_version_, first * 64, size) &&
                           last == (first * 64 + size == opener_version_->sealed.size());
        EXPECT_EQ(bool(opener_->open(*chunk, bytes, out)), right);
        EXPECT_EQ(bool(opener_->open_in_place(*chunk, place)), right);
        if (right)
            EXPECT_TRUE(std::equal(
                out.begin(), out.end(),
                opener_version_->plain.begin() + static_cast<std::ptrdiff_t>(chunk->plain.at)));
        else
            EXPECT_TRUE(all_are(out, 0) && all_are(place, 0));
        Bytes wrong(out.size() + 1, kPoison);
        EXPECT_EQ(opener_->open(*chunk, bytes, wrong).code(), Code::invalid_argument);
        EXPECT_TRUE(all_are(wrong, kPoison));
    }

    // A new version, through callbacks; a reading that fails makes no stream that opens.
    void seal_stream() {
        const Bytes plain = random_.bytes(any_size());
        const bool fails = random_.below(4) == 0;
        std::size_t at = 0;
        Bytes out;
        const auto done = sealed::seal(
            engine_, keys_, aad_,
            [&](HostOut room) -> Result<std::size_t> {
                if (fails && at == plain.size()) return Error{Code::io, "it ends here"};
                const std::size_t size =
                    std::min({room.size(), plain.size() - at, 1 + random_.below(200)});
                std::copy_n(plain.begin() + static_cast<std::ptrdiff_t>(at), size, room.begin());
                at += size;
                return size;
            },
            [&](HostIn bytes) -> Result<> {
                out.insert(out.end(), bytes.begin(), bytes.end());
                return {};
            });
        EXPECT_EQ(bool(done), !fails);
        Bytes opened(out.size() + 1);
        EXPECT_EQ(bool(sealed::open(engine_, keys_, aad_, out, opened)), !fails);
        if (!fails && versions_.size() < 4) {
            // Pointers to versions are forgotten with what refers to them.
            file_.reset();
            opener_.reset();
            versions_.push_back({plain, out});
        }
    }

    void in_a_child() {
        if (kSanitized || random_.below(8) != 0) return;  // some a walk
        auto sealer = must(Sealer::start(engine_, keys_, aad_));
        const Version* const whole = intact();
        expect_in_a_child([&] {
            Bytes out(stored_.size() + 64);
            if (sealer.next(24, true) || sealer.seal(Bytes(24), out, true)) return false;
            const auto done = sealed::open(engine_, keys_, aad_, stored_, out);
            return bool(done) == (whole != nullptr) &&
                   (!whole || std::equal(whole->plain.begin(), whole->plain.end(), out.begin()));
        });
        Bytes out(64);
        EXPECT_TRUE(sealer.seal(Bytes(24), out, true));
    }

    Random random_;
    Engine engine_ = engine();
    sealed::Keys keys_ = small_keys();
    const Bytes aad_ = pattern(5);
    const sealed::Layout layout_{64, 24};
    std::vector<Version> versions_;
    Bytes stored_;
    std::optional<sealed::File> file_;
    std::uint64_t size_ = 0;  // of the stream, as file_ was told
    const Version* opened_ = nullptr;
    std::optional<Opener> opener_;
    const Version* opener_version_ = nullptr;
};

TEST(SealedWalk, WhatIsReadIsOfOneVersionOrAnError) {
    for (Walks walks("sealed streams", thorough(150, 25)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Walk walk(walks.seed());
        for (int i = 0; i < 60; ++i) {
            walk.step();
            walks.step();
            if (testing::Test::HasFailure()) return;
        }
    }
}

// One File and one Opener, read by many threads at once while what is stored changes under them.
TEST(SealedWalk, ManyThreadsReadOneFile) {
    Engine e = engine();
    const auto keys = small_keys();
    const Bytes plain = random_bytes(24 + 48 * 20 + 7, 5), other = random_bytes(plain.size(), 6);
    const Bytes streams[2] = {seal(e, keys, plain), seal(e, keys, other)};
    std::atomic<int> now{0};
    const auto file = std::make_unique<sealed::File>(must(sealed::File::open(
        e, keys, {},
        [&](std::uint64_t at, HostOut out) -> Result<> {
            std::copy_n(streams[now].begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                        out.begin());
            return {};
        },
        streams[0].size())));
    std::atomic<std::uint64_t> good{0}, refused{0};
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            Random random(thread);
            for (int round = 0; round < 150; ++round) {
                const std::uint64_t at = random.below(plain.size() + 1);
                Bytes out(random.below(plain.size() - at + 1), kPoison);
                const auto ran = file->read(at, out);
                ++(ran ? good : refused);
                if (ran)
                    EXPECT_TRUE(std::equal(out.begin(), out.end(),
                                           plain.begin() + static_cast<std::ptrdiff_t>(at)));
                else
                    EXPECT_TRUE(all_are(out, 0) && ran.code() == Code::authentication);
                if (round % 20 == 0) now = random.below(2) == 0 ? 1 : 0;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(good + refused, 600u);
}

}  // namespace
}  // namespace dael::test
