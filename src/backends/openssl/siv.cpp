// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/siv.hpp"

#include <algorithm>
#include <limits>

#include <daelstrom/gcm_siv.hpp>

#include "core/key_schedule.hpp"

namespace dael::openssl {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<int>::max();

Result<> update(const Notes& notes, EVP_CIPHER_CTX* context, const std::uint8_t* in,
                std::uint8_t* out, std::uint64_t size) {
    int written = 0;
    if (EVP_CipherUpdate(context, out, &written, in, static_cast<int>(size))) return {};
    return failure(notes, "EVP_CipherUpdate");
}

// One message under the context's key, whole: EVP takes no pieces of it.
Result<Code> message(const Notes& notes, EVP_CIPHER_CTX* context, Direction direction,
                     const Message& m) {
    const bool encrypts = direction == Direction::encrypt;
    DAEL_TRY(initialise(notes, context, nullptr, nullptr, m.start.data(), encrypts));
    if (!encrypts &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, gcm_siv::kTagSize, m.tag) <= 0)
        return failure(notes, "EVP_CTRL_AEAD_SET_TAG");
    // A new nonce does not take away the AAD of the message before; AAD of no size does.
    DAEL_TRY(update(notes, context, m.start.data(), nullptr, 0));
    if (m.aad_size != 0) DAEL_TRY(update(notes, context, m.aad, nullptr, m.aad_size));
    // Of nothing too, which is what makes the tag.
    Block unused;
    const bool empty = m.size == 0;
    int written = 0;
    const bool done = EVP_CipherUpdate(context, empty ? unused.data() : m.out, &written,
                                       empty ? unused.data() : m.in, static_cast<int>(m.size)) == 1;
    // Some versions say here what others say at the end.
    if (!done && encrypts) return failure(notes, "EVP_CipherUpdate");
    if (!done || !EVP_CipherFinal_ex(context, unused.data(), &written)) {
        if (encrypts) return failure(notes, "EVP_CipherFinal_ex");
        notes.forget();
        return Code::authentication;
    }
    if (encrypts &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, gcm_siv::kTagSize, m.tag) <= 0)
        return failure(notes, "EVP_CTRL_AEAD_GET_TAG");
    return Code::ok;
}

// Opened in place and forged: decryption is an XOR with what the tag makes, and once more it is
// the ciphertext again.
Result<> run_one(const Notes& notes, EVP_CIPHER_CTX* context, const Cipher& cipher,
                 const Message& m, Code& code) {
    auto done = message(notes, context, cipher.direction, m);
    if (done && *done == Code::ok) return {};
    if (cipher.direction == Direction::decrypt && (!done || m.in != m.out)) wipe(m.out, m.size);
    if (!done) return std::move(done).error();
    code = Code::authentication;
    if (m.in != m.out || m.size == 0) return {};
    auto back = message(notes, context, Direction::decrypt, m);
    if (!back) {
        wipe(m.out, m.size);
        return std::move(back).error();
    }
    code = *back;  // authentic after all, where libcrypto had failed before it wrote
    return {};
}

// RFC 8452, appendix C.1: the key of 01 and zeros, and the nonce of 03 and zeros.
struct Known {
    std::uint8_t size, aad_size;  // bytes, 01 or 02 and zeros; the AAD is 01 and zeros
    std::array<std::uint8_t, 8> text;
    std::array<std::uint8_t, 16> tag;
};
constexpr Known kKnown[] = {
    {8,
     1,
     {0x1e, 0x6d, 0xab, 0xa3, 0x56, 0x69, 0xf4, 0x27},
     {0x3b, 0x0a, 0x1a, 0x25, 0x60, 0x96, 0x9c, 0xdf, 0x79, 0x0d, 0x99, 0x75, 0x9a, 0xbd, 0x15,
      0x08}},
    {0,
     0,
     {},
     {0xdc, 0x20, 0xe2, 0xd8, 0x3f, 0x25, 0x70, 0x5b, 0xb4, 0x9e, 0x43, 0x9e, 0xca, 0x56, 0xde,
      0x25}},
};

