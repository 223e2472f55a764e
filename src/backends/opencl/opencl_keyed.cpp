// SPDX-License-Identifier: Apache-2.0
// CBC encryption with a key for each message: batches in device memory and their launches.
#include <algorithm>

#include "backends/opencl/gcm_memory.hpp"

namespace dael::opencl {

// Descriptors and results; no secrets.
class OpenClDevice::KeyedBatch final : public BatchWithResults<core::PreparedKeyed> {
  public:
    using BatchWithResults::BatchWithResults;

    // Messages of one key size between the same two buffers.
    struct Part {
        Place in, out;
        int rounds = 0;
        std::vector<Segment> segments{};  // until they are uploaded
        std::uint32_t count = 0;
        cl::Buffer list{};
        Kernel* kernel = nullptr;
    };

    std::vector<Part> parts;
};

Result<std::unique_ptr<core::PreparedKeyed>> OpenClDevice::prepare_cbc_encrypt(
    const core::PreparedKeys& prepared, std::span<const KeyedMessage> messages) {
    const auto keys = keys_for_batch(prepared, messages.size());
    if (!keys) return keys.error();
    auto batch = std::make_unique<KeyedBatch>(*this, **keys);
    batch->tuning = tuning();
    for (const KeyedMessage& m : messages) {
        if (m.size == 0) continue;
        const auto in = addresses_.find(m.in, m.size), out = addresses_.find(m.out, m.size);
        if (!in) return in.error();
        if (!out) return out.error();
        const int rounds = (*keys)->rounds_of[m.key];
        auto part = std::ranges::find_if(batch->parts, [&](const KeyedBatch::Part& known) {
            return known.rounds == rounds && known.in.same_memory(*in) &&
                   known.out.same_memory(*out);
        });
        if (part == batch->parts.end())
            part = batch->parts.insert(part, {.in = *in, .out = *out, .rounds = rounds});
        part->segments.push_back({in->offset, out->offset, m.size, 0, m.key, to_uint4(m.iv)});
    }
    for (KeyedBatch::Part& part : batch->parts) {
        // Items of a team wait for the longest of their messages: put like beside like.
        std::ranges::stable_sort(part.segments, std::ranges::greater{}, &Segment::size);
        part.count = static_cast<std::uint32_t>(part.segments.size());
        auto list = upload(part.segments.data(), part.segments.size() * sizeof(Segment));
        if (!list) return std::move(list).error();
        part.list = std::move(*list);
        part.segments = {};
        const auto found = kernel("serial_keyed", "serial", part.rounds, false, batch->tuning,
                                  " -DDAEL_KEYED=1 -DDAEL_MODE=4");
        if (!found) return found.error();
        part.kernel = *found;
    }
    if (!messages.empty()) {
        const auto codes = allocate_results(messages.size(), kAllOk);
        if (!codes) return codes.error();
        batch->codes = *codes;
    }
    return std::unique_ptr<core::PreparedKeyed>(std::move(batch));
}

Result<std::unique_ptr<core::PreparedKeyed>> OpenClDevice::prepare_cbc_encrypt(
    const core::PreparedKeys&, const KeyedMessage*, std::uint32_t) {
    return lists_lie_on_the_host();
}

Result<> OpenClDevice::cbc_encrypt(const core::PreparedKeyed& prepared, Stream stream) {
    const auto* batch = dynamic_cast<const KeyedBatch*>(&prepared);
    if (!batch || &batch->device != this)
        return Error{Code::invalid_argument, "opencl: the batch was prepared for another device"};
    batch->ends.clear();
    for (const KeyedBatch::Part& part : batch->parts) {
        const auto groups = groups_for_items(part.count, batch->tuning);
        DAEL_TRY(launch(batch->ends, *part.kernel, queue_of(stream), groups, batch->tuning.teams,
                        part.in, part.out, part.list, part.count, batch->keys.schedules.get()));
    }
    return {};
}

}  // namespace dael::opencl
