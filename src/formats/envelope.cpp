// SPDX-License-Identifier: Apache-2.0
// Envelopes: age v1 files (age-encryption.org/v1) whose plaintext is the key of the stream behind
// them. A header wraps a file key for each recipient; the payload, one chunk that is the last, is
//
//     nonce[16] | the stream's key[32] | tag[16]
#include <algorithm>
#include <string>

#include <daelstrom/sealed.hpp>

#include "core/guard.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "formats/age_header.hpp"
#include "formats/hkdf.hpp"
#include "formats/recipients.hpp"
#include "modes/gcm.hpp"

namespace dael::sealed {
namespace {

using formats::AgeHeader;
using formats::ChaChaNonce;
using formats::CurvePoint;
using formats::CurveStanza;
using formats::Hash;
using formats::HybridStanza;
using formats::ScryptStanza;
using formats::SecretBytes;

constexpr std::size_t kFileKey = 16, kDataKey = 32, kPayloadNonce = 16,
                      kPayload = kPayloadNonce + kDataKey + formats::kChaChaTag;
constexpr ChaChaNonce kNoNonce{};  // of wrapping keys, each of which wraps once
constexpr ChaChaNonce kOnlyChunk{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};  // number 0, and the last
constexpr std::string_view kCurveLabel = "age-encryption.org/v1/X25519",
                           kScryptLabel = "age-encryption.org/v1/scrypt",
                           kHybridLabel = "age-encryption.org/mlkem768x25519";

// The key that wraps a file key: of what the two share, the share and the recipient.
Result<> curve_key(HostIn shared, const CurvePoint& share, const CurvePoint& recipient,
                   HostOut out) {
    std::array<std::uint8_t, 2 * formats::kCurveSize> salt{};
    std::ranges::copy(recipient, std::ranges::copy(share, salt.begin()).out);
    return formats::hkdf(Hash::sha256, shared, salt, core::bytes_of(kCurveLabel), out);
}

Result<> scrypt_key(HostIn passphrase, const ScryptStanza& stanza, HostOut out) {
    std::array<std::uint8_t, kScryptLabel.size() + formats::kScryptSalt> salt{};
    std::ranges::copy(stanza.salt, std::ranges::copy(kScryptLabel, salt.begin()).out);
    return formats::scrypt(passphrase, salt, stanza.work, out);
}

// What the file key makes: `label` is "header" for the MAC's key, "payload" for the payload's.
Result<> file_subkey(HostIn file_key, HostIn salt, std::string_view label, HostOut out) {
    return formats::hkdf(Hash::sha256, file_key, salt, core::bytes_of(label), out);
}

Result<> mac_of(HostIn file_key, HostIn covered, formats::Digest& out) {
    formats::Digest key;
    key.size = 32;
    DAEL_TRY(file_subkey(file_key, {}, "header", HostOut(key.bytes).first(key.size)));
    return formats::hmac(Hash::sha256, key.view(), {covered}, out);
}

// Secrets of one call, which age has of 32 bytes or less.
struct Scratch {
    SecretBytes memory;
    static Result<Scratch> create() {
        DAEL_LET(memory, SecretBytes::create(4 * 32));
        return Scratch{std::move(memory)};
    }
    HostOut file_key() { return memory.bytes().first(kFileKey); }
    HostOut wrapping() { return memory.bytes().subspan(32, 32); }
    HostOut ephemeral() { return memory.bytes().subspan(64, 32); }
    HostOut shared() { return memory.bytes().subspan(96, 32); }
};

Result<CurveStanza> wrap(Scratch& scratch, const CurvePoint& recipient) {
    CurveStanza stanza{};
    DAEL_TRY(core::fill_random(scratch.ephemeral()));
    DAEL_LET(share, formats::x25519_public(scratch.ephemeral()));
    stanza.share = share;
    DAEL_TRY(formats::x25519(scratch.ephemeral(), recipient, scratch.shared()));
    DAEL_TRY(curve_key(scratch.shared(), share, recipient, scratch.wrapping()));
    DAEL_TRY(formats::chacha_seal(scratch.wrapping(), kNoNonce, scratch.file_key(), stanza.body));
    return stanza;
}

Result<HybridStanza> wrap(Scratch& scratch, const formats::HybridPublic& recipient) {
    HybridStanza stanza{};
    DAEL_TRY(formats::hybrid_seal(recipient, core::bytes_of(kHybridLabel), scratch.file_key(),
                                  stanza.share, stanza.body));
    return stanza;
}

Result<ScryptStanza> wrap(Scratch& scratch, const formats::Passphrase& passphrase) {
    ScryptStanza stanza{};
    stanza.work = passphrase.work;
    DAEL_TRY(core::fill_random(stanza.salt));
    DAEL_TRY(scrypt_key(passphrase.bytes.bytes(), stanza, scratch.wrapping()));
    DAEL_TRY(formats::chacha_seal(scratch.wrapping(), kNoNonce, scratch.file_key(), stanza.body));
    return stanza;
}

Result<std::vector<std::uint8_t>> make(const Recipients::State& recipients, HostIn data_key) {
    DAEL_LET(scratch, Scratch::create());
    DAEL_TRY(core::fill_random(scratch.file_key()));
    std::string header(formats::kAgeLine);
    if (recipients.passphrase) {
        DAEL_LET(stanza, wrap(scratch, *recipients.passphrase));
        formats::write_stanza(header, stanza);
    }
    for (const CurvePoint& point : recipients.points) {
        DAEL_LET(stanza, wrap(scratch, point));
        formats::write_stanza(header, stanza);
    }
    for (const formats::HybridPublic& recipient : recipients.hybrid) {
        DAEL_LET(stanza, wrap(scratch, recipient));
        formats::write_stanza(header, stanza);
    }
    header += "---";
    formats::Digest mac;
    DAEL_TRY(mac_of(scratch.file_key(), core::bytes_of(header), mac));
    formats::write_mac(header, mac.view());
    std::vector<std::uint8_t> out(header.begin(), header.end());
    out.resize(header.size() + kPayload);
    const HostOut payload = HostOut(out).last(kPayload), nonce = payload.first(kPayloadNonce);
    DAEL_TRY(core::fill_random(nonce));
    DAEL_TRY(file_subkey(scratch.file_key(), nonce, "payload", scratch.wrapping()));
    DAEL_TRY(formats::chacha_seal(scratch.wrapping(), kOnlyChunk, data_key,
                                  payload.subspan(kPayloadNonce)));
    return out;
}

Error about_header(const Error& error) {
    return {error.code, "the age header has " + error.message};
}

// The file key by the first identity that has it.
Result<> unwrap(Scratch& scratch, const Identities::State& identities, const AgeHeader& header) {
    for (const formats::HybridIdentity& key : identities.hybrid)
        for (const HybridStanza& stanza : header.hybrid) {
            const auto opened =
                formats::hybrid_open(key.seed.bytes(), stanza.share, core::bytes_of(kHybridLabel),
                                     stanza.body, scratch.file_key());
            if (opened) return opened;
            if (opened.code() == Code::bad_format) return about_header(opened.error());
            if (opened.code() != Code::authentication) return opened;
        }
    for (const formats::Identity& key : identities.keys)
        for (const CurveStanza& stanza : header.curve) {
            if (auto shared = formats::x25519(key.secret.bytes(), stanza.share, scratch.shared());
                !shared)
                return shared.code() == Code::bad_format ? about_header(shared.error())
                                                         : shared.error();
            DAEL_TRY(curve_key(scratch.shared(), stanza.share, key.recipient, scratch.wrapping()));
            const auto opened =
                formats::chacha_open(scratch.wrapping(), kNoNonce, stanza.body, scratch.file_key());
            if (opened || opened.code() != Code::authentication) return opened;
        }
    const std::size_t tried = identities.count();
    return Error{
        Code::authentication,
        (tried == 1 ? std::string("the identity opens none of ")
                    : "none of the " + std::to_string(tried) + " identities opens any of ") +
            "its " + std::to_string(header.stanzas) +
            " stanzas: it was sealed for other recipients, or altered"};
}

Result<> unwrap(Scratch& scratch, const formats::Passphrase& passphrase,
                const ScryptStanza& stanza) {
    const auto shown = [](int work) {
        return work < 10 ? std::to_string(1 << work) + " KiB"
                         : std::to_string(std::uint64_t{1} << (work - 10)) + " MiB";
    };
    if (stanza.work > passphrase.work) {
        const std::string asks = "it asks scrypt for " + shown(stanza.work) + " of memory (N = 2^" +
                                 std::to_string(stanza.work) + "), ";
        if (stanza.work > kMaxWork)
            return Error{Code::limit, asks + "more than daelstrom ever takes, " + shown(kMaxWork)};
        return Error{Code::limit, asks + "more than " + shown(passphrase.work) +
                                      "; allow it that if you trust where it comes from"};
    }
    DAEL_TRY(scrypt_key(passphrase.bytes.bytes(), stanza, scratch.wrapping()));
    auto opened =
        formats::chacha_open(scratch.wrapping(), kNoNonce, stanza.body, scratch.file_key());
    if (opened || opened.code() != Code::authentication) return opened;
    return Error{Code::authentication, "another passphrase, or the envelope in front was altered"};
}

Result<SecretBytes> open(const Identities::State& identities, HostIn start) {
    DAEL_LET(header, formats::parse_age_header(start, kMaxEnvelope - kPayload));
    if (header.size == 0 || start.size() - header.size < kPayload)
        return Error{Code::bad_format, "the envelope in front is cut off"};
    const bool takes_passphrase = header.scrypt.work != 0;
    if (takes_passphrase != identities.passphrase.has_value())
        return Error{Code::invalid_argument,
                     takes_passphrase ? "it was sealed with a passphrase, which no identity opens"
                                      : "it was sealed for recipients; a passphrase does not open "
                                        "it, the identity of one of them does"};
    DAEL_LET(scratch, Scratch::create());
    if (takes_passphrase)
        DAEL_TRY(unwrap(scratch, *identities.passphrase, header.scrypt));
    else
        DAEL_TRY(unwrap(scratch, identities, header));
    formats::Digest mac;
    DAEL_TRY(mac_of(scratch.file_key(), start.first(header.covered), mac));
    if (!modes::equal_tags(mac.bytes.data(), header.mac.data(), header.mac.size()))
        return Error{Code::authentication, "the header of the envelope in front was altered"};
    const HostIn payload = start.subspan(header.size, kPayload);
    DAEL_TRY(file_subkey(scratch.file_key(), payload.first(kPayloadNonce), "payload",
                         scratch.wrapping()));
    DAEL_LET(key, SecretBytes::create(kDataKey));
    const auto opened = formats::chacha_open(scratch.wrapping(), kOnlyChunk,
                                             payload.subspan(kPayloadNonce), key.bytes());
    if (opened) return std::move(key);
    if (opened.code() != Code::authentication) return opened.error();
    return Error{Code::authentication,
                 "this is an age file, but what it holds is no key of sealed data: age -d opens "
                 "it; or the 64 bytes behind its header were altered"};
}

// Before anything is computed for it.
Result<> check_size(const Recipients& recipients) {
    const std::size_t size = recipients.envelope_size();
    if (size <= kMaxEnvelope) return {};
    return Error{Code::limit, "the envelope for so many recipients has " + std::to_string(size) +
                                  " bytes, and is at most " + std::to_string(kMaxEnvelope)};
}

}  // namespace

std::size_t Recipients::envelope_size() const noexcept {
    const auto base64 = [](std::size_t size) { return (8 * size + 5) / 6; };
    const std::size_t body = base64(formats::kWrappedSize) + 1;
    const std::size_t curve = 10 + base64(formats::kCurveSize) + 1 + body;
    const std::size_t around = formats::kAgeLine.size() + 4 + base64(32) + 1 + kPayload;
    const std::size_t hybrid = 18 + base64(formats::kHybridShare) + 1 + body;
    if (!state_->passphrase)
        return around + state_->points.size() * curve + state_->hybrid.size() * hybrid;
    const std::size_t digits = state_->passphrase->work < 10 ? 1 : 2;
    return around + 10 + base64(formats::kScryptSalt) + 1 + digits + 1 + body;
}

bool is_envelope(HostIn start) noexcept {
    return start.size() >= formats::kAgeLine.size() &&
           std::ranges::equal(start.first(formats::kAgeLine.size()),
                              core::bytes_of(formats::kAgeLine));
}

Result<EnvelopeInfo> read_envelope(HostIn start) {
    return core::guarded([&]() -> Result<EnvelopeInfo> {
        DAEL_LET(header, formats::parse_age_header(start, kMaxEnvelope - kPayload));
        if (header.size == 0 || start.size() - header.size < kPayload) return EnvelopeInfo{};
        return EnvelopeInfo{header.size + kPayload, header.stanzas, header.scrypt.work};
    });
}

Result<Enveloped> make_envelope(const Recipients& recipients, std::uint32_t segment) {
    return core::guarded([&]() -> Result<Enveloped> {
        DAEL_TRY(check_size(recipients));
        DAEL_LET(key, SecretBytes::create(kDataKey));
        DAEL_TRY(core::fill_random(key.bytes()));
        DAEL_LET(keys, Keys::from_key(key.bytes(), segment));
        DAEL_LET(envelope, make(recipients.state(), key.bytes()));
        return Enveloped{std::move(envelope), std::move(keys)};
    });
}

Result<Keys> open_envelope(const Identities& identities, HostIn start, std::uint32_t segment) {
    return core::guarded([&]() -> Result<Keys> {
        DAEL_LET(key, open(identities.state(), start));
        return Keys::from_key(key.bytes(), segment);
    });
}

Result<std::vector<std::uint8_t>> rewrap_envelope(const Identities& identities, HostIn start,
                                                  const Recipients& recipients) {
    return core::guarded([&]() -> Result<std::vector<std::uint8_t>> {
        DAEL_TRY(check_size(recipients));
        DAEL_LET(key, open(identities.state(), start));
        return make(recipients.state(), key.bytes());
    });
}

}  // namespace dael::sealed
