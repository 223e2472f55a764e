// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/packet_cipher.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "backends/cpu/gcm.hpp"
#include "backends/cpu/xor_ghash.hpp"
#include "core/secure_memory.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu {
namespace {

using core::CipherPacket;

// What is made of the key, in locked memory that is wiped.
struct alignas(64) PacketKey {
    Powers powers;
    core::KeySchedule schedule;  // behind the powers, whose last ones all packets read: near()
    GcmKey gcm;                  // where the library encrypts what has no keystream
};

struct ReleasePacketKey {
    void operator()(PacketKey* key) const noexcept { core::secure_release(key, sizeof *key); }
};
using OwnedPacketKey = std::unique_ptr<PacketKey, ReleasePacketKey>;

// So much keystream may be put together on the stack: a packet of Ethernet's.
constexpr std::size_t kAtOnce = 96;  // blocks
// And so much of a packet may be decrypted there before its tag is known; longer ones are hashed
// first, and read twice.
constexpr std::size_t kMaxPrivate = 9216;  // bytes: a jumbo frame

// Where that is done, for all packets of a call, one after another; wiped once, after the last.
class Private {
  public:
    Private() noexcept {}
    ~Private() { wipe(bytes_, used_); }
    Private(const Private&) = delete;
    Private& operator=(const Private&) = delete;
    std::uint8_t* of(std::size_t size) noexcept {
        used_ = std::max(used_, size);
        return bytes_;
    }

  private:
    alignas(64) std::uint8_t bytes_[kMaxPrivate];
    std::size_t used_ = 0;
};

// Every call of libipsec-mb's GCM writes to one variable of the process (imb_errno), which all
// cores then wait for: whatever their number, they do some 20 million packets a second together. So
// where there are many threads, packets are encrypted here, which takes a little longer and scales.
constexpr int kMaxInLibrary = 2;
class Caller {
  public:
    static bool one_of_many() noexcept {
        static thread_local const Caller mine;
        return threads_.load(std::memory_order_relaxed) > kMaxInLibrary;
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

  private:
    Caller() noexcept { threads_.fetch_add(1, std::memory_order_relaxed); }
    ~Caller() { threads_.fetch_sub(1, std::memory_order_relaxed); }
    static inline std::atomic<int> threads_{0};
};

class Packets final : public core::PacketCipher {
  public:
    Packets(const XorGhash& xor_ghash, OwnedPacketKey key) noexcept
        : xor_ghash_(xor_ghash), key_(std::move(key)) {}

    Code seal(std::span<const CipherPacket> packets) const noexcept override {
        for (const CipherPacket& p : packets) {
            switch (way(p)) {
                case Way::xor_ghash:
                    xor_ghash_.seal(key_->powers, p);
                    break;
                case Way::completed:
                    with_all_keystream(p, [&](const CipherPacket& whole) {
                        xor_ghash_.seal(key_->powers, whole);
                        return true;
                    });
                    break;
                case Way::direct:
                    seal_directly(p);
                    break;
                case Way::steps:
                    seal_in_steps(p);
            }
        }
        return Code::ok;
    }

    void open(std::span<const CipherPacket> packets,
              std::span<Code> codes) const noexcept override {
        Private memory;
        for (std::size_t i = 0; i < packets.size(); ++i)
            codes[i] = open(packets[i], memory) ? Code::ok : Code::authentication;
    }

    const std::uint8_t* near() const noexcept override { return key_->schedule.encrypt.data(); }

  private:
    enum class Way { xor_ghash, completed, direct, steps };
    Way way(const CipherPacket& p) const noexcept {
        const std::size_t there = p.keystream ? p.blocks : 0, needed = 1 + blocks_of(p.size);
        const bool in_one_sum = p.aad_size <= kBlockSize;
        if (there >= needed && in_one_sum) return Way::xor_ghash;
        // GCM's own counter. To complete keystream that is short takes as long as to encrypt anew,
        // or longer, whatever is missing: that encrypts and hashes in one pass.
        if (modes::is_of_nonce(p.first) && xor_ghash_.message) return Way::direct;
        const bool on_stack = in_one_sum && needed <= kAtOnce;
        if (modes::is_of_nonce(p.first) && p.size <= kGcmPiece &&
            !(on_stack && Caller::one_of_many()))
            return Way::direct;
        return on_stack ? Way::completed : Way::steps;
    }
    static bool has_keystream(const CipherPacket& p) noexcept {
        return p.keystream && p.blocks != 0;
    }
    bool open(const CipherPacket& p, Private& memory) const noexcept {
        switch (way(p)) {
            case Way::xor_ghash:
                return xor_ghash_.open(key_->powers, p);
            case Way::completed:
                return with_all_keystream(p, [&](const CipherPacket& whole) {
                    return xor_ghash_.open(key_->powers, whole);
                });
            case Way::direct:
                if (p.size <= kMaxPrivate) return open_directly(p, memory.of(p.size));
                break;
            case Way::steps:
                break;
        }
        return open_in_steps(p);
    }

