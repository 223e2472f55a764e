// SPDX-License-Identifier: Apache-2.0
// What is behind an Engine, and what keeps it alive: key sets, batches and pieces. Internal: the
// pipeline, formats and the tests.
//
// Promises: an engine for `auto` opens its host backends at once and its devices only when a job
// comes that they would win, or one whose data lies on them. A device that has failed is left alone
// by `auto` and by sets, and so are all in a child of fork(). What one of a set fails at the others
// do. State may be used by many threads at once.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>

#include "core/device.hpp"
#include "pipeline/planner.hpp"
#include "pipeline/request.hpp"
#include "pipeline/thread_pool.hpp"
#include "pipeline/transfer.hpp"
#include "pipeline/work_queue.hpp"

namespace dael::pipeline {

inline constexpr std::size_t kMaxWorkers = 40;  // of one engine: host backends, then devices

inline constexpr std::size_t kMaxTogether = 16;  // of them on one job: Ran tells of so many

// A backend of an engine, and its number there.
struct Worker {
    core::Backend* backend = nullptr;
    std::size_t number = 0;
    const std::string& name() const noexcept { return backend->profile().name; }
    // What a call tells of having been done here.
    Ran ran(int threads, std::uint64_t chunks) const noexcept {
        return {backend->profile().lasting_name, threads, chunks};
    }
};

// The first failure of a device, which `auto` then leaves alone. For any number of threads.
class Failure {
  public:
    Failure() = default;
    Failure(const Failure&) = delete;
    ~Failure() { delete error_.load(); }
    void note(const Error& error) noexcept;
    explicit operator bool() const noexcept { return noted_; }
    std::string why() const;  // in words

  private:
    std::atomic<bool> noted_{false};
    std::atomic<const Error*> error_{nullptr};  // null: there was no memory to remember it in
};

// A device and the way through it.
struct DevicePath : Worker {
    // `formed`: whether the device takes the form of kernels that was calibrated.
    DevicePath(std::unique_ptr<core::Backend> opened, std::size_t its_number, ThreadPool& pool,
               const Planner& planner, bool formed, const Budget& budget);
    ~DevicePath();

    std::unique_ptr<core::Backend> owned;
    core::Device& device;
    DeviceRates rates;
    Transfer transfer;
    Failure failed;
};

// "NVIDIA H200, 580.82, CUDA 13.0": what a calibration's figures of a device belong to.
std::string identity(const DeviceInfo& info);

using Backends = std::vector<std::unique_ptr<core::Backend>>;

// A device that could not be opened.
struct LeftOut {
    std::string name;  // "cuda:1"
    Error error;
};
// What `auto` finds of devices.
struct Devices {
    Devices(Backends all_opened = {}, std::vector<LeftOut> others = {})
        : opened(std::move(all_opened)), left_out(std::move(others)) {}
    Backends opened;
    std::vector<LeftOut> left_out;
};

// Who does a job: devices, and the host's threads.
struct Team {
    struct Member {
        Worker worker;
        DevicePath* path = nullptr;         // null: the host
        double rate = 1;                    // bytes a second that are expected of it
        std::optional<Direct> direct = {};  // how the messages cross, where that was asked
    };
    std::vector<Member> members;
    std::vector<Member> reserve;  // who has no part in it, but does, one by one, what those leave
};

Team team_of(std::vector<Team::Member> all, std::span<const double> shares);

// What a worker has done of a job, and what a call tells of all of them, of whom there is one at
// least; `did` is put in order. What is done is done: where there is no memory for names, one
// stands for all.
struct Did {
    Worker worker;
    std::uint64_t bytes = 0, chunks = 0;
    int threads = 1;  // of the host, that took part
};
Ran ran_by(std::span<Did> did, bool replaced);

// A job of one long message of GCM as so many parts, none for other jobs; and whether this message
// can be had like that.
std::optional<Job> in_parts(Job job) noexcept;
bool can_be_in_parts(const Cipher& cipher, const Message& message) noexcept;

// What every call that opens has to say about a tag that does not match.
Error authentication_failed();
// `error` of message `index` of a list.
Error of_message(std::size_t index, Error error);

// Everything in the list that has memory of its own, is here, and is not only for those who ask for
// it by name.
Backends open_devices();
// The same, each GPU once: where two kinds of driver have it, the first of the list.
Devices open_devices_once();

// Engine::open(), with handles of the caller's for the backend that is forced, or none.
Result<Engine> open_engine(EngineOptions options, const core::NativeHandles& given);

// An engine on one given backend, as if it had been forced; on several at once, of which one host
// at most; and one that chooses. For tests.
Engine make_engine(std::unique_ptr<core::Backend> backend, EngineOptions options = {});
Engine make_set_engine(Backends set, EngineOptions options = {});
Engine make_auto_engine(Backends hosts, std::function<Devices()> devices,
                        EngineOptions options = {}, std::optional<Calibration> calibration = {});

}  // namespace dael::pipeline

