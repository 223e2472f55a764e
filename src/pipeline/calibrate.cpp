// SPDX-License-Identifier: Apache-2.0
#include "pipeline/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>

#include <daelstrom/plan.hpp>

#include "core/guard.hpp"
#include "core/registry.hpp"
#include "pipeline/measure.hpp"
#include "pipeline/share.hpp"

namespace dael {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGiga = 1e9;

// What is measured: every mode in every direction that differs. gcm_ctr is ctr, and opening takes
// as long as sealing (Planner goes by that).
std::vector<Cipher> ciphers() {
    std::vector<Cipher> all;
    for (const Mode mode : kModes) {
        if (mode == Mode::gcm_ctr) continue;
        all.push_back({mode, Direction::encrypt});
        if (!modes::traits(mode).both_ways && !authenticates(mode))
            all.push_back({mode, Direction::decrypt});
    }
    return all;
}

bool takes(const core::Backend& backend, const Cipher& cipher, const Key& key) {
    return modes::takes_kind(cipher, modes::kind_of(key)) &&
           backend.can(cipher, key.bits()).answer != core::Can::no;
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Rates in GB/s of `work`, which does `bytes`: the best of as many runs as fit the time, since
// whatever else the machine does only ever makes a run slower.
template <class Work>
Result<double> best_rate(std::size_t bytes, std::chrono::milliseconds time, Work work) {
    double best = 0;
    const auto stop = Clock::now() + time;
    do {
        const auto start = Clock::now();
        DAEL_TRY(work());
        const double seconds = seconds_since(start);
        best = std::max(best, static_cast<double>(bytes) / kGiga / std::max(seconds, 1e-9));
    } while (Clock::now() < stop);
    return best;
}

class Calibrator {
  public:
    Calibrator(const CalibrationProgress& progress, const pipeline::Effort& effort)
        : progress_(progress),
          effort_(effort),
          buffer_(std::max(effort.every_core * static_cast<std::size_t>(pool_.threads()),
                           effort.one_core)) {
        for (const int bytes : {16, 24, 32})
            keys_.push_back(
                *Key::import(std::vector<std::uint8_t>(static_cast<std::size_t>(bytes), 0x2b)));
        for (const std::size_t bytes : {32u, 64u}) {
            std::vector<std::uint8_t> halves(bytes, 0x2b);
            std::fill(halves.begin() + static_cast<std::ptrdiff_t>(bytes / 2), halves.end(),
                      std::uint8_t{0x7e});
            xts_keys_.push_back(*Key::import_xts(halves));
        }
    }

    Result<Calibration> run(const pipeline::Backends& hosts,
                            const std::function<pipeline::Backends()>& find_devices) {
        Calibration calibration;
        calibration.machine = describe_machine();
        char now[32];
        const std::time_t time = std::time(nullptr);
        std::tm utc{};
        std::strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &utc));
        calibration.made = now;

        DAEL_TRY(measure_memory(calibration));
        report("looking for devices", 0);
        const auto start = Clock::now();
        pipeline::Backends devices = find_devices();
        const double opening = seconds_since(start);
        steps_ = static_cast<double>(hosts.size() * ciphers_.size() * keys_.size() +
                                     devices.size() * (8 + ciphers_.size() * keys_.size()));
        for (const auto& host : hosts) DAEL_TRY(measure_host(*host, calibration));
        for (auto& device : devices) {
            const std::string name = device->profile().name;
            if (auto measured = measure_device(std::move(device), opening, calibration); !measured)
                calibration.left_out.push_back(name + ": " + measured.error().message);
        }
        report("done", 1);
        return calibration;
    }

  private:
    void report(std::string_view what, double done) const {
        if (progress_) progress_(what, done);
    }
    void step(std::string_view backend, std::string_view what) {
        report(std::string(backend) + ": " + std::string(what), std::min(step_++ / steps_, 1.0));
    }

    std::span<const Key> keys_of(const Cipher& cipher) const {
        return cipher.mode == Mode::xts ? xts_keys_ : keys_;
    }

    // In place, with a tag each where the mode has them.
    std::vector<Message> messages(std::size_t count, std::size_t bytes) {
        std::vector<Message> messages;
        tags_.resize(count);
        const std::size_t size = bytes / count / kBlockSize * kBlockSize;
        for (std::size_t i = 0; i < count; ++i) {
            std::uint8_t* const at = buffer_.data() + i * size;
            messages.push_back({at, at, size, nullptr, 0, tags_[i].data()});
        }
        return messages;
    }

    Result<double> host_rate(core::Backend& backend, const Cipher& cipher,
                             const core::KeyList& keys, int threads, std::size_t count) {
        const auto cores = static_cast<std::size_t>(threads);
        const std::size_t bytes = threads == 1 ? effort_.one_core : effort_.every_core * cores;
        const auto list = messages(count, bytes);
        std::vector<Code> codes(list.size());
        const auto survey = pipeline::survey(cipher, list);
        return best_rate(bytes, effort_.figure, [&]() -> Result<> {
            auto ran =
                pipeline::run_on_host(backend, pool_, {cipher, keys, list, codes}, survey, threads);
            if (!ran) return std::move(ran).error();
            return {};
        });
    }

