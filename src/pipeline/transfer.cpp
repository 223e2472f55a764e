// SPDX-License-Identifier: Apache-2.0
#include "pipeline/transfer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"

namespace dael::pipeline {
namespace {

// Below this, one copy to the device costs more to start than to pack with others by the CPU.
constexpr std::size_t kWorthDirect = std::size_t{128} << 10;

// What one thread copies at a time to or from a staging buffer.
constexpr std::size_t kCopy = std::size_t{512} << 10;

// Sequential messages are one device thread each, and short ones of GCM a warp: a chunk must hold
// many of them to keep a device busy.
constexpr std::size_t kManyMessages = std::size_t{32} << 20;

// Of a chunk, what a list may take.
constexpr std::size_t kListShare = 8;

struct HostCopy {
    void* to;
    const void* from;
    std::size_t size;
};

// Appends the copy, cut to pieces for several threads.
void append(std::vector<HostCopy>& copies, void* to, const void* from, std::size_t size) {
    for (std::size_t done = 0; done < size; done += kCopy)
        copies.push_back({static_cast<std::uint8_t*>(to) + done,
                          static_cast<const std::uint8_t*>(from) + done,
                          std::min(kCopy, size - done)});
}

// Short copies together, so that taking a share costs nothing beside it: where each share ends.
std::vector<std::size_t> share_copies(const std::vector<HostCopy>& copies) {
    std::vector<std::size_t> ends;
    std::size_t collected = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        collected += copies[i].size;
        if (collected < kCopy && i + 1 < copies.size()) continue;
        ends.push_back(i + 1);
        collected = 0;
    }
    return ends;
}

bool fills_device(const Cipher& cipher) noexcept {
    return modes::can_cut(cipher);
}

// So many launches, one for each message, are sooner made than a chunk and its batch.
constexpr std::size_t kMaxLaunches = 4;

bool aligned(const Message& m) noexcept {
    return ((reinterpret_cast<std::uintptr_t>(m.in) | reinterpret_cast<std::uintptr_t>(m.out)) &
            (kBlockSize - 1)) == 0 &&
           m.skip == 0;
}

}  // namespace

Direct direct_copies(core::Device& device, std::span<const Message> messages) {
    // Messages that follow one another in memory count as one: the driver takes about a microsecond
    // to answer.
    const auto direct = [&](auto pointer) {
        std::uint64_t bytes = 0, copies = 0;
        const auto follows = [&](std::size_t i) {
            return i != 0 && messages[i].*pointer && messages[i - 1].*pointer &&
                   messages[i - 1].*pointer + messages[i - 1].size == messages[i].*pointer;
        };
        for (std::size_t i = 0; i < messages.size(); ++i) {
            bytes += messages[i].size;
            copies += !follows(i);
        }
        if (bytes < copies * kWorthDirect) return false;
        for (std::size_t i = 0; i < messages.size();) {
            const auto* begin = messages[i].*pointer;
            if (!begin && messages[i].size != 0) return false;  // keystream
            std::uint64_t size = messages[i].size;
            for (++i; i < messages.size() && follows(i); ++i) size += messages[i].size;
            if (size != 0 && !device.memory().is_pinned(begin, static_cast<std::size_t>(size)))
                return false;
        }
        return true;
    };
    return {direct(&Message::in), direct(&Message::out)};
}

bool in_reach(std::size_t reach, const Cipher& cipher, std::uint64_t bytes,
              std::uint64_t messages) noexcept {
    // CBC and CFB decryption read every block twice.
    const bool once =
        modes::can_cut(cipher) && cipher.mode != Mode::cbc && cipher.mode != Mode::cfb;
    return once && bytes != 0 && bytes <= reach && messages <= kMaxLaunches;
}

bool in_reach(core::Device& device, const Cipher& cipher,
              std::span<const Message> messages) noexcept {
    std::uint64_t bytes = 0;
    for (const Message& m : messages) {
        if (!aligned(m) || m.size > device.reach() - bytes) return false;
        bytes += m.size;
    }
    return in_reach(device.reach(), cipher, bytes, messages.size()) &&
           std::ranges::all_of(messages, [&](const Message& m) {
               const auto locked = [&](const std::uint8_t* at) {
                   return device.memory().is_pinned(at, static_cast<std::size_t>(m.size));
               };
               return m.size == 0 || ((!m.in || locked(m.in)) && (m.in == m.out || locked(m.out)));
           });
}

