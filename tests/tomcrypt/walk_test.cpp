// SPDX-License-Identifier: Apache-2.0
// Random walks over LibTomCrypt's calls with daelstrom below it, beside plain LibTomCrypt: contexts
// of ECB, CBC, CTR and XTS in any order, copied, abandoned, done twice, in place, apart and
// overlapping; GCM, CCM and OMAC of one call; keys forgotten, engines exchanged and the descriptor
// taken out and put back meanwhile. By one thread, and by several at once.
#include <daelstrom_tomcrypt.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/thorough.hpp"
#include "support/walks.hpp"
#include "support/xorshift.hpp"
#include "tomcrypt/plain.hpp"

namespace {

using Bytes = std::vector<unsigned char>;

using Random = dael::test::Xorshift;

enum class Mode { none, ecb, cbc, ctr, xts };

// One context on either side.
struct Pair {
    Mode mode = Mode::none;
    union State {
        symmetric_ECB ecb;
        symmetric_CBC cbc;
        symmetric_CTR ctr;
        symmetric_xts xts;
    } of[2];
};

class TomCryptWalk {
  public:
    // `shared`: other threads are in calls, so that nothing is registered or exchanged.
    TomCryptWalk(Random& random, int ours, bool shared)
        : random_(random), cipher_{plain_aes(), ours}, shared_(shared) {
        for (Bytes& key : keys_) key = random_.bytes(32);
    }
    ~TomCryptWalk() {
        if (!shared_) daelstrom_tomcrypt_use(nullptr);
    }
    TomCryptWalk(const TomCryptWalk&) = delete;
    TomCryptWalk& operator=(const TomCryptWalk&) = delete;

    // "": the same on both sides; else what differs, and the steps that lead to it.
    template <class Step>
    std::string run(int steps, dael_engine* other, Step step) {
        other_ = other;
        for (int i = 0; i < steps && fault_.empty(); ++i) {
            step();
            one();
        }
        for (Pair& pair : pairs_) finish(pair);
        return fault_.empty() ? "" : fault_ + "\n" + log_;
    }

  private:
    static constexpr std::size_t kAround = 64;

    void note(const std::string& what) { log_ += "  " + what + "\n"; }
    void same(const std::string& what, int plain, int mine, bool right = true) {
        if (plain == mine && right) return;
        if (fault_.empty())
            fault_ = what + ": plain " + std::to_string(plain) + ", ours " + std::to_string(mine) +
                     (right ? "" : ", other bytes");
    }
    template <class Call>
    int both(const std::string& what, Call call) {
        note(what);
        const int plain = call(0), mine = call(1);
        same(what, plain, mine);
        return mine;
    }
    const Bytes& key() { return keys_[random_.below(std::size(keys_))]; }
    int key_size() { return static_cast<int>(16 + 8 * random_.below(3)); }
    Pair& any() { return pairs_[random_.below(std::size(pairs_))]; }

