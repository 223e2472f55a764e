// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "modes/gcm.hpp"
#include "support/aegis_plain.hpp"

namespace dael::test {
namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

void require(int result, const char* call) {
    if (result != 1) throw std::runtime_error(std::string("the oracle's ") + call + " failed");
}

// `size` as OpenSSL takes it. Empty updates are left out: it would take the end for the beginning.
void update(EVP_CIPHER_CTX* context, std::span<const std::uint8_t> in, std::uint8_t* out) {
    if (in.empty()) return;
    int written = 0;
    require(EVP_CipherUpdate(context, out, &written, in.data(), static_cast<int>(in.size())),
            "EVP_CipherUpdate");
    if (static_cast<std::size_t>(written) != in.size())
        throw std::runtime_error("the oracle held bytes back");
}

// The counter block that holds byte `offset` of the keystream, by 128-bit arithmetic.
Block counter_at(const Block& start, std::uint64_t offset) {
    unsigned __int128 counter = 0;
    for (const std::uint8_t byte : start) counter = counter << 8 | byte;
    counter += offset / 16;
    Block block;
    for (int i = 15; i >= 0; --i, counter >>= 8)
        block[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(counter);
    return block;
}

// GCM both ways, without a look at the tag of what is opened.
Bytes gcm(std::span<const std::uint8_t> key, bool seal, std::span<const std::uint8_t> iv,
          std::span<const std::uint8_t> aad, std::span<const std::uint8_t> in, std::uint8_t* tag) {
    const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
    EVP_CIPHER_CTX* const c = context.get();
    const EVP_CIPHER* evp = key.size() == 16   ? EVP_aes_128_gcm()
                            : key.size() == 24 ? EVP_aes_192_gcm()
                                               : EVP_aes_256_gcm();
    require(EVP_CipherInit_ex(c, evp, nullptr, nullptr, nullptr, seal), "init");
    require(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv.size()), nullptr),
            "IV size");
    require(EVP_CipherInit_ex(c, nullptr, nullptr, key.data(), iv.data(), seal), "key");
    Bytes out(in.size());
    update(c, aad, nullptr);
    update(c, in, out.data());
    if (tag) {
        Block unused;
        int written = 0;
        require(EVP_CipherFinal_ex(c, unused.data(), &written), "final");
        require(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, gcm::kTagSize, tag), "tag");
    }
    return out;
}

// AEGIS, which OpenSSL does not have.
Answer aegis_oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& m,
                    std::span<const std::uint8_t> in, std::span<const std::uint8_t> aad) {
    const std::size_t degree = cipher.mode == Mode::aegis256     ? 0
                               : cipher.mode == Mode::aegis128x2 ? 2
                               : cipher.mode == Mode::aegis128x4 ? 4
                                                                 : 1;
    Bytes nonce(m.start.begin(), m.start.end());
    nonce.insert(nonce.end(), m.start_rest.begin(), m.start_rest.end());
    plain::Aegis one(degree, key, nonce);
    one.aad(aad);
    Answer answer{one.crypt(in, cipher.direction == Direction::decrypt), {}};
    answer.tag = one.tag(aad.size(), in.size(), cipher.tag);
    return answer;
}

Bytes ecb(std::span<const std::uint8_t> key, const Bytes& blocks) {
    return oracle(key, {Mode::ecb, Direction::encrypt, {}, 0}, blocks);
}

// XAES-256-GCM: OpenSSL's GCM, under a key that is derived as C2SP's document says.
Answer xaes_oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& m,
                   std::span<const std::uint8_t> aad) {
    const Bytes l = ecb(key, Bytes(16));
    Bytes k1(16), inputs;
    for (std::size_t i = 0; i < 16; ++i)
        k1[i] = static_cast<std::uint8_t>(l[i] << 1 | (i < 15 ? l[i + 1] >> 7 : 0));
    if (l[0] >> 7) k1[15] ^= 0x87;
    for (std::uint8_t number = 1; number <= 2; ++number) {
        Bytes block{0, number, 'X', 0};
        block.insert(block.end(), m.start.begin(), m.start.begin() + 12);
        for (std::size_t i = 0; i < 16; ++i) inputs.push_back(block[i] ^ k1[i]);
    }
    const Bytes derived = ecb(key, inputs);
    gcm::Nonce nonce;
    std::copy_n(m.start.begin() + 12, 4, nonce.begin());
    std::copy_n(m.start_rest.begin(), 8, nonce.begin() + 4);
    Message its = m;
    its.start = gcm::start(nonce);
    its.aad = aad.data();
    return oracle(derived, {Mode::gcm, cipher.direction}, its);
}

