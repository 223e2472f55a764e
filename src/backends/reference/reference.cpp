// SPDX-License-Identifier: Apache-2.0
// FIPS 197 and the modes over it as a backend: the yardstick of the tests.
#include <deque>
#include <optional>

#include "backends/reference/aegis.hpp"
#include "backends/reference/gcm.hpp"
#include "backends/reference/modes.hpp"
#include "backends/reference/packet_cipher.hpp"
#include "backends/reference/pieces.hpp"
#include "backends/reference/siv.hpp"
#include "backends/reference/xaes.hpp"
#include "backends/reference/xts.hpp"
#include "core/backend.hpp"
#include "core/key_schedule.hpp"

namespace dael::backends {
namespace {

using reference::ExpandedKey;

class Tables final : public core::KeyTables {
  public:
    explicit Tables(std::span<const Key> keys) {
        for (const Key& key : keys) expanded_.emplace_back(key.schedule().key());
    }
    Result<> replace(std::uint32_t index, const Key& key, Stream) override {
        expanded_[index].emplace(key.schedule().key());
        return {};
    }
    const ExpandedKey& operator[](std::size_t i) const noexcept { return *expanded_[i]; }

  private:
    std::deque<std::optional<ExpandedKey>> expanded_;  // which stay where they are
};

class Reference final : public core::Backend {
  public:
    const core::Profile& profile() const override { return profile_; }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        if (cipher.mode == Mode::xts && key_bits == 192)
            return {core::Can::no, "XTS takes keys of 128 and 256 bits"};
        return {};
    }

    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        return std::unique_ptr<core::KeyTables>(std::make_unique<Tables>(keys));
    }

    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const Message& message = messages[i];
            const Key& key = keys.list[message.key];
            if (is_aegis(cipher.mode)) {
                codes[i] = reference::aegis(cipher, key.schedule().key(), message);
                continue;
            }
            const ExpandedKey w(key.schedule().key());
            if (cipher.mode == Mode::gcm)
                codes[i] = reference::gcm(cipher, w, message);
            else if (cipher.mode == Mode::xaes256gcm)
                codes[i] = reference::xaes(cipher, w, message);
            else if (cipher.mode == Mode::gcm_siv)
                codes[i] = reference::gcm_siv(cipher, w, message);
            else if (cipher.mode == Mode::xts)
                reference::xts(cipher, w, ExpandedKey(key.tweak().key()), message);
            else
                reference::run(cipher, w, message);
        }
        return {};
    }

    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        if (is_aegis(cipher.mode))
            return reference::begin_aegis(cipher, keys.list[key].schedule().key(), start);
        const ExpandedKey& w = static_cast<const Tables&>(*keys.tables)[key];
        if (cipher.mode == Mode::xaes256gcm) return reference::begin_xaes(cipher, w, start);
        return reference::begin(cipher, w, start.first);
    }
    Result<std::unique_ptr<core::PacketCipher>> packets(const Key& key) override {
        return reference::packets(key.schedule().key());
    }

  private:
    const core::Profile profile_{"reference", "FIPS 197 line by line, constant time, for tests"};
};

}  // namespace

extern const core::BackendEntry reference;
const core::BackendEntry reference{
    .name = "reference",
    .summary = "readable and constant-time, for tests: slow",
    .count = [](std::string*) { return 1; },
    .open = [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return std::unique_ptr<core::Backend>(std::make_unique<Reference>());
    }};

}  // namespace dael::backends
