// SPDX-License-Identifier: Apache-2.0
// A walk: EVP's calls and controls in any order on two contexts, the default provider's and ours,
// which must do the same: result, sizes, bytes. What succeeds leaves nothing on OpenSSL's queue.
// Ours may refuse what the default provider takes only where docs/provider.md says so; where the
// walker knows that, it sets `may_refuse_`. Choices come from `Choices`: below(n), one_in(n).
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "evp_sides.hpp"

namespace dael::test {

// Bytes to take pieces of.
inline const Bytes& walk_bytes() {
    static const Bytes all = Numbers(4711).bytes(1 << 20);
    return all;
}

template <class Choices>
class Walk {
  public:
    Walk(Choices& choices, const std::string& name) : choices_(choices), name_(name) {
        for (int i = 0; i < 2; ++i) cipher_[i] = fetch(i == 0 ? theirs() : ours(), name);
        if (!cipher_[0] || !cipher_[1]) {
            fail("a cipher is missing");
            return;
        }
        mode_ = EVP_CIPHER_get_mode(cipher_[1].get());
        key_size_ = static_cast<std::size_t>(EVP_CIPHER_get_key_length(cipher_[1].get()));
        fresh();
    }
    // "": as there. Else what differs, and the steps that lead to it. `step` is called after each,
    // and says whether there is to be another.
    template <class Step>
    std::string run(int steps, Step step) {
        for (int i = 0; i < steps && fault_.empty(); ++i) {
            one();
            if (fault_.empty() && apart_ && !resync())
                fail("a new message does not begin as there");
            if (!step()) break;
        }
        return fault_.empty() ? "" : name_ + ": " + fault_ + "\n" + log_;
    }

  private:
    static constexpr std::size_t kAround = 64;

    bool gcm() const { return mode_ == EVP_CIPH_GCM_MODE; }
    bool padded_too() const { return mode_ == EVP_CIPH_ECB_MODE || mode_ == EVP_CIPH_CBC_MODE; }
    std::size_t below(std::size_t n) { return choices_.below(n); }
    bool one_in(std::size_t n) { return choices_.below(n) == 0; }
    const std::uint8_t* some(std::size_t size) {
        return &walk_bytes()[below(walk_bytes().size() - size)];
    }
    void fail(const std::string& what) {
        if (fault_.empty()) fault_ = what;
    }
    void note(const std::string& what) { log_ += "  " + what + "\n"; }
    EVP_CIPHER_CTX* x(int side) { return context_[side].get(); }

    void fresh() {
        for (auto& c : context_) c = context();
        init(true, some(key_size_), one_in(8) ? nullptr : some(128), static_cast<int>(below(2)));
        if (padded_too() && one_in(2)) pad();
    }

    // Runs a call on both, ours first. Results that differ are a fault, unless ours may refuse.
    template <class Call>
    bool both(const std::string& what, Call call) {
        note(what);
        int result[2] = {};
        ERR_clear_error();
        result[1] = call(1);
        if (result[1] > 0 && ERR_peek_error() != 0) fail("leaves an error though it succeeds");
        if (needs_iv_ && result[1] > 0) give_generated_iv();
        result[0] = call(0);
        ERR_clear_error();
        needs_iv_ = false;
        if (result[0] == result[1]) return result[1] > 0;
        const bool refused = result[1] <= 0 && result[0] > 0;
        if (!refused || !may_refuse_)
            fail(what + ": theirs " + std::to_string(result[0]) + ", ours " +
                 std::to_string(result[1]));
        apart_ = refused_ = true;
        return false;
    }
    // Sealing by GCM without an IV makes one, which the other side is told.
    void give_generated_iv() {
        Bytes iv(128);
        if (EVP_CIPHER_CTX_get_original_iv(x(1), iv.data(), iv_size_) != 1 ||
            EVP_CipherInit_ex2(x(0), nullptr, nullptr, iv.data(), -1, nullptr) != 1)
            fail("the IV that was made cannot be had");
        has_iv_ = true;
        iv_ = iv;
        begin_message();
        known_ = false;
    }
    void begin_message() {
        known_ = keyed_;
        under_way_ = ended_ = may_refuse_ = void_iv_ = spoiled_ = false;
        aad_.clear();
        plain_.clear();
    }
    // After a refusal nothing is compared until both begin anew.
    bool resync() {
        apart_ = false;
        const std::uint8_t *key = some(key_size_), *iv = some(128);
        return init(false, key, iv, encrypts_);
    }

