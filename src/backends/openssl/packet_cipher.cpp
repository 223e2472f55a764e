// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/packet_cipher.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/guard.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"

namespace dael::openssl {
namespace {

using core::CipherPacket;

// So much of a packet may be decrypted on the stack before its tag is known; longer ones are hashed
// first.
constexpr std::size_t kMaxPrivate = 9216;  // bytes: a jumbo frame

// All may be of any alignment.
void exclusive_or(std::uint8_t* out, const std::uint8_t* in, const std::uint8_t* keystream,
                  std::size_t size) noexcept {
    std::size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        std::uint64_t a, b;
        std::memcpy(&a, in + i, 8);
        std::memcpy(&b, keystream + i, 8);
        a ^= b;
        std::memcpy(out + i, &a, 8);
    }
    for (; i < size; ++i) out[i] = in[i] ^ keystream[i];
}

class Packets final : public core::PacketCipher {
  public:
    Packets(const Gcm& gcm, Key key, std::unique_ptr<core::KeyTables> gcm_tables,
            std::unique_ptr<core::KeyTables> counter_tables)
        : gcm_(gcm),
          key_(std::move(key)),
          gcm_tables_(std::move(gcm_tables)),
          counter_tables_(std::move(counter_tables)) {}
    ~Packets() override {
        wipe(&h_, sizeof h_);
        wipe(zero_mask_.data(), zero_mask_.size());
    }
    Result<> prepare() {
        const Notes notes;
        h_ = modes::hash_subkey(key_.schedule());
        return counter_mode(notes, gcm::start({}), kZeros.data(), zero_mask_.data(), kBlockSize);
    }

    Code seal(std::span<const CipherPacket> packets) const noexcept override {
        const Notes notes;
        for (const CipherPacket& packet : packets) {
            const auto sealed = core::guarded([&] { return seal(notes, packet); });
            if (sealed) continue;
            for (const CipherPacket& any : packets) {
                if (any.size != 0) wipe(any.out, any.size);
                wipe(any.tag, any.tag_size);
            }
            return sealed.code();
        }
        return Code::ok;
    }
    void open(std::span<const CipherPacket> packets,
              std::span<Code> codes) const noexcept override {
        const Notes notes;
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const auto opened =
                core::guarded([&]() -> Result<Code> { return open(notes, packets[i]); });
            codes[i] = opened ? *opened : opened.code();
            if (codes[i] != Code::ok) notes.forget();  // the next one's cause is its own
        }
    }

  private:
    static constexpr Block kZeros{};

    // GCM's own order, both at once, where it is GCM's counter and there is nothing to XOR.
    static bool is_direct(const CipherPacket& p) noexcept {
        return (!p.keystream || p.blocks == 0) && modes::is_of_nonce(p.first);
    }
    Code run_direct(const Notes& notes, Direction direction, const CipherPacket& p) const {
        const Message message{p.in, p.out, p.size, p.aad, p.aad_size, p.tag, p.first};
        Code code = Code::ok;
        const auto ran =
            gcm_.run(notes, {Mode::gcm, direction, static_cast<std::uint8_t>(p.tag_size)},
                     {{&key_, 1}, gcm_tables_.get()}, {&message, 1}, {&code, 1});
        return ran ? code : ran.code();
    }

    Result<> seal(const Notes& notes, const CipherPacket& p) const {
        if (is_direct(p)) {
            const Code code = run_direct(notes, Direction::encrypt, p);
            if (code != Code::ok) return Error{code, {}};
            return {};
        }
        DAEL_TRY(crypt(notes, p));
        DAEL_LET(tag, tag_of(notes, p, p.out));
        std::copy_n(tag.begin(), p.tag_size, p.tag);
        return {};
    }
    Code open(const Notes& notes, const CipherPacket& p) const {
        if (is_direct(p) && p.size <= kMaxPrivate) return open_directly(notes, p);
        const auto tag = tag_of(notes, p, p.in);
        if (!tag) return tag.code();
        if (!modes::equal_tags(tag->data(), p.tag, p.tag_size)) return Code::authentication;
        return crypt(notes, p).code();
    }

    // EVP decrypts before it knows the tag: into memory of this thread's, since others may see the
    // caller's, and a forged packet is none of theirs to have decrypted.
    Code open_directly(const Notes& notes, const CipherPacket& p) const {
        std::array<std::uint8_t, kMaxPrivate> plain;
        const core::WipeAtEnd wipe(plain.data(), p.size);
        CipherPacket here = p;
        here.out = plain.data();
        const Code code = run_direct(notes, Direction::decrypt, here);
        if (code == Code::ok && p.size != 0) std::memcpy(p.out, plain.data(), p.size);
        return code;
    }