// RFC 8452, section 3: a * b * x^-128 in its field, by bits of `a`.
using Element = unsigned __int128;
Element dot(Element a, Element b) {
    constexpr Element kHigh = Element{0xe1} << 120;  // (the polynomial - 1) / x
    Element r = 0;
    for (int i = 0; i < 128; ++i, a >>= 1) {
        r ^= b & (0 - (a & 1));
        r = (r >> 1) ^ (kHigh & (0 - (r & 1)));
    }
    return r;
}

// AES-GCM-SIV, sections 4 and 5, over OpenSSL's ECB. The tag is the plaintext's.
Answer siv_oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& m,
                  std::span<const std::uint8_t> in, std::span<const std::uint8_t> aad) {
    Bytes inputs, keys;
    for (std::uint8_t i = 0; i < 2 + key.size() / 8; ++i) {
        inputs.insert(inputs.end(), {i, 0, 0, 0});
        inputs.insert(inputs.end(), m.start.begin(), m.start.begin() + 12);
    }
    const Bytes made = ecb(key, inputs);
    for (auto at = made.begin(); at != made.end(); at += 16) keys.insert(keys.end(), at, at + 8);
    Element h;
    std::memcpy(&h, keys.data(), 16);
    const Bytes derived(keys.begin() + 16, keys.end());
    const auto tag_of = [&](std::span<const std::uint8_t> plain) {
        Bytes hashed(aad.begin(), aad.end());
        hashed.resize((hashed.size() + 15) / 16 * 16);
        hashed.insert(hashed.end(), plain.begin(), plain.end());
        hashed.resize((hashed.size() + 15) / 16 * 16);
        for (const std::uint64_t bits : {8 * aad.size(), 8 * plain.size()})
            for (int i = 0; i < 64; i += 8) hashed.push_back(static_cast<std::uint8_t>(bits >> i));
        Element y = 0;
        for (std::size_t i = 0; i < hashed.size(); i += 16) {
            Element x;
            std::memcpy(&x, hashed.data() + i, 16);
            y = dot(y ^ x, h);
        }
        Bytes tag(16);
        std::memcpy(tag.data(), &y, 16);
        for (std::size_t i = 0; i < 12; ++i) tag[i] ^= m.start[i];
        tag[15] &= 0x7f;
        return ecb(derived, tag);
    };
    const auto crypt = [&](const Bytes& tag) {
        Bytes counters, out(in.begin(), in.end());
        std::uint32_t number;
        std::memcpy(&number, tag.data(), 4);
        for (std::size_t i = 0; i < in.size(); i += 16, ++number) {
            Bytes counter = tag;
            counter[15] |= 0x80;
            std::memcpy(counter.data(), &number, 4);
            counters.insert(counters.end(), counter.begin(), counter.end());
        }
        const Bytes keystream = ecb(derived, counters);
        for (std::size_t i = 0; i < in.size(); ++i) out[i] ^= keystream[i];
        return out;
    };
    if (cipher.direction == Direction::encrypt) {
        const Bytes tag = tag_of(in);
        return {crypt(tag), tag};
    }
    // The tag is the plaintext's, and the plaintext the tag's: of a ciphertext nobody finds it.
    throw std::runtime_error("the oracle opens no GCM-SIV");
}

}  // namespace

OracleStream::OracleStream(std::span<const std::uint8_t> key, const Use& use)
    : context_(EVP_CIPHER_CTX_new()) {
    const std::string full =
        "aes-" + std::to_string(8 * key.size()) + "-" + std::string(name(use.mode));
    const EVP_CIPHER* evp = EVP_get_cipherbyname(full.c_str());
    if (!context_ || !evp) throw std::runtime_error("the oracle has no " + full);
    const Block start = use.mode == Mode::ctr ? counter_at(use.start, use.offset) : use.start;
    require(EVP_CipherInit_ex(context_, evp, nullptr, key.data(), start.data(),
                              use.direction == Direction::encrypt),
            "EVP_CipherInit_ex");
    EVP_CIPHER_CTX_set_padding(context_, 0);
    if (use.mode == Mode::ctr) {
        const Bytes skipped(use.offset % 16);
        Block unused;
        update(skipped, unused.data());
    }
}

OracleStream::~OracleStream() {
    EVP_CIPHER_CTX_free(context_);
}

void OracleStream::update(std::span<const std::uint8_t> in, std::uint8_t* out) {
    test::update(context_, in, out);
}

