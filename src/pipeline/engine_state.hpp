// SPDX-License-Identifier: Apache-2.0
// What is behind an Engine. Internal: the engine's own sources, the benchmark and the tests.
//
// Promises: an engine for `auto` opens its host backends at once and its devices only when a job
// comes that they would win, or one whose data lies on them. State may be used by many threads at
// once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>

#include "core/device.hpp"
#include "pipeline/gcm_work.hpp"
#include "pipeline/keyed_host.hpp"
#include "pipeline/planner.hpp"
#include "pipeline/thread_pool.hpp"
#include "pipeline/transfer.hpp"

namespace dael::pipeline {

// A device and the way through it.
struct Lane {
    // `shaped`: whether the device takes the shape of kernels that was calibrated.
    Lane(std::unique_ptr<core::Backend> opened, ThreadPool& pool, const Planner& planner,
         bool shaped);

    std::unique_ptr<core::Backend> backend;
    core::Device& device;
    DeviceRates rates;
    Transfer transfer;
    GcmTransfer gcm;
    std::atomic<bool> failed{false};  // `auto` leaves a device alone that has failed once
};

// "NVIDIA H200, 580.82, CUDA 13.0": what a calibration's figures of a device belong to.
std::string identity(const core::DeviceInfo& info);

using Backends = std::vector<std::unique_ptr<core::Backend>>;

// Keys made ready on a host backend; null where an engine has none.
struct HostKeys {
    core::Backend* backend = nullptr;
    std::unique_ptr<core::PreparedKeys> keys;
};

// What every call that opens has to say about a tag that does not match.
Error authentication_failed();

// What became of each message of a batch in device memory; waits for the stream.
Result<std::vector<Code>> fetch_results(core::Device& device, const core::PreparedMessages& batch,
                                        std::size_t count, Stream stream);

// Everything in the list that has memory of its own, is here, and is not only for those who ask for
// it by name.
Backends open_devices();
// The same, each GPU once: where two kinds of driver have it, the first of the list.
Backends open_devices_once();

// Engine::open(), with handles of the caller's for the backend that is forced, or none.
Result<Engine> open_engine(EngineOptions options, const core::NativeHandles& given);

// An engine on one given backend, as if it had been forced; and one that chooses. For tests.
Engine make_engine(std::unique_ptr<core::Backend> backend, EngineOptions options = {});
Engine make_auto_engine(std::unique_ptr<core::Backend> host, std::function<Backends()> devices,
                        EngineOptions options = {}, std::optional<Calibration> calibration = {});

}  // namespace dael::pipeline

namespace dael {

struct Engine::State {
    // `given`: the one that is forced, or the host backends that `auto` chooses among, the first of
    // which serves where they are equal.
    State(EngineOptions engine_options, pipeline::Backends given,
          std::function<pipeline::Backends()> find_devices, std::optional<Calibration> calibration);

    // An Engine over this state.
    static Engine wrap(std::unique_ptr<State> state) { return Engine(std::move(state)); }

    // Host memory.
    Result<Ran> run(const core::Operation& operation, std::span<const core::Segment> segments);
    // XTS, checks included; on the host backends it stays on the host. Defined in xts.cpp.
    Result<Ran> xts(Direction direction, const XtsKey& key, const XtsSectors& sectors, HostIn in,
                    HostOut out);
    Result<Ran> xts(Direction direction, const XtsKey& key, const XtsSectors& sectors, DeviceIn in,
                    DeviceOut out, Stream stream);
    // The device that holds the memory. Errors: unsupported, backend_absent.
    Result<pipeline::Lane*> lane_of(const void* device_memory);
    Plan explain(const Job& job);
    std::vector<std::string> backends();

    // GCM over host memory (engine_gcm.cpp): on the first host backend that has it. gcm() fills in
    // results, one for each message; gcm_one() makes its one key ready itself, and has the
    // message's failure as its error.
    Result<pipeline::HostKeys> prepare_on_host(std::span<const Key> keys);
    // On the backend that a message in pieces goes to, a forced device among them.
    Result<pipeline::HostKeys> prepare_for_stream(const Key& key);
    // `kept`: for any number of calls of any kind; else for one of gcm().
    Result<std::unique_ptr<KeySet::State>> prepare_keys(std::span<const Key> keys, bool kept);
    Result<> check_owner(const KeySet::State& keys) const;
    Result<Ran> gcm(KeySet::State& keys, const pipeline::GcmWork& work, std::span<Code> results);
    Result<Ran> gcm_one(Direction direction, const Key& key, const core::GcmSegment& segment);
    // Sealed messages from a source into `out`, on the device that holds it (gcm_inflow.cpp). On
    // failure all of `out` is wiped, unless it is refused before anything was touched: unsupported,
    // backend_absent, invalid_argument.
    Result<Ran> open_into(const KeySet& keys, const pipeline::GcmSource& source, DeviceOut out,
                          Stream stream);

    // Other modes, with a key for each message (engine_keyed.cpp).
    Result<Ran> keyed(KeySet::State& keys, const pipeline::KeyedWork& work,
                      std::span<Code> results);

  private:
    using Lanes = std::vector<std::unique_ptr<pipeline::Lane>>;
    // The devices; opens them if this is the first need of them.
    Lanes& lanes();
    // The host backend that should do the job.
    core::Backend& choose_host(const Job& job) const;
    // The device that should do the job, null for `host`. Only for `auto`.
    pipeline::Lane* choose(const core::Backend& host, std::span<const core::Segment> segments,
                           Job& job);
    // What the first use of a device still costs.
    double start_seconds(const DeviceRates& rates) const noexcept;
    Result<Ran> run_on_host(core::Backend& host, const core::Operation& operation,
                            std::span<const core::Segment> segments);
    Result<Ran> run_through(pipeline::Lane& lane, const core::Operation& operation,
                            std::span<const core::Segment> segments);
    Result<Ran> keyed_through(pipeline::Lane& lane, const KeySet::State& keys, Mode mode,
                              const pipeline::KeyedRuns& runs);
    pipeline::TransferOptions transfer_options(const pipeline::Lane& lane) const;
    Option host_option(const core::Backend& host, const Job& job) const;
    Option device_option(const pipeline::Lane& lane, const Job& job) const;

    const EngineOptions options_;
    const pipeline::Planner planner_;
    const DeviceRates expected_;
    pipeline::ThreadPool pool_;
    pipeline::Backends hosts_;                                // none where a device is forced
    const std::function<pipeline::Backends()> find_devices_;  // null where a backend is forced
    std::once_flag opened_once_;
    std::atomic<bool> opened_{false};   // lanes_ may be read
    std::atomic<bool> started_{false};  // a job has used a device, or its data lay on one
    std::atomic<double> missed_seconds_{0};
    Lanes lanes_;
};

}  // namespace dael