bool takes_mixed_keys(const Cipher& cipher) noexcept {
    return cipher.mode == Mode::gcm || cipher.mode == Mode::gcm_ctr ||
           (cipher.mode == Mode::cbc && modes::encrypts(cipher));
}

namespace {

// How far a piece has come. The host's threads write nothing of one that is untouched, or leaving
// the staging buffer; of one that is begun the device writes the caller's memory.
enum class Stand : std::uint8_t { untouched, begun, leaving, done, lost };

// Tells of each message what became of it, and keeps what may be done once more.
void tell(const Request& request, std::vector<Piece>& pieces, std::span<const Stand> stands,
          Code code, Rest& rest) noexcept {
    rest.touched = true;
    std::size_t kept = 0;
    for (std::size_t i = 0, end = 0; i < pieces.size(); i = end) {
        const std::size_t index = pieces[i].index;
        bool done = true, untouched = true, lost = false;
        for (; end < pieces.size() && pieces[end].index == index; ++end) {
            const Message& m = pieces[end].message;
            done &= stands[end] == Stand::done;
            untouched &= stands[end] == Stand::untouched;
            lost |= stands[end] == Stand::lost && m.size != 0 && m.in == m.out;
        }
        if (done) continue;
        request.codes[index] = untouched ? code : Code::internal;
        rest.lost |= lost;
        for (std::size_t piece = i; piece < end && !lost; ++piece)
            if (stands[piece] != Stand::done) pieces[kept++] = pieces[piece];
    }
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(kept), pieces.end());
    rest.pieces = std::move(pieces);
}

}  // namespace

// One call's way through its slots.
class Transfer::Call {
  public:
    Call(Transfer& transfer, const Request& request, const TransferOptions& options, Direct direct,
         SlotSet& set, const Chunks& chunks, std::size_t list)
        : device_(transfer.device_),
          memory_(device_.memory()),
          order_(device_.order()),
          pool_(transfer.pool_),
          request_(request),
          options_(options),
          direct_(direct),
          chunks_(chunks),
          set_(set),
          slots_(set.slots()),
          list_(list),
          inside_(slots_.size()),
          stands_(chunks.pieces.size(), Stand::untouched) {
        leaving_.reserve(slots_.size() + 1);
    }
    // Batches, slots and the caller's memory stay until the device has done with them.
    ~Call() {
        if (quiet_ || core::waited([&] { return set_.wait(); })) return;
        for (Inside& inside : inside_) core::keep_forever(std::move(inside.batch));
    }

    Result<int> run() {
        auto ran = core::guarded([&] { return run_all(); });
        if (!ran) settle();
        return ran;
    }
    // Of chunks.pieces, where run() has failed: untouched, done or lost.
    std::span<const Stand> stands() const noexcept { return stands_; }

  private:
    Result<int> run_all() {
        if (list_ != 0)  // which messages that are not done do no harm to
            for (const Message& m : request_.messages)
                longest_ = std::max(longest_, std::max(m.size, m.size + m.aad_size));
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
        DAEL_TRY(waited(set_.wait()));
        quiet_ = true;
        return threads_;
    }

    // After an error. As long as no wait has failed, the device has done all that it was asked to.
    // What is on its way into the caller's memory is seen through to its end.
    void settle() {
        const auto see_through = [&]() -> Result<> {
            // What follows leads into staging, or was noted in part.
            host_copies_.erase(host_copies_.begin() + static_cast<std::ptrdiff_t>(out_copies_),
                               host_copies_.end());
            DAEL_TRY(copy_on_host());
            for (std::size_t i = 0; i < slots_.size() && direct_.out && !failed_wait_; ++i) {
                DAEL_TRY(empty(i));
                DAEL_TRY(copy_on_host());
            }
            return {};
        };
        (void)core::guarded(see_through);
        quiet_ = static_cast<bool>(waited(set_.wait()));
        for (const Inside& inside : inside_)  // whose results nobody has seen
            if (inside.chunk && inside.batch) turn(*inside.chunk, Stand::begun, Stand::lost);
        if (partial_) turn(*partial_, Stand::begun, Stand::lost);
        for (Stand& stand : stands_) {
            if (stand == Stand::begun) stand = failed_wait_ ? Stand::lost : Stand::done;
            // Its data may be there, its tag is not; or both wait in the staging buffer.
            if (stand == Stand::leaving)
                stand = direct_.out && !opens() ? Stand::lost : Stand::untouched;
        }
    }