    bool init(bool with_cipher, const std::uint8_t* key, const std::uint8_t* iv, int encrypts,
              const OSSL_PARAM* params = nullptr) {
        const bool ok =
            both(std::string("init") + (with_cipher ? " cipher" : "") + (key ? " key" : "") +
                     (iv ? " iv" : "") + " " + std::to_string(encrypts) + (params ? " params" : ""),
                 [&](int side) {
                     return EVP_CipherInit_ex2(x(side), with_cipher ? cipher_[side].get() : nullptr,
                                               key, iv, encrypts, params);
                 });
        if (!ok) return false;
        const int before = encrypts_;
        if (encrypts >= 0) encrypts_ = encrypts;
        if (with_cipher) {
            refused_ = keyed_ = has_iv_ = tls_ = ended_ = under_way_ = counts_ = records_ = false;
            known_ = spoiled_ = false;  // what it had of a message is gone with the key
            iv_size_ = 12;
        }
        // Amid a message another key, or the other direction, is not taken without an IV.
        if (under_way_ && (key || before != encrypts_) && !iv) may_refuse_ = true;
        if (key) {
            keyed_ = true;
            key_.assign(key, key + key_size_);
            known_ = false;
        }
        if (before != encrypts_) known_ = known_ && !under_way_;
        if (iv) {
            has_iv_ = true;
            iv_.assign(iv, iv + iv_size_);
            begin_message();
            may_refuse_ = tls_;  // a header without its record
        }
        if (key && has_iv_ && !under_way_ && !ended_) known_ = true;
        return true;
    }
    void init_any() {
        const bool with_key = one_in(2), with_iv = one_in(2), same = one_in(3);
        const Bytes old = key_;
        const std::uint8_t* const key = !with_key              ? nullptr
                                        : same && !old.empty() ? old.data()
                                                               : some(key_size_);
        unsigned padding = static_cast<unsigned>(below(2));
        OSSL_PARAM params[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &padding),
                               OSSL_PARAM_construct_end()};
        init(one_in(8), key, with_iv ? some(128) : nullptr, static_cast<int>(below(3)) - 1,
             one_in(6) ? params : nullptr);
    }
    void pad() {
        const int padding = static_cast<int>(below(2));
        both("padding " + std::to_string(padding),
             [&](int side) { return EVP_CIPHER_CTX_set_padding(x(side), padding); });
    }

    std::size_t size() {
        static constexpr std::size_t kSmall[] = {0,  1,  5,  15, 16,  17,  31,  32,  48,
                                                 64, 96, 33, 80, 255, 256, 257, 100, 1024};
        static constexpr std::size_t kLarge[] = {1040,  2048,  2049,  4095,  4096,  4112,
                                                 5000,  8192,  16384, 28672, 32768, 33000,
                                                 65535, 65536, 66000, 70016, 98304};
        if (gcm() && one_in(300)) return 540000 + below(17);
        return one_in(6) ? kLarge[below(std::size(kLarge))] : kSmall[below(std::size(kSmall))];
    }

