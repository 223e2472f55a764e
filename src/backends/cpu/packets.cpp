// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/packets.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/counters.hpp"
#include "backends/cpu/fused.hpp"
#include "backends/cpu/gcm.hpp"
#include "core/secure_memory.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu {
namespace {

using core::Packet;

// What is made of the key, in locked memory that is wiped.
struct alignas(64) PacketKey {
    GcmKey gcm;
    Powers powers;      // fused
    gcm_key_data hash;  // not fused: for the library's GHASH
    std::array<std::uint8_t, 16 * (core::kMaxRounds + 1)> round_keys;
    int rounds;
    ghash_t library_hash;
};

struct ReleasePacketKey {
    void operator()(PacketKey* key) const noexcept { core::secure_release(key, sizeof *key); }
};
using OwnedPacketKey = std::unique_ptr<PacketKey, ReleasePacketKey>;

// What differs with the CPU.
struct OnVectors {
    static constexpr bool kFused = true;
    static void hash(const PacketKey& key, Block& y, const std::uint8_t* bytes, std::size_t size) {
        fused::hash(key.powers, y, bytes, size);
    }
    static constexpr auto exclusive_or = fused::exclusive_or;
    static constexpr auto keystream = fused::keystream;
};
struct OnBlocks {
    static constexpr bool kFused = false;
    static void hash(const PacketKey& key, Block& y, const std::uint8_t* bytes, std::size_t size) {
        if (size != 0) key.library_hash(&key.hash, bytes, size, y.data(), y.size());
    }
    static constexpr auto exclusive_or = counters::exclusive_or;
    static constexpr auto keystream = counters::keystream;
};

constexpr std::size_t blocks_of(std::size_t size) noexcept {
    return (size + kBlockSize - 1) / kBlockSize;
}
bool has_keystream(const Packet& p) noexcept {
    return p.keystream && p.blocks != 0;
}

template <class On>
class CpuPackets final : public core::PacketCipher {
  public:
    explicit CpuPackets(OwnedPacketKey key) noexcept : key_(std::move(key)) {}

    Code seal(std::span<const Packet> packets) const noexcept override {
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const Packet& p = packets[i];
            if (On::kFused && is_covered(p))
                fused::seal(key_->powers, p, after(packets, i));
            else if (is_direct(p))
                seal_directly(p);
            else
                seal_in_steps(p);
        }
        return Code::ok;
    }