    Result<> waited(Result<> result) noexcept {
        failed_wait_ |= !result;
        return result;
    }
    void turn(const Chunk& chunk, Stand from, Stand to) noexcept {
        for (Stand& stand : std::span(stands_).subspan(chunk.first, chunk.count))
            if (stand == from) stand = to;
    }

    // What a slot is busy with.
    struct Inside {
        const Chunk* chunk = nullptr;
        std::unique_ptr<core::Prepared> batch;  // with a list, for all chunks of the slot
    };

    bool authenticated() const noexcept { return authenticates(request_.cipher.mode); }
    bool opens() const noexcept { return authenticated() && !modes::encrypts(request_.cipher); }
    // Where a chunk's results arrive in the staging buffer: behind all that came with it.
    static std::size_t results_at(const Chunk& chunk) { return (chunk.end + 15) / 16 * 16; }

    // Waits for the slot's chunk and notes the copies that take it out of the staging buffer. Where
    // nothing on the host depends on the chunk, the streams alone keep the order until the very
    // end.
    Result<> empty(std::size_t index) {
        Inside& inside = inside_[index];
        if (!inside.chunk) return {};
        const Chunk& chunk = *std::exchange(inside.chunk, nullptr);
        auto emptied = core::guarded([&] { return empty(inside, slots_[index], chunk); });
        if (!emptied) turn(chunk, Stand::begun, Stand::lost);
        return emptied;
    }
    Result<> empty(Inside& inside, Slot& slot, const Chunk& chunk) {
        const auto pieces = chunks_.of(chunk);
        const bool waits = !direct_.in || !direct_.out || inside.batch;
        if (waits) DAEL_TRY(waited(order_.wait(slot.done)));
        if (inside.batch) DAEL_TRY(inside.batch->outcome());
        if (inside.batch && inside.batch->results()) DAEL_TRY(read_results(slot, chunk));
        if (opens()) {
            DAEL_TRY(fetch_verified(slot, chunk));
        } else if (!direct_.out) {
            for (const auto& [in, out, size, place] : extents_out(pieces))
                append(host_copies_, out, slot.out_staging + place, size);
        }
        if (authenticated() && !opens())
            for (const Piece& piece : pieces)
                append(host_copies_, piece.message.tag, slot.out_staging + piece.tag,
                       request_.cipher.tag);
        if (!opens() && waits) {
            const Stand next = direct_.out && !authenticated() ? Stand::done : Stand::leaving;
            turn(chunk, direct_.out ? Stand::begun : Stand::untouched, next);
        }
        if (waits) leaving_.push_back(&chunk);
        out_copies_ = host_copies_.size();
        if (!list_) inside.batch.reset();
        return {};
    }