    template <class Run>
    bool with_all_keystream(const CipherPacket& p, Run run) const noexcept {
        alignas(64) std::array<std::uint8_t, kAtOnce * kBlockSize> keystream;
        const std::size_t needed = 1 + blocks_of(p.size);
        const core::WipeAtEnd wipe(keystream.data(), needed * kBlockSize);
        const std::size_t there = p.keystream ? p.blocks : 0;
        if (there != 0) std::memcpy(keystream.data(), p.keystream, there * kBlockSize);
        make(keystream.data() + there * kBlockSize, modes::counter_add(p.first, there),
             needed - there);
        CipherPacket whole = p;
        whole.keystream = keystream.data();
        whole.blocks = needed;
        return run(whole);
    }

    void seal_directly(const CipherPacket& p) const noexcept {
        if (xor_ghash_.message) {
            xor_ghash_.message(Direction::encrypt, key_->schedule, key_->powers, p.first, p.aad,
                               p.aad_size, p.in, p.out, p.size, p.tag, p.tag_size);
            return;
        }
        GcmContext context;
        Block tag;
        key_->gcm.calls.seal(&key_->gcm.data, &context, p.out, p.in, p.size, p.first.data(), p.aad,
                             p.aad_size, tag.data(), tag.size());
        std::memcpy(p.tag, tag.data(), p.tag_size);
    }
    // Both decrypt before the tag is known: into memory of this thread's, from where the plaintext
    // goes on if the tag is right. Others may see the caller's, as of a network card's rings, and a
    // forged packet is none of theirs to have decrypted. The copy stays in the nearest cache.
    bool open_directly(const CipherPacket& p, std::uint8_t* plain) const noexcept {
        Block tag;
        if (xor_ghash_.message) {
            xor_ghash_.message(Direction::decrypt, key_->schedule, key_->powers, p.first, p.aad,
                               p.aad_size, p.in, plain, p.size, tag.data(), tag.size());
        } else {
            GcmContext context;
            key_->gcm.calls.open(&key_->gcm.data, &context, plain, p.in, p.size, p.first.data(),
                                 p.aad, p.aad_size, tag.data(), tag.size());
        }
        if (!modes::equal_tags(tag.data(), p.tag, p.tag_size)) return false;
        if (p.size != 0) std::memcpy(p.out, plain, p.size);
        return true;
    }

    void seal_in_steps(const CipherPacket& p) const noexcept {
        crypt(p);
        Block tag = tag_of(p, p.out);
        std::memcpy(p.tag, tag.data(), p.tag_size);
    }
    bool open_in_steps(const CipherPacket& p) const noexcept {
        Block tag = tag_of(p, p.in);
        const core::WipeAtEnd wipe(tag);
        if (!modes::equal_tags(tag.data(), p.tag, p.tag_size)) return false;
        crypt(p);
        return true;
    }
    void crypt(const CipherPacket& p) const noexcept {
        std::size_t done = 0;
        if (has_keystream(p)) {
            done = std::min(p.size, (p.blocks - 1) * kBlockSize);
            xor_ghash_.exclusive_or(p.out, p.in, p.keystream + kBlockSize, done);
        }
        if (done == p.size) return;
        std::array<std::uint8_t, 2048> missing;
        const std::size_t most = std::min(missing.size(), blocks_of(p.size - done) * kBlockSize);
        const core::WipeAtEnd wipe(missing.data(), most);
        while (done < p.size) {
            const std::size_t part = std::min(missing.size(), p.size - done);
            make(missing.data(), modes::counter_add(p.first, 1 + done / kBlockSize),
                 blocks_of(part));
            xor_ghash_.exclusive_or(p.out + done, p.in + done, missing.data(), part);
            done += part;
        }
    }
    void make(std::uint8_t* keystream, const Block& counter, std::size_t blocks) const noexcept {
        xor_ghash_.keystream(key_->schedule, counter, keystream, blocks);
    }
    Block tag_of(const CipherPacket& p, const std::uint8_t* ciphertext) const noexcept {
        Block y{}, mask;
        const core::WipeAtEnd wipe(mask);
        xor_ghash_.hash(key_->powers, y, p.aad, p.aad_size);
        xor_ghash_.hash(key_->powers, y, ciphertext, p.size);
        const Block lengths = modes::lengths_block(p.aad_size, p.size);
        xor_ghash_.hash(key_->powers, y, lengths.data(), lengths.size());
        if (has_keystream(p))
            std::memcpy(mask.data(), p.keystream, kBlockSize);
        else
            make(mask.data(), p.first, 1);
        xor_ghash_.exclusive_or(y.data(), y.data(), mask.data(), kBlockSize);
        return y;
    }

    const XorGhash& xor_ghash_;
    const OwnedPacketKey key_;
};

}  // namespace

Result<std::unique_ptr<core::PacketCipher>> packets(Level level, const IMB_MGR& manager,
                                                    const Key& key) {
    void* const memory = core::secure_allocate(sizeof(PacketKey));
    if (!memory) return Error{Code::out_of_memory, "no memory for a key's packet tables"};
    OwnedPacketKey mine(new (memory) PacketKey{});
    const XorGhash& xor_ghash =
        level == Level::avx512 && vectorised(level) ? kXorGhashAvx512 : kXorGhashPclmul;
    mine->schedule = key.schedule();
    xor_ghash.expand(mine->schedule, mine->powers);
    if (!xor_ghash.message) mine->gcm.set(manager, mine->schedule.key());
    return std::unique_ptr<core::PacketCipher>(
        std::make_unique<Packets>(xor_ghash, std::move(mine)));
}

}  // namespace dael::cpu