    // Data through EVP_CipherUpdate() or EVP_Cipher(): apart, in place, or overlapping.
    void data(bool whole) {
        std::size_t bytes = size();
        const bool cipher = one_in(7);
        if (cipher && padded_too()) bytes = bytes / 16 * 16;
        if (whole) bytes = bytes / 16 * 16;
        // 0 to 2: in place; 3: overlapping
        const std::size_t manner = records_ ? 0 : below(8);
        if (records_ && !encrypts_) bytes = bytes / 16 * 16 + 32;
        const long shift = manner != 3 ? 0 : static_cast<long>(below(41)) - 20;
        const bool apart = manner > 3;
        if (shift != 0 && gcm()) may_refuse_ = true;
        if (gcm() && cipher && bytes == 0) may_refuse_ = true;  // it ends the additional data there
        const std::uint8_t* const from = some(bytes);
        int made[2] = {-1, -1};
        will_use_iv(bytes != 0 || cipher);
        if (static_cast<std::size_t>(bytes + 4 * kAround) > area_[0].size())
            for (auto& area : area_) area.resize(bytes + 4 * kAround);
        const bool ok = both(
            std::string(cipher ? "EVP_Cipher " : "update ") + std::to_string(bytes) +
                (apart ? "" : " at " + std::to_string(shift)),
            [&](int side) {
                Bytes& area = area_[side];
                std::fill_n(area.begin(), bytes + 4 * kAround, std::uint8_t{0x5a});
                std::uint8_t* const out = &area[kAround];
                const std::uint8_t* in = from;
                if (!apart) {
                    in = std::copy_n(from, bytes, out + shift) - bytes;
                }
                if (!cipher)
                    return EVP_CipherUpdate(x(side), out, &made[side], in, static_cast<int>(bytes));
                return by_cipher(side, out, in, bytes);
            });
        used(ok, bytes != 0 || cipher);
        if (!ok) return;
        if (made[0] != made[1])
            return fail("sizes " + std::to_string(made[0]) + ", ours " + std::to_string(made[1]));
        if (!std::equal(area_[0].begin(), area_[0].begin() + static_cast<long>(bytes + 4 * kAround),
                        area_[1].begin()))
            return fail("other bytes");
        if (!gcm() || !known_) return;
        const std::uint8_t* const plain = encrypts_ ? from : &area_[0][kAround];
        if (shift != 0)
            known_ = false;
        else
            plain_.insert(plain_.end(), plain, plain + bytes);
    }
    // EVP_Cipher() says how many bytes it made, or -1: one more than that.
    int by_cipher(int side, std::uint8_t* out, const std::uint8_t* in, std::size_t bytes) {
        return EVP_Cipher(x(side), out, in, static_cast<unsigned>(bytes)) + 1;
    }
    // GCM: a call that begins the message makes an IV where there is none.
    void will_use_iv(bool uses) {
        needs_iv_ = gcm() && uses && keyed_ && !has_iv_ && encrypts_ && !tls_;
    }
    void used(bool ok, bool uses) {
        if (gcm() && tls_ && uses) {  // a record, whatever became of it
            tls_ = false;
            // There its IV is what was never set, of any size.
            if (!has_iv_ && iv_size_ != 12) void_iv_ = true;
            ended_ = has_iv_ = true;
            if (!ok) refused_ = true;  // with or without a tag: that is not looked at
            known_ = false;
            // In OpenSSL 3 its header lies where a tag does.
            stale_tag_ = true;
            given_tag_ = false;
        } else if (uses && (ok || (keyed_ && has_iv_))) {
            under_way_ = true;
        }
    }

    void aad() {
        const std::size_t bytes = size() % 200;
        const std::uint8_t* const from = some(bytes);
        int made[2] = {-1, -1};
        will_use_iv(bytes != 0);
        const bool ok = both("aad " + std::to_string(bytes), [&](int side) {
            return EVP_CipherUpdate(x(side), nullptr, &made[side], from, static_cast<int>(bytes));
        });
        used(ok, bytes != 0);
        if (!ok) return;
        if (made[0] != made[1]) return fail("sizes of additional data");
        aad_.insert(aad_.end(), from, from + bytes);
    }
    void null_input() {
        int made[2] = {-1, -1};
        Bytes out[2];
        const std::size_t bytes = gcm() ? below(40) : 0;
        const bool given = one_in(2) || !gcm();
        if (gcm() && tls_ && bytes >= 24 && !given) return;  // which crashes there
        will_use_iv(bytes != 0);
        if (bytes != 0) hold_against_made();
        const bool ok = both("update of nothing, " + std::to_string(bytes), [&](int side) {
            out[side].assign(64, 0x5a);
            return EVP_CipherUpdate(x(side), given ? out[side].data() : nullptr, &made[side],
                                    nullptr, static_cast<int>(bytes));
        });
        used(ok, bytes != 0);
        if (ok && (made[0] != made[1] || out[0] != out[1])) fail("sizes or bytes of nothing");
        if (gcm() && bytes != 0) after_end(ok);
    }