    Result<> read_results(const Slot& slot, const Chunk& chunk) {
        const auto pieces = chunks_.of(chunk);
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            std::uint32_t code = 0;
            std::memcpy(&code, slot.out_staging + results_at(chunk) + i * sizeof code, sizeof code);
            if (code != 0 && !(opens() && static_cast<Code>(code) == Code::authentication))
                return Error{Code::device, "the device's result for message " +
                                               std::to_string(pieces[i].index) + " is " +
                                               std::to_string(code)};
            request_.codes[pieces[i].index] = static_cast<Code>(code);
        }
        return {};
    }

    // The plaintext of messages whose tag was right, neighbours in one copy.
    Result<> fetch_verified(const Slot& slot, const Chunk& chunk) {
        const auto pieces = chunks_.of(chunk);
        const auto stands = std::span(stands_).subspan(chunk.first, chunk.count);
        const auto verified = [&](const Piece& piece) {
            return request_.codes[piece.index] == Code::ok;
        };
        for (std::size_t i = 0; i < pieces.size();) {
            if (!verified(pieces[i])) {
                stands[i++] = Stand::done;
                continue;
            }
            const std::size_t first = i;
            for (; i < pieces.size() && verified(pieces[i]); ++i)
                if (direct_.out) stands[i] = Stand::begun;
            for (const auto& [in, out, size, place] :
                 extents_out(pieces.subspan(first, i - first))) {
                std::uint8_t* const to = direct_.out ? out : slot.out_staging + place;
                DAEL_TRY(memory_.copy_out(to, slot.out + place, size, set_.outward()));
                if (!direct_.out) append(host_copies_, out, slot.out_staging + place, size);
            }
        }
        DAEL_TRY(order_.record(slot.done, set_.outward()));
        DAEL_TRY(waited(order_.wait(slot.done)));
        turn(chunk, Stand::begun, Stand::done);
        turn(chunk, Stand::untouched, Stand::leaving);
        return {};
    }

    // Notes the copies that bring a chunk into the slot's staging buffer, and lists it there.
    void fill(std::size_t index, const Chunk& chunk) {
        Slot& slot = slots_[index];
        const auto pieces = chunks_.of(chunk);
        if (!direct_.in)
            for (const auto& [in, out, size, place] : extents_in(pieces)) {
                if (in)
                    append(host_copies_, slot.in_staging + place, in, size);
                else
                    std::memset(slot.in_staging + place, 0, size);
            }
        if (authenticated())
            for (const Piece& piece : pieces) {
                append(host_copies_, slot.in_staging + piece.aad, piece.message.aad,
                       static_cast<std::size_t>(piece.message.aad_size));
                if (opens())
                    append(host_copies_, slot.in_staging + piece.tag, piece.message.tag,
                           request_.cipher.tag);
            }
        if (list_ == 0) return;
        std::memcpy(slot.in_staging, &chunk.count, sizeof(std::uint32_t));
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const Message message = on_device(slot, pieces[i]);
            std::memcpy(slot.in_staging + kBlockSize + i * sizeof message, &message,
                        sizeof message);
        }
    }

    Message on_device(const Slot& slot, const Piece& piece) const {
        Message message = piece.message;
        message.in = slot.in + piece.data;
        message.out = slot.out + piece.data;
        message.aad = slot.in + piece.aad;
        message.tag = authenticated() ? (opens() ? slot.in : slot.out) + piece.tag : nullptr;
        return message;
    }

    // Does the noted copies: one chunk's way out and another's way in, together, so that the
    // threads are woken once.
    Result<> copy_on_host() {
        if (!host_copies_.empty()) DAEL_TRY(copy_noted());
        for (const Chunk* chunk : leaving_) turn(*chunk, Stand::leaving, Stand::done);
        leaving_.clear();
        return {};
    }
    Result<> copy_noted() {
        const auto ends = share_copies(host_copies_);
        DAEL_LET(threads, pool_.run(ends.size(), options_.threads, [&](std::size_t i) -> Result<> {
            for (std::size_t copy = i == 0 ? 0 : ends[i - 1]; copy < ends[i]; ++copy) {
                const auto& [to, from, size] = host_copies_[copy];
                std::memcpy(to, from, size);
            }
            return {};
        }));
        threads_ = std::max(threads_, threads);
        host_copies_.clear();
        out_copies_ = 0;
        return {};
    }

    // Hands the chunk to the device: in, transform, out, each once its buffers are free and filled.
    Result<> issue(std::size_t index, const Chunk& chunk) {
        Slot& slot = slots_[index];
        const Stream inward = set_.inward(), outward = set_.outward();
        partial_ = &chunk;
        const auto pieces = chunks_.of(chunk);
        // An event that has never been recorded holds nothing up.
        DAEL_TRY(order_.wait(inward, options_.transform ? slot.transformed : slot.done));
        DAEL_TRY(send(slot, chunk, inward));
        DAEL_TRY(order_.record(slot.arrived, inward));
        if (options_.transform) {
            const Stream work = work_stream(index);
            DAEL_TRY(order_.wait(work, slot.arrived));
            DAEL_TRY(order_.wait(work, slot.done));
            DAEL_TRY(launch(index, pieces, work));
            DAEL_TRY(order_.record(slot.transformed, work));
        }
        DAEL_TRY(order_.wait(outward, options_.transform ? slot.transformed : slot.arrived));
        DAEL_TRY(receive(index, chunk, outward));
        DAEL_TRY(order_.record(slot.done, outward));
        partial_ = nullptr;
        inside_[index].chunk = &chunk;
        return {};
    }

    Result<> send(const Slot& slot, const Chunk& chunk, Stream inward) {
        if (!direct_.in)  // the list too
            return memory_.copy_in(slot.in, slot.in_staging, chunk.end, inward);
        if (list_ != 0) DAEL_TRY(memory_.copy_in(slot.in, slot.in_staging, list_, inward));
        for (const auto& [in, out, size, place] : extents_in(chunks_.of(chunk)))
            DAEL_TRY(memory_.copy_in(slot.in + place, in, size, inward));
        if (chunk.end == chunk.data_end) return {};
        return memory_.copy_in(slot.in + chunk.data_end, slot.in_staging + chunk.data_end,
                               chunk.end - chunk.data_end, inward);
    }

    Result<> receive(std::size_t index, const Chunk& chunk, Stream outward) {
        const Slot& slot = slots_[index];
        const core::Prepared* const batch = inside_[index].batch.get();
        if (batch && batch->results())
            DAEL_TRY(memory_.copy_out(slot.out_staging + results_at(chunk), batch->results(),
                                      chunk.count * sizeof(std::uint32_t), outward));
        if (opens()) return {};  // what is verified is fetched later
        const std::uint8_t* result = options_.transform ? slot.out : slot.in;
        std::size_t from = list_;
        if (direct_.out) {
            turn(chunk, Stand::untouched, Stand::begun);
            for (const auto& [in, out, size, place] : extents_out(chunks_.of(chunk)))
                DAEL_TRY(memory_.copy_out(out, result + place, size, outward));
            from = chunk.data_end;
        }
        if (from == chunk.tags_end) return {};
        return memory_.copy_out(slot.out_staging + from, result + from, chunk.tags_end - from,
                                outward);
    }

    // A kernel that fills the device by itself shares one stream with the others, which is a few
    // per cent faster than several. Kernels that leave room have a stream for each slot.
    Stream work_stream(std::size_t index) const {
        return slots_[slots_[index].work.handle ? index : 0].work;
    }

    Result<> launch(std::size_t index, std::span<const Piece> pieces, Stream work) {
        Slot& slot = slots_[index];
        Inside& inside = inside_[index];
        const Cipher& cipher = request_.cipher;
        if (list_ != 0) {
            if (!inside.batch) {  // the same for all chunks of the slot
                Messages messages;
                messages.list = reinterpret_cast<const Message*>(slot.in + kBlockSize);
                messages.count = static_cast<std::uint32_t>((list_ - kBlockSize) / sizeof(Message));
                messages.place = Place::device;
                messages.number = reinterpret_cast<const std::uint32_t*>(slot.in);
                if (cipher.mode != Mode::cbc) messages.longest = longest_;
                DAEL_LET(batch, device_.prepare(cipher, request_.keys, messages));
                inside.batch = std::move(batch);
            }
            return device_.run(*inside.batch, work);
        }
        if (pieces.size() == 1 && modes::can_cut(cipher))
            return device_.run(for_backend(cipher), request_.keys, on_device(slot, pieces[0]),
                               work);
        std::vector<Message> messages;
        messages.reserve(pieces.size());
        for (const Piece& piece : pieces) messages.push_back(on_device(slot, piece));
        DAEL_LET(batch,
                 device_.prepare(cipher, request_.keys,
                                 {messages.data(), static_cast<std::uint32_t>(messages.size())}));
        inside.batch = std::move(batch);
        return device_.run(*inside.batch, work);
    }

    core::Device& device_;
    Memory& memory_;
    Order& order_;
    ThreadPool& pool_;
    const Request& request_;
    const TransferOptions& options_;
    const Direct direct_;
    const Chunks& chunks_;
    SlotSet& set_;
    std::vector<Slot>& slots_;
    const std::size_t list_;  // bytes at the start of each buffer: a count, then messages; 0: none
    std::vector<Inside> inside_;
    std::vector<Stand> stands_;  // of each piece
    std::vector<HostCopy> host_copies_;
    std::size_t out_copies_ = 0;         // of these, from the first: whole pieces that leave
    std::vector<const Chunk*> leaving_;  // whose pieces these are
    const Chunk* partial_ = nullptr;     // which the device was asked for in part
    std::uint64_t longest_ = 1;          // bytes of data and AAD that a message has, at most
    int threads_ = 1;
    bool failed_wait_ = false;
    bool quiet_ = false;  // waited for
};

