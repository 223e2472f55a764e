// SPDX-License-Identifier: Apache-2.0
#include "pipeline/transfer.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"

namespace dael::pipeline {
namespace {

// Sequential messages are one device thread each, and short ones of GCM a warp: a chunk must hold
// many of them to keep a device busy. With a list, and what else a buffer holds, a set of slots is
// then 512 MiB, which is kept.
constexpr std::size_t kManyMessages = std::size_t{28} << 20;

// Of a chunk, what a list may take.
constexpr std::size_t kListShare = 8;

// Seconds for a byte, of a device that is slow and well: a long message of a sequential mode is one
// thread's, and an emulated device is no faster.
constexpr double kSlowest = 0.5e-6;

// A batch is made ready before it is launched, which takes as long as many launches: messages that
// have so many bytes between them are launched one by one.
constexpr std::uint64_t kWorthLaunch = std::uint64_t{128} << 10;

// The first chunk of a long message is this part of a full one.
constexpr std::size_t kRamp = 8;

bool fills_device(const Cipher& cipher) noexcept {
    return modes::can_cut(cipher);
}

bool are_long(std::span<const Piece> pieces) noexcept {
    std::uint64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.message.size;
    return pieces.size() == 1 || bytes >= pieces.size() * kWorthLaunch;
}

}  // namespace

bool takes_mixed_keys(const Cipher& cipher) noexcept {
    return authenticates(cipher.mode) || cipher.mode == Mode::gcm_ctr ||
           (cipher.mode == Mode::cbc && modes::encrypts(cipher));
}

void Pace::wait_for(std::uint64_t bytes) {
    if (rate_ == 0) return;
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> takes(static_cast<double>(bytes) /
                                              static_cast<double>(rate_));
    std::unique_lock lock(mutex_);
    const auto begins = std::max(free_, Clock::now());
    free_ = begins + std::chrono::duration_cast<Clock::duration>(takes);
    lock.unlock();
    std::this_thread::sleep_until(begins);
}

// One call's way through its slots.
class Transfer::Call {
  public:
    // A chunk has so many bytes at most, with a list of so many at its start.
    struct Room {
        std::size_t capacity = 0;
        std::size_t list = 0;
        std::size_t most_pieces = ~std::size_t{0};
    };
    Call(Transfer& transfer, const Request& request, const TransferOptions& options, Direct direct,
         SlotSet& set, const Room& room, WorkQueue& queue, WorkQueue::Member& member)
        : transfer_(transfer),
          device_(transfer.device_),
          memory_(device_.memory()),
          order_(device_.order()),
          pool_(transfer.pool_),
          request_(request),
          options_(options),
          direct_(direct),
          queue_(queue),
          member_(member),
          set_(set),
          slots_(set.slots()),
          list_(room.list),
          alone_(request.messages.size() == 1 && fills_device(request.cipher)),
          wish_(wish_of(room)),
          inside_(slots_.size()) {}
    // Batches, slots and the caller's memory stay until the device has done with them.
    ~Call() {
        if (quiet_ || (!gone_ && core::waited([&] { return set_.wait(); }))) return;
        for (Inside& inside : inside_) core::keep_forever(std::move(inside.batch));
    }

    Result<int> run() {
        auto ran = core::guarded([&] { return run_all(); });
        if (!ran) settle();
        return ran;
    }

  private:
    WorkQueue::Wish wish_of(const Room& room) const noexcept {
        const std::size_t most = room.capacity - room.list;
        const bool fills = fills_device(request_.cipher) || authenticated();
        return {.size = most,
                .most_pieces = room.most_pieces,
                .in_parts = alone_ || options_.several ? 2.0 : 0,
                .least = fills ? kSmallChunk : most,
                .one_key = options_.one_key};
    }
    // A long message by itself begins and ends with small chunks, whose sizes double to the full
    // one, and halve towards the end: while the first goes in nothing comes out, and the other way
    // round at the end, and these two stretches are what keeps the whole below the bus's rate.
    Taken take() {
        WorkQueue::Wish wish = wish_;
        if (alone_) {
            wish.size = std::min(wish.size, first_size_);
            first_size_ *= first_size_ < wish_.size ? 2 : 1;
        }
        Taken taken = queue_.take(member_, wish);
        if (!taken.empty()) lay_out(request_.cipher, list_, taken.front());
        return taken;
    }

