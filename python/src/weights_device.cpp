// SPDX-License-Identifier: Apache-2.0
// Tensors in a device's memory: ciphertext goes from the file through page-locked memory to where
// the tensor lies, and is verified and decrypted there, in place. No plaintext is on the host.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "loan.hpp"
#include "weights.hpp"

namespace daelpy {
namespace {

// In windows: what is page-locked, and read at a time, is one; while it is read others are copied.
constexpr std::size_t kSlots = 3;
constexpr std::uint64_t kGroup = 8;   // are decrypted by one launch
constexpr std::uint64_t kSealed = 2;  // encrypted by one

// A run of bytes that neighbour in the file and in memory, of at most a slot.
struct Span {
    std::uint64_t file_at;
    std::uint8_t* data;
    std::uint64_t size;
};

std::vector<Span> spans_of(const WeightPiece* pieces, std::size_t count, std::uint64_t slot) {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t done = 0;
        while (done < pieces[i].size) {
            std::uint8_t* const data = pieces[i].data() + done;
            const std::uint64_t at = pieces[i].file_at() + done;
            const bool goes_on = !spans.empty() && spans.back().size < slot &&
                                 spans.back().data + spans.back().size == data &&
                                 spans.back().file_at + spans.back().size == at;
            if (!goes_on) spans.push_back({at, data, 0});
            const std::uint64_t more = std::min(slot - spans.back().size, pieces[i].size - done);
            spans.back().size += more;
            done += more;
        }
    }
    return spans;
}

class Opening {
  public:
    Opening(const Engine& engine, const KeySet& keys, int descriptor, dael_device* device,
            void* stream, std::uint64_t window)
        : engine_(engine),
          keys_(keys),
          descriptor_(descriptor),
          device_(device),
          stream_(stream),
          window_(window),
          loan_(device, stream) {}

    WeightFault run(const std::vector<WeightPiece>& pieces) {
        WeightFault fault = make(pieces);
        for (std::size_t first = 0; first < pieces.size() && !fault.any();) {
            const std::size_t end = window_of(pieces, first, kGroup * window_);
            fault = copy_in(&pieces[first], end - first);
            if (!fault.any()) fault = launch(pieces, first, end);
            first = end;
        }
        for (std::size_t i = 0; i < loan_.batches.size() && !fault.any(); ++i) fault = results(i);
        if (!fault.any()) {
            const auto status = dael_stream_wait(device_, stream_);
            if (status != DAEL_OK) fault = WeightFault::of(status);
        }
        // What it was, before another call's error hides what the first one said.
        if (fault.any()) wipe(pieces);
        return fault;
    }

  private:
    WeightFault make(const std::vector<WeightPiece>& pieces) {
        std::vector<std::uint8_t> tags(pieces.size() * DAEL_TAG_SIZE);
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            all += pieces[i].size;
            if (!pieces[i].tensor->plain)
                std::memcpy(&tags[i * DAEL_TAG_SIZE], pieces[i].tag(), DAEL_TAG_SIZE);
        }
        auto status = loan_.device(tags.size(), &tags_);
        if (status == DAEL_OK)
            status = dael_device_copy_in(device_, tags_, tags.data(), tags.size(), stream_);
        if (status == DAEL_OK) status = dael_stream_wait(device_, stream_);  // for `tags`
        for (std::size_t i = 0; i < kSlots && status == DAEL_OK; ++i) {
            status = loan_.pinned(std::min(all, window_), &slots_[i]);
            void* event = nullptr;
            if (status == DAEL_OK) status = dael_event_create(device_, &event);
            if (status == DAEL_OK) loan_.events.push_back(event);
        }
        return status == DAEL_OK ? WeightFault{} : WeightFault::of(status);
    }

    WeightFault copy_in(const WeightPiece* pieces, std::size_t count) {
        const std::vector<Span> spans = spans_of(pieces, count, window_);
        for (std::size_t first = 0; first < spans.size();) {
            const std::size_t slot = used_ % kSlots;
            dael_status status = DAEL_OK;
            if (used_ >= kSlots) status = dael_event_wait(device_, loan_.events[slot]);
            if (status != DAEL_OK) return WeightFault::of(status);
            // As many runs as there is room for.
            std::uint64_t filled = 0;
            std::size_t end = first;
            std::vector<WeightTensor> runs;
            std::vector<std::uint8_t*> to;
            while (end < spans.size() && filled + spans[end].size <= window_) {
                WeightTensor run{};
                run.at = spans[end].file_at;
                run.size = spans[end].size;
                runs.push_back(run);
                to.push_back(slots_[slot] + filled);
                filled += spans[end++].size;
            }
            std::vector<WeightPiece> reads;
            for (const WeightTensor& run : runs) reads.push_back({&run, 0, 0, run.size});
            if (const int failed = read_pieces(descriptor_, reads.data(), to.data(), reads.size()))
                return {DAEL_OK, failed, nullptr, false};
            for (std::size_t i = first; i < end && status == DAEL_OK; ++i)
                status = dael_device_copy_in(device_, spans[i].data, to[i - first], spans[i].size,
                                             stream_);
            if (status == DAEL_OK) status = dael_event_record(device_, loan_.events[slot], stream_);
            if (status != DAEL_OK) return WeightFault::of(status);
            ++used_;
            first = end;
        }
        return {};
    }