    void open(std::span<const Packet> packets, std::span<Code> codes) const noexcept override {
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const Packet& p = packets[i];
            const bool same = On::kFused && is_covered(p)
                                  ? fused::open(key_->powers, p, after(packets, i))
                              : is_direct(p) ? open_directly(p)
                                             : open_in_steps(p);
            codes[i] = same ? Code::ok : Code::authentication;
        }
    }

  private:
    static bool is_covered(const Packet& p) noexcept {
        return p.keystream && p.blocks > blocks_of(p.size) && p.aad_size <= fused::kShortAad;
    }
    // GCM's own counter, and nothing to XOR.
    static bool is_direct(const Packet& p) noexcept {
        return !has_keystream(p) && modes::is_of_nonce(p.first) && p.size <= kGcmPiece;
    }
    // The next packet's keystream, which a device may have left in the outer cache.
    static const std::uint8_t* after(std::span<const Packet> packets, std::size_t i) noexcept {
        return i + 1 < packets.size() ? packets[i + 1].keystream : nullptr;
    }

    void seal_directly(const Packet& p) const noexcept {
        GcmContext context;
        Block tag;
        key_->gcm.calls.seal(&key_->gcm.data, &context, p.out, p.in, p.size, p.first.data(), p.aad,
                             p.aad_size, tag.data(), tag.size());
        std::memcpy(p.tag, tag.data(), p.tag_size);
    }
    // The library decrypts before the tag is known. In place, the same keystream once more makes
    // what it decrypted the ciphertext that it was.
    bool open_directly(const Packet& p) const noexcept {
        GcmContext context;
        Block tag;
        const auto run = [&](aes_gcm_enc_dec_t call) {
            call(&key_->gcm.data, &context, p.out, p.in, p.size, p.first.data(), p.aad, p.aad_size,
                 tag.data(), tag.size());
        };
        run(key_->gcm.calls.open);
        if (modes::equal_tags(tag.data(), p.tag, p.tag_size)) return true;
        if (p.in == p.out)
            run(key_->gcm.calls.seal);
        else if (p.size != 0)
            wipe(p.out, p.size);
        return false;
    }

    void seal_in_steps(const Packet& p) const noexcept {
        crypt(p);
        Block tag = tag_of(p, p.out);
        std::memcpy(p.tag, tag.data(), p.tag_size);
    }
    bool open_in_steps(const Packet& p) const noexcept {
        Block tag = tag_of(p, p.in);
        const core::WipeAtEnd wipe(tag);
        if (!modes::equal_tags(tag.data(), p.tag, p.tag_size)) return false;
        crypt(p);
        return true;
    }
    void crypt(const Packet& p) const noexcept {
        std::size_t done = 0;
        if (has_keystream(p)) {
            done = std::min(p.size, (p.blocks - 1) * kBlockSize);
            On::exclusive_or(p.out, p.in, p.keystream + kBlockSize, done);
        }
        if (done == p.size) return;
        std::array<std::uint8_t, 2048> missing;
        const std::size_t most = std::min(missing.size(), blocks_of(p.size - done) * kBlockSize);
        const core::WipeAtEnd wipe(missing.data(), most);
        while (done < p.size) {
            const std::size_t part = std::min(missing.size(), p.size - done);
            make(missing.data(), modes::counter_add(p.first, 1 + done / kBlockSize),
                 blocks_of(part));
            On::exclusive_or(p.out + done, p.in + done, missing.data(), part);
            done += part;
        }
    }
    void make(std::uint8_t* keystream, const Block& counter, std::size_t blocks) const noexcept {
        On::keystream(key_->round_keys.data(), key_->rounds, counter, keystream, blocks);
    }
    Block tag_of(const Packet& p, const std::uint8_t* ciphertext) const noexcept {
        Block y{}, mask;
        const core::WipeAtEnd wipe(mask);
        On::hash(*key_, y, p.aad, p.aad_size);
        On::hash(*key_, y, ciphertext, p.size);
        const Block lengths = modes::lengths_block(p.aad_size, p.size);
        On::hash(*key_, y, lengths.data(), lengths.size());
        if (has_keystream(p))
            std::memcpy(mask.data(), p.keystream, kBlockSize);
        else
            make(mask.data(), p.first, 1);
        On::exclusive_or(y.data(), y.data(), mask.data(), kBlockSize);
        return y;
    }

    const OwnedPacketKey key_;
};

}  // namespace

Result<std::unique_ptr<core::PacketCipher>> packets(Level level, const IMB_MGR& manager,
                                                    const Key& key) {
    void* const memory = core::secure_allocate(sizeof(PacketKey));
    if (!memory) return Error{Code::out_of_memory, "no memory for a key's packet tables"};
    OwnedPacketKey mine(new (memory) PacketKey{});
    const core::KeySchedule& schedule = key.schedule();
    mine->gcm.set(manager, schedule);
    mine->round_keys = schedule.encrypt;
    mine->rounds = schedule.rounds;
    Block h;
    const core::WipeAtEnd wipe(h);
    modes::store_element(h.data(), modes::hash_subkey(schedule));
    if (level == Level::avx512 && vectorised(level)) {
        fused::expand(h.data(), mine->powers);
        return std::unique_ptr<core::PacketCipher>(
            std::make_unique<CpuPackets<OnVectors>>(std::move(mine)));
    }
    manager.ghash_pre(h.data(), &mine->hash);
    mine->library_hash = manager.ghash;
    return std::unique_ptr<core::PacketCipher>(
        std::make_unique<CpuPackets<OnBlocks>>(std::move(mine)));
}

}  // namespace dael::cpu
