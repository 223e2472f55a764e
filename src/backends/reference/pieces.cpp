// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/pieces.hpp"

#include "backends/reference/aegis.hpp"
#include "backends/reference/gcm.hpp"
#include "backends/reference/xaes.hpp"

namespace dael::reference {
namespace {

// Of Gcm, Xaes or Aegis, which take any number of bytes.
template <class One>
class OnePieces final : public core::Pieces {
  public:
    explicit OnePieces(const One& one) : one_(one) {}

    Result<> aad(HostIn bytes) override {
        one_.aad(bytes);
        return {};
    }
    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        one_.update(in, out, size);
        return {};
    }
    Result<core::Tag> finish() override { return core::Tag(one_.finish()); }
    Result<std::unique_ptr<core::Pieces>> clone() const override {
        return std::unique_ptr<core::Pieces>(std::make_unique<OnePieces>(one_));
    }
    Result<> restart(const Start& start) override {
        one_.restart(start);
        return {};
    }

  private:
    One one_;
};

}  // namespace

std::unique_ptr<core::Pieces> begin(const Cipher& cipher, const ExpandedKey& w,
                                    const Block& start) {
    return std::make_unique<OnePieces<Gcm>>(Gcm(cipher.direction, w, start));
}

std::unique_ptr<core::Pieces> begin_xaes(const Cipher& cipher, const ExpandedKey& w,
                                         const Start& start) {
    return std::make_unique<OnePieces<Xaes>>(Xaes(cipher.direction, w, start));
}

std::unique_ptr<core::Pieces> begin_aegis(const Cipher& cipher, std::span<const std::uint8_t> key,
                                          const Start& start) {
    return std::make_unique<OnePieces<Aegis>>(Aegis(cipher, key, start));
}

}  // namespace dael::reference
