// SPDX-License-Identifier: Apache-2.0
// XTS on an OpenCL device, in runs of sectors: one launch encrypts their numbers to tweaks, another
// processes them, and a third a last sector that is shorter.
#include <algorithm>
#include <cstring>

#include "backends/opencl/opencl_device.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/xts.hpp"

namespace dael::opencl {
namespace {

constexpr std::size_t kTweaks = std::size_t{1} << 18;  // of a run; 4 MiB, for 128 MiB of 512 bytes

// Sectors of one size, from byte `begin` of the run on.
XtsWork sectors_at(const Place& in, const Place& out, std::size_t begin, std::uint64_t count,
                   std::size_t size, std::size_t first_tweak) {
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

}  // namespace

Result<> OpenClDevice::xts(const core::XtsOperation& operation, const core::Segment& segment,
                           Stream stream) {
    if (segment.size == 0) return {};
    const auto in = addresses_.find(segment.in, segment.size);
    const auto out = addresses_.find(segment.out, segment.size);
    if (!in) return in.error();
    if (!out) return out.error();
    const bool inverse = operation.direction == Direction::decrypt;
    const int rounds = operation.key->data().rounds();
    const Tuning shape = tuning();
    const auto make_tweaks = kernel("xts_tweaks", "xts_tweaks", rounds, false, shape);
    if (!make_tweaks) return make_tweaks.error();

    const cl::CommandQueue queue = queue_of(stream);
    const auto scratch = scratch_of(queue, kTweaks * sizeof(Uint4));
    if (!scratch) return scratch.error();

    const core::KeySchedule& data = operation.key->data().schedule();
    RoundKeys keys, tweak_keys;
    const core::WipeAtEnd wiper(keys), tweak_wiper(tweak_keys);
    std::memcpy(&keys, inverse ? data.decrypt.data() : data.encrypt.data(), sizeof keys);
    std::memcpy(&tweak_keys, operation.key->tweak().schedule().encrypt.data(), sizeof tweak_keys);
    const auto tweaks_of = [&](std::size_t size) {
        return static_cast<cl_uint>((size + operation.sector_size - 1) / operation.sector_size);
    };
    const auto launch_sectors = [&](const XtsWork& work) -> Result<> {
        const bool whole = work.aligned && work.sector_size % kUnitSize == 0;
        const auto process =
            kernel("xts", "xts", rounds, inverse, shape, " -DDAEL_WHOLE=" + std::to_string(whole));
        if (!process) return process.error();
        return launch(**process, queue, groups_for(work.rows, shape), shape.teams, *in, *out, work,
                      scratch->buffer, Secret{keys});
    };
    const auto launch_run = [&](const core::Segment& run) -> Result<> {
        const std::size_t rest = run.size % operation.sector_size, whole = run.size - rest;
        const std::size_t count = whole / operation.sector_size;
        const cl_uint numbers = tweaks_of(run.size);
        // Few enough work-groups that filling their tables does not take longer than the tweaks.
        const unsigned teams = (numbers + kLanes - 1) / kLanes;
        const unsigned groups = std::min((teams + shape.teams - 1) / shape.teams,
                                         static_cast<unsigned>(info_.multiprocessors));
        DAEL_TRY(launch(**make_tweaks, queue, groups, shape.teams, scratch->buffer,
                        to_uint4(run.iv), numbers, Secret{tweak_keys}));
        const auto begin = static_cast<std::size_t>(run.in - segment.in);
        if (count != 0)
            DAEL_TRY(launch_sectors(sectors_at(*in, *out, begin, count, operation.sector_size, 0)));
        if (rest != 0)
            DAEL_TRY(launch_sectors(sectors_at(*in, *out, begin + whole, 1, rest, count)));
        return {};
    };

    Result<> result;
    for (std::size_t begin = 0; begin < segment.size && result;) {
        const std::size_t size = std::min(segment.size - begin, kTweaks * operation.sector_size);
        result = launch_run(modes::slice_sectors(segment, operation.sector_size, begin, size));
        begin += size;
    }
    // Who knows a sector's tweak can do more with its data than XTS allows.
    const std::size_t used = tweaks_of(std::min(segment.size, kTweaks * operation.sector_size));
    Result<> wiped =
        checked(queue.enqueueFillBuffer(scratch->buffer, cl_uint{0}, 0, used * sizeof(Uint4)),
                "clEnqueueFillBuffer");
    if (wiped) wiped = checked(queue.flush(), "clFlush");
    if (result) result = wiped;
    return result;
}

}  // namespace dael::opencl
