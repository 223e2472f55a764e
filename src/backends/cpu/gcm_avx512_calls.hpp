// SPDX-License-Identifier: Apache-2.0
// GCM by AVX-512, for cpu.cpp to call (the work is in gcm_avx512.hpp): tables, messages, pieces.
// What gcm.hpp and pieces.hpp are for the library's.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/gcm_avx512.hpp"
#include "core/backend.hpp"

namespace dael::cpu {

// Powers of each key's hash subkey, in locked memory that wipes itself.
class GcmAvx512Tables final : public core::KeyTables {
  public:
    static Result<std::unique_ptr<core::KeyTables>> make(std::span<const Key> keys);
    GcmAvx512Tables(void* memory, std::span<const Key> keys) noexcept;
    ~GcmAvx512Tables() override;
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override;
    const Powers& operator[](std::size_t i) const noexcept { return powers_[i]; }

  private:
    Powers* const powers_;
    const std::size_t count_;
};

// Messages under prepared keys; or where there are no tables, with powers that are made of a key
// for as long as the call runs. Errors: out_of_memory.
Result<> gcm_avx512_run(const Cipher& cipher, const core::KeyList& keys,
                        std::span<const Message> messages, std::span<Code> codes);

std::unique_ptr<core::Pieces> begin_gcm_avx512(Direction direction, const Powers& powers,
                                               const Key& key, const Block& start);

}  // namespace dael::cpu
