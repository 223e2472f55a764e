// SPDX-License-Identifier: Apache-2.0
// One message, and batches, in the modes of SP 800-38A and XTS.
#include <algorithm>

#include "backends/opencl/device.hpp"
#include "modes/counter.hpp"

namespace dael::opencl {
namespace {

// From this size on, one CTR message goes to the kernel with counter caching.
constexpr std::size_t kStreamFrom = std::size_t{4} << 20;

bool serial_mode(const Cipher& cipher) {
    return !parallel_within_message(cipher.mode, cipher.direction);
}
bool inverse_cipher(const Cipher& cipher) {
    return cipher.direction == Direction::decrypt &&
           (cipher.mode == Mode::ecb || cipher.mode == Mode::cbc || cipher.mode == Mode::xts);
}
bool chained(const Cipher& cipher) {
    return cipher.mode == Mode::cbc || cipher.mode == Mode::cfb;
}

// DAEL_MODE of blocks.cl and serial.cl.
std::string mode_macro(const Cipher& cipher) {
    const bool serial = serial_mode(cipher);
    const char* number = "";
    switch (cipher.mode) {
        case Mode::ecb:
            number = "0";
            break;
        case Mode::ctr:
            number = "1";
            break;
        case Mode::cbc:
            number = serial ? "4" : "2";
            break;
        case Mode::cfb:
            number = serial ? "5" : "3";
            break;
        case Mode::ofb:
            number = "6";
            break;
        default:
            break;
    }
    return std::string(" -DDAEL_MODE=") + number;
}

// Where a message's bytes lie. Without input its place is the output's, and nothing is read there.
struct InAndOut {
    Region in, out;
};
Result<InAndOut> find_both(const OpenClMemory& memory, const Message& message) {
    DAEL_LET(out, memory.find(message.out, message.size));
    if (!message.in) return InAndOut{out, out};
    DAEL_LET(in, memory.find(message.in, message.size));
    return InAndOut{in, out};
}

Segment kernel_segment(const Message& message, const Region& in, const Region& out) {
    return {in.offset,    out.offset,  message.size,
            message.skip, message.key, to_uint4(message.start)};
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

// The parts of a batch, lists and shares in device memory: offsets and IVs, no secrets.
class PlainBatch final : public Batch {
  public:
    using Batch::Batch;
    Result<> add(const Message& message);
    Result<> finish();
    Result<> launch(const cl::CommandQueue& queue) override;

  private:
    using Part = OpenClDevice::Part;
    Result<> launch_serial(const Part& part, const cl::CommandQueue& queue);

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
    for (const Part& part : parts_) {
        if (serial_mode(cipher))
            DAEL_TRY(launch_serial(part, queue));
        else
            DAEL_TRY(device.run_blocks(&ends, cipher, keys.argument(key_, inverse_cipher(cipher)),
                                       part, tuning, queue));
    }
    return {};
}

Result<> PlainBatch::launch_serial(const Part& part, const cl::CommandQueue& queue) {
    const std::string mode = mode_macro(cipher);
    if (!many_keys_) {
        const KeyArgument key = keys.argument(key_, false);
        DAEL_LET(kernel, device.kernel("serial", "serial", key.rounds, false, tuning, mode));
        return device.launch(&ends, *kernel, queue, part.groups, tuning.teams, part.in, part.out,
                             part.list, part.count, Secret{key.data});
    }
    // Each takes the messages whose key has its number of rounds.
    for (const int rounds : keys.all_rounds()) {
        DAEL_LET(kernel, device.kernel("serial_keyed", "serial", rounds, false, tuning,
                                       mode + " -DDAEL_KEYED=1"));
        DAEL_TRY(device.launch(&ends, *kernel, queue, part.groups, tuning.teams, part.in, part.out,
                               part.list, part.count, keys.schedules()));
    }
    return {};
}

// XTS goes message by message: each has tweaks to be made first.
class XtsBatch final : public Batch {
  public:
    using Batch::Batch;
    Result<> add(const Message& message) {
        if (message.size == 0) return {};
        if (!messages_.empty() && message.key != messages_.front().key)
            return Error{Code::unsupported,
                         "opencl: a batch in XTS takes one key; divide it by keys"};
        DAEL_TRY(find_both(device.memory(), message));
        messages_.push_back(message);
        return {};
    }
    Result<> finish() { return {}; }
    Result<> launch(const cl::CommandQueue& queue) override {
        if (messages_.empty()) return {};
        const KeyArgument key = keys.argument(messages_.front().key, inverse_cipher(cipher));
        for (const Message& message : messages_)
            DAEL_TRY(device.run_xts(&ends, cipher, key, message, tuning, queue));
        return {};
    }

  private:
    std::vector<Message> messages_;
};

template <class Kind>
Result<std::unique_ptr<core::Prepared>> prepare_as(OpenClDevice& device, const OpenClKeys& keys,
                                                   const Cipher& cipher,
                                                   std::span<const Message> messages) {
    auto batch = std::make_unique<Kind>(device, keys, cipher, device.tuning());
    for (const Message& message : messages) DAEL_TRY(batch->add(message));
    DAEL_TRY(batch->finish());
    return std::unique_ptr<core::Prepared>(std::move(batch));
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

Result<> OpenClDevice::run(const Cipher& asked, const core::Keys& keys, const Message& message,
                           Stream stream) {
    if (message.size == 0) return {};
    Cipher cipher = asked;
    if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;  // until it would wrap, the same
    if (authenticates(cipher.mode))
        return Error{Code::unsupported, "opencl: a message in GCM takes memory; prepare a batch"};
    if (serial_mode(cipher)) return core::sequential_within_message("opencl", cipher);
    if (after_fork()) return fork_failure();
    const KeyArgument key(keys.list[message.key], inverse_cipher(cipher));
    const cl::CommandQueue queue = order_.queue_of(stream);
    const Tuning shape = tuning();
    if (cipher.mode == Mode::xts) return run_xts(nullptr, cipher, key, message, shape, queue);
    const auto addresses = reinterpret_cast<std::uintptr_t>(message.in) |
                           reinterpret_cast<std::uintptr_t>(message.out);
    if (cipher.mode == Mode::ctr && shape.tables > 0 && message.size >= kStreamFrom &&
        message.skip == 0 && addresses % kBlockSize == 0)
        return run_stream(key, message, shape, queue);
    DAEL_LET(at, find_both(memory_, message));
    Part part{.in = at.in, .out = at.out, .one = kernel_segment(message, at.in, at.out)};
    part.units = part.one.units();
    part.keystream = message.in == nullptr;
    part.in_place = chained(cipher) && message.in == message.out;
    part.groups = groups_for(part.units, shape);
    return run_blocks(nullptr, cipher, key, part, shape, queue);
}

Result<> OpenClDevice::run_blocks(Ends* ends, const Cipher& cipher, const KeyArgument& key,
                                  const Part& part, const Tuning& tuning,
                                  const cl::CommandQueue& queue) {
    const bool inverse = inverse_cipher(cipher);
    const std::string macros = mode_macro(cipher) +
                               " -DDAEL_CHAINED=" + std::to_string(part.in_place) +
                               " -DDAEL_KEYSTREAM=" + std::to_string(part.keystream);
    DAEL_LET(blocks, kernel("blocks", "blocks", key.rounds, inverse, tuning, macros));
    OpenClOrder::HeldScratch before;
    if (part.in_place) {
        DAEL_LET(save, kernel("blocks", "save_before", key.rounds, inverse, tuning, macros));
        const cl_uint teams = part.groups * tuning.teams;
        const auto most = std::size_t{compute_units()} * 64 * 32;
        DAEL_LET(held,
                 order_.scratch_of(queue, std::max<std::size_t>(teams, most) * sizeof(Uint4)));
        before = std::move(held);
        DAEL_TRY(launch(ends, *save, queue, part.groups, tuning.teams, part.in, part.one, part.list,
                        part.ends, part.units, before.buffer));
    }
    return launch(ends, *blocks, queue, part.groups, tuning.teams, part.in, part.out, part.one,
                  part.list, part.ends, part.units, before.buffer, Secret{key.data});
}

// A long message in CTR, one launch for each stretch in which the counter's low 32 bits do not wrap
// (64 GiB).
Result<> OpenClDevice::run_stream(const KeyArgument& key, const Message& message,
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
        DAEL_TRY(launch(nullptr, *found, queue, groups_for(size / kUnitSize, tuning), tuning.teams,
                        at.in, at.out, work, Secret{key.data}));
        counter = modes::counter_add(counter, blocks);
        done += size;
    }
    return {};
}

Result<std::unique_ptr<core::Prepared>> OpenClDevice::prepare(const Cipher& cipher,
                                                              const core::Keys& keys,
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
            return prepare_as<XtsBatch>(*this, *tables, cipher, list);
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
    return prepare_as<PlainBatch>(*this, *tables, cipher, list);
}

Result<> OpenClDevice::run(core::Prepared& prepared, Stream stream) {
    auto* const batch = dynamic_cast<Batch*>(&prepared);
    if (!batch || &batch->device != this) return core::made_for_another("opencl", "batch");
    if (after_fork()) return fork_failure();
    const cl::CommandQueue queue = order_.queue_of(stream);
    const std::lock_guard lock(batch->mutex);
    DAEL_TRY(batch->ends.begin(queue));
    return batch->launch(queue);
}

}  // namespace dael::opencl
