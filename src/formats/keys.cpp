// SPDX-License-Identifier: Apache-2.0
#include "formats/keys.hpp"

#include "core/guard.hpp"
#include "formats/keyset.hpp"

namespace dael {

Result<> formats::check(const StreamKey& key) {
    if (key.derived != 16 && key.derived != 32)
        return Error{Code::bad_format, "a derived key of " + std::to_string(key.derived) +
                                           " bytes; sealed data has 16 or 32"};
    const std::size_t size = key.key.bytes().size();
    if (size < key.derived)
        return Error{Code::key_size, "a key of " + std::to_string(size) +
                                         " bytes; it must be as long as the " +
                                         std::to_string(key.derived) + " bytes derived from it"};
    if (key.segment <= header_size(key.derived) + gcm::kTagSize)
        return Error{Code::bad_format,
                     "segments of " + std::to_string(key.segment) +
                         " bytes; they must have room for a header, a tag and a byte"};
    if (key.segment > kMaxSegment)
        return Error{Code::bad_format, "segments of " + std::to_string(key.segment) +
                                           " bytes; daelstrom takes at most " +
                                           std::to_string(kMaxSegment)};
    return {};
}

namespace sealed {

Keys::Keys(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Keys::Keys(Keys&&) noexcept = default;
Keys& Keys::operator=(Keys&&) noexcept = default;
Keys::~Keys() = default;

std::uint32_t Keys::segment() const noexcept {
    return state_->keys.front().segment;
}

Result<Keys> Keys::from_key(HostIn bytes, std::uint32_t segment) {
    return core::guarded([&]() -> Result<Keys> {
        if (bytes.size() != 16 && bytes.size() != 32)
            return Error{Code::key_size, "key is " + std::to_string(bytes.size()) +
                                             " bytes; sealing takes 16 or 32"};
        auto state = std::make_unique<State>();
        for (const std::uint32_t size : {segment, kLargeSegment, kSmallSegment}) {
            if (size == segment && !state->keys.empty()) continue;
            auto copy = formats::SecretBytes::copy(bytes);
            if (!copy) return std::move(copy).error();
            state->keys.push_back({std::move(*copy), size, static_cast<std::uint32_t>(bytes.size()),
                                   formats::Hash::sha256});
        }
        if (auto fits = formats::check(state->keys.front()); !fits)
            return Error{Code::invalid_argument, std::move(fits).error().message};
        return Keys(std::move(state));
    });
}

Result<Keys> Keys::sealing() const {
    return core::guarded([&]() -> Result<Keys> {
        const formats::StreamKey& key = state_->keys.front();
        DAEL_LET(copy, formats::SecretBytes::copy(key.key.bytes()));
        auto state = std::make_unique<State>();
        state->keys.push_back({std::move(copy), key.segment, key.derived, key.hash});
        return Keys(std::move(state));
    });
}

Result<Keys> Keys::from_keyset(HostIn json) {
    return core::guarded([&]() -> Result<Keys> {
        auto keys = formats::parse_keyset(json);
        if (!keys) return std::move(keys).error();
        auto state = std::make_unique<State>();
        state->keys = std::move(*keys);
        return Keys(std::move(state));
    });
}

}  // namespace sealed
}  // namespace dael