    Result<> crypt(const Notes& notes, const CipherPacket& p) const {
        const std::uint64_t there =
            p.keystream && p.blocks != 0
                ? std::min<std::uint64_t>(p.size, (p.blocks - 1) * kBlockSize)
                : 0;
        // The rest first, which may fail: then nothing is done yet.
        if (there != p.size)
            DAEL_TRY(counter_mode(notes, modes::counter_add(p.first, 1 + there / kBlockSize),
                                  p.in + there, p.out + there, p.size - there));
        if (there != 0) exclusive_or(p.out, p.in, p.keystream + kBlockSize, there);
        return {};
    }
    Result<> counter_mode(const Notes& notes, const Block& start, const std::uint8_t* in,
                          std::uint8_t* out, std::uint64_t size) const {
        const auto& tables = static_cast<const Tables&>(*counter_tables_);
        DAEL_LET(keyed, tables.take(notes, 0));
        DAEL_TRY(initialise(notes, keyed->context.get(), nullptr, nullptr, start.data(), 1));
        DAEL_TRY(feed(notes, *keyed, in, out, size));
        tables.give_back(0, std::move(keyed));
        return {};
    }

    Result<Block> tag_of(const Notes& notes, const CipherPacket& p,
                         const std::uint8_t* ciphertext) const {
        Block mask;
        const core::WipeAtEnd wipe(mask);
        if (p.keystream && p.blocks != 0)
            std::memcpy(mask.data(), p.keystream, kBlockSize);
        else
            DAEL_TRY(counter_mode(notes, p.first, kZeros.data(), mask.data(), kBlockSize));
        DAEL_LET(tag, hash(notes, p, ciphertext));
        exclusive_or(tag.data(), tag.data(), mask.data(), kBlockSize);
        return tag;
    }
    // GHASH is what GMAC of the same bytes under a nonce of zeros is without that nonce's mask, but
    // for its last block, which GMAC fills in as if all bytes were AAD.
    Result<Block> hash(const Notes& notes, const CipherPacket& p,
                       const std::uint8_t* ciphertext) const {
        const auto& tables = static_cast<const Tables&>(*gcm_tables_);
        const std::size_t padding = (kBlockSize - p.aad_size % kBlockSize) % kBlockSize;
        DAEL_LET(keyed, tables.take(notes, 0));
        DAEL_TRY(begin(notes, *keyed, key_, Direction::encrypt, gcm::start({})));
        DAEL_TRY(feed(notes, *keyed, p.aad, nullptr, p.aad_size));
        DAEL_TRY(feed(notes, *keyed, kZeros.data(), nullptr, padding));
        DAEL_TRY(feed(notes, *keyed, ciphertext, nullptr, p.size));
        Block y;
        DAEL_TRY(end_sealing(notes, *keyed, y.data(), y.size()));
        tables.give_back(0, std::move(keyed));
        const auto element = [](const Block& block) { return modes::load_element(block.data()); };
        const auto as_gmac = modes::lengths_block(p.aad_size + padding + p.size, 0);
        const auto lengths = modes::lengths_block(p.aad_size, p.size);
        const auto other = modes::multiply(modes::add(element(as_gmac), element(lengths)), h_);
        modes::store_element(y.data(),
                             modes::add(modes::add(element(y), element(zero_mask_)), other));
        return y;
    }

    const Gcm& gcm_;
    const Key key_;
    const std::unique_ptr<core::KeyTables> gcm_tables_, counter_tables_;
    modes::Element h_{};
    Block zero_mask_{};
};

}  // namespace

Result<> PacketCiphers::open() {
    for (std::size_t i = 0; i < counter_mode_.size(); ++i)
        DAEL_TRY(fetch(counter_mode_[i], "AES-" + std::to_string(128 + 64 * i) + "-CTR"));
    return {};
}

Result<std::unique_ptr<core::PacketCipher>> PacketCiphers::make(const Gcm& gcm,
                                                                const Key& key) const {
    DAEL_LET(copy, key.duplicate());
    const std::span<const Key> one(&copy, 1);
    DAEL_LET(for_gcm, gcm.tables(one));
    DAEL_LET(for_counters, Tables::make(counter_mode_, one));
    auto made = std::make_unique<Packets>(gcm, std::move(copy), std::move(for_gcm),
                                          std::move(for_counters));
    DAEL_TRY(made->prepare());
    return std::unique_ptr<core::PacketCipher>(std::move(made));
}

}  // namespace dael::openssl
