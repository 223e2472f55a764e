// SPDX-License-Identifier: Apache-2.0
// Batches: in the modes of SP 800-38A here, in the others by xts.cpp, gcm.cpp and aead.cpp.
#include "backends/opencl/batch.hpp"

#include <algorithm>

#include "backends/opencl/aead.hpp"
#include "backends/opencl/modes.hpp"
#include "modes/counter.hpp"

namespace dael::opencl {
namespace {

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

// The parts of a batch, lists and shares in device memory: offsets and IVs, no secrets.
class PlainBatch final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;
    Result<> add(const Message& message);
    Result<> finish();
    Result<> launch(const cl::CommandQueue& queue) override;

  private:
    using Part = OpenClDevice::Part;
    Result<> launch_serial(const Part& part, const cl::CommandQueue& queue);
    Result<Kernel*> serial_kernel(int rounds);
    std::vector<int> all_rounds() const {
        return many_keys_ ? keys.all_rounds() : std::vector<int>{keys.rounds(key_)};
    }

    std::vector<Part> parts_;
    std::uint32_t key_ = 0;   // the only one, unless
    bool many_keys_ = false;  // there are several
    bool any_ = false;
};

Result<> PlainBatch::add(const Message& message) {
    if (message.size == 0) return {};
    many_keys_ = many_keys_ || (any_ && message.key != key_);
    any_ = true;
    key_ = message.key;
    DAEL_LET(at, find_both(device.memory(), message));
    const bool keystream = message.in == nullptr;
    auto part = std::ranges::find_if(parts_, [&](const Part& known) {
        return known.in.same_memory(at.in) && known.out.same_memory(at.out) &&
               known.keystream == keystream;
    });
    if (part == parts_.end())
        part = parts_.insert(part, Part{.in = at.in, .out = at.out, .keystream = keystream});
    part->segments.push_back(kernel_segment(message, at.in, at.out));
    part->in_place |= chained(cipher) && cipher.direction == Direction::decrypt &&
                      at.in.offset == at.out.offset && at.in.same_memory(at.out);
    return {};
}

Result<> PlainBatch::finish() {
    if (many_keys_ && !(cipher.mode == Mode::cbc && serial_mode(cipher)))
        return Error{Code::unsupported,
                     "opencl: the kernels of this mode take one key; divide the batch by keys"};
    for (Part& part : parts_) {
        std::vector<Segment>& list = part.segments;
        part.count = static_cast<std::uint32_t>(list.size());
        if (serial_mode(cipher)) {
            // Items of a team wait for the longest of their messages: put like beside like.
            std::ranges::stable_sort(list, std::ranges::greater{}, &Segment::size);
            part.groups = device.groups_for_items(list.size(), tuning);
        } else {
            for (const Segment& segment : list) part.units += segment.units();
            part.groups = device.groups_for(part.units, tuning);
            const auto shares =
                share_out(list, part.units, std::uint64_t{part.groups} * tuning.teams);
            DAEL_LET(ends_of,
                     device.memory().upload(shares.data(), shares.size() * sizeof(ShareEnd)));
            part.ends = std::move(ends_of);
        }
        DAEL_LET(uploaded, device.memory().upload(list.data(), list.size() * sizeof(Segment)));
        part.list = std::move(uploaded);
        list = {};
    }
    return {};
}

Result<> PlainBatch::launch(const cl::CommandQueue& queue) {
    // What can fail comes before the first launch.
    for (const Part& part : parts_)
        for (const int rounds : all_rounds()) {
            DAEL_TRY(device.believe(cipher, rounds,
                                    {.tuning = tuning,
                                     .batch = true,
                                     .keys = many_keys_,
                                     .in_place = part.in_place,
                                     .keystream = part.keystream}));
            if (serial_mode(cipher))
                DAEL_TRY(serial_kernel(rounds));
            else
                DAEL_TRY(device.blocks_kernels(cipher, rounds, part, tuning));
        }
    for (const Part& part : parts_) {
        if (serial_mode(cipher))
            DAEL_TRY(launch_serial(part, queue));
        else
            DAEL_TRY(device.run_blocks(&ends, cipher, keys.argument(key_, inverse_cipher(cipher)),
                                       part, tuning, queue));
    }
    return {};
}

Result<Kernel*> PlainBatch::serial_kernel(int rounds) {
    const std::string mode = mode_macro(cipher);
    if (!many_keys_) return device.kernel("serial", "serial", rounds, false, tuning, mode);
    return device.kernel("serial_keyed", "serial", rounds, false, tuning, mode + " -DDAEL_KEYED=1");
}

Result<> PlainBatch::launch_serial(const Part& part, const cl::CommandQueue& queue) {
    if (!many_keys_) {
        const KeyArgument key = keys.argument(key_, false);
        DAEL_LET(kernel, serial_kernel(key.rounds));
        return device.launch(&ends, *kernel, queue, part.groups, tuning.teams, part.in, part.out,
                             part.list, part.count, Secret{key.data});
    }
    // Each takes the messages whose key has its number of rounds.
    for (const int rounds : keys.all_rounds()) {
        DAEL_LET(kernel, serial_kernel(rounds));
        DAEL_TRY(device.launch(&ends, *kernel, queue, part.groups, tuning.teams, part.in, part.out,
                               part.list, part.count, keys.schedules()));
    }
    return {};
}

// Whether counter mode needs the kernel of GCM's, which takes several keys.
bool by_gcms_kernel(std::span<const Message> messages) {
    return std::ranges::any_of(
        messages, [&](const Message& message) { return message.key != messages.front().key; });
}

Error wraps() {
    return {Code::unsupported,
            "opencl: under several keys at once no counter's low 32 bits may wrap within a "
            "message; divide the batch by keys"};
}

}  // namespace