    void start() {
        Pair& pair = any();
        if (random_.one_in(2)) finish(pair);  // or abandoned
        pair.mode = Mode::none;
        const auto mode = static_cast<Mode>(1 + random_.below(4));
        const Bytes& k = key();
        const Bytes iv = random_.bytes(16);
        const int size = random_.one_in(12) ? 17 : key_size();
        const bool big = random_.one_in(2);
        const int counter = (big ? CTR_COUNTER_BIG_ENDIAN : CTR_COUNTER_LITTLE_ENDIAN) |
                            static_cast<int>(random_.below(17)) |
                            (random_.one_in(4) ? LTC_CTR_RFC3686 : 0);
        const int ok =
            both("start " + std::to_string(static_cast<int>(mode)) + " of " + std::to_string(size),
                 [&](int side) {
                     Pair::State& s = pair.of[side];
                     std::memset(static_cast<void*>(&s), 0xee, sizeof s);
                     const int c = cipher_[side];
                     switch (mode) {
                         case Mode::ecb:
                             return ecb_start(c, k.data(), size, 0, &s.ecb);
                         case Mode::cbc:
                             return cbc_start(c, iv.data(), k.data(), size, 0, &s.cbc);
                         case Mode::ctr:
                             return ctr_start(c, iv.data(), k.data(), size, 0, counter, &s.ctr);
                         default:
                             return xts_start(c, k.data(), key_two_.data(),
                                              static_cast<unsigned long>(size), 0, &s.xts);
                     }
                 });
        if (ok == CRYPT_OK) pair.mode = mode;
    }
    void done_once(Pair& pair, int side) {
        Pair::State& s = pair.of[side];
        switch (pair.mode) {
            case Mode::ecb:
                ecb_done(&s.ecb);
                break;
            case Mode::cbc:
                cbc_done(&s.cbc);
                break;
            case Mode::ctr:
                ctr_done(&s.ctr);
                break;
            case Mode::xts:
                xts_done(&s.xts);
                break;
            default:;
        }
    }
    void finish(Pair& pair) {
        const int times = random_.one_in(4) ? 2 : 1;
        for (int i = 0; i < times; ++i)
            for (const int side : {0, 1}) done_once(pair, side);
        pair.mode = Mode::none;
    }

    int crypt(Pair& pair, int side, bool encrypts, const unsigned char* in, unsigned char* out,
              unsigned long size, unsigned char* tweak) {
        Pair::State& s = pair.of[side];
        switch (pair.mode) {
            case Mode::ecb:
                return encrypts ? ecb_encrypt(in, out, size, &s.ecb)
                                : ecb_decrypt(in, out, size, &s.ecb);
            case Mode::cbc:
                return encrypts ? cbc_encrypt(in, out, size, &s.cbc)
                                : cbc_decrypt(in, out, size, &s.cbc);
            case Mode::ctr:
                return encrypts ? ctr_encrypt(in, out, size, &s.ctr)
                                : ctr_decrypt(in, out, size, &s.ctr);
            default:
                return encrypts ? xts_encrypt(in, size, out, tweak, &s.xts)
                                : xts_decrypt(in, size, out, tweak, &s.xts);
        }
    }
    std::size_t size() {
        const std::size_t blocks = random_.one_in(4) ? random_.below(300) : random_.below(12);
        return blocks * 16 + (random_.one_in(3) ? random_.below(16) : 0);
    }
    void data() {
        Pair& pair = any();
        if (pair.mode == Mode::none) return;
        const std::size_t bytes = size(), manner = random_.below(6);
        const bool encrypts = random_.one_in(2);
        // Backward alone: forward a plain loop eats its own output.
        const long shift = manner == 0   ? 0
                           : manner == 1 ? 1 + static_cast<long>(random_.below(40))
                                         : 0;
        const Bytes from = random_.bytes(bytes + 3);
        const std::size_t odd = random_.below(4);
        Bytes area[2], tweak[2];
        tweak[0] = tweak[1] = random_.bytes(16);
        both("data " + std::to_string(bytes) + (manner < 2 ? " at " + std::to_string(-shift) : ""),
             [&](int side) {
                 area[side].assign(bytes + 3 * kAround, 0x5a);
                 unsigned char* const out = &area[side][kAround] + odd;
                 const unsigned char* in = from.data() + odd % 3;
                 if (manner < 2) in = std::copy_n(in, bytes, out + shift) - bytes;
                 return crypt(pair, side, encrypts, in, out, bytes, tweak[side].data());
             });
        same("data", 0, 0, area[0] == area[1] && tweak[0] == tweak[1]);
    }
    void vector() {
        Pair& pair = any();
        if (pair.mode != Mode::cbc && pair.mode != Mode::ctr) return;
        Bytes iv[2] = {random_.bytes(16), {}};
        iv[1] = iv[0];
        const bool sets = random_.one_in(2);
        unsigned long length[2] = {};
        const unsigned long room = random_.one_in(6) ? random_.below(16) : 16;
        both(sets ? "set IV" : "get IV", [&](int side) {
            Pair::State& s = pair.of[side];
            length[side] = room;
            if (pair.mode == Mode::cbc)
                return sets ? cbc_setiv(iv[side].data(), room, &s.cbc)
                            : cbc_getiv(iv[side].data(), &length[side], &s.cbc);
            return sets ? ctr_setiv(iv[side].data(), room, &s.ctr)
                        : ctr_getiv(iv[side].data(), &length[side], &s.ctr);
        });
        same("IV", 0, 0, iv[0] == iv[1] && length[0] == length[1]);
    }
    void copy() {
        Pair &from = any(), &to = any();
        if (&from == &to) return;
        note("copy");
        if (random_.one_in(2)) finish(to);
        to = from;
    }

