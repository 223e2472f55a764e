// SPDX-License-Identifier: Apache-2.0
// Keysets that are changed. What stands in a key is taken along as it stands in the text, unread.
#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <utility>

#include <daelstrom/sealed_keys.hpp>

#include "core/guard.hpp"
#include "core/quoted.hpp"
#include "core/random.hpp"
#include "formats/base64.hpp"
#include "formats/keyset.hpp"

namespace dael::sealed {

using formats::KeysetKey;
using formats::SecretBytes;

struct Keyset::State {
    SecretBytes text;              // what `keyset` points into
    std::list<SecretBytes> added;  // and what it does for keys that are new, in base64
    formats::KeysetJson keyset;

    const KeysetKey* primary() const {
        const auto found = std::ranges::find_if(keyset.keys, [&](const KeysetKey& key) {
            return key.id == keyset.primary && key.status == formats::kEnabled;
        });
        return found == keyset.keys.end() ? nullptr : &*found;
    }
    bool has(std::uint32_t id) const {
        return std::ranges::find(keyset.keys, id, &KeysetKey::id) != keyset.keys.end();
    }
    Result<KeysetKey*> key(std::uint32_t id) {
        KeysetKey* found = nullptr;
        for (KeysetKey& key : keyset.keys) {
            if (key.id != id) continue;
            if (found)
                return Error{Code::invalid_argument, "the keyset has two keys with the number " +
                                                         std::to_string(id) +
                                                         "; which of them is meant cannot be said"};
            found = &key;
        }
        if (found) return found;
        return Error{Code::invalid_argument, "the keyset has no key " + std::to_string(id)};
    }
    // One whose use is to end.
    Result<KeysetKey*> spare_key(std::uint32_t id, const char* what) {
        DAEL_LET(found, key(id));
        if (found != primary()) return found;
        return Error{Code::invalid_argument, "key " + std::to_string(id) +
                                                 " is the primary one, with which everything is "
                                                 "sealed, and cannot be " +
                                                 what + "; promote another one first"};
    }
};

namespace {

struct Shape {
    std::uint32_t bytes, segment;  // of the key, and of a segment
};
// By the template's place in kTemplates.
constexpr std::array<Shape, kTemplates.size()> kShapes{
    Shape{32, kLargeSegment}, {32, kSmallSegment}, {16, kLargeSegment}, {16, kSmallSegment}};

std::string shape_of(const KeysetKey& entry) {
    const auto key = formats::stream_key(entry);
    if (!key) return {};
    const std::size_t size = key->key.bytes().size();
    for (std::size_t i = 0; i < kShapes.size(); ++i)
        if (key->hash == formats::Hash::sha256 && size == kShapes[i].bytes &&
            key->derived == size && key->segment == kShapes[i].segment)
            return std::string(kTemplates[i]);
    const char* const hash = key->hash == formats::Hash::sha1     ? "SHA1"
                             : key->hash == formats::Hash::sha256 ? "SHA256"
                                                                  : "SHA512";
    return "AES" + std::to_string(8 * key->derived) + "_GCM_HKDF, " + hash + ", a key of " +
           std::to_string(size) + " bytes, segments of " + std::to_string(key->segment);
}

std::string type_of(const KeysetKey& entry) {
    if (!entry.data) return {};
    const auto dot = entry.data->type.rfind('.');
    return dot == std::string::npos ? entry.data->type : entry.data->type.substr(dot + 1);
}

}  // namespace

Keyset::Keyset() : state_(std::make_unique<State>()) {}
Keyset::Keyset(Keyset&&) noexcept = default;
Keyset& Keyset::operator=(Keyset&&) noexcept = default;
Keyset::~Keyset() = default;

Result<Keyset> Keyset::parse(HostIn json) {
    return core::guarded([&]() -> Result<Keyset> {
        Keyset keyset;
        State& state = *keyset.state_;
        DAEL_LET(text, SecretBytes::copy(json));
        state.text = std::move(text);
        DAEL_LET(read, formats::read_keyset(state.text.bytes()));
        state.keyset = std::move(read);
        if (state.keyset.keys.empty())
            return Error{Code::bad_format, "the keyset is not as Tink writes it: it has no key"};
        return keyset;
    });
}

std::size_t Keyset::size() const noexcept {
    return state_->keyset.keys.size();
}

std::vector<Keyset::Entry> Keyset::entries() const {
    std::vector<Entry> entries;
    for (const KeysetKey& key : state_->keyset.keys)
        entries.push_back({key.id, static_cast<Status>(key.status), &key == state_->primary(),
                           type_of(key), shape_of(key)});
    return entries;
}

Result<std::uint32_t> Keyset::add(std::string_view name) {
    return core::guarded([&]() -> Result<std::uint32_t> {
        const auto found = std::ranges::find(kTemplates, name);
        if (found == kTemplates.end()) {
            std::string names;
            for (const auto known : kTemplates)
                names += (names.empty() ? "" : ", ") + std::string(known);
            return Error{Code::invalid_argument,
                         "no template " + core::quoted(name) + "; there are " + names};
        }
        const Shape shape = kShapes[static_cast<std::size_t>(found - kTemplates.begin())];
        if (state_->keyset.keys.size() == formats::kMaxKeys)
            return Error{Code::limit, "the keyset has " + std::to_string(formats::kMaxKeys) +
                                          " keys, which is all that it may; remove some"};
        DAEL_LET(bytes, SecretBytes::create(shape.bytes));
        DAEL_TRY(core::fill_random(bytes.bytes()));
        DAEL_LET(message, formats::stream_key_message({std::move(bytes), shape.segment, shape.bytes,
                                                       formats::Hash::sha256}));
        DAEL_LET(value, formats::encode_base64(message.bytes()));
        std::uint32_t id = 0;
        while (id == 0 || state_->has(id)) {
            std::array<std::uint8_t, sizeof id> random{};
            DAEL_TRY(core::fill_random(random));
            std::memcpy(&id, random.data(), sizeof id);
        }
        const bool first = state_->primary() == nullptr;
        KeysetKey key{id, formats::kEnabled, formats::kRaw, {}};
        key.data = KeysetKey::Data{std::string(formats::kStreamType), formats::kSymmetric,
                                   std::as_const(value).bytes()};
        // All that may fail, then the change.
        state_->keyset.keys.reserve(state_->keyset.keys.size() + 1);
        state_->added.push_back(std::move(value));
        state_->keyset.keys.push_back(std::move(key));
        if (first) state_->keyset.primary = id;
        return id;
    });
}

Result<> Keyset::promote(std::uint32_t id) {
    DAEL_LET(key, state_->key(id));
    if (key->status != formats::kEnabled)
        return Error{Code::invalid_argument,
                     "key " + std::to_string(id) + " is not enabled; enable it first"};
    state_->keyset.primary = id;
    return {};
}

Result<> Keyset::enable(std::uint32_t id) {
    DAEL_LET(key, state_->key(id));
    if (key->status == formats::kDestroyed || !key->data)
        return Error{Code::invalid_argument,
                     "key " + std::to_string(id) + " was destroyed and cannot be enabled"};
    key->status = formats::kEnabled;
    return {};
}

Result<> Keyset::disable(std::uint32_t id) {
    DAEL_LET(key, state_->spare_key(id, "disabled"));
    if (key->status == formats::kDestroyed)
        return Error{Code::invalid_argument,
                     "key " + std::to_string(id) + " was destroyed; there is nothing to disable"};
    key->status = formats::kDisabled;
    return {};
}

Result<> Keyset::remove(std::uint32_t id) {
    DAEL_LET(key, state_->spare_key(id, "removed"));
    state_->keyset.keys.erase(state_->keyset.keys.begin() + (key - state_->keyset.keys.data()));
    return {};
}

std::size_t Keyset::json_size() const {
    return formats::write_keyset(state_->keyset, nullptr);
}

Result<> Keyset::write_json(HostOut out) const {
    if (out.size() != json_size())
        return Error{Code::invalid_argument, "out is " + std::to_string(out.size()) +
                                                 " bytes; the keyset's text has " +
                                                 std::to_string(json_size())};
    formats::write_keyset(state_->keyset, out.data());
    return {};
}

}  // namespace dael::sealed
