// SPDX-License-Identifier: Apache-2.0
// Runs of keystream on the device made of threads: OpenSSL's, made on the stream, and said to be
// there by a word that is written last.
#include "modes/counter.hpp"
#include "support/host_device_parts.hpp"

namespace dael::test {

class HostDevice::Maker final : public core::KeystreamMaker {
  public:
    explicit Maker(HostDevice& device) : device_(device) { ++device_.batches_; }
    ~Maker() override {
        if (under_way_) device_.violation("a maker of keystream destroyed while it is at work");
        --device_.batches_;
    }

    Result<std::unique_ptr<core::KeyTables>> keys(std::span<const Key> list) override {
        return device_.tables(list);
    }

    Result<> begin(const core::KeyTables& keys, std::span<const core::KeystreamRun> runs,
                   Stream stream) override {
        if (under_way_) device_.violation("a list of keystream begun before the last was done");
        const auto* const tables = dynamic_cast<const Tables*>(&keys);
        if (!tables || &tables->device != &device_)
            return core::made_for_another(device_.name(), "keys");
        if (runs.empty()) device_.violation("no runs of keystream");
        for (const core::KeystreamRun& run : runs) check(run, tables->held->copies.size());
        stream_ = stream;
        under_way_ = true;
        ++ticket_;
        DAEL_TRY(device_.attempt("begin runs"));
        // As a device has it that takes several launches for a list, of which a later one fails.
        const std::size_t half = runs.size() / 2;
        if (half != 0) enqueue(*tables, runs.first(half), 0);
        DAEL_TRY(device_.attempt("begin more runs"));
        enqueue(*tables, runs.subspan(half), ticket_);
        return {};
    }

    Result<bool> done() override {
        if (!under_way_) return true;
        if (said_.load(std::memory_order_acquire) != ticket_) {
            if (device_.options_.gives_up)  // asked of the driver, with the work under way
                DAEL_TRY(device_.waited("wait for runs, by a question", [] {}));
            return false;
        }
        under_way_ = false;
        DAEL_TRY(device_.attempt("runs done"));
        return true;
    }

    Result<> wait() override {
        if (!under_way_) return {};
        auto waited = device_.waited("wait for runs", [&] { drain(device_.queue_of(stream_)); });
        under_way_ = device_.options_.gives_up && !waited;
        return waited;
    }

  private:
    void check(const core::KeystreamRun& run, std::size_t keys) {
        const std::uint64_t blocks = std::uint64_t{run.blocks} * run.slots;
        if (run.key >= keys || blocks == 0 || blocks > core::kMaxRunBlocks ||
            reinterpret_cast<std::uintptr_t>(run.out) % 16 != 0)
            device_.violation("an invalid run of keystream");
        device_.check_pinned_range(run.out, blocks * 16, "a run of keystream");
    }

    // `ticket`: to be said afterwards, unless it is 0.
    void enqueue(const Tables& tables, std::span<const core::KeystreamRun> list,
                 std::uint32_t ticket) {
        ++tables.held->in_use;
        Uses uses;
        for (const core::KeystreamRun& run : list)
            uses.push_back({run.out, std::size_t{16} * run.blocks * run.slots, true});
        device_.enqueue(
            stream_, std::move(uses),
            [this, its = tables.held, ticket, runs = std::vector(list.begin(), list.end())] {
                ++device_.kernels_;
                device_.runs_ += runs.size();
                for (const core::KeystreamRun& run : runs) write(*its, run);
                --its->in_use;
            },
            [this, ticket] {
                if (ticket != 0) said_.store(ticket, std::memory_order_release);
            });
    }

    void write(const HeldTables& tables, const core::KeystreamRun& run) {
        Message slot;
        slot.key = run.key;
        slot.out = run.out;
        slot.size = std::uint64_t{run.blocks} * 16;
        slot.start = run.first;
        for (std::uint32_t i = 0; i < run.slots; ++i) {
            device_.compute({Mode::ctr}, tables.keys(), slot);
            slot.out += slot.size;
            slot.start = modes::counter_add(slot.start, std::uint64_t{1} << 32);
        }
    }

    HostDevice& device_;
    std::uint32_t ticket_ = 0;
    std::atomic<std::uint32_t> said_{0};
    bool under_way_ = false;
    Stream stream_;
};

Result<std::unique_ptr<core::KeystreamMaker>> HostDevice::keystream_maker() {
    if (!options_.makes_keystream) return std::unique_ptr<core::KeystreamMaker>();
    DAEL_TRY(attempt("keystream_maker"));
    return std::unique_ptr<core::KeystreamMaker>(std::make_unique<Maker>(*this));
}

}  // namespace dael::test
