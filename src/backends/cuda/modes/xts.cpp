// SPDX-License-Identifier: Apache-2.0
// XTS on a CUDA device: one launch for whole sectors, and another for a short last one.
#include <cstring>

#include "backends/cuda/device.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/traits.hpp"

namespace dael::cuda {

Result<> CudaDevice::run_xts(const Cipher& cipher, const Key& key, const Message& message,
                             unsigned most, Stream stream) {
    const bool decrypt = cipher.direction == Direction::decrypt;
    const int tables = decrypt ? layout_.xts_inverse : layout_.forward;
    const Kernel kernel = xts_kernel(decrypt, key.rounds(), tables);
    const core::KeySchedule& data = key.schedule();
    RoundKeys keys{};
    XtsWork work{};
    const core::WipeAtEnd keys_wiped(keys), work_wiped(work);
    std::memcpy(keys.w, decrypt ? data.decrypt.data() : data.encrypt.data(), sizeof keys.w);
    std::memcpy(work.tweak_keys.w, key.tweak().encrypt.data(), sizeof work.tweak_keys.w);

    // Sectors of one size, at `begin`.
    const auto launch_sectors = [&](std::uint64_t begin, std::uint64_t count, std::uint64_t size) {
        work.in = message.in + begin;
        work.out = message.out + begin;
        work.sectors = count;
        work.sector_size = static_cast<std::uint32_t>(size);
        work.shape = kernels::xts_shape(work.sector_size);
        work.rows = kernels::xts_rows(work.shape, count);
        const Block number = modes::sector_add(message.start, begin / cipher.sector);
        std::memcpy(&work.first, number.data(), number.size());
        const auto addresses =
            reinterpret_cast<std::uintptr_t>(work.in) | reinterpret_cast<std::uintptr_t>(work.out);
        work.aligned = (addresses | size) % kBlockSize == 0;
        return launch(kernel, std::min(most, grid_for(work.rows)), false, &work, keys, stream);
    };
    const std::uint64_t rest = message.size % cipher.sector, whole = message.size - rest;
    if (whole != 0) DAEL_TRY(launch_sectors(0, whole / cipher.sector, cipher.sector));
    return rest != 0 ? launch_sectors(whole, 1, rest) : Result<>{};
}

}  // namespace dael::cuda
