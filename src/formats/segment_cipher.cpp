// SPDX-License-Identifier: Apache-2.0
#include "formats/segment_cipher.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "core/ghash_math.hpp"
#include "core/random.hpp"
#include "modes/gcm.hpp"

namespace dael::formats {
namespace {

std::span<const StreamKey> keys_of(const sealed::Keys& keys) noexcept {
    return keys.state().keys;
}

Error not_authentic(std::uint64_t i, bool last) {
    std::string text = "segment " + std::to_string(i);
    if (last) text += i == 0 ? ", the only one," : ", the last one,";
    text += " is not authentic: ";
    text += i == 0 ? "another key or other associated data, or it was altered" : "it was altered";
    text += last ? ", or the data was cut off or added to" : " or moved";
    return {Code::authentication, text};
}

Error cut_off(std::size_t size) {
    return {Code::bad_format,
            "the data is cut off: it ends after " + std::to_string(size) + " bytes"};
}

Result<Key> derive(const StreamKey& key, HostIn aad, HostIn header) {
    auto derived = SecretBytes::create(key.derived);
    if (!derived) return std::move(derived).error();
    DAEL_TRY(
        hkdf(key.hash, key.key.bytes(), header.subspan(1, key.derived), aad, derived->bytes()));
    return Key::import(derived->bytes());
}

// Whether a segment is authentic, without its plaintext being made: that may be meant for memory
// of a device alone. A tag over the same bytes as AAD differs from theirs only in the lengths that
// GHASH takes in last: by the difference of the two, times the hash subkey.
Result<bool> is_authentic(Engine& engine, const Key& key,
                          const std::array<std::uint8_t, kNonceSize>& nonce, HostIn data,
                          const std::uint8_t* tag) {
    auto secret = SecretBytes::create(2 * kBlockSize);
    if (!secret) return std::move(secret).error();
    const HostOut expected = secret->bytes().first(kBlockSize);
    const HostOut subkey = secret->bytes().last(kBlockSize);  // zeros so far
    if (auto ran = engine.gcm_seal(key, nonce, data, {}, {}, expected); !ran)
        return std::move(ran).error();
    if (auto ran = engine.ecb_encrypt(key, subkey, subkey); !ran) return std::move(ran).error();
    const Block as_aad = modes::lengths_block(data.size(), 0);
    const Block as_data = modes::lengths_block(0, data.size());
    const core::FieldElement lengths =
        core::load_element(as_aad.data()) ^ core::load_element(as_data.data());
    core::store_element(expected.data(),
                        core::load_element(expected.data()) ^
                            core::multiply(lengths, core::load_element(subkey.data())));
    return modes::equal_tags(expected.data(), tag, kTagSize);
}

}  // namespace

Result<SegmentCipher> SegmentCipher::start(Engine& engine, const StreamKey& key, HostIn aad) {
    std::array<std::uint8_t, kMostHeader> header{};
    const std::size_t size = header_size(key.derived);
    header[0] = static_cast<std::uint8_t>(size);
    DAEL_TRY(core::fill_random(std::span(header).subspan(1, size - 1)));
    return resume(engine, key, aad, HostIn(header).first(size));
}

Result<SegmentCipher> SegmentCipher::resume(Engine& engine, const StreamKey& key, HostIn aad,
                                            HostIn header) {
    auto cipher_key = derive(key, aad, header);
    if (!cipher_key) return std::move(cipher_key).error();
    auto prepared = engine.prepare_keys({&*cipher_key, 1});
    if (!prepared) return std::move(prepared).error();
    SegmentCipher cipher(engine, key.layout(), std::move(*prepared));
    std::ranges::copy(header, cipher.header_.begin());
    std::ranges::copy(header.last(kPrefixSize), cipher.prefix_.begin());
    return cipher;
}

// Ciphertext is followed by its tag on the side where it lies; plaintext by as much room in place.
void SegmentCipher::list(Direction direction, const Run& run, const std::uint8_t* from,
                         std::uint8_t* to) {
    const bool opens = direction == Direction::decrypt;
    std::uint64_t i = run.first, left = run.size;
    messages_.clear();
    while (left != 0 || (run.last && messages_.empty())) {
        GcmMessage message;
        message.in = from;
        message.out = to;
        message.size = std::min(left, layout_.room(i));
        message.tag = (opens ? const_cast<std::uint8_t*>(from) : to) + message.size;
        left -= message.size;
        message.nonce = nonce_of(prefix_, i++, run.last && left == 0);
        messages_.push_back(message);
        from += message.size + (opens || run.in_place ? kTagSize : 0);
        to += message.size + (opens && !run.in_place ? 0 : kTagSize);
    }
}

Result<Ran> SegmentCipher::work(Direction direction, const Run& run, const std::uint8_t* from,
                                std::uint8_t* to) {
    list(direction, run, from, to);
    if (messages_.empty()) return Ran{};
    if (run.first + messages_.size() > kMostSegments) return layout_.too_long();
    results_.assign(messages_.size(), Code::internal);
    auto ran = direction == Direction::encrypt ? engine_->seal_batch(keys_, messages_, results_)
                                               : engine_->open_batch(keys_, messages_, results_);
    if (!ran) return ran;
    const auto failed = std::ranges::find_if(results_, [](Code code) { return code != Code::ok; });
    if (failed == results_.end()) return ran;
    const auto at = static_cast<std::uint64_t>(failed - results_.begin());
    return segment_fault(run.first + at, run.last && at + 1 == results_.size(), *failed);
}

Error segment_fault(std::uint64_t i, bool last, Code code) {
    if (code == Code::authentication) return not_authentic(i, last);
    return {code, "segment " + std::to_string(i) + ": " + std::string(describe(code))};
}

std::size_t head_size(const sealed::Keys& keys) noexcept {
    const auto candidates = keys_of(keys);
    if (candidates.size() == 1) return candidates[0].layout().header;
    // One byte more than a segment tells whether another follows.
    return std::ranges::max_element(candidates, {}, &StreamKey::segment)->segment + std::size_t{1};
}

Result<SegmentCipher> find_key(Engine& engine, const sealed::Keys& keys, HostIn aad, HostIn head,
                               bool whole) {
    if (head.empty()) return cut_off(0);
    std::vector<const StreamKey*> candidates;
    for (const StreamKey& key : keys_of(keys))
        if (key.layout().header == head[0]) candidates.push_back(&key);
    if (candidates.empty())
        return Error{Code::bad_format,
                     "the data does not begin as sealed data of " +
                         std::string(keys_of(keys).size() == 1 ? "this key" : "any of these keys") +
                         " does: its first byte is " + std::to_string(head[0])};
    if (head.size() < head[0]) return cut_off(head.size());
    const HostIn header = head.first(head[0]);
    if (keys_of(keys).size() == 1)
        return SegmentCipher::resume(engine, *candidates[0], aad, header);
    for (const StreamKey* key : candidates) {
        const std::size_t end = std::min<std::size_t>(head.size(), key->segment);
        if (end < header.size() + kTagSize) return cut_off(head.size());
        auto derived = derive(*key, aad, header);
        if (!derived) return std::move(derived).error();
        Prefix prefix;
        std::ranges::copy(header.last(kPrefixSize), prefix.begin());
        const HostIn data = head.first(end - kTagSize).subspan(header.size());
        const auto authentic =
            is_authentic(engine, *derived, nonce_of(prefix, 0, whole && end == head.size()), data,
                         head.data() + end - kTagSize);
        if (!authentic) return authentic.error();
        if (*authentic) return SegmentCipher::resume(engine, *key, aad, header);
    }
    return Error{
        Code::authentication,
        "segment 0 is not authentic: another key or other associated data, or the data was "
        "altered, cut off or added to"};
}

}  // namespace dael::formats