    // What no cipher can be faster than, where caches do not help: copies in pieces as large as a
    // thread has at a time, the best of some.
    Result<> measure_memory(Calibration& calibration) {
        report("memory", 0);
        const std::size_t piece = std::min(effort_.memory, std::size_t{1} << 20);
        const std::size_t count = effort_.memory / piece;
        std::vector<std::uint8_t> from(count * piece, 1), to(count * piece, 2);
        for (double* const figure : {&calibration.memory_core, &calibration.memory_all}) {
            const int threads = figure == &calibration.memory_core ? 1 : pool_.threads();
            DAEL_LET(rate, best_rate(to.size(), effort_.figure, [&]() -> Result<> {
                         DAEL_TRY(pool_.run(count, threads, [&](std::size_t i) -> Result<> {
                             std::memcpy(to.data() + i * piece, from.data() + i * piece, piece);
                             return {};
                         }));
                         return {};
                     }));
            *figure = rate;
        }
        // They can do what one of them does: less means that something else was running.
        calibration.memory_all = std::max(calibration.memory_all, calibration.memory_core);
        return {};
    }

    Result<> measure_host(core::Backend& backend, Calibration& calibration) {
        for (const Cipher& cipher : ciphers_)
            for (const Key& key : keys_of(cipher)) {
                step(backend.profile().name, name(cipher.mode));
                if (!takes(backend, cipher, key)) continue;
                const std::span one(&key, 1);
                DAEL_LET(tables, backend.tables(one));
                const core::KeyList keys{one, tables.get()};
                HostRate rate{backend.profile().name, cipher.mode, cipher.direction, key.bits()};
                const int all = pool_.threads();
                const auto each = static_cast<std::size_t>(all);
                struct {
                    double& rate;
                    int threads;
                    std::size_t count;
                } const figures[] = {{rate.one_core, 1, 1},
                                     {rate.all_cores, modes::can_cut(cipher) ? all : 1, 1},
                                     {rate.batch_core, 1, pipeline::kLanes},
                                     {rate.batch_all, all, pipeline::kLanes * each}};
                for (const auto& figure : figures) {
                    DAEL_LET(measured,
                             host_rate(backend, cipher, keys, figure.threads, figure.count));
                    figure.rate = measured;
                }
                calibration.hosts.push_back(std::move(rate));
            }
        return {};
    }

    Result<> measure_device(std::unique_ptr<core::Backend> backend, double opening,
                            Calibration& calibration) {
        core::Device& device = *backend->device();
        DeviceRates rates;
        rates.backend = backend->profile().name;
        rates.device = pipeline::identity(device.info());
        // Drivers put off most of the start until something is asked of the device.
        const auto start = Clock::now();
        DAEL_TRY(pipeline::measure_kernel(*backend, {Mode::ctr, Direction::encrypt}, keys_[0],
                                          std::size_t{1} << 20, 1));
        rates.start_seconds = std::max(opening + seconds_since(start), 1e-3);
        DAEL_TRY(choose_form(*backend, rates));
        DAEL_TRY(measure_copies(device, rates));
        for (const Cipher& cipher : ciphers_)
            for (const Key& key : keys_of(cipher)) {
                step(rates.backend, std::string("kernel ") + std::string(name(cipher.mode)));
                if (!takes(*backend, cipher, key)) continue;
                const bool parallel = parallel_within_message(cipher.mode, cipher.direction);
                const std::size_t size = parallel ? effort_.kernel : effort_.sequential;
                DAEL_LET(seconds, pipeline::measure_kernel(*backend, cipher, key, size, 5));
                rates.kernels.push_back(
                    {cipher.mode, cipher.direction, key.bits(),
                     static_cast<double>(size) / kGiga / std::max(seconds, 1e-9)});
            }
        calibration.devices.push_back(std::move(rates));
        return {};
    }

    // What both directions of the cipher take in this form of kernels, which stays in use.
    Result<double> seconds_in_form(core::Backend& backend, const std::string& form) {
        DAEL_TRY(backend.device()->forms()->use(form));
        double sum = 0;
        for (const Cipher& cipher :
             {Cipher{Mode::ctr, Direction::encrypt}, Cipher{Mode::cbc, Direction::decrypt}}) {
            DAEL_LET(seconds,
                     pipeline::measure_kernel(backend, cipher, keys_[0], effort_.kernel, 5));
            sum += seconds;
        }
        return sum;
    }

    // The fastest form; leaves it in use. Forms are offers: a driver may refuse some of them.
    Result<> choose_form(core::Backend& backend, DeviceRates& rates) {
        core::Forms* const forms = backend.device()->forms();
        if (!forms) return {};
        double best = std::numeric_limits<double>::infinity();
        Result<> refused;
        for (const std::string& form : forms->list()) {
            step(rates.backend, form);
            const auto seconds = seconds_in_form(backend, form);
            if (!seconds) refused = seconds.error();
            if (!seconds || *seconds >= best) continue;
            best = *seconds;
            rates.form = form;
        }
        return rates.form.empty() ? refused : forms->use(rates.form);
    }