    void gcm() {
        const Bytes& k = key();
        const auto key_bytes = static_cast<unsigned long>(random_.one_in(12) ? 20 : key_size());
        const Bytes iv = random_.bytes(random_.one_in(2) ? 12 : random_.below(40));
        const Bytes aad = random_.bytes(random_.below(60)), in = random_.bytes(size());
        const bool seals = random_.one_in(2), place = random_.one_in(3);
        const unsigned long room = random_.one_in(3) ? random_.below(17) : 16;
        Bytes out[2], tag[2];
        unsigned long length[2] = {room, room};
        both("gcm " + std::to_string(in.size()) + " iv " + std::to_string(iv.size()), [&](int s) {
            out[s].assign(in.size() + 1, 0x5a);
            tag[s].assign(17, 0x5a);
            Bytes copy = in;
            unsigned char* from = in.empty() ? nullptr : copy.data();
            unsigned char* to = in.empty() ? nullptr : out[s].data();
            if (place && from) from = std::copy(in.begin(), in.end(), to) - in.size();
            return gcm_memory(cipher_[s], k.data(), key_bytes, iv.data(), iv.size(), aad.data(),
                              aad.size(), seals ? from : to, in.size(), seals ? to : from,
                              tag[s].data(), &length[s], seals ? GCM_ENCRYPT : GCM_DECRYPT);
        });
        same("gcm", 0, 0, out[0] == out[1] && tag[0] == tag[1] && length[0] == length[1]);
    }
    void ccm() {
        const Bytes& k = key();
        const auto key_bytes = static_cast<unsigned long>(key_size());
        const Bytes nonce = random_.bytes(7 + random_.below(7)),
                    head = random_.bytes(random_.below(60));
        const Bytes in = random_.bytes(1 + size());
        const unsigned long room = 4 + 2 * random_.below(7);
        Bytes out[2], back[2], tag[2];
        unsigned long length[2];
        const auto call = [&](int s, unsigned char* pt, unsigned char* ct, int direction) {
            length[s] = room;
            return ccm_memory(cipher_[s], k.data(), key_bytes, nullptr, nonce.data(), nonce.size(),
                              head.data(), head.size(), pt, in.size(), ct, tag[s].data(),
                              &length[s], direction);
        };
        both("ccm " + std::to_string(in.size()), [&](int s) {
            out[s].assign(in.size() + 1, 0x5a);
            tag[s].assign(17, 0x5a);
            Bytes plain = in;
            return call(s, plain.data(), out[s].data(), CCM_ENCRYPT);
        });
        same("ccm", 0, 0, out[0] == out[1] && tag[0] == tag[1] && length[0] == length[1]);
        const bool forged = random_.one_in(3);
        const std::size_t where = random_.below(in.size());
        both("ccm opened", [&](int s) {
            if (forged) out[s][where] ^= 1;
            back[s].assign(in.size() + 1, 0x5a);
            return call(s, back[s].data(), out[s].data(), CCM_DECRYPT);
        });
        same("ccm opened", 0, 0, back[0] == back[1]);
    }
    void omac() {
        const Bytes& k = key();
        const auto key_bytes = static_cast<unsigned long>(random_.one_in(12) ? 20 : key_size());
        const Bytes in = random_.bytes(1 + size());
        Bytes out[2];
        unsigned long length[2];
        const unsigned long room = random_.one_in(3) ? random_.below(20) : 16;
        both("omac " + std::to_string(in.size()), [&](int s) {
            out[s].assign(40, 0x5a);
            length[s] = room;
            return omac_memory(cipher_[s], k.data(), key_bytes, in.data(), in.size(), out[s].data(),
                               &length[s]);
        });
        same("omac", 0, 0, out[0] == out[1] && length[0] == length[1]);
    }
    void around() {
        if (shared_ || random_.one_in(2)) {
            note("forget");
            return daelstrom_tomcrypt_forget();
        }
        if (random_.one_in(2)) {
            note("another engine");
            return daelstrom_tomcrypt_use(random_.one_in(2) ? other_ : nullptr);
        }
        if (!random_.one_in(8)) return;  // engines take time to open
        note("out and in");
        daelstrom_tomcrypt_unregister();
        if (daelstrom_tomcrypt_register() != cipher_[1]) same("another place", 0, 1);
    }

