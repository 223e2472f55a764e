// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "pipeline/gcm_work.hpp"

namespace dael::pipeline {
namespace {

constexpr std::size_t kSlab = std::size_t{32} << 20;  // where nothing else was asked for
constexpr int kSlots = 3;  // one being gathered, one on the device, one on its way back
// Longer copies between the caller's memory and the staging are cut, for several threads.
constexpr std::size_t kCopy = std::size_t{1} << 20;

std::size_t whole(std::uint64_t size) noexcept {
    return static_cast<std::size_t>((size + kBlockSize - 1) / kBlockSize * kBlockSize);
}

// What a message takes of a slab: data, tag, AAD, and its result.
std::size_t footprint(const core::GcmSegment& segment) noexcept {
    return whole(segment.size) + kBlockSize + whole(segment.aad_size) + kBlockSize;
}

struct Copy {
    void* to;
    const void* from;
    std::size_t size;
};

void add_copies(std::vector<Copy>& copies, void* to, const void* from, std::size_t size) {
    for (std::size_t done = 0; done < size; done += kCopy)
        copies.push_back({static_cast<std::uint8_t*>(to) + done,
                          static_cast<const std::uint8_t*>(from) + done,
                          std::min(kCopy, size - done)});
}

Result<> copy_all(ThreadPool& pool, const std::vector<Copy>& copies) {
    std::vector<std::size_t> ends;
    std::size_t collected = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        collected += copies[i].size;
        if (collected < kCopy && i + 1 < copies.size()) continue;
        ends.push_back(i + 1);
        collected = 0;
    }
    auto copied = pool.run(ends.size(), pool.threads(), [&](std::size_t share) -> Result<> {
        for (std::size_t i = share == 0 ? 0 : ends[share - 1]; i < ends[share]; ++i)
            std::memcpy(copies[i].to, copies[i].from, copies[i].size);
        return {};
    });
    if (!copied) return std::move(copied).error();
    return {};
}

// Messages that travel together. On the way in a slab is data, tags and AAD, on the way back data,
// tags and results, each part one after the other, every message from a multiple of 16 on.
struct Slab {
    std::vector<core::GcmSegment> messages;  // as the caller has them
    std::vector<std::size_t> index;          // their places among the results
    std::vector<std::size_t> data, aad;      // where those of each message begin
    std::size_t data_end = 0, tags_end = 0, end = 0;
    std::unique_ptr<core::PreparedGcm> batch;  // not null while it is under way

    std::size_t tag(std::size_t i) const noexcept { return data_end + i * kBlockSize; }

    void arrange() {
        data.clear();
        aad.clear();
        std::size_t at = 0;
        for (const auto& message : messages) {
            data.push_back(at);
            at += whole(message.size);
        }
        data_end = at;
        at = tags_end = data_end + messages.size() * kBlockSize;
        for (const auto& message : messages) {
            aad.push_back(at);
            at += whole(message.aad_size);
        }
        end = at;
    }
};

}  // namespace

// One call's slabs in one set of slots.
class GcmTransfer::Call {
  public:
    Call(GcmTransfer& transfer, const core::PreparedKeys& keys, const GcmWork& work, SlotSet& set,
         std::span<Code> results)
        : device_(transfer.device_),
          pool_(transfer.pool_),
          keys_(keys),
          work_(work),
          set_(set),
          results_(results),
          slabs_(set.slots().size()) {}
    ~Call() { (void)set_.wait(); }  // before the batches go

    // `valid`: the messages to do. Returns the number of slabs.
    Result<std::uint64_t> run(const std::vector<std::size_t>& valid) {
        std::uint64_t count = 0;
        for (std::size_t next = 0; next < valid.size(); ++count) {
            const std::size_t slot = count % slabs_.size();
            DAEL_TRY(collect(slot));
            Slab& slab = slabs_[slot];
            slab.messages.clear();
            slab.index.clear();
            for (std::size_t used = 0; next < valid.size(); ++next) {
                const core::GcmSegment message = work_[valid[next]];
                used += footprint(message);
                if (used > set_.capacity() && !slab.messages.empty()) break;
                slab.messages.push_back(message);
                slab.index.push_back(valid[next]);
            }
            DAEL_TRY(launch(slot));
        }
        // The oldest first, so that the others are on their way meanwhile.
        for (std::size_t i = 0; i < slabs_.size(); ++i)
            DAEL_TRY(collect((count + i) % slabs_.size()));
        return count;
    }

  private:
    bool seals() const noexcept { return work_.direction == Direction::encrypt; }