namespace dael {

struct Engine::State : std::enable_shared_from_this<Engine::State> {
    // `given`: the one that is forced, or a set, of any number of devices; or the host backends
    // that `auto` chooses among, the first of which serves where they are equal.
    State(EngineOptions engine_options, pipeline::Backends given,
          std::function<pipeline::Devices()> find_devices, std::optional<Calibration> calibration);

    // Host memory: valid cipher, keys of its kind. `set`: null for keys that nothing was made of;
    // else those of the messages, and `keys` is not looked at.
    // After an error the codes tell of each message what <daelstrom/engine.hpp> says.
    Result<Ran> run(const Cipher& cipher, std::span<const Key> keys, KeySet::State* set,
                    std::span<const Message> messages, std::span<Code> codes);
    // One short message of host memory: neither cut nor shared out, and no device's. Such calls
    // come by the million, and all else that run() looks at would take longer than the cipher.
    // Where `set` is null the message was checked by the caller.
    bool is_short(const Message& message) const noexcept {
        return message.size < pipeline::Planner::kShort &&
               message.aad_size < pipeline::Planner::kShort && !hosts_.empty();
    }
    Result<Ran> run_short(const Cipher& cipher, const Key& key, KeySet::State* set,
                          const Message& message, Code& code);

    // run() of one message, whose code is then its error.
    Result<Ran> run_one(const Cipher& cipher, std::span<const Key> keys, KeySet::State* set,
                        const Message& message);
    // As Engine::run_shards().
    Result<Ran> run_shards(const Cipher& cipher, KeySet::State& set, const Message& whole,
                           std::span<const Shard> shards);

    // The device that holds the memory (null: no memory). Errors: unsupported, backend_absent,
    // invalid_argument for memory of no device, device in a child of fork().
    Result<pipeline::DevicePath*> path_of(const void* device_memory);
    // The device that holds all of a message, or of a list: what has a size; AAD may be the host's.
    // Errors: as above.
    Result<pipeline::DevicePath*> path_of(std::span<const Message> messages, bool host_aad = false);

    // Of that number among the workers; opened.
    pipeline::DevicePath& path(std::size_t number) noexcept {
        return *paths_[number - hosts_.size()];
    }
    // Whether that is a device that was given up, and may still use whatever it was given.
    bool given_up(std::size_t number) const noexcept {
        const std::size_t at = number - hosts_.size();
        return number >= hosts_.size() && opened() && at < paths_.size() &&
               paths_[at]->transfer.given_up();
    }
    // Whether the devices that were opened, or were being opened, are those of a parent process.
    bool forked() const noexcept;
    void trim() noexcept;

    Plan explain(const Job& job);
    std::vector<std::string> backends();
    std::size_t host_count() const noexcept { return hosts_.size(); }
    std::size_t chunk() const noexcept { return options_.chunk; }
    pipeline::ThreadPool& pool() noexcept { return pool_; }
    // Whose pieces a message of this cipher is made of.
    Result<pipeline::Worker> worker_for_pieces(const Cipher& cipher, int key_bits);