    WeightFault launch(const std::vector<WeightPiece>& pieces, std::size_t first, std::size_t end) {
        std::vector<dael_message> messages;
        std::vector<const WeightPiece*> of;
        for (std::size_t i = first; i < end; ++i) {
            if (pieces[i].tensor->plain) continue;
            std::uint8_t* const data = pieces[i].data();
            messages.push_back(pieces[i].message(data, data, tags_ + i * DAEL_TAG_SIZE));
            of.push_back(&pieces[i]);
        }
        if (messages.empty()) return {};
        const dael_cipher cipher{DAEL_GCM, DAEL_DECRYPT, DAEL_TAG_SIZE, 0, 0};
        dael_batch* batch = nullptr;
        auto status = dael_prepare(engine_.get(), &cipher, keys_.get(), messages.data(),
                                   static_cast<std::uint32_t>(messages.size()), nullptr, &batch);
        if (status != DAEL_OK) return WeightFault::of(status);
        loan_.batches.push_back(batch);
        of_.push_back(std::move(of));
        status = dael_launch(engine_.get(), batch, stream_, nullptr);
        return status == DAEL_OK ? WeightFault{} : WeightFault::of(status);
    }

    WeightFault results(std::size_t batch) {
        std::vector<std::int32_t> codes(of_[batch].size(), DAEL_INTERNAL);
        const auto status = dael_results(loan_.batches[batch], stream_, codes.data(), codes.size());
        if (status != DAEL_OK) return WeightFault::of(status);
        for (std::size_t i = 0; i < codes.size(); ++i) {
            if (codes[i] == DAEL_AUTHENTICATION) return {DAEL_OK, 0, of_[batch][i], false};
            if (codes[i] != DAEL_OK) return {static_cast<dael_status>(codes[i]), 0, nullptr, true};
        }
        return {};
    }

    void wipe(const std::vector<WeightPiece>& pieces) {
        for (const WeightPiece& piece : pieces)
            if (piece.size != 0) dael_device_fill(device_, piece.data(), 0, piece.size, stream_);
        dael_stream_wait(device_, stream_);
    }

    const Engine& engine_;
    const KeySet& keys_;
    int descriptor_;
    dael_device* device_;
    void* stream_;
    std::uint64_t window_;
    Loan loan_;
    std::uint8_t* tags_ = nullptr;
    std::array<std::uint8_t*, kSlots> slots_{};
    std::size_t used_ = 0;
    std::vector<std::vector<const WeightPiece*>> of_;  // the batches' messages
};

}  // namespace

WeightFault open_on_device(const Engine& engine, dael_device* device, const KeySet& keys,
                           int descriptor, const std::vector<WeightPiece>& pieces, void* stream,
                           std::uint64_t window) {
    return Opening(engine, keys, descriptor, device, stream, window).run(pieces);
}

WeightFault seal_on_device(const Engine& engine, dael_device* device, const KeySet& keys,
                           int descriptor, const std::vector<WeightPiece>& pieces, void* stream,
                           std::uint64_t window) {
    std::uint64_t most = 0;
    for (std::size_t first = 0; first < pieces.size();) {
        const std::size_t end = window_of(pieces, first, kSealed * window);
        std::uint64_t size = 0;
        for (std::size_t i = first; i < end; ++i) size += pieces[i].size;
        most = std::max(most, size);
        first = end;
    }
    Loan loan(device, stream);
    std::uint8_t *sealed = nullptr, *tags = nullptr, *here = nullptr;
    auto status = loan.device(most, &sealed);
    if (status == DAEL_OK) status = loan.device(pieces.size() * DAEL_TAG_SIZE, &tags);
    if (status == DAEL_OK) status = loan.pinned(most, &here);
    if (status != DAEL_OK) return WeightFault::of(status);
    const dael_cipher cipher{DAEL_GCM, DAEL_ENCRYPT, DAEL_TAG_SIZE, 0, 0};
    for (std::size_t first = 0; first < pieces.size();) {
        const std::size_t end = window_of(pieces, first, kSealed * window);
        std::vector<dael_message> messages;
        std::uint64_t filled = 0;
        for (std::size_t i = first; i < end && status == DAEL_OK; ++i) {
            const WeightPiece& piece = pieces[i];
            if (piece.tensor->plain) {
                status =
                    dael_device_copy_out(device, here + filled, piece.data(), piece.size, stream);
            } else {
                messages.push_back(
                    piece.message(piece.data(), sealed + filled, tags + i * DAEL_TAG_SIZE));
            }
            filled += piece.size;
        }
        if (status == DAEL_OK && !messages.empty()) {
            dael_batch* batch = nullptr;
            status = dael_prepare(engine.get(), &cipher, keys.get(), messages.data(),
                                  static_cast<std::uint32_t>(messages.size()), nullptr, &batch);
            if (status == DAEL_OK) {
                loan.batches.push_back(batch);
                status = dael_launch(engine.get(), batch, stream, nullptr);
            }
        }
        std::uint64_t at = 0;
        for (std::size_t i = first; i < end && status == DAEL_OK; at += pieces[i++].size)
            if (!pieces[i].tensor->plain) {
                status =
                    dael_device_copy_out(device, here + at, sealed + at, pieces[i].size, stream);
                if (status == DAEL_OK)
                    status = dael_device_copy_out(device, pieces[i].tag(), tags + i * DAEL_TAG_SIZE,
                                                  DAEL_TAG_SIZE, stream);
            }
        if (status == DAEL_OK) status = dael_stream_wait(device, stream);
        if (status != DAEL_OK) return WeightFault::of(status);
        at = 0;
        for (std::size_t i = first; i < end; at += pieces[i++].size)
            if (const int failed =
                    pwrite_all(descriptor, here + at, pieces[i].size, pieces[i].file_at()))
                return {DAEL_OK, failed, nullptr, false};
        first = end;
    }
    return {};
}

}  // namespace daelpy