Bytes oracle(std::span<const std::uint8_t> key, const Use& use, std::span<const std::uint8_t> in) {
    Bytes out(in.size());
    OracleStream(key, use).update(in, out.data());
    return out;
}

Bytes oracle_xts(std::span<const std::uint8_t> key, Direction direction,
                 const xts::Sectors& sectors, std::span<const std::uint8_t> in) {
    const EVP_CIPHER* evp = key.size() == 32 ? EVP_aes_128_xts() : EVP_aes_256_xts();
    const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
    auto number = static_cast<unsigned __int128>(sectors.first_high) << 64 | sectors.first;
    Bytes out(in.size());
    for (std::size_t at = 0; at < in.size(); at += sectors.size, ++number) {
        Block tweak;
        auto rest = number;
        for (auto& byte : tweak) {
            byte = static_cast<std::uint8_t>(rest);
            rest >>= 8;
        }
        require(EVP_CipherInit_ex(context.get(), evp, nullptr, key.data(), tweak.data(),
                                  direction == Direction::encrypt),
                "EVP_CipherInit_ex");
        const auto size = std::min<std::size_t>(sectors.size, in.size() - at);
        update(context.get(), in.subspan(at, size), out.data() + at);
    }
    return out;
}

Sealed gcm_oracle(std::span<const std::uint8_t> key, std::span<const std::uint8_t> iv,
                  std::span<const std::uint8_t> aad, std::span<const std::uint8_t> in) {
    Sealed sealed{{}, Bytes(gcm::kTagSize)};
    sealed.ciphertext = gcm(key, true, iv, aad, in, sealed.tag.data());
    return sealed;
}

// Solved for in our field; OpenSSL hashes it with its own, so that a fault here would be noticed.
Bytes gcm_iv(std::span<const std::uint8_t> key, const Block& start) {
    if (modes::is_of_nonce(start)) return {start.begin(), start.begin() + gcm::kNonceSize};
    const Bytes subkey = oracle(key, {Mode::ecb, Direction::encrypt, {}, 0}, Bytes(kBlockSize));
    const Block iv = modes::iv_for(modes::load_element(subkey.data()), start);
    return {iv.begin(), iv.end()};
}

Answer oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& m) {
    const Bytes zeros(m.in ? 0 : m.size);
    const std::span in(m.in ? m.in : zeros.data(), m.size), aad(m.aad, m.aad_size);
    switch (cipher.mode) {
        case Mode::gcm: {
            const Bytes iv = gcm_iv(key, m.start);
            if (cipher.direction == Direction::encrypt) {
                auto [ciphertext, tag] = gcm_oracle(key, iv, aad, in);
                return {std::move(ciphertext), std::move(tag)};
            }
            Bytes plain = gcm(key, false, iv, aad, in, nullptr);
            Bytes tag = gcm_oracle(key, iv, aad, plain).tag;
            return {std::move(plain), std::move(tag)};
        }
        case Mode::xts: {
            xts::Sectors sectors{0, cipher.sector, 0};
            for (std::size_t i = 8; i-- > 0;) {
                sectors.first = sectors.first << 8 | m.start[i];
                sectors.first_high = sectors.first_high << 8 | m.start[8 + i];
            }
            return {oracle_xts(key, cipher.direction, sectors, in), {}};
        }
        case Mode::gcm_ctr:
            return {oracle(key, {Mode::ctr, cipher.direction, m.start, m.skip}, in), {}};
        case Mode::xaes256gcm:
            return xaes_oracle(key, cipher, m, aad);
        case Mode::gcm_siv:
            return siv_oracle(key, cipher, m, in, aad);
        case Mode::aegis128l:
        case Mode::aegis256:
        case Mode::aegis128x2:
        case Mode::aegis128x4:
            return aegis_oracle(key, cipher, m, in, aad);
        default:
            return {oracle(key, {cipher.mode, cipher.direction, m.start, m.skip}, in), {}};
    }
}

Answer oracle(std::span<const std::uint8_t> key, const Cipher& cipher, const Message& m,
              std::span<std::uint8_t> in) {
    if (cipher.mode != Mode::gcm_siv || cipher.direction == Direction::encrypt)
        return oracle(key, cipher, m);
    Cipher sealing = cipher;
    sealing.direction = Direction::encrypt;
    Answer answer = oracle(key, sealing, m);
    std::swap_ranges(in.begin(), in.end(), answer.out.begin());
    return answer;
}

}  // namespace dael::test