    // The tag that is right for what was opened, if that is known.
    void right_tag() {
        if (!known_ || encrypts_ || tls_ || iv_.size() < iv_size_) return;
        auto seal = context();
        Bytes out(plain_.size() + 16), tag(16);
        int made = 0;
        bool ok = EVP_EncryptInit_ex2(seal.get(), cipher_[0].get(), nullptr, nullptr, nullptr) == 1;
        ok = ok && EVP_CIPHER_CTX_ctrl(seal.get(), EVP_CTRL_AEAD_SET_IVLEN,
                                       static_cast<int>(iv_size_), nullptr) == 1;
        ok = ok && EVP_EncryptInit_ex2(seal.get(), nullptr, key_.data(), iv_.data(), nullptr) == 1;
        if (ok && !aad_.empty())
            ok = EVP_EncryptUpdate(seal.get(), nullptr, &made, aad_.data(),
                                   static_cast<int>(aad_.size())) == 1;
        ok = ok &&
             EVP_EncryptUpdate(seal.get(), out.data(), &made, plain_.data(),
                               static_cast<int>(plain_.size())) == 1 &&
             EVP_EncryptFinal_ex(seal.get(), out.data(), &made) == 1 &&
             EVP_CIPHER_CTX_ctrl(seal.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) == 1;
        if (!ok) return fail("the oracle does not seal");
        set_tag(tag.data(), 16);
    }
    // What was opened is held against a tag that was made before, which may be forgotten.
    void hold_against_made() {
        if (gcm() && !encrypts_ && !given_tag_) may_refuse_ = true;
    }
    void set_tag(const std::uint8_t* tag, std::size_t bytes) {
        const bool ok = both("tag of " + std::to_string(bytes), [&](int side) {
            Bytes copy(tag, tag + bytes);
            return EVP_CIPHER_CTX_ctrl(x(side), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(bytes),
                                       copy.data());
        });
        if (ok) has_tag_ = given_tag_ = true;
        stale_tag_ = true;  // what was made lies under it, also where it is refused
    }
    void get_tag() {
        // Given out from the end of its message to the next IV.
        const bool before = std::exchange(may_refuse_, may_refuse_ || !ended_ || stale_tag_);
        Bytes tag[2];
        const int bytes = 1 + static_cast<int>(below(17));
        const bool ok = both("get tag of " + std::to_string(bytes), [&](int side) {
            tag[side].assign(32, 0x5a);
            return EVP_CIPHER_CTX_ctrl(x(side), EVP_CTRL_AEAD_GET_TAG, bytes, tag[side].data());
        });
        if (!before) apart_ = false;  // a tag alone is refused, not the message
        may_refuse_ = before;
        if (ok && !spoiled_ && tag[0] != tag[1]) fail("other tags");
    }
    void after_end(bool ok) {
        if (ok && encrypts_) {
            stale_tag_ = given_tag_ = false;
            has_tag_ = true;
        }
        if (ok) ended_ = true;
        if (!ok && !encrypts_ && has_tag_) may_refuse_ = true;  // a wrong tag ends a message
        // OpenSSL ends its hash for it, and once more where the same message is sealed then: that
        // tag is nobody's.
        if (!ok && !encrypts_) spoiled_ = true;
        known_ = false;
    }
    void end() {
        if (gcm() && one_in(3)) right_tag();
        hold_against_made();
        Bytes out[2];
        int made[2] = {-1, -1};
        will_use_iv(true);
        const bool ok = both("final", [&](int side) {
            out[side].assign(48, 0x5a);
            return EVP_CipherFinal_ex(x(side), out[side].data(), &made[side]);
        });
        used(ok, true);
        if (ok && (made[0] != made[1] || out[0] != out[1])) fail("other sizes or bytes at the end");
        if (!gcm()) return;
        after_end(ok);
        if (ok && encrypts_ && one_in(2)) get_tag();
    }

    void copy() {
        Context copies[2] = {context(), context()};
        const bool ok = both("copy", [&](int side) {
            return EVP_CIPHER_CTX_copy(copies[side].get(), context_[side].get());
        });
        if (!ok) return;
        if (one_in(3)) return;  // the copy is thrown away
        for (int i = 0; i < 2; ++i) context_[i] = std::move(copies[i]);
    }

