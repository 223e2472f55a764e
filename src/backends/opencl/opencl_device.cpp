// SPDX-License-Identifier: Apache-2.0
// Kernels: choosing, shaping and launching them. Memory and order are in opencl_memory.cpp.
#include "backends/opencl/opencl_device.hpp"

#include <algorithm>
#include <cstring>

#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"

namespace dael::opencl {
namespace {

using core::Operation;

// From this size on, one CTR message goes to the kernel with counter caching.
constexpr std::size_t kStreamFrom = std::size_t{4} << 20;

bool serial_mode(Mode mode, Direction direction) {
    return !parallel_within_message(mode, direction);
}
bool inverse_cipher(Mode mode, Direction direction) {
    return direction == Direction::decrypt && (mode == Mode::ecb || mode == Mode::cbc);
}
bool chained(Mode mode) {
    return mode == Mode::cbc || mode == Mode::cfb;
}

RoundKeys round_keys(const Operation& operation) {
    const core::KeySchedule& schedule = operation.key->schedule();
    RoundKeys keys;
    std::memcpy(&keys,
                inverse_cipher(operation.mode, operation.direction) ? schedule.decrypt.data()
                                                                    : schedule.encrypt.data(),
                sizeof keys);
    return keys;
}

// DAEL_MODE of blocks.cl and serial.cl.
int mode_number(Mode mode, Direction direction) {
    const bool serial = serial_mode(mode, direction);
    switch (mode) {
        case Mode::ecb:
            return 0;
        case Mode::ctr:
            return 1;
        case Mode::cbc:
            return serial ? 4 : 2;
        case Mode::cfb:
            return serial ? 5 : 3;
        case Mode::ofb:
            return 6;
    }
    return -1;
}

Segment kernel_segment(const core::Segment& segment, const Place& in, const Place& out) {
    return {in.offset, out.offset, segment.size, segment.skip, 0, to_uint4(segment.iv)};
}

// Divides the segments' units evenly among teams.
std::vector<ShareEnd> share_out(const std::vector<Segment>& list, std::uint64_t units,
                                std::uint64_t teams) {
    std::vector<ShareEnd> ends;
    ends.reserve(teams);
    std::uint32_t segment = 0;
    std::uint64_t before = 0;  // units in the segments before this one
    for (std::uint64_t team = 1; team <= teams; ++team) {
        const std::uint64_t end = units * team / teams;
        while (end > before + list[segment].units()) before += list[segment++].units();
        ends.push_back({end - before, segment, 0});
    }
    return ends;
}

}  // namespace

// Segments between the same two buffers: what one launch can reach. Either one segment, or a list
// in device memory.
struct OpenClDevice::Part {
    Place in, out;
    Segment one{};
    std::uint64_t units = 0;
    bool in_place = false;            // and chained
    std::vector<Segment> segments{};  // until they are uploaded
    std::uint32_t count = 0;
    unsigned groups = 1;
    cl::Buffer list{}, ends{};
};

// Descriptors and shares in device memory. Holds offsets and IVs, no secrets.
class OpenClDevice::Prepared final : public core::PreparedBatch {
  public:
    const OpenClDevice* device = nullptr;
    Mode mode{};
    Direction direction{};
    Tuning tuning;
    std::vector<Part> parts;
};

OpenClDevice::OpenClDevice(std::shared_ptr<Context> context, cl::Device device, Limits limits,
                           Tuning tuning, core::DeviceInfo info)
    : context_(std::move(context)),
      device_(std::move(device)),
      limits_(limits),
      info_(std::move(info)),
      programs_(**context_, device_),
      tuning_(tuning) {}

OpenClDevice::~OpenClDevice() {
    if (queue_()) (void)queue_.finish();
}

Result<std::unique_ptr<OpenClDevice>> OpenClDevice::open(std::shared_ptr<Context> context,
                                                         cl::Device device,
                                                         std::string_view shape) {
    core::DeviceInfo info;
    info.name = device.getInfo<CL_DEVICE_NAME>();
    if (!device.getInfo<CL_DEVICE_ENDIAN_LITTLE>() ||
        !device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>())
        return Error{Code::unsupported, "opencl: '" + info.name +
                                            "' is big-endian or has no compiler for kernels; "
                                            "daelstrom needs a little-endian one that has"};
    Limits limits;
    limits.local_memory = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
    limits.dedicated = device.getInfo<CL_DEVICE_LOCAL_MEM_TYPE>() == CL_LOCAL;
    limits.work_group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
    if (limits.work_group < kLanes)
        return Error{Code::unsupported, "opencl: '" + info.name + "' takes work-groups of " +
                                            std::to_string(limits.work_group) +
                                            " work-items at most; daelstrom needs 32"};
    const auto tuning = parse_tuning(shape, limits);
    if (!tuning) return tuning.error();
    info.architecture = device.getInfo<CL_DEVICE_VERSION>();
    while (!info.architecture.empty() && info.architecture.back() == ' ')
        info.architecture.pop_back();
    info.memory = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
    info.multiprocessors = static_cast<int>(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    info.driver = info.architecture + ", driver " + device.getInfo<CL_DRIVER_VERSION>();
    // A question for version 2.0; a driver of 1.2 answers that it does not know it.
    cl_device_svm_capabilities svm = 0;
    if (device.getInfo(CL_DEVICE_SVM_CAPABILITIES, &svm) != CL_SUCCESS) svm = 0;
    info.shared_memory = (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
    std::unique_ptr<OpenClDevice> opened(
        new OpenClDevice(std::move(context), std::move(device), limits, *tuning, std::move(info)));
    DAEL_TRY(opened->create_queues());
    return opened;
}

std::vector<std::string> OpenClDevice::shapes() const {
    std::vector<std::string> list;
    for (const Tuning& tuning : candidates(limits_)) list.push_back(to_string(tuning));
    return list;
}

Result<> OpenClDevice::use_shape(const std::string& shape) {
    const auto tuning = parse_tuning(shape, limits_);
    if (!tuning) return tuning.error();
    if (std::ranges::count(candidates(limits_), *tuning) == 0)
        return Error{Code::unsupported,
                     "opencl: '" + shape + "' is none of the shapes that are tried on '" +
                         info_.name + "'; who wants it all the same opens the engine with it (isa)"};
    if (after_fork()) return fork_failure();
    const std::lock_guard lock(mutex_);
    tuning_ = *tuning;
    return {};
}

std::string OpenClDevice::shape() const {
    return to_string(tuning());
}

std::string OpenClDevice::layout() const {
    const int tables = tuning().tables;
    return tables < 0 ? "no" : std::to_string(table_bytes(tables) / 1024) + " KiB";
}

Tuning OpenClDevice::tuning() const {
    if (after_fork()) return {};  // nothing will be launched in it
    const std::lock_guard lock(mutex_);
    return tuning_;
}

unsigned OpenClDevice::groups_for(std::uint64_t teams, const Tuning& tuning) const {
    // Few are spread over many compute units, down to four on each.
    const std::uint64_t wanted = std::max<std::uint64_t>(1, (teams + 3) / 4);
    return static_cast<unsigned>(std::min<std::uint64_t>(
        wanted, static_cast<std::uint64_t>(info_.multiprocessors) * tuning.groups));
}

unsigned OpenClDevice::groups_for_items(std::uint64_t items, const Tuning& tuning) const {
    return groups_for((items + kLanes - 1) / kLanes * 4, tuning);
}

Result<Kernel*> OpenClDevice::kernel(const std::string& unit, const std::string& entry, int rounds,
                                     bool inverse, const Tuning& tuning, const std::string& more) {
    const int tables = tuning.tables;
    return programs_.find(unit, entry,
                          "-DDAEL_ROUNDS=" + std::to_string(rounds) + " -DDAEL_INVERSE=" +
                              std::to_string(inverse) + " -DDAEL_TABLES=" + std::to_string(tables) +
                              " -DDAEL_TEAMS=" + std::to_string(tuning.teams) +
                              " -DDAEL_UNROLL=" + (tables > 0 ? "4" : "1") + more);
}

Result<OpenClDevice::HeldScratch> OpenClDevice::scratch_of(const cl::CommandQueue& queue,
                                                           std::size_t size) {
    if (after_fork()) return fork_failure();
    Scratch& scratch = [&]() -> Scratch& {
        const std::lock_guard lock(mutex_);
        return scratch_[queue()];
    }();
    std::unique_lock lock(scratch.mutex);
    if (scratch.size < size) {
        cl_int status = CL_SUCCESS;
        // Work that uses the old one keeps it.
        scratch.buffer = cl::Buffer(**context_, CL_MEM_READ_WRITE, size, nullptr, &status);
        scratch.size = status == CL_SUCCESS ? size : 0;
        DAEL_TRY(checked(status, "clCreateBuffer"));
        scratch.queue = queue;
    }
    return HeldScratch{std::move(lock), scratch.buffer};
}

Result<> OpenClDevice::run_blocks(const Operation& operation, const Part& part,
                                  const Tuning& tuning, Stream stream) {
    const bool inverse = inverse_cipher(operation.mode, operation.direction);
    const int rounds = operation.key->rounds();
    const std::string mode =
        " -DDAEL_MODE=" + std::to_string(mode_number(operation.mode, operation.direction)) +
        " -DDAEL_CHAINED=" + std::to_string(part.in_place);
    const auto blocks = kernel("blocks", "blocks", rounds, inverse, tuning, mode);
    if (!blocks) return blocks.error();
    const cl::CommandQueue queue = queue_of(stream);
    HeldScratch before;
    if (part.in_place) {
        const auto save = kernel("blocks", "save_before", rounds, inverse, tuning, mode);
        if (!save) return save.error();
        const cl_uint teams = part.groups * tuning.teams;
        const auto most = static_cast<std::size_t>(info_.multiprocessors) * 64 * 32;
        auto held = scratch_of(queue, std::max<std::size_t>(teams, most) * sizeof(Uint4));
        if (!held) return std::move(held).error();
        before = std::move(*held);
        DAEL_TRY(launch(**save, queue, part.groups, tuning.teams, part.in, part.one, part.list,
                        part.ends, part.units, before.buffer));
    }
    RoundKeys keys = round_keys(operation);
    const core::WipeAtEnd wiper(keys);
    return launch(**blocks, queue, part.groups, tuning.teams, part.in, part.out, part.one,
                  part.list, part.ends, part.units, before.buffer, Secret{keys});
}

// A long message in CTR, one launch for each stretch in which the counter's low 32 bits do not wrap
// (64 GiB).
Result<> OpenClDevice::run_stream(const Operation& operation, const core::Segment& segment,
                                  const Tuning& tuning, Stream stream) {
    // A squad of 8 / held teams must lie in one work-group.
    const unsigned held = std::max(tuning.held, 8 / std::min(8u, tuning.teams));
    const auto found = kernel("ctr_stream", "ctr_stream", operation.key->rounds(), false, tuning,
                              " -DDAEL_HELD=" + std::to_string(held));
    if (!found) return found.error();
    const auto in = addresses_.find(segment.in, segment.size);
    const auto out = addresses_.find(segment.out, segment.size);
    if (!in) return in.error();
    if (!out) return out.error();
    const cl::CommandQueue queue = queue_of(stream);
    RoundKeys keys = round_keys(operation);
    const core::WipeAtEnd wiper(keys);
    Block counter = segment.iv;
    for (std::size_t done = 0; done < segment.size;) {
        const std::uint64_t blocks = modes::blocks_before_wrap32(counter);
        const std::size_t size = static_cast<std::size_t>(
            std::min<std::uint64_t>(segment.size - done, blocks * kBlockSize));
        const StreamWork work{in->offset + done, out->offset + done, size, 0, to_uint4(counter)};
        DAEL_TRY(launch(**found, queue, groups_for(size / kUnitSize, tuning), tuning.teams, *in,
                        *out, work, Secret{keys}));
        counter = modes::counter_add(counter, blocks);
        done += size;
    }
    return {};
}

Result<> OpenClDevice::run(const Operation& operation, const core::Segment& segment,
                           Stream stream) {
    if (segment.size == 0) return {};
    if (serial_mode(operation.mode, operation.direction))
        return core::sequential_within_message("opencl", operation);
    const Tuning shape = tuning();
    const auto addresses = reinterpret_cast<std::uintptr_t>(segment.in) |
                           reinterpret_cast<std::uintptr_t>(segment.out);
    if (operation.mode == Mode::ctr && shape.tables > 0 && segment.size >= kStreamFrom &&
        segment.skip == 0 && addresses % kBlockSize == 0)
        return run_stream(operation, segment, shape, stream);
    const auto in = addresses_.find(segment.in, segment.size);
    const auto out = addresses_.find(segment.out, segment.size);
    if (!in) return in.error();
    if (!out) return out.error();
    Part part{.in = *in, .out = *out, .one = kernel_segment(segment, *in, *out)};
    part.units = part.one.units();
    part.in_place = chained(operation.mode) && segment.in == segment.out;
    part.groups = groups_for(part.units, shape);
    return run_blocks(operation, part, shape, stream);
}

Result<std::unique_ptr<core::PreparedBatch>> OpenClDevice::prepare(
    Mode mode, Direction direction, std::span<const core::Segment> segments) {
    auto batch = std::make_unique<Prepared>();
    batch->device = this;
    batch->mode = mode;
    batch->direction = direction;
    batch->tuning = tuning();
    for (const core::Segment& segment : segments) {
        if (segment.size == 0) continue;
        const auto in = addresses_.find(segment.in, segment.size);
        const auto out = addresses_.find(segment.out, segment.size);
        if (!in) return in.error();
        if (!out) return out.error();
        auto part = std::ranges::find_if(batch->parts, [&](const Part& known) {
            return known.in.same_memory(*in) && known.out.same_memory(*out);
        });
        if (part == batch->parts.end())
            part = batch->parts.insert(part, Part{.in = *in, .out = *out});
        part->segments.push_back(kernel_segment(segment, *in, *out));
        part->in_place |= chained(mode) && direction == Direction::decrypt &&
                          in->offset == out->offset && in->same_memory(*out);
    }
    for (Part& part : batch->parts) {
        std::vector<Segment>& list = part.segments;
        if (list.size() > 0xffffffffu)
            return Error{Code::limit, "a batch takes at most 2^32 - 1 messages; divide it"};
        part.count = static_cast<std::uint32_t>(list.size());
        if (serial_mode(mode, direction)) {
            // Items of a team wait for the longest of their messages: put like beside like.
            std::ranges::stable_sort(list, std::ranges::greater{}, &Segment::size);
            part.groups = groups_for_items(list.size(), batch->tuning);
        } else {
            for (const Segment& segment : list) part.units += segment.units();
            part.groups = groups_for(part.units, batch->tuning);
            const auto ends =
                share_out(list, part.units, std::uint64_t{part.groups} * batch->tuning.teams);
            auto uploaded = upload(ends.data(), ends.size() * sizeof(ShareEnd));
            if (!uploaded) return std::move(uploaded).error();
            part.ends = std::move(*uploaded);
        }
        auto uploaded = upload(list.data(), list.size() * sizeof(Segment));
        if (!uploaded) return std::move(uploaded).error();
        part.list = std::move(*uploaded);
        list = {};
    }
    return std::unique_ptr<core::PreparedBatch>(std::move(batch));
}

Result<> OpenClDevice::run(const Operation& operation, const core::PreparedBatch& prepared,
                           Stream stream) {
    const auto* batch = dynamic_cast<const Prepared*>(&prepared);
    if (!batch || batch->device != this || batch->mode != operation.mode ||
        batch->direction != operation.direction)
        return Error{Code::invalid_argument,
                     "opencl: the batch was prepared for another device, mode or direction"};
    for (const Part& part : batch->parts) {
        if (!serial_mode(operation.mode, operation.direction)) {
            DAEL_TRY(run_blocks(operation, part, batch->tuning, stream));
            continue;
        }
        const auto serial = kernel(
            "serial", "serial", operation.key->rounds(), false, batch->tuning,
            " -DDAEL_MODE=" + std::to_string(mode_number(operation.mode, operation.direction)));
        if (!serial) return serial.error();
        RoundKeys keys = round_keys(operation);
        const core::WipeAtEnd wiper(keys);
        DAEL_TRY(launch(**serial, queue_of(stream), part.groups, batch->tuning.teams, part.in,
                        part.out, part.list, part.count, Secret{keys}));
    }
    return {};
}

}  // namespace dael::opencl
