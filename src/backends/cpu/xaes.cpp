// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/xaes.hpp"

#include <algorithm>
#include <array>

#include "backends/cpu/clear_stack.hpp"
#include "backends/cpu/gcm.hpp"
#include "backends/cpu/memory_of_call.hpp"
#include "backends/cpu/xaes_avx512.hpp"
#include "backends/cpu/xor_ghash.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"
#include "modes/xaes.hpp"

namespace dael::cpu::xaes {
namespace {

constexpr Cipher gcm_of(const Cipher& cipher) noexcept {
    return {Mode::gcm, cipher.direction, cipher.tag};
}

// What a message's key is derived with; of one key for as long as it is the same.
class Deriver {
  public:
    explicit Deriver(const core::KeySchedule& key) noexcept : key_(key) {
        k1_ = modes::cmac_subkey(cipher_of({}));
    }
    Deriver(const Deriver&) = delete;
    Deriver& operator=(const Deriver&) = delete;
    ~Deriver() { wipe(k1_.data(), k1_.size()); }

    void derive(const Start& start, modes::XaesKey& derived) const noexcept {
        derived = modes::xaes_blocks(k1_, start);
        for (std::uint8_t* half : {derived.data(), derived.data() + kBlockSize}) {
            Block block;
            std::copy_n(half, kBlockSize, block.begin());
            block = cipher_of(block);
            std::copy(block.begin(), block.end(), half);
            wipe(block.data(), block.size());
        }
    }

  private:
    Block cipher_of(const Block& block) const noexcept {
        Block made;
        kXorGhashPclmul.keystream(key_, block, made.data(), 1);
        return made;
    }
    const core::KeySchedule& key_;
    Block k1_{};
};

// Messages that are done before their tags are compared.
constexpr std::size_t kTogether = 64;

// At most kTogether, of one key.
void open(const core::KeySchedule& key, std::span<const Message> messages,
          xaes_avx512::KeysOfCall& keys, std::span<Code> codes) noexcept {
    std::array<Block, kTogether> tags;
    // What tags forged messages should have had.
    const core::WipeAtEnd wiped(tags.data(), messages.size() * sizeof tags[0]);
    xaes_avx512::messages(Direction::decrypt, key, messages, keys, tags.data());
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (modes::equal_tags(tags[i].data(), m.tag, kBlockSize)) continue;
        // In place, the same keystream once more makes it the ciphertext that it was.
        if (m.in == m.out)
            xaes_avx512::messages(Direction::encrypt, key, {&m, 1}, keys, &tags[i]);
        else if (m.size != 0)
            wipe(m.out, m.size);
        codes[i] = Code::authentication;
    }
    clear_stack();
}

}  // namespace

Result<> run_avx512(const Cipher& cipher, std::span<const Key> keys,
                    std::span<const Message> messages, std::span<Code> codes) {
    MemoryOfCall<xaes_avx512::KeysOfCall> derived;
    if (!derived) return Error{Code::out_of_memory, "no memory for the keys of XAES's messages"};
    for (std::size_t i = 0, count = 0; i < messages.size(); i += count) {
        for (count = 1; count < kTogether && i + count < messages.size() &&
                        messages[i + count].key == messages[i].key;)
            ++count;
        const auto these = messages.subspan(i, count);
        derived.used(xaes_avx512::groups_of(count) * sizeof(xaes_avx512::Keys));
        const core::KeySchedule& key = keys[messages[i].key].schedule();
        if (cipher.direction == Direction::encrypt)
            xaes_avx512::messages(Direction::encrypt, key, these, *derived, nullptr);
        else
            open(key, these, *derived, codes.subspan(i, count));
    }
    clear_stack();
    return {};
}

void run(Workspace& workspace, const Cipher& cipher, std::span<const Key> keys,
         std::span<const Message> messages, std::span<Code> codes) noexcept {
    GcmContext context;
    modes::XaesKey raw;
    const core::WipeAtEnd wiped(raw), expanded(workspace.gcm_key, sizeof(GcmKey));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const core::KeySchedule& master = keys[messages[i].key].schedule();
        const Start start(messages[i].start, messages[i].start_rest);
        Deriver(master).derive(start, raw);
        workspace.gcm_key->set(*workspace.manager, raw);
        Message m = messages[i];
        m.start = modes::xaes_gcm_start(start);
        // Of a nonce the key itself is not asked.
        if (!gcm_message(gcm_of(cipher), *workspace.gcm_key, master, context, m))
            codes[i] = Code::authentication;
    }
}

Result<std::unique_ptr<core::Pieces>> begin(core::Backend& backend, const Cipher& cipher,
                                            const Key& key, const Start& start) {
    return modes::begin_xaes(
        backend, cipher, key, start,
        [](const core::KeySchedule& master, const Start& nonce, modes::XaesKey& derived) noexcept {
            Deriver(master).derive(nonce, derived);
        });
}

}  // namespace dael::cpu::xaes
