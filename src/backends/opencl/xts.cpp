// SPDX-License-Identifier: Apache-2.0
// XTS on an OpenCL device, in runs of sectors: one launch encrypts their numbers to tweaks, another
// processes them, and a third a last sector that is shorter.
#include <algorithm>

#include "backends/opencl/modes.hpp"
#include "modes/traits.hpp"

namespace dael::opencl {
namespace {

constexpr std::size_t kTweaks = std::size_t{1} << 18;  // of a run; 4 MiB, for 128 MiB of 512 bytes

// Sectors of one size, from byte `begin` of the message on.
XtsWork sectors_at(const Region& in, const Region& out, std::uint64_t begin, std::uint64_t count,
                   std::uint64_t size, std::uint64_t first_tweak) {
    const auto sector_size = static_cast<std::uint32_t>(size);
    const kernels::XtsShape shape = kernels::xts_shape(sector_size);
    static constexpr kernels::Leaps kLeaps = kernels::make_leaps();
    XtsWork work{};
    work.in = in.offset + begin;
    work.out = out.offset + begin;
    work.sectors = count;
    work.rows = kernels::xts_rows(shape, count);
    work.sector_size = sector_size;
    work.first_tweak = static_cast<std::uint32_t>(first_tweak);
    work.shape = shape;
    work.aligned = (work.in | work.out | sector_size) % kBlockSize == 0;
    work.leaps = kLeaps;
    return work;
}

// XTS goes message by message: each has tweaks to be made first.
class XtsBatch final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;
    Result<> add(const Message& message) {
        if (message.size == 0) return {};
        if (!messages_.empty() && message.key != messages_.front().key)
            return Error{Code::unsupported,
                         "opencl: a batch in XTS takes one key; divide it by keys"};
        DAEL_TRY(find_both(device.memory(), message));
        messages_.push_back(message);
        return {};
    }
    Result<> launch(const cl::CommandQueue& queue) override {
        if (messages_.empty()) return {};
        const KeyArgument key = keys.argument(messages_.front().key, inverse_cipher(cipher));
        DAEL_TRY(device.believe(cipher, key.rounds, {.tuning = tuning}));
        // What can fail comes before the first launch.
        for (const Message& message : messages_)
            DAEL_TRY(device.xts_kernels(cipher, key.rounds, message, tuning));
        for (const Message& message : messages_)
            DAEL_TRY(device.run_xts(&ends, cipher, key, message, tuning, queue));
        return {};
    }

  private:
    std::vector<Message> messages_;
};

}  // namespace

Result<std::unique_ptr<core::Prepared>> OpenClDevice::prepare_xts(
    const Cipher& cipher, const OpenClKeys& keys, std::span<const Message> messages) {
    auto batch = std::make_unique<XtsBatch>(*this, keys, cipher, tuning());
    for (const Message& message : messages) DAEL_TRY(batch->add(message));
    return std::unique_ptr<core::Prepared>(std::move(batch));
}

Result<OpenClDevice::XtsKernels> OpenClDevice::xts_kernels(const Cipher& cipher, int rounds,
                                                           const Message& message,
                                                           const Tuning& shape) {
    DAEL_LET(in, memory_.find(message.in, message.size));
    DAEL_LET(out, memory_.find(message.out, message.size));
    const bool inverse = cipher.direction == Direction::decrypt;
    const auto process = [&](std::uint64_t begin, std::uint64_t size) {
        const XtsWork work = sectors_at(in, out, begin, 1, size, 0);
        const bool whole = work.aligned && work.sector_size % kUnitSize == 0;
        return kernel("xts", "xts", rounds, inverse, shape,
                      " -DDAEL_WHOLE=" + std::to_string(whole));
    };
    XtsKernels found;
    DAEL_LET(tweaks, kernel("xts_tweaks", "xts_tweaks", rounds, false, shape));
    found.tweaks = tweaks;
    const std::uint64_t rest = message.size % cipher.sector;
    if (message.size >= cipher.sector) {
        DAEL_LET(sectors, process(0, cipher.sector));
        found.sectors = sectors;
    }
    if (rest != 0) {
        DAEL_LET(last, process(message.size - rest, rest));
        found.rest = last;
    }
    return found;
}

Result<> OpenClDevice::run_xts(Ends* ends, const Cipher& cipher, const KeyArgument& key,
                               const Message& message, const Tuning& shape,
                               const cl::CommandQueue& queue) {
    DAEL_LET(in, memory_.find(message.in, message.size));
    DAEL_LET(out, memory_.find(message.out, message.size));
    DAEL_LET(kernels, xts_kernels(cipher, key.rounds, message, shape));
    DAEL_LET(scratch, order_.scratch_of(queue, kTweaks * sizeof(Uint4)));

    const auto tweaks_of = [&](std::uint64_t size) {
        return static_cast<cl_uint>((size + cipher.sector - 1) / cipher.sector);
    };
    const auto launch_sectors = [&](Kernel& process, const XtsWork& work) {
        return launch(ends, process, queue, groups_for(work.rows, shape), shape.teams, in, out,
                      work, scratch.buffer, Secret{key.data});
    };
    const auto launch_run = [&](std::uint64_t begin, std::uint64_t size) -> Result<> {
        const std::uint64_t rest = size % cipher.sector, whole = size - rest;
        const std::uint64_t count = whole / cipher.sector;
        const cl_uint numbers = tweaks_of(size);
        const Block first = modes::sector_add(message.start, begin / cipher.sector);
        // Few enough work-groups that filling their tables does not take longer than the tweaks.
        const unsigned teams = (numbers + kLanes - 1) / kLanes;
        const unsigned groups = std::min((teams + shape.teams - 1) / shape.teams, compute_units());
        DAEL_TRY(launch(ends, *kernels.tweaks, queue, groups, shape.teams, scratch.buffer,
                        to_uint4(first), numbers, Secret{key.tweak}));
        if (count != 0)
            DAEL_TRY(launch_sectors(*kernels.sectors,
                                    sectors_at(in, out, begin, count, cipher.sector, 0)));
        if (rest != 0)
            DAEL_TRY(
                launch_sectors(*kernels.rest, sectors_at(in, out, begin + whole, 1, rest, count)));
        return {};
    };

    const std::uint64_t most = kTweaks * std::uint64_t{cipher.sector};  // bytes of a run
    Result<> result;
    for (std::uint64_t begin = 0; begin < message.size && result; begin += most)
        result = launch_run(begin, std::min(message.size - begin, most));
    // Who knows a sector's tweak can do more with its data than XTS allows.
    const std::size_t used = tweaks_of(std::min(message.size, most));
    Result<> wiped =
        checked(queue.enqueueFillBuffer(scratch.buffer, cl_uint{0}, 0, used * sizeof(Uint4)),
                "clEnqueueFillBuffer");
    if (wiped) wiped = checked(queue.flush(), "clFlush");
    if (result) result = wiped;
    return result;
}

}  // namespace dael::opencl
