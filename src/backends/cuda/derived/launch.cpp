// SPDX-License-Identifier: Apache-2.0
// A few messages of XAES or GCM-SIV whose list comes with the call, as a parameter of the kernels:
// one for each size of keys.
#include <algorithm>
#include <vector>

#include "backends/cuda/derived/batch.hpp"
#include "backends/cuda/gcm/launch_plan.hpp"

namespace dael::cuda {

Result<> run_derived(CudaDevice& device, const Cipher& cipher, const core::KeyList& keys,
                     std::span<const Message> messages, const LaunchOptions& options,
                     Stream stream) {
    DAEL_LET(tables, tables_of(keys, device));
    DAEL_TRY(tables->ready(KeyParts::schedule));  // at the first use
    std::vector<int> sizes;
    for (const Message& m : messages)
        if (const int rounds = tables->rounds(m.key);
            std::ranges::find(sizes, rounds) == sizes.end())
            sizes.push_back(rounds);
    const Kind kind = kind_of(cipher.mode, DerivedWay::few);
    for (const int rounds : sizes) {
        if (rounds == 12 || (cipher.mode == Mode::xaes256gcm && rounds != 14))
            return Error{Code::invalid_argument,
                         "cuda: " + std::string(name(cipher.mode)) + " has no keys of this size"};
        DAEL_TRY(device.believe(kind, rounds));
    }
    DerivedLaunch launch{};
    put_list(messages, options.host_aad, nullptr, launch.messages, launch.aad);
    std::uint64_t aad = 0;
    for (const Message& m : messages) aad += options.host_aad ? m.aad_size : 0;
    launch.aad_words = static_cast<std::uint32_t>((aad + 3) / 4);
    launch.batch.keys = tables->keys();
    launch.batch.results = options.codes;
    launch.batch.count = static_cast<std::uint32_t>(messages.size());
    launch.batch.key_count = tables->count();
    launch.batch.reset = 1;
    const auto grid = static_cast<unsigned>(messages.size());
    const bool capturing = device.order().is_capturing(stream);
    // How often a graph will be replayed nobody knows; each replay records an event.
    if (capturing) tables->note_capture();
    for (const int rounds : sizes) {
        launch.batch.ended = capturing ? nullptr : tables->lend(grid);
        void* arguments[] = {&launch};
        Result<> launched = device.launch(derived_kernel(cipher.mode, rounds, DerivedWay::few, 1,
                                                         cipher.direction == Direction::decrypt),
                                          grid, false, arguments, stream);
        if (!launched && !capturing) tables->take_back(grid);
        DAEL_TRY(std::move(launched));
        launch.batch.reset = 0;
    }
    return capturing ? tables->lend_capture(stream) : Result<>{};
}

}  // namespace dael::cuda