Result<std::unique_ptr<core::Prepared>> OpenClDevice::prepare(const Cipher& cipher,
                                                              const core::KeyList& keys,
                                                              const Messages& messages) {
    if (messages.place == dael::Place::device)
        return Error{Code::unsupported,
                     "opencl: a list of messages in device memory would hold pointers, which "
                     "OpenCL's buffers do not have; give the list in host memory"};
    const auto* tables = dynamic_cast<const OpenClKeys*>(keys.tables);
    if (!tables || &tables->device() != this) return core::made_for_another("opencl", "keys");
    if (after_fork()) return fork_failure();
    const std::span list(messages.list, messages.count);
    switch (cipher.mode) {
        case Mode::gcm:
        case Mode::gcm_ctr:
            return prepare_gcm(cipher, *tables, list);
        case Mode::xts:
            return prepare_xts(cipher, *tables, list);
        case Mode::ctr:
            if (!by_gcms_kernel(list)) break;
            for (const Message& message : list)
                if ((message.skip + message.size + kBlockSize - 1) / kBlockSize >
                    modes::blocks_before_wrap32(message.start))
                    return wraps();
            return prepare_gcm({.mode = Mode::gcm_ctr}, *tables, list);
        default:
            break;
    }
    if (authenticates(cipher.mode)) {
        DAEL_LET(made, AeadBatch::create(*this, *tables, cipher, list));
        return std::unique_ptr<core::Prepared>(std::move(made));
    }
    auto batch = std::make_unique<PlainBatch>(*this, *tables, cipher, tuning());
    for (const Message& message : list) DAEL_TRY(batch->add(message));
    DAEL_TRY(batch->finish());
    return std::unique_ptr<core::Prepared>(std::move(batch));
}

Result<> OpenClDevice::run(core::Prepared& prepared, Stream stream) {
    auto* const batch = dynamic_cast<PreparedBatch*>(&prepared);
    if (!batch || &batch->device != this) return core::made_for_another("opencl", "batch");
    if (after_fork()) return fork_failure();
    const cl::CommandQueue queue = order_.queue_of(stream);
    const std::lock_guard lock(batch->mutex);
    DAEL_TRY(batch->ends.begin(queue));
    return batch->launch(queue);
}

}  // namespace dael::opencl