    Result<int> run_all() {
        std::size_t next = 0;
        for (;; next = (next + 1) % slots_.size()) {
            DAEL_TRY(empty(next));
            inside_[next].chunk = take();
            if (inside_[next].chunk.empty()) break;
            fill(next);
            DAEL_TRY(copy_on_host());
            DAEL_TRY(issue(next));
        }
        for (std::size_t i = 0; i < slots_.size(); ++i) {  // oldest first
            DAEL_TRY(empty((next + i) % slots_.size()));
            DAEL_TRY(copy_on_host());
        }
        DAEL_TRY(waited(set_.wait()));
        quiet_ = true;
        for (Chunk& chunk : emptied_) turn(chunk, Stand::begun, Stand::done);
        part_with(emptied_);
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
        quiet_ = !gone_ && waited(set_.wait());
        for (Inside& inside : inside_) {
            if (inside.chunk.empty()) continue;
            // Asked for in part, or with results that nobody has seen.
            if (!inside.issued || inside.batch)
                turn(inside.chunk.front(), Stand::begun, Stand::lost);
            emptied_.splice(emptied_.end(), inside.chunk);
        }
        emptied_.splice(emptied_.end(), leaving_);
        for (Chunk& chunk : emptied_) {
            turn(chunk, Stand::begun, failed_wait_ ? Stand::lost : Stand::done);
            // Its data may be there, its tag is not; or both wait in the staging buffer.
            turn(chunk, Stand::leaving, direct_.out && !opens() ? Stand::lost : Stand::untouched);
        }
        part_with(emptied_);
    }

