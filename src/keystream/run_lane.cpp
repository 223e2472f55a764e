// SPDX-License-Identifier: Apache-2.0
// Keystream through a device that makes runs of it (core/keystream_maker.hpp): one entry for each
// window, whatever its packets, and a kernel that writes where the packets will look. The thread
// that asked goes on, and looks now and then whether it is there.
#include "keystream/fill_lane.hpp"

namespace dael::keystream {
namespace {

class MakerKeys final : public KeyPlaces {
  public:
    explicit MakerKeys(core::KeystreamMaker& maker) : maker_(maker) {}
    const core::KeyTables& tables() const { return *tables_; }

  private:
    Result<> make_set(std::span<const Key> keys) override {
        DAEL_LET(made, maker_.keys(keys));
        tables_ = std::move(made);
        return {};
    }
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override {
        return tables_->replace(index, key, stream);
    }
    void drop_set() override { tables_.reset(); }

    core::KeystreamMaker& maker_;
    std::unique_ptr<core::KeyTables> tables_;
};

class RunLane final : public FillLane {
  public:
    RunLane(Engine& engine, std::unique_ptr<core::KeystreamMaker> maker, const DeviceAccess& device)
        : engine_(engine.state()), maker_(std::move(maker)), order_(device.order) {
        runs_.reserve(kMaxWindows);
    }

    Result<> open() {
        DAEL_LET(stream, order_.create_stream());
        stream_ = stream;
        return {};
    }

    ~RunLane() override {
        if (!stream_) return;
        keys_.clear();
        maker_.reset();
        order_.destroy_stream(*stream_);
    }

    Result<> begin() override {
        DAEL_TRY(keys_.find(fill.stretches, *stream_, places_));
        runs_.clear();
        for (std::size_t i = 0; i < fill.stretches.size(); ++i) {
            const Stretch& stretch = fill.stretches[i];
            const auto numbers = static_cast<std::uint32_t>(stretch.end - stretch.first);
            const bool stream = stretch.layout == SaLayout::stream;  // whose numbers are blocks
            runs_.push_back({fill.buffer->memory + stretch.offset,
                             counter_of(stretch, stretch.first), places_[i],
                             stream ? numbers : stretch.blocks, stream ? 1 : numbers});
        }
        return maker_->begin(keys_.tables(), runs_, *stream_);
    }
    Result<bool> done() override { return maker_->done(); }
    // The stream's work is that of the maker, and keys that were replaced last.
    bool end() noexcept override {
        return !stream_ || (core::waited([&] { return maker_->wait(); }) &&
                            core::waited([&] { return order_.wait(*stream_); }));
    }

    Result<> forget(const std::vector<std::uint64_t>& serials) override {
        DAEL_TRY(keys_.forget(serials, *stream_));
        return order_.wait(*stream_);
    }
    void forget_all_keys() override { keys_.clear(); }
    Result<> wipe() override { return {}; }  // the device holds no keystream

  private:
    Engine engine_;  // as long as the maker, wherever that is kept
    std::unique_ptr<core::KeystreamMaker> maker_;
    dael::Order& order_;
    std::optional<Stream> stream_;
    MakerKeys keys_{*maker_};
    std::vector<std::uint32_t> places_;
    std::vector<core::KeystreamRun> runs_;
};

}  // namespace

Result<FillLaneOwner> open_run_lane(Engine& engine, std::unique_ptr<core::KeystreamMaker> maker,
                                    const DeviceAccess& device) {
    auto* const lane = new RunLane(engine, std::move(maker), device);
    FillLaneOwner owner(lane);
    DAEL_TRY(lane->open());
    return owner;
}

}  // namespace dael::keystream
