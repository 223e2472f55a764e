// SPDX-License-Identifier: Apache-2.0
// XTS on a CUDA device: one launch for whole sectors, and another for a short last one.
#include <algorithm>
#include <cstring>

#include "backends/cuda/cuda_device.hpp"
#include "core/key_schedule.hpp"
#include "modes/xts.hpp"

namespace dael::cuda {

Result<> CudaDevice::xts(const core::XtsOperation& operation, const core::Segment& segment,
                         Stream stream) {
    if (segment.size == 0) return {};
    const bool decrypt = operation.direction == Direction::decrypt;
    const XtsKey& key = *operation.key;
    const int tables = decrypt ? layout_.xts_inverse : layout_.forward;
    const Kernel kernel = xts_kernel(decrypt, key.data().rounds(), tables);
    const core::KeySchedule& data = key.data().schedule();
    RoundKeys keys{};
    XtsWork work{};
    std::memcpy(keys.w, decrypt ? data.decrypt.data() : data.encrypt.data(), sizeof keys.w);
    std::memcpy(work.tweak_keys.w, key.tweak().schedule().encrypt.data(), sizeof work.tweak_keys.w);

    // Sectors of one size, at `begin`.
    const auto launch_sectors = [&](std::size_t begin, std::uint64_t count, std::size_t size) {
        work.in = segment.in + begin;
        work.out = segment.out + begin;
        work.sectors = count;
        work.sector_size = static_cast<std::uint32_t>(size);
        work.shape = kernels::xts_shape(work.sector_size);
        work.rows = kernels::xts_rows(work.shape, count);
        const Block number = modes::sector_add(segment.iv, begin / operation.sector_size);
        std::memcpy(&work.first, number.data(), number.size());
        const auto addresses =
            reinterpret_cast<std::uintptr_t>(work.in) | reinterpret_cast<std::uintptr_t>(work.out);
        work.aligned = (addresses | size) % kBlockSize == 0;
        return launch(kernel, grid_for(work.rows), false, &work, keys, stream);
    };
    const std::size_t rest = segment.size % operation.sector_size, whole = segment.size - rest;
    Result<> result;
    if (whole != 0)
        result = launch_sectors(0, whole / operation.sector_size, operation.sector_size);
    if (result && rest != 0) result = launch_sectors(whole, 1, rest);
    wipe(&keys, sizeof keys);
    wipe(&work, sizeof work);
    return result;
}

}  // namespace dael::cuda