    Result<> launch(std::size_t which) {
        Slab& slab = slabs_[which];
        Slot& slot = set_.slots()[which];
        const Stream work = set_.slots().front().work;
        slab.arrange();
        std::vector<Copy> copies;
        std::vector<core::GcmSegment> segments = slab.messages;
        for (std::size_t i = 0; i < segments.size(); ++i) {
            core::GcmSegment& moved = segments[i];
            add_copies(copies, slot.in_staging + slab.data[i], moved.in, moved.size);
            add_copies(copies, slot.in_staging + slab.aad[i], moved.aad, moved.aad_size);
            if (!seals())
                add_copies(copies, slot.in_staging + slab.tag(i), moved.tag, moved.tag_size);
            moved.in = slot.in + slab.data[i];
            moved.out = slot.out + slab.data[i];
            moved.aad = slot.in + slab.aad[i];
            moved.tag = (seals() ? slot.out : slot.in) + slab.tag(i);
        }
        DAEL_TRY(copy_all(pool_, copies));
        auto batch = device_.prepare_gcm(keys_, segments);
        if (!batch) return std::move(batch).error();
        slab.batch = std::move(*batch);
        DAEL_TRY(device_.copy_in(slot.in, slot.in_staging, slab.end, set_.inward()));
        DAEL_TRY(device_.record(slot.arrived, set_.inward()));
        DAEL_TRY(device_.wait(work, slot.arrived));
        DAEL_TRY(device_.gcm(work_.direction, *slab.batch, work));
        DAEL_TRY(device_.record(slot.transformed, work));
        DAEL_TRY(device_.wait(set_.outward(), slot.transformed));
        if (seals())
            DAEL_TRY(device_.copy_out(slot.out_staging, slot.out, slab.tags_end, set_.outward()));
        DAEL_TRY(device_.copy_out(slot.out_staging + slab.tags_end, slab.batch->results(),
                                  segments.size() * sizeof(std::uint32_t), set_.outward()));
        return device_.record(slot.done, set_.outward());
    }

    // Waits for a slab, if one is under way in this slot, and hands its messages out.
    Result<> collect(std::size_t which) {
        Slab& slab = slabs_[which];
        if (!slab.batch) return {};
        Slot& slot = set_.slots()[which];
        DAEL_TRY(device_.wait(slot.done));
        DAEL_TRY(slab.batch->outcome());
        std::vector<Code> codes(slab.messages.size());
        for (std::size_t i = 0; i < codes.size(); ++i) {
            std::uint32_t code = 0;
            std::memcpy(&code, slot.out_staging + slab.tags_end + i * sizeof code, sizeof code);
            codes[i] = static_cast<Code>(code);
            if (codes[i] != Code::ok && (seals() || codes[i] != Code::authentication))
                return Error{Code::device, "the device's result for message " +
                                               std::to_string(slab.index[i]) + " is " +
                                               std::to_string(code)};
        }
        if (!seals()) DAEL_TRY(fetch_verified(slab, slot, codes));
        std::vector<Copy> copies;
        for (std::size_t i = 0; i < codes.size(); ++i) {
            const core::GcmSegment& message = slab.messages[i];
            if (codes[i] != Code::ok) continue;
            add_copies(copies, message.out, slot.out_staging + slab.data[i], message.size);
            if (seals())
                add_copies(copies, message.tag, slot.out_staging + slab.tag(i), message.tag_size);
        }
        DAEL_TRY(copy_all(pool_, copies));
        for (std::size_t i = 0; i < codes.size(); ++i) results_[slab.index[i]] = codes[i];
        slab.batch.reset();
        return {};
    }

    // The plaintext of messages whose tag was right, neighbours in one copy.
    Result<> fetch_verified(const Slab& slab, const Slot& slot, const std::vector<Code>& codes) {
        for (std::size_t i = 0; i < codes.size();) {
            if (codes[i] != Code::ok) {
                ++i;
                continue;
            }
            const std::size_t begin = slab.data[i];
            while (i < codes.size() && codes[i] == Code::ok) ++i;
            const std::size_t end = i < codes.size() ? slab.data[i] : slab.data_end;
            if (begin != end)
                DAEL_TRY(device_.copy_out(slot.out_staging + begin, slot.out + begin, end - begin,
                                          set_.outward()));
        }
        DAEL_TRY(device_.record(slot.done, set_.outward()));
        return device_.wait(slot.done);
    }

    core::Device& device_;
    ThreadPool& pool_;
    const core::PreparedKeys& keys_;
    const GcmWork& work_;
    SlotSet& set_;
    const std::span<Code> results_;
    std::vector<Slab> slabs_;  // one for each slot
};

Result<std::uint64_t> GcmTransfer::run(const core::PreparedKeys& keys, std::size_t count,
                                       const GcmWork& work, std::size_t slab,
                                       std::span<Code> results) {
    std::vector<std::size_t> valid;
    SlotNeeds needs;
    std::size_t all = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
        const core::GcmSegment message = work[i];
        if (!work.takes(message, count)) {
            results[i] = work.refusal(message, count);
            continue;
        }
        valid.push_back(i);
        needs.least = std::max(needs.least, footprint(message));
        all += footprint(message);
    }
    if (valid.empty()) return 0;
    needs.capacity = std::max(needs.least, std::min(all, slab != 0 ? slab : kSlab));
    needs.slots = needs.capacity == all ? 1 : kSlots;
    needs.in_staging = needs.out_staging = true;
    auto set = slots_.acquire(needs);
    if (!set) return std::move(set).error();
    auto slabs = Call(*this, keys, work, **set, results).run(valid);
    if (!slabs) return slabs;  // and the set goes, wiped
    slots_.give_back(std::move(*set));
    return slabs;
}

}  // namespace dael::pipeline