// On one context, as run() has it: no AAD is left over from the message before, an empty one has a
// tag, and what is forged comes back as it was.
Result<bool> answers(const Notes& notes, const EVP_CIPHER* cipher) {
    DAEL_LET(context, new_context());
    const std::array<std::uint8_t, 16> key{1};
    DAEL_TRY(initialise(notes, context.get(), cipher, key.data(), nullptr, 1));
    const std::array<std::uint8_t, 1> aad{1};
    for (const Known& known : kKnown) {
        std::array<std::uint8_t, 8> data{2};
        if (known.size == 0) data = {};
        const auto plain = data;
        Block tag{};
        Message m;
        m.in = m.out = data.data();
        m.size = known.size;
        m.aad = aad.data();
        m.aad_size = known.aad_size;
        m.tag = tag.data();
        m.start = {3};
        Code code = Code::ok;
        DAEL_TRY(run_one(notes, context.get(), gcm_siv::kSealing, m, code));
        if (data != known.text || tag != known.tag) return false;
        tag[3] ^= 1;
        DAEL_TRY(run_one(notes, context.get(), gcm_siv::kOpening, m, code));
        if (code != Code::authentication || data != known.text) return false;
        tag[3] ^= 1;
        code = Code::ok;
        DAEL_TRY(run_one(notes, context.get(), gcm_siv::kOpening, m, code));
        if (code != Code::ok || data != plain) return false;
    }
    return true;
}

}  // namespace

Result<> Siv::open() {
    const auto lacks = [this](const Result<>& result, std::string_view why) -> Result<> {
        if (result.code() == Code::out_of_memory) return result;
        algorithms_ = {};
        why_ = why;
        return {};
    };
    constexpr std::string_view kAbsent =
        "this libcrypto has no AES-GCM-SIV, which came with OpenSSL 3.2; "
        "use the backend 'auto' or 'cpu'";
    // Not asked for the name: to say that it has none, it takes locks that are the process's, and
    // a child that is forked meanwhile would wait for them for ever.
    if (OpenSSL_version_num() < 0x30200000UL) return lacks({}, kAbsent);
    for (std::size_t i = 0; i < 2; ++i)
        if (auto found = fetch(algorithms_[i], i == 0 ? "AES-128-GCM-SIV" : "AES-256-GCM-SIV");
            !found)
            return lacks(found, kAbsent);
    const Notes notes;
    const auto right = answers(notes, algorithms_[0].get());
    if (right && *right) return {};
    return lacks(right ? Result<>{} : Result<>(right.error()),
                 "this libcrypto's AES-GCM-SIV gives other answers than RFC 8452; use the backend "
                 "'auto' or 'cpu'");
}

Result<> Siv::run(const Notes& notes, const Cipher& cipher, std::span<const Key> keys,
                  std::span<const Message> messages, std::span<Code> codes) const {
    DAEL_LET(context, new_context());
    const Key* key = nullptr;
    std::size_t keyed = 0;  // its bytes
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (m.size > kMost || m.aad_size > kMost)
            return Error{Code::unsupported,
                         "openssl: a message of 2 GiB or more in GCM-SIV, which EVP takes whole; "
                         "use the backend 'auto' or 'cpu'"};
        if (key != &keys[m.key]) {
            key = &keys[m.key];
            const auto raw = key->schedule().key();
            const EVP_CIPHER* const algorithm = algorithms_[raw.size() == 16 ? 0 : 1].get();
            DAEL_TRY(initialise(notes, context.get(), keyed == raw.size() ? nullptr : algorithm,
                                raw.data(), nullptr, 1));
            keyed = raw.size();
        }
        Code unused = Code::ok;
        DAEL_TRY(run_one(notes, context.get(), cipher, m, codes.empty() ? unused : codes[i]));
    }
    return {};
}

}  // namespace dael::openssl