    void set_number() {
        const int number = static_cast<int>(below(17));
        const auto set = [&](int side) { return EVP_CIPHER_CTX_set_num(x(side), number); };
        const bool streams = mode_ == EVP_CIPH_CTR_MODE || mode_ == EVP_CIPH_CFB_MODE;
        // Refused: keystream that is not there, and what is no place in a block.
        const bool nowhere = number > 15 || (mode_ == EVP_CIPH_CTR_MODE && number != 0 &&
                                             EVP_CIPHER_CTX_get_num(context_[0].get()) == 0);
        if (!streams || !nowhere) {
            both("num " + std::to_string(number), set);
        } else {
            note("num " + std::to_string(number) + ", refused");
            if (set(1) > 0) fail("a place without keystream is taken");
            ERR_clear_error();
        }
    }
    // CBC's records of TLS: padding goes on and comes off in the update, in place. Without a MAC,
    // which would be random where a record is wrong.
    void tls_version() {
        static constexpr unsigned kVersions[] = {0, 0, 0x0301, 0x0302, 0x0303, 0xfeff};
        unsigned version = kVersions[below(std::size(kVersions))];
        const bool ok = both("version of TLS " + std::to_string(version), [&](int side) {
            const OSSL_PARAM params[] = {
                OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &version),
                OSSL_PARAM_construct_end()};
            return EVP_CIPHER_CTX_set_params(x(side), params);
        });
        records_ = ok && version != 0;
    }
    void unknown_parameter() {
        std::size_t value = 10;
        const char* const name = one_in(2) ? "no-such-parameter" : OSSL_CIPHER_PARAM_USE_BITS;
        both(std::string("set ") + name, [&](int side) {
            OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(name, &value),
                                   OSSL_PARAM_construct_end()};
            return EVP_CIPHER_CTX_set_params(x(side), params);
        });
    }
    void ask() {
        const std::size_t what = below(9);
        if (what == 4 && refused_) return;  // which ends a message there alone
        std::vector<int> values[2];
        Bytes bytes[2];
        both("ask " + std::to_string(what), [&](int side) {
            EVP_CIPHER_CTX* const c = x(side);
            auto& v = values[side];
            Bytes& b = bytes[side];
            b.assign(160, 0);
            const std::size_t room = one_in_room();
            switch (what) {
                case 0:
                    v = {EVP_CIPHER_CTX_get_num(c)};
                    break;
                case 1:
                    v = {EVP_CIPHER_CTX_get_updated_iv(c, b.data(), room)};
                    break;
                case 2:
                    v = {EVP_CIPHER_CTX_get_original_iv(c, b.data(), room)};
                    break;
                case 3:
                    v = {EVP_CIPHER_CTX_get_iv_length(c), EVP_CIPHER_CTX_get_key_length(c)};
                    break;
                case 4:
                    v = {EVP_CIPHER_CTX_get_tag_length(c)};
                    break;
                case 5: {
                    void* pointer = nullptr;
                    OSSL_PARAM p[] = {
                        OSSL_PARAM_construct_octet_ptr(OSSL_CIPHER_PARAM_UPDATED_IV, &pointer, 16),
                        OSSL_PARAM_construct_end()};
                    v = {EVP_CIPHER_CTX_get_params(c, p)};
                    if (v[0] == 1 && pointer)
                        std::memcpy(b.data(), pointer, std::min<std::size_t>(p[0].return_size, 16));
                    break;
                }
                case 6: {
                    std::size_t none = 77;
                    OSSL_PARAM p[] = {OSSL_PARAM_construct_size_t("no-such-parameter", &none),
                                      OSSL_PARAM_construct_end()};
                    v = {EVP_CIPHER_CTX_get_params(c, p), static_cast<int>(none)};
                    break;
                }
                case 7: {
                    unsigned padding = 7;
                    std::size_t key = 0;
                    OSSL_PARAM p[] = {
                        OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &padding),
                        OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_KEYLEN, &key),
                        OSSL_PARAM_construct_end()};
                    v = {EVP_CIPHER_CTX_get_params(c, p), static_cast<int>(padding),
                         static_cast<int>(key)};
                    break;
                }
                default:
                    v = {EVP_CIPHER_CTX_get_block_size(c), EVP_CIPHER_CTX_get_mode(c)};
            }
            if (v[0] <= 0) ERR_clear_error();  // it failed, and may say why
            return 1;
        });
        // An IV whose size was changed: there is none, nor may others come of it.
        if ((void_iv_ || may_refuse_) && values[1][0] <= 0) return;
        if (values[0] != values[1])
            fail("asked, theirs " + std::to_string(values[0][0]) + ", ours " +
                 std::to_string(values[1][0]));
        else if (bytes[0] != bytes[1])
            fail("other IVs, theirs " + text(bytes[0]) + ", ours " + text(bytes[1]));
    }
    static std::string text(const Bytes& bytes) {
        std::string all;
        for (std::size_t i = 0; i < 16; ++i)
            for (const int half : {bytes[i] >> 4, bytes[i] & 15}) all += "0123456789abcdef"[half];
        return all;
    }
    std::size_t one_in_room() const { return asked_room_; }

    // GCM's size of IV, and TLS 1.2.
    void iv_size() {
        static constexpr int kSizes[] = {12, 12, 12, 16, 8, 1, 13, 128, 0, 129};
        const int bytes = kSizes[below(std::size(kSizes))];
        const bool ok = both("size of IV " + std::to_string(bytes), [&](int side) {
            return EVP_CIPHER_CTX_ctrl(x(side), EVP_CTRL_AEAD_SET_IVLEN, bytes, nullptr);
        });
        if (!ok || static_cast<std::size_t>(bytes) == iv_size_) return;
        iv_size_ = static_cast<std::size_t>(bytes);
        if (has_iv_) {
            ended_ = void_iv_ = may_refuse_ = true;
            known_ = false;
        }
    }
    void one();
    void tls();
    void record(std::size_t bytes);

    Choices& choices_;
    std::string name_, fault_, log_;
    Cipher cipher_[2];
    Context context_[2];
    int mode_ = 0, encrypts_ = 1;
    std::size_t key_size_ = 0, iv_size_ = 12, asked_room_ = 16;
    bool keyed_ = false, has_iv_ = false, under_way_ = false, ended_ = false;
    bool records_ = false;  // CBC's
    bool tls_ = false, counts_ = false, has_tag_ = false, given_tag_ = false, stale_tag_ = true,
         void_iv_ = false, spoiled_ = false;
    bool may_refuse_ = false, apart_ = false, refused_ = false, needs_iv_ = false;
    bool known_ = false;  // GCM: key_, iv_, aad_ and plain_ are the message
    Bytes key_, iv_, aad_, plain_, area_[2];
};

