// SPDX-License-Identifier: Apache-2.0
#include "bench/resident_gcm.hpp"

#include <algorithm>

#include "bench/gcm.hpp"

namespace dael::bench {
namespace {

class ResidentGcm {
  public:
    ResidentGcm(DeviceUnderTest& subject, const DeviceClock& clock, const ResidentMemory& memory,
                const Work& work)
        : device_(subject.device), clock_(clock), memory_(memory), work_(work) {}

    Result<> prepare(const TestKey& key) {
        const auto keys = gcm_keys(key, work_.keys);
        if (!keys) return keys.error();
        auto prepared = device_.prepare_keys(*keys);
        if (!prepared) return std::move(prepared).error();
        keys_ = std::move(*prepared);
        auto tags = DeviceMemory::allocate(device_, MemoryKind::device, work_.messages * kTagSize);
        if (!tags) return std::move(tags).error();
        tags_ = std::move(*tags);
        return prepare_batch(memory_.in.data(), memory_.out.data());
    }

    Result<> seal_and_check(const TestKey& key) {
        const Launch poison = [this](Stream s) -> Result<> {
            DAEL_TRY(device_.fill(memory_.out.data(), kPoison, size(), s));
            return device_.fill(tags_.data(), kPoison, tags_.size(), s);
        };
        DAEL_TRY(clock_.run(poison));
        DAEL_TRY(clock_.run(launch(Direction::encrypt)));
        DAEL_TRY(check_codes());
        return check_sealed(work_, key, memory_.host.data(), fetch(memory_.out.data()),
                            fetch(tags_.data()));
    }

    // From where it was sealed to, back to where it came from.
    Result<> open_and_check() {
        DAEL_TRY(prepare_batch(memory_.out.data(), memory_.in.data()));
        DAEL_TRY(clock_.run(
            [this](Stream s) { return device_.fill(memory_.in.data(), kPoison, size(), s); }));
        DAEL_TRY(clock_.run(launch(Direction::decrypt)));
        DAEL_TRY(check_codes());
        return check_opened(work_, memory_.host.data(), fetch(memory_.in.data()));
    }

    Result<> restore() {
        return clock_.run([this](Stream s) {
            return device_.copy_in(memory_.in.data(), memory_.host.data(), size(), s);
        });
    }

    Launch launch(Direction direction) const {
        return [this, direction](Stream s) { return device_.gcm(direction, *batch_, s); };
    }

    // Reads and writes the same memory as the work does.
    Launch copy() const {
        const bool opens = work_.direction == Direction::decrypt;
        return [this, from = opens ? memory_.out.data() : memory_.in.data(),
                to = opens ? memory_.in.data() : memory_.out.data()](Stream s) {
            return device_.copy_within(to, from, size(), s);
        };
    }

    // Of the last run: that it had no failures which would have saved it work.
    Result<> check_codes() const {
        std::vector<std::uint32_t> raw(work_.messages);
        DAEL_TRY(clock_.run([&](Stream s) {
            return device_.copy_out(raw.data(), batch_->results(),
                                    raw.size() * sizeof(std::uint32_t), s);
        }));
        std::vector<Code> codes(raw.size());
        std::ranges::transform(raw, codes.begin(),
                               [](std::uint32_t code) { return static_cast<Code>(code); });
        return check_results(work_, codes);
    }

  private:
    std::size_t size() const { return work_.size * work_.messages; }

    Result<> prepare_batch(const std::uint8_t* in, std::uint8_t* out) {
        const GcmMessages messages(work_, in, out, tags_.data());
        batch_.reset();
        auto prepared = device_.prepare_gcm(*keys_, messages.segments());
        if (!prepared) return std::move(prepared).error();
        batch_ = std::move(*prepared);
        return {};
    }

    Fetch fetch(const std::uint8_t* memory) const {
        return [this, memory](std::uint64_t at, std::uint8_t* bytes, std::size_t count) {
            return clock_.run(
                [&](Stream s) { return device_.copy_out(bytes, memory + at, count, s); });
        };
    }

    core::Device& device_;
    const DeviceClock& clock_;
    const ResidentMemory& memory_;
    const Work& work_;
    DeviceMemory tags_;
    std::unique_ptr<core::PreparedKeys> keys_;
    std::unique_ptr<core::PreparedGcm> batch_;
};

}  // namespace

std::vector<Work> resident_gcm_works(const Session& session, int bits) {
    std::vector<Work> works;
    if (!wants_gcm(session, bits)) return works;
    const Workload& workload = session.workload;
    const BatchShape one{workload.device, 1};
    if (session.options.gmac) {
        works.push_back(gcm_work(bits, Direction::encrypt, one, 1));
        works.back().mac_only = true;
    }
    if (session.options.gcm)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            works.push_back(gcm_work(bits, direction, one, 1));
            for (const BatchShape& shape : workload.gcm_device)
                for (const std::uint64_t keys : {std::uint64_t{1}, shape.count})
                    works.push_back(gcm_work(bits, direction, shape, keys));
        }
    return works;
}

Result<> race_resident_gcm(Session& session, DeviceUnderTest& subject, const DeviceClock& clock,
                           const ResidentMemory& memory, Work work, const TestKey& key) {
    work.backend = subject.name;
    work.where = "device";
    work.measure = "kernel";
    if (work.size * work.messages > memory.in.size())
        return Error{Code::out_of_memory, size_name(work) + " do not fit into device memory"};
    ResidentGcm gcm(subject, clock, memory, work);
    DAEL_TRY(gcm.prepare(key));
    DAEL_TRY(gcm.seal_and_check(key));
    const bool opens = work.direction == Direction::decrypt;
    if (opens) DAEL_TRY(gcm.open_and_check());

    Heat heat;
    const auto copy = heat.enter("copy within device memory", clock.by_events(gcm.copy()));
    heat.row(work, heat.enter(subject.name, clock.by_events(gcm.launch(work.direction))), {copy});
    DAEL_TRY(heat.run(session));
    DAEL_TRY(gcm.check_codes());
    return opens ? gcm.restore() : Result<>{};
}

}  // namespace dael::bench