    // The bus, the best chunk, and what pageable memory makes of it.
    Result<> measure_copies(core::Device& device, DeviceRates& rates) {
        const auto release = [&](std::uint8_t* memory) { device.memory().release_pinned(memory); };
        using Pinned = std::unique_ptr<std::uint8_t, decltype(release)>;
        step(rates.backend, "page-locking memory");
        auto in_memory = device.memory().allocate_pinned(effort_.bus),
             out_memory = device.memory().allocate_pinned(effort_.bus);
        const Pinned in(in_memory ? static_cast<std::uint8_t*>(*in_memory) : nullptr, release);
        const Pinned out(out_memory ? static_cast<std::uint8_t*>(*out_memory) : nullptr, release);
        if (!in || !out) return in ? std::move(out_memory).error() : std::move(in_memory).error();
        const HostIn from(in.get(), effort_.bus);
        const HostOut to(out.get(), effort_.bus);

        pipeline::Transfer transfer(device, pool_);
        double best_job = 0;
        for (const std::size_t mebibytes : {2, 4, 8, 16, 32}) {
            step(rates.backend, "copies");
            const std::size_t chunk = mebibytes << 20;
            pipeline::BusRates best;
            for (int repeat = 0; repeat < 4; ++repeat) {  // the first also allocates the slots
                auto bus = pipeline::measure_bus(device, transfer, from, to, chunk);
                if (!bus) return std::move(bus).error();
                best.copy_in = std::max(best.copy_in, bus->copy_in);
                best.copy_out = std::max(best.copy_out, bus->copy_out);
                best.duplex = std::max(best.duplex, bus->duplex);
                best.whole_job = std::max(best.whole_job, bus->whole_job);
            }
            rates.copy_in = std::max(rates.copy_in, best.copy_in);
            rates.copy_out = std::max(rates.copy_out, best.copy_out);
            rates.duplex = std::max(rates.duplex, best.duplex);
            // A larger chunk must earn its memory, and the wait for its first bytes and its last.
            if (best.whole_job > best_job * 1.02) {
                best_job = best.whole_job;
                rates.chunk = chunk;
            }
        }

        step(rates.backend, "pageable memory");
        std::vector<std::uint8_t> pageable_in(effort_.bus, 1), pageable_out(effort_.bus, 2);
        pipeline::TransferOptions options;
        options.chunk = rates.chunk;
        options.threads = pool_.threads();
        const auto timed = [&](const Message& message) {
            return best_rate(message.size, effort_.figure, [&]() -> Result<> {
                Code code = Code::ok;
                const pipeline::Request request{{Mode::ctr, Direction::encrypt},
                                                {std::span(keys_).first(1)},
                                                {&message, 1},
                                                {&code, 1}};
                pipeline::WorkQueue queue(request, false);
                pipeline::WorkQueue::Member member(queue, 1);
                auto done = transfer.run(request, queue, member, options);
                if (!done) return std::move(done).error();
                return {};
            });
        };
        const Message large{pageable_in.data(), pageable_out.data(), effort_.bus};
        DAEL_TRY(timed(large));  // allocates the staging rings
        auto rate = timed(large);
        if (!rate) return std::move(rate).error();
        rates.pageable = *rate;

        step(rates.backend, "set-up");
        constexpr std::size_t kHardlyAny = 4096;
        auto small = timed({pageable_in.data(), pageable_out.data(), kHardlyAny});
        if (!small) return std::move(small).error();
        rates.setup_seconds = static_cast<double>(kHardlyAny) / kGiga / *small;
        return {};
    }

    const CalibrationProgress& progress_;
    const pipeline::Effort effort_;
    pipeline::ThreadPool pool_;
    std::vector<std::uint8_t> buffer_;
    std::vector<Key> keys_, xts_keys_;
    std::vector<Block> tags_;
    const std::vector<Cipher> ciphers_ = ciphers();
    double steps_ = 1;
    double step_ = 0;
};

}  // namespace

namespace pipeline {

Result<Calibration> calibrate_backends(const Backends& hosts,
                                       const std::function<Backends()>& find_devices,
                                       const CalibrationProgress& progress, const Effort& effort) {
    return core::guarded([&] { return Calibrator(progress, effort).run(hosts, find_devices); });
}

}  // namespace pipeline

Result<Calibration> calibrate(const CalibrationProgress& progress) {
    return core::guarded([&] {
        pipeline::Backends hosts;
        for (const core::BackendEntry& entry : core::backend_list())
            if (entry.expected)
                if (auto opened = core::open_backend(entry.name))
                    hosts.push_back(std::move(*opened));
        return pipeline::calibrate_backends(hosts, pipeline::open_devices, progress, {});
    });
}

}  // namespace dael