// TLS 1.2 as libssl does it: the fixed part of the IV, a record's header, the record in place; and
// the two ways to an IV of one's own.
template <class Choices>
void Walk<Choices>::tls() {
    if (iv_size_ < 8) return;  // OpenSSL writes beyond its context
    switch (below(5)) {
        case 0: {
            const std::uint8_t* const fixed = some(128);  // -1: as many as the IV has
            const int bytes = one_in(3) ? -1 : static_cast<int>(3 + below(3));
            note("fixed IV " + std::to_string(bytes));
            ERR_clear_error();
            Bytes iv(fixed, fixed + 128);
            const int mine = EVP_CIPHER_CTX_ctrl(x(1), EVP_CTRL_GCM_SET_IV_FIXED, bytes, iv.data());
            if (mine > 0 && ERR_peek_error() != 0) fail("leaves an error though it succeeds");
            // Where OpenSSL writes beyond its context.
            if (bytes != -1 && iv_size_ < static_cast<std::size_t>(bytes)) {
                if (mine > 0) fail("a fixed part is taken that is longer than the IV");
                return ERR_clear_error();
            }
            int other = 0;
            if (mine > 0 && bytes != -1 && encrypts_) {  // the rest is random: both have ours
                if (EVP_CIPHER_CTX_get_original_iv(x(1), iv.data(), iv_size_) != 1)
                    return fail("the IV cannot be had");
                other = EVP_CIPHER_CTX_ctrl(x(0), EVP_CTRL_GCM_SET_IV_FIXED, -1, iv.data());
            } else {
                other = EVP_CIPHER_CTX_ctrl(x(0), EVP_CTRL_GCM_SET_IV_FIXED, bytes, iv.data());
            }
            ERR_clear_error();
            // Of an IV that is void the rest is nowhere. That a part came is known there for good.
            if (mine <= 0 && other > 0 && (void_iv_ || may_refuse_)) return fresh();
            if ((mine > 0) != (other > 0)) return fail("fixed IVs differ");
            if (mine <= 0) return;
            has_iv_ = counts_ = true;
            begin_message();
            may_refuse_ = tls_;
            known_ = false;
            return;
        }
        case 1: {
            std::size_t bytes = 24 + below(200);
            if (one_in(8)) bytes = below(30);
            const std::uint8_t* const from = some(13);
            Bytes header(from, from + 13);
            const std::size_t told = one_in(8) ? below(40) : bytes;
            header[11] = static_cast<std::uint8_t>(told >> 8);
            header[12] = static_cast<std::uint8_t>(told);
            const bool ok = both("record's header " + std::to_string(told), [&](int side) {
                Bytes copy = header;
                return EVP_CIPHER_CTX_ctrl(x(side), EVP_CTRL_AEAD_TLS1_AAD, 13, copy.data());
            });
            if (apart_) {  // OpenSSL has the header, and keeps it whatever key and IV come
                apart_ = false;
                return fresh();
            }
            tls_ = true;
            if (!ok) may_refuse_ = true;  // there it is half taken
            known_ = given_tag_ = false;
            stale_tag_ = true;
            if (!one_in(4)) record(bytes);
            return;
        }
        case 2:
        case 3: {
            Bytes iv[2];
            const int bytes = static_cast<int>(below(14));
            const bool generates = one_in(2);
            const std::uint8_t* const from = some(128);  // 0: as many as the IV has
            const bool ok = both(generates ? "next IV" : "a record's IV", [&](int side) {
                iv[side].assign(from, from + 128);
                return EVP_CIPHER_CTX_ctrl(
                    x(side), generates ? EVP_CTRL_GCM_IV_GEN : EVP_CTRL_GCM_SET_IV_INV,
                    generates ? bytes : 8, iv[side].data());
            });
            if (!ok) return;
            if (iv[0] != iv[1]) fail("other IVs");
            begin_message();
            known_ = false;
            return;
        }
        default:
            record(24 + below(100));
    }
}

