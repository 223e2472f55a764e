// SPDX-License-Identifier: Apache-2.0
// A few messages of GCM whose list comes with the call: the host has looked at it, so that only the
// kernels that they need are launched, and it travels as a parameter.
#include "backends/cuda/gcm/launch.hpp"

#include <algorithm>
#include <bit>

#include "backends/cuda/aegis/batch.hpp"
#include "backends/cuda/derived/batch.hpp"
#include "backends/cuda/gcm/batch.hpp"
#include "backends/cuda/gcm/launch_plan.hpp"

namespace dael::cuda {
namespace {

constexpr int kSizes[] = {10, 12, 14};  // rounds

std::uint64_t size_of(const Message& m) {
    return m.size + m.skip + m.aad_size;
}

// A call of Device::run, as long as it lasts.
class Launch {
  public:
    Launch(CudaDevice& device, DeviceKeys& keys, std::span<const Key> list, const Cipher& cipher,
           std::span<const Message> messages, const LaunchOptions& options, Stream stream)
        : device_(device),
          keys_(keys),
          list_(list),
          messages_(messages),
          options_(options),
          stream_(stream),
          count_(static_cast<std::uint32_t>(messages.size())),
          tag_size_(authenticates(cipher.mode) ? cipher.tag : 0),
          opening_(tag_size_ != 0 && cipher.direction == Direction::decrypt) {
        for (const Message& m : messages) aad_ += options.host_aad ? m.aad_size : 0;
    }

    // All of them by thread blocks of their own.
    Result<> teams(bool counted) const {
        return count_ == 1 && aad_ <= kSmallAad ? teams<1>(counted) : teams<kMaxLaunched>(counted);
    }

    // Long ones through device memory, the others by thread blocks from there.
    Result<> through(GcmRoom& room, bool fused) const {
        return room.runs.in_turn(stream_, [&] { return put_and_run(room, fused); });
    }

  private:
    // What all launches are told, but for the list.
    template <std::uint32_t kMax>
    GcmTeamWork<kMax> work(std::uint32_t* results) const {
        GcmTeamWork<kMax> work{};
        work.keys = keys_.keys();
        work.results = results;
        work.tag_size = tag_size_;
        work.opening = opening_;
        return work;
    }

    // A launch for each size of keys that messages `which` asks for have.
    // `counted`: nothing but the blocks' count tells when they have done with the keys.
    template <std::uint32_t kMax, class Which>
    Result<> launch(GcmTeamWork<kMax>& work, bool counted, Which which) const {
        std::uint32_t by_size[std::size(kSizes)] = {};
        for (std::uint32_t i = 0; i < count_; ++i)
            if (which(messages_[i])) by_size[(keys_.rounds(messages_[i].key) - 10) / 2] |= 1u << i;
        for (std::size_t s = 0; s < std::size(kSizes); ++s) {
            if (by_size[s] == 0) continue;
            work.ours = by_size[s];
            const auto blocks = static_cast<std::uint32_t>(std::popcount(work.ours));
            work.ended = counted ? keys_.lend(blocks) : nullptr;
            void* arguments[] = {&work};
            Result<> launched = device_.launch(gcm_team_kernel(kSizes[s], kMax == 1), count_, false,
                                               arguments, stream_);
            if (!launched && counted) keys_.take_back(blocks);
            DAEL_TRY(std::move(launched));
        }
        return {};
    }

    template <std::uint32_t kMax>
    Result<> teams(bool counted) const {
        auto work = this->work<kMax>(options_.codes);
        put_list(messages_, options_.host_aad, nullptr, work.list.messages, work.list.aad);
        work.aad_words = static_cast<std::uint32_t>((aad_ + 3) / 4);
        return launch(work, counted, [](const Message&) { return true; });
    }

    Result<> put_and_run(const GcmRoom& room, bool fused) const {
        GcmPlace* const at = room.place();
        GcmPlaceWork place{};
        place.to = at;
        place.count = count_;
        place.aad_words = static_cast<std::uint32_t>((aad_ + 3) / 4);
        put_list(messages_, options_.host_aad, at->aad, place.from.messages, place.from.aad);

        GcmBatch batch{};
        batch.keys = keys_.keys();
        batch.matrices = tag_size_ != 0 ? keys_.matrices() : nullptr;
        batch.count = count_;
        batch.key_count = keys_.count();
        batch.tag_size = tag_size_;
        batch.opening = opening_;
        batch.data.workers = batch.aad.workers = device_.hash_workers(batch.matrices != nullptr);
        batch.aad.partials = room.partials();
        batch.data.partials = room.partials() + batch.aad.workers + kMaxLaunched;
        const std::uint32_t first = messages_.front().key;
        const bool many_keys =
            std::ranges::any_of(messages_, [&](const Message& m) { return m.key != first; });
        if (fused) fuse(device_, keys_, many_keys, batch);
        plan_units(batch, place.from);
        void* arguments[] = {&place};
        DAEL_TRY(device_.launch(gcm_place_kernel(), 1, false, arguments, stream_));

        batch.messages = at->messages;
        batch.aad.starts = at->aad_starts;
        batch.data.starts = at->data_starts;
        batch.groups.starts = at->group_starts;
        batch.results = at->results;
        auto work = this->work<kMaxLaunched>(at->results);
        std::ranges::copy(std::span(place.from.messages, count_), work.list.messages);
        DAEL_TRY(launch(work, false, [](const Message& m) { return !is_long(m); }));
        if (!many_keys) {
            DAEL_TRY(keys_.keep(first, list_[first]));
            batch.generation = keys_.generation(first);
        }
        const GcmSteps steps{device_, keys_, batch, stream_, many_keys, first};
        DAEL_TRY(steps.long_messages(std::ranges::any_of(
            messages_, [](const Message& m) { return is_long(m) && m.aad_size > kShortAad; })));
        if (!options_.codes) return {};
        return checked(
            cudaMemcpyAsync(options_.codes, at->results, count_ * sizeof at->results[0],
                            cudaMemcpyDefault, static_cast<cudaStream_t>(stream_.handle)),
            "cudaMemcpyAsync of codes");
    }

