// SPDX-License-Identifier: Apache-2.0
// Keystream through a device that makes no runs, but whose lists lie in its memory: the list goes
// in, one launch makes the keystream of all messages, and keystream and codes come back, all in the
// order of one stream. The thread that asked goes on and waits for the event later.
#include <algorithm>
#include <cstring>
#include <optional>

#include "keystream/fill_lane.hpp"

namespace dael::keystream {
namespace {

// In device memory and, page-locked, on the host: how many messages, and the messages.
struct Head {
    std::uint32_t number;
    std::uint32_t unused[15];
};
static_assert(sizeof(Head) == 64);

class DeviceLane final : public FillLane {
  public:
    DeviceLane(Engine& engine, const DeviceAccess& device, std::size_t bytes)
        : engine_(engine.state()), memory_(device.memory), order_(device.order), bytes_(bytes) {}

    Result<> open() {
        DAEL_LET(stream, order_.create_stream());
        stream_ = stream;
        DAEL_LET(event, order_.create_event());
        done_ = event;
        DAEL_LET(keystream, memory_.allocate(bytes_));
        keystream_ = static_cast<std::uint8_t*>(keystream);
        DAEL_LET(there, memory_.allocate(kList));
        list_there_ = static_cast<std::uint8_t*>(there);
        DAEL_LET(list, memory_.allocate_pinned(kList));
        list_ = static_cast<std::uint8_t*>(list);
        DAEL_LET(codes, memory_.allocate_pinned(kCodes));
        codes_ = static_cast<std::uint32_t*>(codes);
        return {};
    }

    ~DeviceLane() override {
        batch_.reset();
        keys_.clear();
        if (keystream_) memory_.release(keystream_);
        if (list_there_) memory_.release(list_there_);
        if (list_) {
            dael::wipe(list_, kList);
            memory_.release_pinned(list_);
        }
        if (codes_) {
            dael::wipe(codes_, kCodes);
            memory_.release_pinned(codes_);
        }
        if (done_) order_.destroy_event(*done_);
        if (stream_) order_.destroy_stream(*stream_);
    }

    Result<> begin() override {
        DAEL_LET(remade, keys_.find(fill.stretches, *stream_, places_));
        if (remade || !batch_) {
            batch_.reset();
            Messages messages;
            messages.list = reinterpret_cast<const Message*>(list_there_ + sizeof(Head));
            messages.count = kMaxMessages;
            messages.place = Place::device;
            messages.number = &reinterpret_cast<const Head*>(list_there_)->number;
            DAEL_LET(batch, engine_.prepare({Mode::gcm_ctr}, keys_.set(), messages));
            batch_.emplace(std::move(batch));
        }
        Head head{};
        head.number = static_cast<std::uint32_t>(fill.messages);
        std::memcpy(list_, &head, sizeof head);
        write_messages(fill, places_, keystream_, reinterpret_cast<Message*>(list_ + sizeof(Head)));
        DAEL_TRY(memory_.copy_in(list_there_, list_, sizeof(Head) + fill.messages * sizeof(Message),
                                 *stream_));
        DAEL_TRY(engine_.launch(*batch_, *stream_));
        std::fill_n(codes_, fill.messages, static_cast<std::uint32_t>(Code::internal));
        DAEL_TRY(
            memory_.copy_out(codes_, batch_->codes(), fill.messages * sizeof *codes_, *stream_));
        DAEL_TRY(memory_.copy_out(fill.buffer->memory, keystream_, fill.bytes, *stream_));
        return order_.record(*done_, *stream_);
    }

    bool end() noexcept override {
        return !stream_ || core::waited([&] { return order_.wait(*stream_); });
    }

    Result<bool> done() override {
        DAEL_TRY(order_.wait(*done_));
        // A message that was not done would leave the keystream of other counters in its place.
        for (std::size_t i = 0; i < fill.messages; ++i)
            if (codes_[i] != 0) {
                const auto code = static_cast<Code>(codes_[i]);
                return Error{
                    code, "the device refused a run of keystream: " + std::string(describe(code))};
            }
        return true;
    }

    Result<> forget(const std::vector<std::uint64_t>& serials) override {
        DAEL_TRY(keys_.forget(serials, *stream_));
        return order_.wait(*stream_);
    }

    void forget_all_keys() override {
        batch_.reset();
        keys_.clear();
    }

    // Waits in any case: what one of the two has begun must not outlive the memory.
    Result<> wipe() override {
        if (!stream_) return {};
        Result<> keystream, list;
        if (keystream_) keystream = memory_.fill(keystream_, 0, bytes_, *stream_);
        if (list_there_) list = memory_.fill(list_there_, 0, kList, *stream_);
        DAEL_TRY(order_.wait(*stream_));
        DAEL_TRY(std::move(keystream));
        return list;
    }

  private:
    static constexpr std::size_t kList = sizeof(Head) + kMaxMessages * sizeof(Message);
    static constexpr std::size_t kCodes = kMaxMessages * sizeof(std::uint32_t);

    Engine engine_;
    Memory& memory_;
    dael::Order& order_;
    const std::size_t bytes_;
    std::optional<Stream> stream_;
    std::optional<Event> done_;
    std::uint8_t *keystream_ = nullptr, *list_there_ = nullptr, *list_ = nullptr;
    std::uint32_t* codes_ = nullptr;
    EngineKeys keys_{engine_};
    std::optional<Batch> batch_;
    std::vector<std::uint32_t> places_;
};

}  // namespace

Result<FillLaneOwner> open_device_lane(Engine& engine, const DeviceAccess& device,
                                       std::size_t bytes) {
    auto* const lane = new DeviceLane(engine, device, bytes);
    FillLaneOwner owner(lane);
    DAEL_TRY(lane->open());
    return owner;
}

}  // namespace dael::keystream