template <class Choices>
void Walk<Choices>::record(std::size_t bytes) {
    const bool update = one_in(2);
    const std::uint8_t* const from = some(bytes + 1);
    if (area_[0].size() < bytes + 4 * kAround)
        for (auto& area : area_) area.resize(bytes + 4 * kAround);
    int made[2] = {-1, -1};
    will_use_iv(bytes != 0);
    const bool ok = both("record of " + std::to_string(bytes), [&](int side) {
        std::uint8_t* const at = &area_[side][kAround];
        std::fill_n(area_[side].begin(), bytes + 4 * kAround, std::uint8_t{0x5a});
        std::copy_n(from, bytes, at);
        if (update) return EVP_CipherUpdate(x(side), at, &made[side], at, static_cast<int>(bytes));
        return by_cipher(side, at, at, bytes);
    });
    used(ok, bytes != 0 || !update);  // an update of nothing asks nothing
    if (ok &&
        (made[0] != made[1] ||
         !std::equal(area_[0].begin(), area_[0].begin() + static_cast<long>(bytes + 4 * kAround),
                     area_[1].begin())))
        fail("other records");
    known_ = false;
}

template <class Choices>
void Walk<Choices>::one() {
    asked_room_ = one_in(8) ? below(20) : 16;
    switch (below(gcm() ? 22 : 18)) {
        case 0:
        case 1:
            return init_any();
        case 2:
            return end();
        case 3:
            return copy();
        case 4:
            return set_number();
        case 5:
            return unknown_parameter();
        case 6:
        case 7:
            return ask();
        case 8:
            if (mode_ == EVP_CIPH_CBC_MODE && one_in(4)) return tls_version();
            return pad();
        case 9:
            return null_input();
        case 18:
            return aad();
        case 19:
            if (one_in(2)) return get_tag();
            return set_tag(some(17), 1 + below(17));
        case 20:
            return one_in(3) ? iv_size() : aad();
        case 21:
            return tls();
        default:
            return data(one_in(2));
    }
}

}  // namespace dael::test
