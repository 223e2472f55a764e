// SPDX-License-Identifier: Apache-2.0
#include "pipeline/transfer.hpp"

#include <algorithm>
#include <cstring>

namespace dael::pipeline {
namespace {

// Below this, one copy to the device costs more to start than to pack with others by the CPU.
constexpr std::size_t kWorthDirect = std::size_t{128} << 10;

// What one thread copies at a time to or from a staging buffer.
constexpr std::size_t kCopy = std::size_t{512} << 10;

// Sequential messages are one device thread each: a chunk must hold many of them to keep a device
// busy.
constexpr std::size_t kSequentialChunk = std::size_t{32} << 20;

struct HostCopy {
    std::uint8_t* to;
    const std::uint8_t* from;
    std::size_t size;
};

// Appends the copy, cut to pieces for several threads.
void append(std::vector<HostCopy>& copies, HostCopy copy) {
    for (std::size_t done = 0; done < copy.size; done += kCopy)
        copies.push_back({copy.to + done, copy.from + done, std::min(kCopy, copy.size - done)});
}

}  // namespace

Direct direct_copies(core::Device& device, std::span<const core::Segment> segments) {
    // Messages that follow one another in memory count as one, and only the ends are asked about:
    // the driver takes about a microsecond to answer.
    const auto direct = [&](auto pointer) {
        std::size_t bytes = 0, copies = 0;
        for (std::size_t i = 0; i < segments.size(); ++i) {
            bytes += segments[i].size;
            copies +=
                i == 0 || segments[i - 1].*pointer + segments[i - 1].size != segments[i].*pointer;
        }
        if (bytes < copies * kWorthDirect) return false;
        for (std::size_t i = 0; i < segments.size(); ++i) {
            const auto* begin = segments[i].*pointer;
            const auto* end = begin + segments[i].size;
            const bool starts = i == 0 || segments[i - 1].*pointer + segments[i - 1].size != begin;
            const bool ends = i + 1 == segments.size() || segments[i + 1].*pointer != end;
            if (starts && segments[i].size != 0 && !device.is_pinned(begin)) return false;
            if (ends && segments[i].size != 0 && !device.is_pinned(end - 1)) return false;
        }
        return true;
    };
    return {direct(&core::Segment::in), direct(&core::Segment::out)};
}

// What happens to a chunk once it is on the device.
struct Transfer::Kernels {
    // Whether a single kernel fills the device; else those of all slots run at once.
    bool fill = true;
    // Launches on a chunk's pieces. A batch that it needs stays in `batch` until the chunk is out.
    std::function<Result<>(std::span<const core::Segment> pieces, Stream stream,
                           std::unique_ptr<core::PreparedBatch>& batch)>
        launch;
};

// One call's way through its slots.
class Transfer::Call {
  public:
    Call(Transfer& transfer, const Kernels& kernels, const TransferOptions& options, Direct direct,
         SlotSet& set, const Chunks& chunks)
        : device_(transfer.device_),
          pool_(transfer.pool_),
          kernels_(kernels),
          options_(options),
          direct_(direct),
          chunks_(chunks),
          set_(set),
          slots_(set.slots()),
          inside_(slots_.size()) {}
    // Batches, slots and the caller's memory stay until the device has done with them.
    ~Call() {
        if (!quiet_) (void)set_.wait();
    }

    Result<int> run() {
        for (std::size_t next = 0; next < chunks_.chunks.size(); ++next) {
            const std::size_t slot = next % slots_.size();
            DAEL_TRY(empty(slot));
            fill(slot, chunks_.chunks[next]);
            DAEL_TRY(copy_on_host());
            DAEL_TRY(issue(slot, chunks_.chunks[next]));
        }
        for (std::size_t i = 0; i < slots_.size(); ++i) {  // oldest first
            DAEL_TRY(empty((chunks_.chunks.size() + i) % slots_.size()));
            DAEL_TRY(copy_on_host());
        }
        quiet_ = true;
        DAEL_TRY(set_.wait());
        return threads_;
    }

