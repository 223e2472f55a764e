// SPDX-License-Identifier: Apache-2.0
// A few messages of AEGIS whose list comes with the call, as a parameter of one kernel.
#include <algorithm>

#include "backends/cuda/aegis/batch.hpp"
#include "backends/cuda/gcm/launch_plan.hpp"

namespace dael::cuda {

Result<> run_aegis(CudaDevice& device, const Cipher& cipher, const core::KeyList& keys,
                   std::span<const Message> messages, const LaunchOptions& options, Stream stream) {
    DAEL_LET(tables, tables_of(keys, device));
    DAEL_TRY(tables->ready(KeyParts::schedule));  // at the first use
    DAEL_TRY(device.believe(cipher.mode, AegisWay::few));
    AegisLaunch launch{};
    put_list(messages, options.host_aad, nullptr, launch.messages, launch.aad);
    std::uint64_t aad = 0;
    for (const Message& m : messages) aad += options.host_aad ? m.aad_size : 0;
    launch.aad_words = static_cast<std::uint32_t>((aad + 3) / 4);
    launch.batch.keys = tables->keys();
    launch.batch.results = options.codes;
    launch.batch.count = static_cast<std::uint32_t>(messages.size());
    launch.batch.key_count = tables->count();
    launch.batch.tag_size = cipher.tag;
    const unsigned grid = aegis_grid(device, cipher.mode, AegisWay::few, messages.size());
    const bool capturing = device.order().is_capturing(stream);
    // How often a graph will be replayed nobody knows; each replay records an event.
    if (capturing)
        tables->note_capture();
    else
        launch.batch.ended = tables->lend(grid);
    void* arguments[] = {&launch};
    Result<> launched = device.launch(
        aegis_kernel(cipher.mode, AegisWay::few, cipher.direction == Direction::decrypt), grid,
        false, arguments, stream);
    if (!launched && !capturing) tables->take_back(grid);
    DAEL_TRY(std::move(launched));
    return capturing ? tables->lend_capture(stream) : Result<>{};
}

}  // namespace dael::cuda