    Result<> waited(Result<> result) noexcept {
        failed_wait_ |= !result;
        return result;
    }
    // The calling thread waits until the device has come to this, or for as long as it may take.
    Result<> await(Event event, const Chunk& chunk) {
        if (options_.patience == 0 || direct_.out) return waited(order_.wait(event));
        const double patience = options_.patience + kSlowest * static_cast<double>(chunk.end);
        using Clock = std::chrono::steady_clock;
        const auto begun = Clock::now();
        for (;;) {
            auto done = order_.is_done(event);
            if (!done) {
                failed_wait_ = true;
                return std::move(done).error();
            }
            if (*done) return {};
            const std::chrono::duration<double> elapsed = Clock::now() - begun;
            if (elapsed.count() > patience) break;
            if (elapsed.count() > 50e-6) std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        gone_ = failed_wait_ = true;
        transfer_.give_up();
        set_.lose();
        return Error{Code::device, device_.info().name + " has not answered for " +
                                       std::to_string(std::lround(patience)) + " seconds"};
    }
    static void turn(Chunk& chunk, Stand from, Stand to) noexcept {
        for (Piece& piece : chunk.pieces)
            if (piece.stand == from) piece.stand = to;
    }
    void part_with(Taken& chunks) noexcept {
        while (!chunks.empty()) {
            Taken one;
            one.splice(one.begin(), chunks, chunks.begin());
            queue_.finish(member_, std::move(one));
        }
    }

    // What a slot is busy with.
    struct Inside {
        Taken chunk;                            // one, or none
        bool issued = false;                    // the device was asked for all of it
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
        if (inside.chunk.empty() || !inside.issued) return {};
        Chunk& chunk = inside.chunk.front();
        // Among several, whoever runs ahead would take from those who are free.
        const bool waits = !direct_.in || !direct_.out || inside.batch || options_.several;
        auto emptied = core::guarded([&] { return empty(inside, slots_[index], chunk, waits); });
        if (!emptied) turn(chunk, Stand::begun, Stand::lost);
        Taken& to = emptied && waits ? leaving_ : emptied_;
        to.splice(to.end(), inside.chunk);
        return emptied;
    }
    Result<> empty(Inside& inside, Slot& slot, Chunk& chunk, bool waits) {
        if (waits) DAEL_TRY(await(slot.done, chunk));
        if (inside.batch) DAEL_TRY(inside.batch->outcome());
        if (inside.batch && inside.batch->results()) DAEL_TRY(read_results(slot, chunk));
        if (opens()) {
            DAEL_TRY(fetch_verified(slot, chunk));
        } else if (!direct_.out) {
            for (const auto& [in, out, size, place] : extents_out(chunk.pieces, direct_.rows_out))
                append(host_copies_, out, slot.out_staging + place, size);
        }
        if (authenticated() && !opens())
            for (const Piece& piece : chunk.pieces)
                append(host_copies_, piece.message.tag, slot.out_staging + piece.tag,
                       request_.cipher.tag);
        if (!opens() && waits) {
            const Stand next = direct_.out && !authenticated() ? Stand::done : Stand::leaving;
            turn(chunk, direct_.out ? Stand::begun : Stand::untouched, next);
        }
        out_copies_ = host_copies_.size();
        if (!list_) inside.batch.reset();
        return {};
    }

    Result<> read_results(const Slot& slot, const Chunk& chunk) {
        const std::uint8_t* at = slot.out_staging + results_at(chunk);
        for (const Piece& piece : chunk.pieces) {
            std::uint32_t code = 0;
            std::memcpy(&code, at, sizeof code);
            at += sizeof code;
            if (code == 0) continue;
            if (!opens() || static_cast<Code>(code) != Code::authentication)
                return Error{Code::device, "the device's result for message " +
                                               std::to_string(piece.index) + " is " +
                                               std::to_string(code)};
            request_.codes[piece.index] = Code::authentication;
        }
        return {};
    }

    // The plaintext of messages whose tag was right, neighbours in one copy.
    Result<> fetch_verified(const Slot& slot, Chunk& chunk) {
        std::vector<Piece>& pieces = chunk.pieces;
        const auto verified = [&](const Piece& piece) {
            return request_.codes[piece.index] == Code::ok;
        };
        for (std::size_t i = 0; i < pieces.size();) {
            if (!verified(pieces[i])) {
                pieces[i++].stand = Stand::done;
                continue;
            }
            const std::size_t first = i;
            for (; i < pieces.size() && verified(pieces[i]); ++i)
                if (direct_.out) pieces[i].stand = Stand::begun;
            for (const auto& [in, out, size, place] :
                 extents_out(std::span(pieces).subspan(first, i - first), direct_.rows_out)) {
                std::uint8_t* const to = direct_.out ? out : slot.out_staging + place;
                DAEL_TRY(memory_.copy_out(to, slot.out + place, size, set_.outward()));
                if (!direct_.out) append(host_copies_, out, slot.out_staging + place, size);
            }
        }
        DAEL_TRY(order_.record(slot.done, set_.outward()));
        DAEL_TRY(await(slot.done, chunk));
        turn(chunk, Stand::begun, Stand::done);
        turn(chunk, Stand::untouched, Stand::leaving);
        return {};
    }

    // Notes the copies that bring a slot's chunk into its staging buffer, and lists it there.
    void fill(std::size_t index) {
        Inside& inside = inside_[index];
        inside.issued = false;
        const Slot& slot = slots_[index];
        const std::vector<Piece>& pieces = inside.chunk.front().pieces;
        if (!direct_.in)
            for (const auto& [in, out, size, place] : extents_in(pieces, direct_.rows_in)) {
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
        const auto count = static_cast<std::uint32_t>(pieces.size());
        std::memcpy(slot.in_staging, &count, sizeof count);
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
        for (Chunk& chunk : leaving_) turn(chunk, Stand::leaving, Stand::done);
        part_with(leaving_);
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

    // Hands a slot's chunk to the device: in, transform, out, each once its buffers are free and
    // filled.
    Result<> issue(std::size_t index) {
        Slot& slot = slots_[index];
        Chunk& chunk = inside_[index].chunk.front();
        const Stream inward = set_.inward(), outward = set_.outward();
        transfer_.pace_.wait_for(chunk.end);
        // An event that has never been recorded holds nothing up.
        DAEL_TRY(order_.wait(inward, options_.transform ? slot.transformed : slot.done));
        DAEL_TRY(send(slot, chunk, inward));
        DAEL_TRY(order_.record(slot.arrived, inward));
        if (options_.transform) {
            const Stream work = work_stream(index);
            DAEL_TRY(order_.wait(work, slot.arrived));
            DAEL_TRY(order_.wait(work, slot.done));
            DAEL_TRY(launch(index, chunk.pieces, work));
            DAEL_TRY(order_.record(slot.transformed, work));
        }
        DAEL_TRY(order_.wait(outward, options_.transform ? slot.transformed : slot.arrived));
        DAEL_TRY(receive(index, chunk, outward));
        DAEL_TRY(order_.record(slot.done, outward));
        inside_[index].issued = true;
        return {};
    }

    Result<> send(const Slot& slot, const Chunk& chunk, Stream inward) {
        if (!direct_.in)  // the list too
            return memory_.copy_in(slot.in, slot.in_staging, chunk.end, inward);
        if (list_ != 0) DAEL_TRY(memory_.copy_in(slot.in, slot.in_staging, list_, inward));
        for (const auto& [in, out, size, place] : extents_in(chunk.pieces, direct_.rows_in))
            DAEL_TRY(memory_.copy_in(slot.in + place, in, size, inward));
        if (chunk.end == chunk.data_end) return {};
        return memory_.copy_in(slot.in + chunk.data_end, slot.in_staging + chunk.data_end,
                               chunk.end - chunk.data_end, inward);
    }

    Result<> receive(std::size_t index, Chunk& chunk, Stream outward) {
        const Slot& slot = slots_[index];
        const core::Prepared* const batch = inside_[index].batch.get();
        if (batch && batch->results())
            DAEL_TRY(memory_.copy_out(slot.out_staging + results_at(chunk), batch->results(),
                                      chunk.pieces.size() * sizeof(std::uint32_t), outward));
        if (opens()) return {};  // what is verified is fetched later
        const std::uint8_t* result = options_.transform ? slot.out : slot.in;
        std::size_t from = list_;
        if (direct_.out) {
            turn(chunk, Stand::untouched, Stand::begun);
            for (const auto& [in, out, size, place] : extents_out(chunk.pieces, direct_.rows_out))
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
                if (cipher.mode != Mode::cbc) messages.longest = queue_.longest();
                DAEL_LET(batch, device_.prepare(cipher, request_.keys, messages));
                inside.batch = std::move(batch);
            }
            return device_.run(*inside.batch, work);
        }
        if (modes::can_cut(cipher) && are_long(pieces)) {
            for (const Piece& piece : pieces)
                DAEL_TRY(
                    device_.run(for_backend(cipher), request_.keys, on_device(slot, piece), work));
            return {};
        }
        std::vector<Message> messages;
        messages.reserve(pieces.size());
        for (const Piece& piece : pieces) messages.push_back(on_device(slot, piece));
        DAEL_LET(batch,
                 device_.prepare(cipher, request_.keys,
                                 {messages.data(), static_cast<std::uint32_t>(messages.size())}));
        inside.batch = std::move(batch);
        return device_.run(*inside.batch, work);
    }

    Transfer& transfer_;
    core::Device& device_;
    Memory& memory_;
    Order& order_;
    ThreadPool& pool_;
    const Request& request_;
    const TransferOptions& options_;
    const Direct direct_;
    WorkQueue& queue_;
    WorkQueue::Member& member_;
    SlotSet& set_;
    std::vector<Slot>& slots_;
    const std::size_t list_;  // bytes at the start of each buffer: a count, then messages; 0: none
    const bool alone_;        // one long message
    const WorkQueue::Wish wish_;
    std::size_t first_size_ = std::max(kSmallChunk, wish_.size / kRamp);
    std::vector<Inside> inside_;
    std::vector<HostCopy> host_copies_;
    std::size_t out_copies_ = 0;  // of these, from the first: whole pieces that leave
    Taken leaving_;               // whose pieces these are
    Taken emptied_;  // what the slots no longer have, and nobody has waited for, or in vain
    int threads_ = 1;
    bool failed_wait_ = false;
    bool quiet_ = false;  // waited for
    bool gone_ = false;   // given up: nothing of it is waited for any more
};

Result<> Transfer::run_in_reach(const Request& request, WorkQueue& queue,
                                WorkQueue::Member& member) {
    // For its stream. A set that is given back without a word is waited for.
    DAEL_LET(set, slots_.acquire(
                      {.capacity = kBlockSize, .least = kBlockSize, .slots = 1, .out = false}));
    const Stream work = set->slots().front().work;
    const Cipher cipher = for_backend(request.cipher);
    Taken taken = queue.take(member, {.size = ~std::size_t{0} / 2});
    if (taken.empty()) return {};
    std::vector<Piece>& pieces = taken.front().pieces;
    auto done = core::guarded([&]() -> Result<> {
        for (Piece& piece : pieces) {
            pace_.wait_for(piece.message.size);
            piece.stand = Stand::lost;
            DAEL_TRY(device_.run_in_reach(cipher, request.keys, piece.message, work));
            piece.stand = Stand::done;  // once it is waited for
        }
        return {};
    });
    auto waited = core::guarded([&] { return device_.order().wait(work); });
    if (!waited)
        for (Piece& piece : pieces)
            if (piece.stand == Stand::done) piece.stand = Stand::lost;
    queue.finish(member, std::move(taken));
    if (done && waited) set.went_well();
    return done ? std::move(waited) : std::move(done);
}

Result<int> Transfer::run(const Request& request, WorkQueue& queue, WorkQueue::Member& member,
                          const TransferOptions& options) {
    const Cipher& cipher = request.cipher;
    const std::uint64_t all = queue.size();
    if (all == 0) return 1;
    if (options.transform && !options.several && in_reach(device_, cipher, request.messages)) {
        DAEL_TRY(run_in_reach(request, queue, member));
        return 1;
    }
    const bool lists =
        device_.info().reads_lists && takes_mixed_keys(cipher) && request.messages.size() > 1;
    Direct direct = options.direct ? *options.direct : direct_copies(device_, request.messages);
    if (options.several) direct.out &= !in_place(request.messages);

    SlotNeeds needs;
    needs.least = std::max(kLeastChunk, queue.largest());
    // No larger than the job: half of it, so that two chunks overlap, or all where it is short.
    std::size_t wanted = std::max(options.chunk, needs.least);
    if (!fills_device(cipher)) wanted = std::max(wanted, kManyMessages);
    needs.capacity =
        std::clamp(std::bit_ceil(static_cast<std::size_t>(all / 2 + 1)), needs.least, wanted);
    needs.capacity = (needs.capacity + 15) / 16 * 16;
    Call::Room room;
    if (lists) {
        room.most_pieces = std::clamp<std::size_t>(needs.capacity / kListShare / sizeof(Message), 1,
                                                   request.messages.size());
        room.list = kBlockSize + room.most_pieces * sizeof(Message);
        needs.least += room.list;
        needs.capacity += room.list;
    }
    // Results come back behind the chunk: 4 bytes for each message, which takes a block at least.
    const std::size_t most = std::min(room.most_pieces, request.messages.size());
    const std::size_t results =
        authenticates(cipher.mode) || lists
            ? (std::min(needs.capacity / 4, most * 4) + 2 * kBlockSize) / 16 * 16
            : 0;
    if (results != 0) room.most_pieces = std::min(room.most_pieces, results / 4);
    needs.capacity += results;
    needs.least += results;
    needs.slots = all <= needs.least ? 1 : options.slots;
    needs.in_staging = !direct.in || authenticates(cipher.mode) || lists;
    needs.out_staging = !direct.out || authenticates(cipher.mode) || lists;
    needs.kernels_at_once = !fills_device(cipher) && !authenticates(cipher.mode);

    DAEL_LET(set, slots_.acquire(needs));
    room.capacity = set->capacity() - results;
    if (fills_device(cipher))
        room.capacity = std::min(room.capacity, std::max(wanted, needs.least));
    Call call(*this, request, options, direct, *set, room, queue, member);
    DAEL_LET(threads, call.run());
    set.went_well();
    return threads;
}

}  // namespace dael::pipeline