  private:
    // What a slot is busy with.
    struct Inside {
        const Chunk* chunk = nullptr;
        std::unique_ptr<core::PreparedBatch> batch;
    };

    // Waits for the slot's chunk and notes the copies that take it out of the staging buffer. Where
    // nothing on the host depends on the chunk, the streams alone keep the order until the very
    // end.
    Result<> empty(std::size_t slot) {
        Inside& inside = inside_[slot];
        if (!inside.chunk) return {};
        if (!direct_.in || !direct_.out || inside.batch) DAEL_TRY(device_.wait(slots_[slot].done));
        if (!direct_.out)
            for (const auto& [in, out, size, place] : extents_out(chunks_.of(*inside.chunk)))
                append(host_copies_, {out, slots_[slot].out_staging + place, size});
        inside = {};
        return {};
    }

    // Notes the copies that bring a chunk into the slot's staging buffer.
    void fill(std::size_t slot, const Chunk& chunk) {
        if (direct_.in) return;
        for (const auto& [in, out, size, place] : extents_in(chunks_.of(chunk)))
            append(host_copies_, {slots_[slot].in_staging + place, in, size});
    }

    // Does the noted copies: one chunk's way out and another's way in, together, so that the
    // threads are woken once.
    Result<> copy_on_host() {
        if (host_copies_.empty()) return {};
        auto threads =
            pool_.run(host_copies_.size(), options_.threads, [&](std::size_t index) -> Result<> {
                const auto& [to, from, size] = host_copies_[index];
                std::memcpy(to, from, size);
                return {};
            });
        if (!threads) return std::move(threads).error();
        threads_ = std::max(threads_, *threads);
        host_copies_.clear();
        return {};
    }

    // Hands the chunk to the device: in, transform, out, each once its buffers are free and filled.
    Result<> issue(std::size_t index, const Chunk& chunk) {
        Slot& slot = slots_[index];
        const Stream inward = set_.inward(), outward = set_.outward();
        inside_[index].chunk = &chunk;
        const auto pieces = chunks_.of(chunk);
        // An event that has never been recorded holds nothing up.
        DAEL_TRY(device_.wait(inward, options_.transform ? slot.transformed : slot.done));
        if (direct_.in)
            for (const auto& [in, out, size, place] : extents_in(pieces))
                DAEL_TRY(device_.copy_in(slot.in + place, in, size, inward));
        else
            DAEL_TRY(device_.copy_in(slot.in, slot.in_staging, chunk.size, inward));
        DAEL_TRY(device_.record(slot.arrived, inward));
        if (options_.transform) {
            const Stream work = work_stream(index);
            DAEL_TRY(device_.wait(work, slot.arrived));
            DAEL_TRY(device_.wait(work, slot.done));
            DAEL_TRY(launch(index, pieces, work));
            DAEL_TRY(device_.record(slot.transformed, work));
        }
        DAEL_TRY(device_.wait(outward, options_.transform ? slot.transformed : slot.arrived));
        const std::uint8_t* result = options_.transform ? slot.out : slot.in;
        if (direct_.out)
            for (const auto& [in, out, size, place] : extents_out(pieces))
                DAEL_TRY(device_.copy_out(out, result + place, size, outward));
        else
            DAEL_TRY(device_.copy_out(slot.out_staging, result, chunk.size, outward));
        return device_.record(slot.done, outward);
    }

    // A kernel that fills the device by itself shares one stream with the others, which is a few
    // per cent faster than several. Kernels that leave room have a stream for each slot.
    Stream work_stream(std::size_t index) const { return slots_[kernels_.fill ? 0 : index].work; }

