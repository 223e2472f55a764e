// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/pieces.hpp"

#include <algorithm>
#include <array>

namespace dael::openssl {
namespace {

// EVP tells a tag only where it encrypts. So to decrypt, one context encrypts the ciphertext, which
// makes it plaintext, and a second one encrypts that again, for the tag.
class GcmPieces final : public core::Pieces {
  public:
    explicit GcmPieces(const Key& raw) : raw_(raw) {}
    Result<> take(Direction direction, const Tables& tables, std::uint32_t key) {
        const Notes notes;
        for (Keyed* keyed : {&sealer_, &opener_}) {
            if (keyed == &opener_ && direction == Direction::encrypt) break;
            DAEL_LET(taken, tables.take(notes, key));
            *keyed = std::move(*taken);
        }
        return {};
    }

    Result<> restart(const Start& start) override {
        const Notes notes;
        DAEL_TRY(openssl::begin(notes, sealer_, raw_, Direction::encrypt, start.first));
        if (!opener_.context) return {};
        return openssl::begin(notes, opener_, raw_, Direction::encrypt, start.first);
    }
    Result<> aad(HostIn bytes) override {
        const Notes notes;
        return feed(notes, sealer_, bytes.data(), nullptr, bytes.size());
    }
    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        const Notes notes;
        if (!opener_.context) return feed(notes, sealer_, in, out, size);
        std::array<std::uint8_t, 4096> ciphertext;
        for (std::size_t done = 0; done < size;) {
            const std::size_t piece = std::min(ciphertext.size(), size - done);
            DAEL_TRY(feed(notes, opener_, in + done, out + done, piece));
            DAEL_TRY(feed(notes, sealer_, out + done, ciphertext.data(), piece));
            done += piece;
        }
        return {};
    }
    Result<core::Tag> finish() override {
        const Notes notes;
        Block tag;
        DAEL_TRY(end_sealing(notes, sealer_, tag.data(), tag.size()));
        return core::Tag(tag);
    }
    Result<std::unique_ptr<core::Pieces>> clone() const override {
        const Notes notes;
        auto copy = std::make_unique<GcmPieces>(raw_);
        for (const auto& [from, to] :
             {std::pair(&sealer_, &copy->sealer_), std::pair(&opener_, &copy->opener_)}) {
            if (!from->context) continue;
            DAEL_LET(context, new_context());
            const auto copies = [&, source = from->context.get()] {
                return EVP_CIPHER_CTX_copy(context.get(), source) == 1;
            };
            // Twice, since it says the same for want of memory as for want of a way to copy.
            if (!copies() && !copies()) {
                if (!Notes::memory_is_there()) return no_memory();
                return Error{Code::unsupported,
                             "openssl: this version does not copy a message of GCM that is begun"};
            }
            *to = {std::move(context), from->iv_size};
        }
        return std::unique_ptr<core::Pieces>(std::move(copy));
    }

  private:
    const Key& raw_;
    Keyed sealer_, opener_;
};

}  // namespace

Result<std::unique_ptr<core::Pieces>> begin(Direction direction, const Tables& tables,
                                            std::uint32_t key, const Key& raw, const Block& start) {
    auto pieces = std::make_unique<GcmPieces>(raw);
    DAEL_TRY(pieces->take(direction, tables, key));
    DAEL_TRY(pieces->restart(start));
    return std::unique_ptr<core::Pieces>(std::move(pieces));
}

}  // namespace dael::openssl