  private:
    using DevicePaths = std::vector<std::unique_ptr<pipeline::DevicePath>>;
    // The devices; opens them if this is the first need of them. None in a child that was forked
    // while they were being opened, whose drivers are in no known state.
    DevicePaths& paths();
    bool opened() const noexcept { return (opening_.load() & 1u) != 0; }  // paths_ may be read
    // The host backend that should do the job. Errors: unsupported.
    Result<pipeline::Worker> choose_host(const Job& job) const;
    pipeline::Estimate host_estimate(std::size_t number, const Job& job) const;
    pipeline::Estimate device_estimate(const DeviceRates& rates, const Job& job,
                                       double start_seconds, std::size_t reach = 0) const;
    // Who should do the job, for `auto`. Nobody: the host alone.
    pipeline::Team choose(const pipeline::Worker& host, std::span<const Message> messages,
                          Job& job);
    // What the first use of a device still costs.
    double start_seconds(const DeviceRates& rates) const noexcept;
    Result<Ran> run_on_host(const pipeline::Worker& host, pipeline::Request& request,
                            KeySet::State* set, const pipeline::Survey& survey);
    // Whether the device is of use for this. Errors: unsupported, device in a child of fork().
    Result<> check_path(const pipeline::DevicePath& path, const pipeline::Request& request,
                        bool batch, const pipeline::Survey& survey) const;
    // Who of the forced device, or of a set, does a job, of the host too if it is given. Nobody:
    // the host alone. Errors: unsupported, device.
    Result<pipeline::Team> team_for(const std::optional<pipeline::Worker>& host,
                                    const pipeline::Request& request, bool batch,
                                    const pipeline::Survey& survey, Job job);
    // What is left of the queue, through one of them; how many threads of the host took part.
    Result<int> run_through(pipeline::DevicePath& path, pipeline::Request request,
                            KeySet::State* set, pipeline::WorkQueue& queue,
                            pipeline::WorkQueue::Member& member, pipeline::TransferOptions options);
    Result<int> run_on_host(const pipeline::Worker& host, pipeline::Request request,
                            KeySet::State* set, pipeline::WorkQueue& queue,
                            pipeline::WorkQueue::Member& member);
    Result<Ran> run_in_parts(const Cipher& cipher, std::span<const Key> keys, KeySet::State* set,
                             const Message& message, std::uint64_t even, Code& code);
    Result<Ran> run_together(pipeline::Team team, const pipeline::Request& request,
                             KeySet::State* set, const pipeline::Survey& survey,
                             pipeline::WorkQueue& queue);
    pipeline::Budget budget() const noexcept {
        return {options_.device_memory, options_.copy_rate};
    }
    Option host_option(std::size_t number, const Job& job) const;
    // Who does a job of these messages, as `job` has it; nobody: the host alone. Errors: as above.
    Result<pipeline::Team> team(const std::optional<pipeline::Worker>& host,
                                const pipeline::Request& request, bool batch,
                                const pipeline::Survey& survey, Job& job);
    // Those of the options who would do the job together, where these are several; `host` is the
    // one that does what the host does.
    std::optional<Option> option_together(std::span<const Option> options, std::size_t host,
                                          const Job& job) const;
    Option device_option(const pipeline::DevicePath& path, const Job& job) const;

    const EngineOptions options_;
    pipeline::Backends hosts_;  // none where a device is forced
    const pipeline::Planner planner_;
    const DeviceRates expected_;
    pipeline::ThreadPool pool_;
    pipeline::ThreadPool drivers_;  // of devices that work at once: they wait, most of the time
    // The number in hosts_ of who does one short message, by Planner::kind. Its size makes no
    // difference, as long as there is any: what differs is how long each byte takes.
    std::array<std::uint8_t, pipeline::Planner::kKinds> short_hosts_;
    const std::function<pipeline::Devices()> find_devices_;  // null where a backend is forced
    // 0: nobody has opened the devices; else twice the number of the process that is at it, and one
    // more when it is done. No lock: drivers take a second to start, and a child that is forked
    // meanwhile would find it held for ever.
    std::atomic<std::uint32_t> opening_{0};
    std::atomic<bool> started_{false};  // a job has used a device, or its data lay on one
    std::atomic<double> missed_seconds_{0};
    const std::uint64_t serial_;  // unlike any other engine's of this process
    DevicePaths paths_;
    std::vector<pipeline::LeftOut> left_out_;
    DevicePaths none_;  // of a child's that was forked while they were being opened
};

}  // namespace dael