    Result<> launch(std::size_t index, std::span<const Piece> pieces, Stream work) {
        Slot& slot = slots_[index];
        std::vector<core::Segment> on_device;
        on_device.reserve(pieces.size());
        for (const auto& [segment, place] : pieces)
            on_device.push_back(
                {slot.in + place, slot.out + place, segment.size, segment.iv, segment.skip});
        return kernels_.launch(on_device, work, inside_[index].batch);
    }

    core::Device& device_;
    ThreadPool& pool_;
    const Kernels& kernels_;
    const TransferOptions& options_;
    const Direct direct_;
    const Chunks& chunks_;
    SlotSet& set_;
    std::vector<Slot>& slots_;
    std::vector<Inside> inside_;
    std::vector<HostCopy> host_copies_;
    int threads_ = 1;
    bool quiet_ = false;  // waited for
};

Result<Transferred> Transfer::run(const core::Operation& operation,
                                  std::span<const core::Segment> segments,
                                  const TransferOptions& options) {
    std::size_t bytes = 0;
    for (const auto& segment : segments)
        bytes += (segment.size + kBlockSize - 1) / kBlockSize * kBlockSize;
    if (bytes == 0) return Transferred{};
    const bool parallel = parallel_within_message(operation.mode, operation.direction);
    const Direct direct = direct_copies(device_, segments);

    SlotNeeds needs;
    needs.least = least_chunk(operation.mode, operation.direction, segments);
    needs.capacity = parallel ? options.chunk
                              : std::max({needs.least, options.chunk,
                                          std::min(bytes / static_cast<std::size_t>(options.slots),
                                                   kSequentialChunk)});
    needs.kernels_at_once = !parallel;

    const Kernels kernels{parallel,
                          [&](std::span<const core::Segment> pieces, Stream stream,
                              std::unique_ptr<core::PreparedBatch>& batch) -> Result<> {
                              if (pieces.size() == 1 && parallel)
                                  return device_.run(operation, pieces[0], stream);
                              auto prepared =
                                  device_.prepare(operation.mode, operation.direction, pieces);
                              if (!prepared) return std::move(prepared).error();
                              batch = std::move(*prepared);
                              return device_.run(operation, *batch, stream);
                          }};
    return pass(kernels, direct, needs, options, [&](std::size_t capacity) {
        return cut(operation.mode, operation.direction, segments,
                   parallel ? std::min(capacity, needs.capacity) : capacity);
    });
}

Result<Transferred> Transfer::run(const core::XtsOperation& operation, const core::Segment& segment,
                                  const TransferOptions& options) {
    if (segment.size == 0) return Transferred{};
    SlotNeeds needs;
    needs.least = least_chunk(operation.sector_size);
    needs.capacity = std::max(options.chunk, needs.least);
    const Kernels kernels{
        true, [&](std::span<const core::Segment> pieces, Stream stream,
                  std::unique_ptr<core::PreparedBatch>&) {  // one piece: a run of sectors
            return device_.xts(operation, pieces[0], stream);
        }};
    return pass(kernels, direct_copies(device_, std::span(&segment, 1)), needs, options,
                [&](std::size_t capacity) {
                    return cut_sectors(segment, operation.sector_size,
                                       std::min(capacity, needs.capacity));
                });
}

Result<Transferred> Transfer::pass(const Kernels& kernels, Direct direct, const SlotNeeds& needs,
                                   const TransferOptions& options,
                                   const std::function<Chunks(std::size_t)>& cut) {
    SlotNeeds all = needs;
    all.slots = options.slots;
    all.in_staging = !direct.in;
    all.out_staging = !direct.out;
    auto set = slots_.acquire(all);
    if (!set) return std::move(set).error();

    const Chunks chunks = cut((*set)->capacity());
    auto threads = Call(*this, kernels, options, direct, **set, chunks).run();
    if (!threads) return std::move(threads).error();  // and the set goes, wiped
    slots_.give_back(std::move(*set));
    return Transferred{chunks.chunks.size(), *threads};
}

}  // namespace dael::pipeline
