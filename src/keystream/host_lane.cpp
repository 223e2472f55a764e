// SPDX-License-Identifier: Apache-2.0
// Keystream into host memory by Engine::run: on the host's cores, or through a device whose lists
// do not lie in its memory (opencl).
#include <algorithm>

#include "keystream/fill_lane.hpp"

namespace dael::keystream {
namespace {

class HostLane final : public FillLane {
  public:
    HostLane(Engine& engine, dael::Order* order)
        : engine_(engine.state()), order_(order), keys_(engine_) {
        messages_.resize(kMaxMessages);
        codes_.resize(kMaxMessages);
    }

    Result<> begin() override {
        DAEL_TRY(keys_.find(fill.stretches, {}, places_));
        write_messages(fill, places_, fill.buffer->memory, messages_.data());
        const std::span codes(codes_.data(), fill.messages);
        std::ranges::fill(codes, Code::internal);
        DAEL_TRY(
            engine_.run({Mode::gcm_ctr}, keys_.set(), {messages_.data(), fill.messages}, codes));
        for (const Code code : codes)
            if (code != Code::ok)
                return Error{code,
                             "a run of keystream was refused: " + std::string(describe(code))};
        return {};
    }
    Result<bool> done() override { return true; }
    // What is under way are keys that were replaced: an engine's run() waits for them by itself.
    bool end() noexcept override {
        return !order_ || core::waited([&] { return order_->wait(Stream{}); });
    }
    Result<> forget(const std::vector<std::uint64_t>& serials) override {
        DAEL_TRY(keys_.forget(serials, {}));
        return order_ ? order_->wait(Stream{}) : Result<>{};
    }
    void forget_all_keys() override { keys_.clear(); }
    Result<> wipe() override { return {}; }

  private:
    Engine engine_;
    dael::Order* const order_;  // the device's; null: there is none
    EngineKeys keys_;
    std::vector<Message> messages_;
    std::vector<Code> codes_;
    std::vector<std::uint32_t> places_;
};

}  // namespace

Result<FillLaneOwner> open_host_lane(Engine& engine) {
    auto device = dael::device(engine);
    return FillLaneOwner(new HostLane(engine, device ? &device->order : nullptr));
}

}  // namespace dael::keystream
