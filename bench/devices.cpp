// SPDX-License-Identifier: Apache-2.0
#include "bench/devices.hpp"

#include <algorithm>
#include <cstring>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"

namespace dael::bench {
namespace {

using measure::DeviceBuffer;
using measure::DeviceStream;
using measure::Heat;
using measure::HostBuffer;
using measure::MemoryKind;

constexpr std::uint64_t MiB = 1 << 20;
// What copies are cut into, so that both ways and all devices begin at once.
constexpr std::uint64_t kCopy = 16 * MiB;

bool is_absent(Code code) {
    return code == Code::backend_absent || code == Code::unknown_backend;
}

bool is_host(const std::string& name) {
    return std::ranges::count(kHostBackends, name) != 0;
}

// Every GPU that is there, unless devices are named.
std::vector<std::string> names_of(const Options& options) {
    if (!options.backends.empty()) return device_names(options);
    std::vector<std::string> names;
    for (const BackendInfo& info : list_backends("cuda"))
        if (info.present) names.push_back(info.name);
    return names.empty() ? device_names(options) : names;
}

struct Together {
    Devices all;
    std::shared_ptr<SharedMemory> memory;
    measure::Sampling sampling;

    measure::Sampler wall(std::function<Result<>()> call) const {
        return measure::wall_clock(std::move(call), sampling);
    }
    // The bus without a cipher, and the host's memory for what the host did.
    std::size_t enter_copies(Heat& heat, const std::vector<std::string>& members,
                             std::uint64_t size, double host_percent) const {
        const auto by_host =
            static_cast<std::uint64_t>(host_percent / 100 * static_cast<double>(size));
        return heat.enter(is_host(members.back()) ? "copies both ways and memcpy at once"
                                                  : "copies both ways at once",
                          wall([memory = memory, members, size, by_host] {
                              return memory->copy(members, size, by_host);
                          }));
    }