    CudaDevice& device_;
    DeviceKeys& keys_;
    const std::span<const Key> list_;
    const std::span<const Message> messages_;
    const LaunchOptions& options_;
    const Stream stream_;
    const std::uint32_t count_, tag_size_;
    const bool opening_;
    std::uint64_t aad_ = 0;  // bytes that travel along
};

}  // namespace

GcmRooms::GcmRooms(int device) : device_(device) {
    for (auto& room : rooms_) room = std::make_unique<GcmRoom>(device);
}

GcmRooms::~GcmRooms() {
    for (auto& room : rooms_) end_or_keep(device_, std::move(room));
}

Result<std::shared_ptr<GcmRooms>> GcmRooms::make(int device, std::uint32_t workers) {
    auto made = std::make_shared<GcmRooms>(device);
    for (const auto& room : made->rooms_) {
        DAEL_TRY(room->block.allocate(
            sizeof(GcmPlace) + 2 * (workers + kMaxLaunched) * sizeof(Words4), true));
        DAEL_TRY(room->runs.prepare());
    }
    return made;
}

std::uint32_t GcmRooms::of(Stream stream) {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream.handle);
    return static_cast<std::uint32_t>(handle * 0x9e3779b97f4a7c15u >> 61);
}

Result<std::shared_ptr<GcmRooms>> CudaDevice::gcm_rooms(const SetUp&) {
    const std::lock_guard lock(mutex_);
    if (!gcm_rooms_) {
        DAEL_LET(made, GcmRooms::make(index_, std::max({hash_workers(true), hash_workers(false),
                                                        fused_workers(false)})));
        gcm_rooms_ = std::move(made);
    }
    return gcm_rooms_;
}

Result<> CudaDevice::run(const Cipher& cipher, const core::KeyList& keys,
                         std::span<const Message> messages, const LaunchOptions& options,
                         Stream stream) {
    if (messages.empty()) return {};
    if (is_aegis(cipher.mode)) return run_aegis(*this, cipher, keys, messages, options, stream);
    if (derives_keys(cipher.mode))
        return run_derived(*this, cipher, keys, messages, options, stream);
    DAEL_LET(tables, tables_of(keys, *this));
    DAEL_TRY(tables->ready(parts_for(cipher)));  // at the first use
    const Launch launch(*this, *tables, keys.list, cipher, messages, options, stream);
    for (const Message& m : messages) {
        const bool few = size_of(m) <= team_message_;
        const bool tags = authenticates(cipher.mode);
        DAEL_TRY(believe(few    ? Kind::gcm_team
                         : tags ? Kind::gcm_long
                                : Kind::gcm_counter,
                         tables->rounds(m.key)));
        if (!few && tags) DAEL_TRY(believe(Kind::gcm_long_keys, tables->rounds(m.key)));
    }
    const bool capturing = order_.is_capturing(stream);
    if (std::ranges::all_of(messages,
                            [&](const Message& m) { return size_of(m) <= team_message_; })) {
        if (!capturing) return launch.teams(true);
        // How often the graph will be replayed nobody knows; each replay records an event.
        tables->note_capture();
        DAEL_TRY(launch.teams(false));
        return tables->lend_capture(stream);
    }
    if (capturing)
        return Error{Code::unsupported,
                     "cuda: the stream is being captured, and messages of more than " +
                         std::to_string(team_message_) +
                         " bytes need memory that is the launch's alone; prepare() a batch"};
    DAEL_LET(fused, fuses(*this, cipher, *tables, messages));  // at the first use, too
    for (const Message& m : messages)
        for (const Kind kind : {Kind::gcm_fused, Kind::gcm_fused_keys})
            if (fused) DAEL_TRY(believe(kind, tables->rounds(m.key)));
    const std::uint32_t room = GcmRooms::of(stream);
    tables->lend_room(room);
    return launch.through((*gcm_rooms_)[room], fused);
}

}  // namespace dael::cuda