Result<> Transfer::run_in_reach(const Request& request, Rest& rest) {
    const std::size_t count = request.messages.size();
    std::vector<Stand> stands(count, Stand::untouched);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < count; ++i) pieces.push_back({request.messages[i], i});
    // For its stream. A set that is given back without a word is waited for.
    DAEL_LET(set, slots_.acquire(
                      {.capacity = kBlockSize, .least = kBlockSize, .slots = 1, .out = false}));
    const Stream work = set->slots().front().work;
    const Cipher cipher = for_backend(request.cipher);
    const auto launch = [&](std::size_t first, std::size_t valid) -> Result<> {
        for (std::size_t i = first; i < first + valid; ++i) {
            stands[i] = Stand::lost;
            DAEL_TRY(device_.run_in_reach(cipher, request.keys, request.messages[i], work));
            stands[i] = Stand::done;  // once it is waited for
        }
        return {};
    };
    auto done = for_each_valid(request, 0, count, launch);
    auto waited = device_.order().wait(work);
    if (done && waited) {
        set.went_well();
        return {};
    }
    if (!waited)
        for (Stand& stand : stands)
            if (stand == Stand::done) stand = Stand::lost;
    if (done) done = std::move(waited);
    std::size_t valid = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const Message& m = request.messages[i];
        const auto checked = modes::check(request.cipher, m, request.keys.list.size());
        if (!checked) {
            request.codes[i] = checked.code();
            continue;
        }
        pieces[valid] = {m, i};
        stands[valid++] = stands[i];
    }
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(valid), pieces.end());
    tell(request, pieces, stands, done.code(), rest);
    return done;
}

