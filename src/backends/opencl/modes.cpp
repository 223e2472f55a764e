// SPDX-License-Identifier: Apache-2.0
// One message in the modes of SP 800-38A and XTS.
#include "backends/opencl/modes.hpp"

#include <algorithm>

#include "core/known_answers.hpp"
#include "modes/counter.hpp"

namespace dael::opencl {
namespace {

// From this size on, one CTR message goes to the kernel with counter caching.
constexpr std::size_t kStreamFrom = std::size_t{4} << 20;

}  // namespace

Result<> OpenClDevice::run(const Cipher& asked, const core::KeyList& keys, const Message& message,
                           Stream stream) {
    if (message.size == 0) return {};
    Cipher cipher = asked;
    if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;  // until it would wrap, the same
    if (authenticates(cipher.mode))
        return Error{Code::unsupported,
                     "opencl: a message that is authenticated takes memory; prepare a batch"};
    if (serial_mode(cipher)) return core::sequential_within_message("opencl", cipher);
    if (after_fork()) return fork_failure();
    const KeyArgument key(keys.list[message.key], inverse_cipher(cipher));
    const cl::CommandQueue queue = order_.queue_of(stream);
    const Tuning shape = tuning();
    const auto addresses = reinterpret_cast<std::uintptr_t>(message.in) |
                           reinterpret_cast<std::uintptr_t>(message.out);
    const auto* const wanted = Programs::variant_asked();
    const bool long_enough = wanted ? wanted->stream : message.size >= kStreamFrom;
    const bool stream_kernel = cipher.mode == Mode::ctr && shape.tables > 0 && long_enough &&
                               message.skip == 0 && addresses % kBlockSize == 0;
    DAEL_TRY(believe(
        cipher, key.rounds,
        {.tuning = shape,
         .in_place = cipher.mode != Mode::xts && chained(cipher) && message.in == message.out,
         .keystream = message.in == nullptr,
         .stream = stream_kernel}));
    const auto launch_with = [&](Ends* ends) -> Result<> {
        if (cipher.mode == Mode::xts) return run_xts(ends, cipher, key, message, shape, queue);
        if (stream_kernel) return run_stream(ends, key, message, shape, queue);
        DAEL_LET(at, find_both(memory_, message));
        Part part{.in = at.in, .out = at.out, .one = kernel_segment(message, at.in, at.out)};
        part.units = part.one.units();
        part.keystream = message.in == nullptr;
        part.in_place = chained(cipher) && message.in == message.out;
        part.groups = groups_for(part.units, shape);
        return run_blocks(ends, cipher, key, part, shape, queue);
    };
    if (!core::asking()) return launch_with(nullptr);
    // A kernel that fails while it runs, of which no wait need tell, has given no answer at all.
    Ends ends;
    DAEL_TRY(launch_with(&ends));
    (void)ends.wait();
    return ends.outcome();
}

Result<OpenClDevice::BlocksKernels> OpenClDevice::blocks_kernels(const Cipher& cipher, int rounds,
                                                                 const Part& part,
                                                                 const Tuning& tuning) {
    const bool inverse = inverse_cipher(cipher);
    const std::string macros = mode_macro(cipher) +
                               " -DDAEL_CHAINED=" + std::to_string(part.in_place) +
                               " -DDAEL_KEYSTREAM=" + std::to_string(part.keystream);
    DAEL_LET(blocks, kernel("blocks", "blocks", rounds, inverse, tuning, macros));
    if (!part.in_place) return BlocksKernels{blocks, nullptr};
    DAEL_LET(save, kernel("blocks", "save_before", rounds, inverse, tuning, macros));
    return BlocksKernels{blocks, save};
}

Result<> OpenClDevice::run_blocks(Ends* ends, const Cipher& cipher, const KeyArgument& key,
                                  const Part& part, const Tuning& tuning,
                                  const cl::CommandQueue& queue) {
    DAEL_LET(kernels, blocks_kernels(cipher, key.rounds, part, tuning));
    OpenClOrder::HeldScratch before;
    if (part.in_place) {
        const cl_uint teams = part.groups * tuning.teams;
        const auto most = std::size_t{compute_units()} * 64 * 32;
        DAEL_LET(held,
                 order_.scratch_of(queue, std::max<std::size_t>(teams, most) * sizeof(Uint4)));
        before = std::move(held);
        DAEL_TRY(launch(ends, *kernels.save, queue, part.groups, tuning.teams, part.in, part.one,
                        part.list, part.ends, part.units, before.buffer));
    }
    return launch(ends, *kernels.blocks, queue, part.groups, tuning.teams, part.in, part.out,
                  part.one, part.list, part.ends, part.units, before.buffer, Secret{key.data});
}

// A long message in CTR, one launch for each stretch in which the counter's low 32 bits do not wrap
// (64 GiB).
Result<> OpenClDevice::run_stream(Ends* ends, const KeyArgument& key, const Message& message,
                                  const Tuning& tuning, const cl::CommandQueue& queue) {
    // A squad of 8 / held teams must lie in one work-group.
    const unsigned held = std::max(tuning.held, 8 / std::min(8u, tuning.teams));
    DAEL_LET(found, kernel("ctr_stream", "ctr_stream", key.rounds, false, tuning,
                           " -DDAEL_HELD=" + std::to_string(held) +
                               " -DDAEL_KEYSTREAM=" + std::to_string(message.in == nullptr)));
    DAEL_LET(at, find_both(memory_, message));
    Block counter = message.start;
    for (std::uint64_t done = 0; done < message.size;) {
        const std::uint64_t blocks = modes::blocks_before_wrap32(counter);
        const std::uint64_t size = std::min(message.size - done, blocks * kBlockSize);
        const StreamWork work{at.in.offset + done, at.out.offset + done, size, 0,
                              to_uint4(counter)};
        DAEL_TRY(launch(ends, *found, queue, groups_for(size / kUnitSize, tuning), tuning.teams,
                        at.in, at.out, work, Secret{key.data}));
        counter = modes::counter_add(counter, blocks);
        done += size;
    }
    return {};
}

}  // namespace dael::opencl