    Result<Heat> prepare(const Work& work) const {
        Heat heat;
        const auto memcpy_alone =
            enter_memcpy(heat, memory->team, memory->out(), memory->in(), work.bytes(), sampling);
        const auto messages = lay_out(work, memory->in(), memory->out(), memory->tags.data());
        std::vector<std::size_t> rows;  // of those alone
        const auto enter = [&](const HostEngine& engine) -> Result<> {
            const auto members = members_of(engine.backend);
            const bool host = is_host(members.back()), alone = members.size() == 1;
            DAEL_LET(made, host_call(engine, work, messages));
            for (int i = 0; i < 2; ++i) DAEL_TRY(made.call());  // the first one is cold
            std::vector<std::size_t> against;
            if (!host || !alone)
                against.push_back(
                    enter_copies(heat, members, work.bytes(),
                                 host ? percents(engine.backend, *made.ran).back() : 0));
            if (host) against.push_back(memcpy_alone);
            std::vector<measure::Sampler> each;
            for (const std::string& member : members) {
                if (alone) break;
                DAEL_LET(call, host_call(*all.find(member), work, messages));
                each.push_back(wall(call.call));
            }
            if (!alone) against.push_back(heat.enter("each alone, added", added(std::move(each))));
            for (std::size_t i = 0; i < rows.size() && !alone; ++i)
                if (std::ranges::count(members, all.alone[i].backend) != 0)
                    against.push_back(rows[i]);
            Work own = work;
            own.backend = engine.backend;
            own.threads = made.ran->threads;
            const auto check = [memory = memory, engine, own, messages]() -> Result<> {
                DAEL_LET(anew, host_call(engine, own, messages));
                return memory->check(own, anew.call);
            };
            const auto row = heat.enter(engine.backend, wall(made.call), check, own.point(),
                                        static_cast<double>(work.bytes()), std::move(against));
            if (alone) {
                rows.push_back(row);
                return {};
            }
            heat.describe(row, [ran = made.ran, set = engine.backend](double) {
                measure::Figures figures;
                for (const double share : percents(set, *ran))
                    figures.emplace_back("percent_" + std::to_string(figures.size() + 1), share);
                return figures;
            });
            return {};
        };
        for (const HostEngine& engine : all.alone) DAEL_TRY(enter(engine));
        for (const HostEngine& engine : all.sets) DAEL_TRY(enter(engine));
        return heat;
    }
};

}  // namespace

std::vector<std::string> members_of(const std::string& set) {
    std::vector<std::string> names{""};
    for (const char c : set) {
        if (c == '+')
            names.emplace_back();
        else
            names.back() += c;
    }
    return names;
}

std::vector<double> percents(const std::string& set, const Ran& ran) {
    const auto at_it = members_of(std::string(ran.backend));
    std::vector<double> percent;
    for (const std::string& member : members_of(set)) {
        const auto found = std::ranges::find(at_it, member);
        const auto place = static_cast<std::size_t>(found - at_it.begin());
        percent.push_back(found == at_it.end() || place >= ran.percent.size() ? 0
                          : at_it.size() == 1                                 ? 100
                                                                              : ran.percent[place]);
    }
    return percent;
}

measure::Sampler added(std::vector<measure::Sampler> each) {
    return [each = std::move(each)]() -> Result<double> {
        double rate = 0;
        for (const measure::Sampler& sample : each) {
            DAEL_LET(seconds, sample());
            rate += 1 / seconds;
        }
        return 1 / rate;
    };
}

measure::Axis devices_work(const Options& options, const std::vector<std::uint64_t>& bytes,
                           std::uint64_t parts) {
    measure::Axis all;
    for (const auto& [mode, usual] : {std::pair{"ctr", 256}, {"gcm", 128}}) {
        if (!options.modes.empty() && std::ranges::count(options.modes, mode) == 0) continue;
        for (const int bits : options.bits.empty() ? std::vector{usual} : options.bits)
            for (const std::uint64_t size : bytes) {
                Point point{{"mode", mode},
                            {"direction", "encrypt"},
                            {"bits", static_cast<std::uint64_t>(bits)}};
                if (mode == std::string_view("ctr")) {
                    all.push_back(point.set(shape(size / parts / kBlockSize * kBlockSize, parts)));
                    continue;
                }
                const std::uint64_t each = std::min(MiB, size / parts);
                all.push_back(point.set(shape(each, size / parts / each * parts, 1)));
            }
    }
    return all;
}

Result<Devices> Devices::open(const Suite& suite) {
    const Options& options = suite.options;
    Devices all;
    for (const std::string& name : names_of(options)) {
        auto subject = DeviceUnderTest::open(name);
        if (!subject && !is_absent(subject.code())) return std::move(subject).error();
        if (!subject) {
            suite.session.report.skip(name + ": " + subject.error().message);
            continue;
        }
        all.devices.push_back(*subject);
        all.alone.push_back({subject->name, "", subject->engine});
    }
    std::string gpus;
    for (const DeviceUnderTest& device : all.devices)
        gpus += (gpus.empty() ? "" : "+") + device.name;
    std::vector<std::string> sets;
    if (all.devices.size() > 1) sets.push_back(gpus);
    for (const std::string host : kHostBackends) {
        if (!wants_backend(options, host)) continue;
        auto engine = Engine::open({.backend = host, .threads = options.threads});
        if (!engine) {
            suite.session.report.skip(host + ": " + engine.error().message);
            continue;
        }
        all.alone.push_back({host, "", std::make_shared<Engine>(std::move(*engine))});
        if (!gpus.empty()) sets.push_back(all.devices.front().name + "+" + host);
        if (all.devices.size() > 1) sets.push_back(gpus + "+" + host);
        break;  // of a set's members one is the host
    }
    for (const std::string& set : sets) {
        DAEL_LET(engine, Engine::open({.backend = set, .threads = options.threads}));
        all.sets.push_back({set, "", std::make_shared<Engine>(std::move(engine))});
    }
    return all;
}

const HostEngine* Devices::find(const std::string& name) const {
    for (const auto* list : {&alone, &sets})
        for (const HostEngine& engine : *list)
            if (engine.backend == name) return &engine;
    return nullptr;
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::make(const Devices& all, std::uint64_t size,
                                                         std::uint64_t messages, int threads) {
    const auto memory = std::make_shared<SharedMemory>(threads);
    memory->tags.resize(messages * gcm::kTagSize);
    for (HostBuffer* buffer : {&memory->plain_in, &memory->plain_out}) {
        if (!all.devices.empty()) break;
        DAEL_LET(made, HostBuffer::allocate(size));
        *buffer = std::move(made);
    }
    for (DeviceBuffer* buffer : {&memory->pinned_in, &memory->pinned_out}) {
        if (all.devices.empty()) break;
        DAEL_LET(made,
                 DeviceBuffer::allocate(all.devices.front().device, MemoryKind::pinned, size));
        *buffer = made;
    }
    measure::fill_random(memory->team, const_cast<std::uint8_t*>(memory->in()), size, 11);
    for (const DeviceUnderTest& subject : all.devices) {
        DAEL_LET(free, subject.device.memory.free_memory());
        const std::uint64_t there = std::min(size, std::max(kCopy, free / 4));
        DAEL_LET(inward, DeviceStream::create(subject.device));
        DAEL_LET(outward, DeviceStream::create(subject.device));
        DAEL_LET(in, DeviceBuffer::allocate(subject.device, MemoryKind::device, there));
        DAEL_LET(out, DeviceBuffer::allocate(subject.device, MemoryKind::device, there));
        memory->lanes.push_back({subject, inward, outward, in, out});
    }
    return memory;
}

Result<> SharedMemory::copy(const std::vector<std::string>& members, std::uint64_t size,
                            std::uint64_t by_host) {
    std::vector<const Lane*> at_it;
    for (const Lane& lane : lanes)
        if (std::ranges::count(members, lane.subject.name) != 0) at_it.push_back(&lane);
    const std::uint64_t through = size - by_host;
    const std::uint64_t each = (through + at_it.size() - 1) / at_it.size();
    for (std::uint64_t at = 0; at < each; at += kCopy)
        for (std::size_t i = 0; i < at_it.size(); ++i) {
            const Lane& lane = *at_it[i];
            const std::uint64_t begin = i * each + at;
            if (begin >= through) continue;
            const std::uint64_t count = std::min({kCopy, each - at, through - begin});
            // Where a part goes that is larger than the device's buffers.
            const std::uint64_t there = at + count <= lane.in.size() ? at : 0;
            Memory& device = lane.subject.device.memory;
            DAEL_TRY(
                device.copy_in(lane.in.data() + there, in() + begin, count, lane.inward.get()));
            DAEL_TRY(
                device.copy_out(out() + begin, lane.out.data() + there, count, lane.outward.get()));
        }
    if (by_host != 0)
        team.run(by_host, [this, through](std::size_t begin, std::size_t end) {
            std::memcpy(out() + through + begin, in() + through + begin, end - begin);
        });
    for (const Lane* lane : at_it) {
        DAEL_TRY(lane->subject.device.order.wait(lane->inward.get()));
        DAEL_TRY(lane->subject.device.order.wait(lane->outward.get()));
    }
    return {};
}

Result<> SharedMemory::check(const Work& work, const std::function<Result<>()>& once) {
    team.run(work.bytes(), [this](std::size_t begin, std::size_t end) {
        std::memset(out() + begin, kPoison, end - begin);
    });
    std::ranges::fill(tags, kPoison);
    DAEL_TRY(once());
    return check_output(work, in(), measure::fetch_from(out()),
                        work.is(Mode::gcm) ? measure::fetch_from(tags.data()) : Fetch{});
}

Result<Benchmark> together(const Suite& suite, const Devices& all) {
    const Workload& workload = suite.workload;
    const std::uint64_t largest =
        measure::fitting(suite.session.report, std::ranges::max(workload.devices), 2);
    const int threads = measure::thread_count(suite.options.threads);
    DAEL_LET(memory, SharedMemory::make(all, largest, largest / MiB + 2, threads));
    const auto state = std::make_shared<const Together>(Together{all, memory, workload.sampling});
    return Benchmark{"together",
                     {measure::Axis{Point{{"where", all.devices.empty() ? "host" : "pinned"}}},
                      devices_work(suite.options, workload.devices)},
                     [largest](const Point& point) { return Work(point).bytes() <= largest; },
                     [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
