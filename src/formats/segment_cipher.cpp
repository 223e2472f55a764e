// SPDX-License-Identifier: Apache-2.0
#include "formats/segment_cipher.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "core/random.hpp"
#include "core/wipe_at_end.hpp"
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
Result<bool> is_authentic(Engine& engine, const Key& key, const gcm::Nonce& nonce, HostIn data,
                          const std::uint8_t* tag) {
    std::array<std::uint8_t, gcm::kTagSize> expected{};
    modes::Element h = modes::hash_subkey(key.schedule());
    const core::WipeAtEnd wipe_tag(expected), wipe_h(h);
    DAEL_TRY(gcm::seal(engine, key, nonce, data, {}, {}, expected));
    const Block as_aad = modes::lengths_block(data.size(), 0);
    const Block as_data = modes::lengths_block(0, data.size());
    const modes::Element lengths =
        modes::add(modes::load_element(as_aad.data()), modes::load_element(as_data.data()));
    modes::store_element(expected.data(), modes::add(modes::load_element(expected.data()),
                                                     modes::multiply(lengths, h)));
    return modes::equal_tags(expected.data(), tag, gcm::kTagSize);
}

}  // namespace

Result<SegmentCipher> SegmentCipher::start(Engine& engine, const StreamKey& key, HostIn aad) {
    std::array<std::uint8_t, kMaxHeader> header{};
    const std::size_t size = header_size(key.derived);
    header[0] = static_cast<std::uint8_t>(size);
    DAEL_TRY(core::fill_random(std::span(header).subspan(1, size - 1)));
    return resume(engine, key, aad, HostIn(header).first(size));
}

Result<SegmentCipher> SegmentCipher::resume(Engine& engine, const StreamKey& key, HostIn aad,
                                            HostIn header) {
    DAEL_LET(derived, derive(key, aad, header));
    DAEL_LET(keys, engine.keys({&derived, 1}));
    SegmentCipher cipher(engine, key.layout(), std::move(keys));
    std::ranges::copy(header, cipher.header_.begin());
    std::ranges::copy(header.last(kPrefixSize), cipher.prefix_.begin());
    return cipher;
}

void SegmentCipher::list(Direction direction, const sealed::Chunk& chunk, std::uint64_t from,
                         std::uint64_t to, std::uint8_t* sealed, std::uint8_t* plain,
                         std::vector<Message>& messages) const {
    const bool opens = direction == Direction::decrypt;
    messages.clear();
    messages.reserve(to - from);
    for (std::uint64_t i = from; i < to; ++i) {
        const sealed::Range place = layout_.place(chunk, i - chunk.first);
        std::uint8_t* const in_stream = sealed + place.at;
        std::uint8_t* const clear =
            plain ? plain + (layout_.plain_at(i) - chunk.plain.at) : in_stream;
        Message& message = messages.emplace_back();
        message.in = opens ? in_stream : clear;
        message.out = opens ? clear : in_stream;
        message.size = place.size;
        message.tag = in_stream + place.size;
        const bool last = chunk.last && i + 1 == chunk.first + chunk.count;
        message.start = gcm::start(nonce_of(prefix_, i, last));
    }
}

Result<Ran> SegmentCipher::run(Direction direction, const sealed::Chunk& chunk,
                               std::uint8_t* sealed, std::uint8_t* plain) const {
    // Enough at a time for many cores and for a device's pipeline, without a list as long as the
    // whole of a large stream's.
    constexpr std::uint64_t kAtOnce = std::uint64_t{256} << 20;  // bytes
    const std::uint64_t step = std::max<std::uint64_t>(1, kAtOnce / layout_.segment);
    const std::uint64_t end = chunk.first + chunk.count;
    std::vector<Message> messages;
    std::vector<Code> codes;
    const Cipher cipher = direction == Direction::encrypt ? gcm::sealing() : gcm::opening();
    Engine engine(engine_);
    Ran ran;
    for (std::uint64_t first = chunk.first; first < end; first += step) {
        list(direction, chunk, first, std::min(end, first + step), sealed, plain, messages);
        codes.assign(messages.size(), Code::internal);
        DAEL_LET(done, engine.run(cipher, keys_, messages, codes));
        const auto bad = std::ranges::find_if(codes, [](Code code) { return code != Code::ok; });
        if (bad != codes.end()) {
            const std::uint64_t i = first + static_cast<std::uint64_t>(bad - codes.begin());
            return segment_fault(i, chunk.last && i + 1 == end, *bad);
        }
        ran = std::move(done);
    }
    return ran;
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
        if (end < header.size() + gcm::kTagSize) return cut_off(head.size());
        auto derived = derive(*key, aad, header);
        if (!derived) return std::move(derived).error();
        Prefix prefix;
        std::ranges::copy(header.last(kPrefixSize), prefix.begin());
        const HostIn data = head.first(end - gcm::kTagSize).subspan(header.size());
        const auto authentic =
            is_authentic(engine, *derived, nonce_of(prefix, 0, whole && end == head.size()), data,
                         head.data() + end - gcm::kTagSize);
        if (!authentic) return authentic.error();
        if (*authentic) return SegmentCipher::resume(engine, *key, aad, header);
    }
    return Error{
        Code::authentication,
        "segment 0 is not authentic: another key or other associated data, or the data was "
        "altered, cut off or added to"};
}

}  // namespace dael::formats