Result<Transferred> Transfer::run(const Request& request, const TransferOptions& options,
                                  Rest& rest) {
    const Cipher& cipher = request.cipher;
    if (options.transform && in_reach(device_, cipher, request.messages)) {
        DAEL_TRY(run_in_reach(request, rest));
        return Transferred{1, 1};
    }
    std::size_t all = 0;
    for (const Message& message : request.messages)
        if (modes::takes(cipher, message, request.keys.list.size()))
            all += footprint(cipher, message);
    const bool lists =
        device_.info().reads_lists && takes_mixed_keys(cipher) && request.messages.size() > 1;
    const Direct direct = direct_copies(device_, request.messages);

    SlotNeeds needs;
    needs.least = least_chunk(request);
    // No larger than the job: half of it, so that two chunks overlap, or all where it is short.
    std::size_t wanted = std::max(options.chunk, needs.least);
    if (!modes::can_cut(cipher)) wanted = std::max(wanted, kManyMessages);
    needs.capacity = std::clamp(std::bit_ceil(all / 2 + 1), needs.least, wanted);
    needs.capacity = (needs.capacity + 15) / 16 * 16;
    Packing packing;
    if (lists) {
        packing.most_pieces = std::clamp<std::size_t>(needs.capacity / kListShare / sizeof(Message),
                                                      1, request.messages.size());
        packing.list = kBlockSize + packing.most_pieces * sizeof(Message);
        needs.least += packing.list;
        needs.capacity += packing.list;
    }
    // Results come back behind the chunk: 4 bytes for each message, which takes a block at least.
    const std::size_t results =
        authenticates(cipher.mode) || lists
            ? (std::min(needs.capacity / 4, request.messages.size() * 4) + 2 * kBlockSize) / 16 * 16
            : 0;
    needs.capacity += results;
    needs.least += results;
    needs.slots = all <= needs.least ? 1 : options.slots;
    needs.in_staging = !direct.in || authenticates(cipher.mode) || lists;
    needs.out_staging = !direct.out || authenticates(cipher.mode) || lists;
    needs.kernels_at_once = !fills_device(cipher) && !authenticates(cipher.mode);

    DAEL_LET(set, slots_.acquire(needs));
    packing.capacity = set->capacity() - results;
    if (modes::can_cut(cipher))
        packing.capacity = std::min(packing.capacity, std::max(wanted, needs.least));
    Chunks chunks = cut(request, packing);
    Call call(*this, request, options, direct, *set, chunks, packing.list);
    auto threads = call.run();
    if (!threads) {
        tell(request, chunks.pieces, call.stands(), threads.code(), rest);
        return std::move(threads).error();
    }
    set.went_well();
    return Transferred{chunks.chunks.size(), *threads};
}

}  // namespace dael::pipeline
