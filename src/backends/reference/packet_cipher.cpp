// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/packet_cipher.hpp"

#include <algorithm>

#include "backends/reference/gcm.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"

namespace dael::reference {
namespace {

class Packets final : public core::PacketCipher {
  public:
    explicit Packets(std::span<const std::uint8_t> key) : w_(key) {}

    Code seal(std::span<const core::CipherPacket> packets) const noexcept override {
        for (const core::CipherPacket& p : packets) {
            crypt(p);
            std::copy_n(tag_of(p, p.out).begin(), p.tag_size, p.tag);
        }
        return Code::ok;
    }
    void open(std::span<const core::CipherPacket> packets,
              std::span<Code> codes) const noexcept override {
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const core::CipherPacket& p = packets[i];
            const bool same = modes::equal_tags(tag_of(p, p.in).data(), p.tag, p.tag_size);
            codes[i] = same ? Code::ok : Code::authentication;
            if (same) crypt(p);
        }
    }

  private:
    void crypt(const core::CipherPacket& p) const {
        Block counter = p.first, keystream{};
        for (std::size_t i = 0; i < p.size; ++i) {
            if (i % kBlockSize == 0) {
                counter = modes::counter_add(counter, 1);
                keystream = cipher(counter, w_);
            }
            p.out[i] = p.in[i] ^ keystream[i % kBlockSize];
        }
        wipe(keystream.data(), keystream.size());
    }
    Block tag_of(const core::CipherPacket& p, const std::uint8_t* ciphertext) const {
        Gcm one(Direction::encrypt, w_, p.first);
        one.aad({p.aad, p.aad_size});
        one.authenticate({ciphertext, p.size});
        return one.finish();
    }

    const ExpandedKey w_;
};

}  // namespace

std::unique_ptr<core::PacketCipher> packets(std::span<const std::uint8_t> key) {
    return std::make_unique<Packets>(key);
}

}  // namespace dael::reference
