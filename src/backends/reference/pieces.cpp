// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/pieces.hpp"

#include "backends/reference/gcm.hpp"

namespace dael::reference {
namespace {

class GcmPieces final : public core::Pieces {
  public:
    explicit GcmPieces(const Gcm& gcm) : gcm_(gcm) {}

    Result<> aad(HostIn bytes) override {
        gcm_.aad(bytes);
        return {};
    }
    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        gcm_.update(in, out, size);
        return {};
    }
    Result<core::Tag> finish() override { return core::Tag(gcm_.finish()); }
    Result<std::unique_ptr<core::Pieces>> clone() const override {
        return std::unique_ptr<core::Pieces>(std::make_unique<GcmPieces>(gcm_));
    }
    Result<> restart(const Start& start) override {
        gcm_.restart(start.first);
        return {};
    }

  private:
    Gcm gcm_;
};

}  // namespace

std::unique_ptr<core::Pieces> begin(const Cipher& cipher, const ExpandedKey& w,
                                    const Block& start) {
    return std::make_unique<GcmPieces>(Gcm(cipher.direction, w, start));
}

}  // namespace dael::reference