    void one() {
        switch (random_.below(16)) {
            case 0:
            case 1:
                return start();
            case 2:
                return finish(any());
            case 3:
                return copy();
            case 4:
                return vector();
            case 5:
                return gcm();
            case 6:
                return random_.one_in(2) ? ccm() : omac();
            case 7:
                return around();
            default:
                return data();
        }
    }

    Random& random_;
    const int cipher_[2];
    const bool shared_;
    dael_engine* other_ = nullptr;
    // More than the eight that are kept ready of calls with a key of their own.
    Bytes keys_[10];
    const Bytes key_two_ = random_.bytes(32);
    Pair pairs_[6];
    std::string fault_, log_;
};

class TomCryptWalks : public testing::Test {
  protected:
    void SetUp() override {
        ours_ = daelstrom_tomcrypt_register();
        ASSERT_GE(ours_, 0);
        ASSERT_GE(plain_aes(), 0);
    }
    int ours_ = -1;
};

TEST_F(TomCryptWalks, ArePlainLibTomCrypts) {
    dael_engine* other = nullptr;
    dael_engine_options options{};
    options.struct_size = sizeof options;
    options.backend = "openssl";
    options.threads = 2;
    ASSERT_EQ(dael_engine_open(&options, &other), DAEL_OK);
    const auto before = daelstrom_tomcrypt_served();
    for (dael::test::Walks walks("tomcrypt", dael::test::thorough<std::uint64_t>(800, 60));
         walks.next() && !HasFailure();) {
        Random random(walks.seed());
        const std::string fault =
            TomCryptWalk(random, ours_, false).run(60, other, [&walks] { walks.step(); });
        EXPECT_TRUE(fault.empty()) << walks.text() << "\n" << fault;
    }
    EXPECT_GT(daelstrom_tomcrypt_served(), before);
    daelstrom_tomcrypt_use(nullptr);
    daelstrom_tomcrypt_forget();
    dael_engine_close(other);
}

TEST_F(TomCryptWalks, ArePlainLibTomCryptsByThreads) {
    std::string faults[3];
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 0; seed < std::size(faults); ++seed)
        threads.emplace_back([this, seed, &faults] {
            for (std::uint64_t i = 0; i < dael::test::thorough<std::uint64_t>(40, 8); ++i) {
                Random random(1000 * seed + i + 1);
                TomCryptWalk walk(random, ours_, true);
                faults[seed] += walk.run(60, nullptr, [] {});
            }
        });
    for (auto& thread : threads) thread.join();
    for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

}  // namespace
