// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "measure/device.hpp"

namespace dael::bench {
namespace {

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::Heat;
using measure::HostBuffer;
using measure::Launch;
using measure::MemoryKind;

constexpr std::size_t kMargin = 16;        // room to start a few bytes late
constexpr std::size_t kTiny = 16;          // bytes of a fill that costs a launch and nothing else
constexpr std::uint64_t kKeySetSize = 48;  // bytes of the message that keys are made ready for
constexpr int kTrain = 100;                // launches back to back
constexpr int kBatchesAhead = 20;          // as many as a figure has samples, and a few more

// What is launched, and what comes first, outside the measured time.
struct Launches {
    Launch launch, before;
    std::function<Result<>()> codes = [] { return Result<>{}; };  // of the last launch
};

struct Resident {
    DeviceUnderTest subject;
    DeviceClock clock;
    measure::Sampling sampling;
    HostBuffer host;  // what `in` holds
    DeviceBuffer in, out, tags;
    bool whole = true;         // whether `in` does
    std::set<Mode> lacking{};  // modes that the device said it has not, once

    // GCM of one message that is known only now, which travels with its launch.
    Result<Launches> travelling(const Work& work, const Message& message,
                                const std::vector<Key>& keys) const {
        DAEL_LET(set, subject.engine->keys(keys));
        DAEL_LET(code,
                 DeviceBuffer::allocate(subject.device, MemoryKind::pinned, sizeof(std::uint32_t)));
        const auto opened = reinterpret_cast<std::uint32_t*>(code.data());
        *opened = static_cast<std::uint32_t>(Code::ok);
        return Launches{
            [engine = subject.engine, cipher = work.cipher, message, code, opened,
             set = std::make_shared<KeySet>(std::move(set))](Stream s) -> Result<> {
                DAEL_TRY(engine->launch(cipher, *set, {&message, 1}, s, {.codes = opened}));
                return {};
            },
            {},
            [work, code, opened] {
                const Code all[] = {static_cast<Code>(*opened)};
                return check_codes(work, all);
            }};
    }

    // A list in device memory, which may be launched as often as wanted; with the same nonces,
    // which only a measurement may have.
    Result<Launches> listed(const Work& work, std::vector<Message> messages, KeySet set) const {
        const std::size_t size = messages.size() * sizeof(Message);
        DAEL_LET(list, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
        DAEL_TRY(clock.copy_in(list.data(), messages.data(), size));
        DAEL_LET(made,
                 subject.engine->prepare(work.cipher, set,
                                         {.list = reinterpret_cast<const Message*>(list.data()),
                                          .count = static_cast<std::uint32_t>(messages.size()),
                                          .place = Place::device,
                                          .longest = work.list == kListBound ? work.size : 0}));
        const auto batch = std::make_shared<Batch>(std::move(made));
        return Launches{[engine = subject.engine, batch, list](Stream s) -> Result<> {
                            DAEL_TRY(engine->launch(*batch, s));
                            return {};
                        },
                        {},
                        [work, batch]() -> Result<> {
                            DAEL_LET(all, batch->results({}));
                            return check_codes(work, all);
                        }};
    }

    // Keys, from where a program has them to where a batch can be launched: one message under the
    // last of them.
    Result<std::function<Result<>()>> key_set(const Work& work) const {
        DAEL_LET(keys, make_keys(work));
        Work one = work;
        one.messages = 1;
        Message message = lay_out(one, in.data(), out.data(), tags.data()).front();
        message.key = static_cast<std::uint32_t>(work.keys - 1);
        return std::function<Result<>()>(
            [engine = subject.engine, cipher = work.cipher, message,
             list = std::make_shared<std::vector<Key>>(std::move(keys))]() -> Result<> {
                DAEL_LET(set, engine->keys(*list));
                auto batch = engine->prepare(cipher, set, {.list = &message, .count = 1});
                return batch ? Result<>{} : std::move(batch).error();
            });
    }

    // One message that needs no list, or a batch in one launch. A batch that encrypts may be
    // launched once, so that there is a new one for each sample.
    Result<Launches> launches(const Work& work, const std::uint8_t* from, std::uint8_t* to) {
        struct Batched {
            std::shared_ptr<Engine> engine;
            KeySet keys;
            Work work;
            std::vector<Message> messages;
            std::vector<Batch> batches = {};
            std::size_t in_use = 0;
        };
        const auto engine = subject.engine;
        auto messages = lay_out(work, from, to, tags.data());
        DAEL_LET(keys, make_keys(work));
        if (work.measure == "launch" && work.tagged())
            return travelling(work, messages.front(), keys);
        if (messages.size() == 1 && !work.tagged())
            return Launches{
                [engine, cipher = work.cipher, message = messages.front(),
                 key = std::make_shared<Key>(std::move(keys.front()))](Stream s) -> Result<> {
                    DAEL_TRY(engine->run(cipher, *key, message, s));
                    return {};
                },
                {}};
        DAEL_LET(set, engine->keys(keys));
        if (!work.list.empty()) return listed(work, std::move(messages), std::move(set));
        const auto batched =
            std::make_shared<Batched>(Batched{engine, std::move(set), work, std::move(messages)});
        // Many at a time: what is allocated and released between two samples costs the GPU its
        // translations of addresses, and the next sample the time to find them again.
        const auto before = [batched](Stream) -> Result<> {
            Batched& b = *batched;
            if (++b.in_use < b.batches.size()) return {};
            b.batches.clear();
            b.in_use = 0;
            const auto count = static_cast<std::uint32_t>(b.messages.size());
            for (int i = 0; i < kBatchesAhead; ++i) {
                DAEL_LET(batch, b.engine->prepare(b.work.cipher, b.keys,
                                                  {.list = b.messages.data(), .count = count}));
                b.batches.push_back(std::move(batch));
            }
            return {};
        };
        const auto launch = [batched](Stream s) -> Result<> {
            DAEL_TRY(batched->engine->launch(batched->batches[batched->in_use], s));
            return {};
        };
        const auto codes = [batched]() -> Result<> {
            DAEL_LET(all, batched->batches[batched->in_use].results({}));
            return check_codes(batched->work, all);
        };
        return Launches{launch, before, codes};
    }

    Result<> once(const Launches& made) const {
        if (made.before) DAEL_TRY(made.before({}));
        DAEL_TRY(clock.run(made.launch));
        return made.codes();
    }

    Result<> restore() {
        if (!whole) DAEL_TRY(clock.copy_in(in.data(), host.data(), host.size()));
        whole = true;
        return {};
    }

    // Plain modes, and what seals: poison, one launch, comparison with OpenSSL.
    Result<> check(const Work& work, const Launches& made, std::size_t shift, std::uint8_t* to) {
        DAEL_TRY(work.placement == "in place" ? clock.copy_in(to, host.data() + shift, work.room())
                                              : clock.fill(to, kPoison, work.room()));
        if (work.tagged()) DAEL_TRY(clock.fill(tags.data(), kPoison, tags.size()));
        DAEL_TRY(once(made));
        return check_output(work, host.data() + shift, clock.fetch_from(to),
                            work.tagged() ? clock.fetch_from(tags.data()) : Fetch{});
    }

    // What opens: from where it was sealed to, back to where it came from.
    Result<> check_opening(const Work& work, const Launches& made) {
        Work sealing = work;
        sealing.cipher.direction = Direction::encrypt;
        DAEL_LET(seals, launches(sealing, in.data(), out.data()));
        DAEL_TRY(check(sealing, seals, 0, out.data()));
        whole = false;
        DAEL_TRY(clock.fill(in.data(), kPoison, work.room()));
        DAEL_TRY(once(made));
        return check_opened(work, host.data(), clock.fetch_from(in.data()));
    }

    Result<Heat> key_heat(const Work& work) const {
        DAEL_LET(ready, key_set(work));
        Heat heat;
        const Launch tiny = [&memory = subject.device.memory, to = out.data()](Stream s) {
            return memory.fill(to, 0, kTiny, s);
        };
        const auto least = heat.enter("fill of 16 bytes", clock.by_wall(tiny, sampling));
        heat.enter(subject.name, measure::wall_clock(ready, sampling), {}, work.point(),
                   static_cast<double>(work.bytes()), {least});
        return heat;
    }

    Result<Heat> prepare(Work work) {
        if (lacking.contains(work.cipher.mode)) return Heat{};
        DAEL_TRY(restore());
        work.backend = subject.name;
        if (work.room() + kMargin > in.size())
            return Error{Code::out_of_memory, size_name(work) + " do not fit into device memory"};
        if (work.tagged() && tags.size() < work.messages * gcm::kTagSize) {
            DAEL_LET(more, DeviceBuffer::allocate(subject.device, MemoryKind::device,
                                                  work.messages * gcm::kTagSize));
            tags = more;
        }
        const bool opens = work.opens();
        const auto [placement, shift, out_shift] = shift_of(work);
        std::uint8_t* const to = opens ? in.data() : out.data() + out_shift;
        const std::uint8_t* const from = opens                          ? out.data()
                                         : work.placement == "in place" ? to
                                                                        : in.data() + shift;
        if (work.measure == "keys") return key_heat(work);
        auto tried = launches(work, from, to);
        if (tried.code() == Code::unsupported && work.tagged()) lacking.insert(work.cipher.mode);
        DAEL_LET(made, std::move(tried));
        const auto right = [=, this, shift = shift] {
            return opens ? check_opening(work, made) : check(work, made, shift, to);
        };
        Heat heat;
        const auto bytes = static_cast<double>(work.bytes());
        if (work.measure == "kernel") {  // the kernel's own time against a copy of as many bytes
            const auto copy = heat.enter(
                "copy within device memory",
                clock.by_events(clock.copy_within(opens ? in.data() : out.data(),
                                                  opens ? out.data() : in.data(), work.bytes())));
            // A copy over what was sealed for opening would leave nothing to open.
            heat.enter(subject.name, clock.by_events(made.launch, made.before), right, work.point(),
                       bytes, {copy});
            return heat;
        }
        // What a launch costs its caller, one after another and alone, against a fill of 16 bytes.
        const Launch tiny = [&memory = subject.device.memory, to](Stream s) {
            return memory.fill(to, 0, kTiny, s);
        };
        const auto least = heat.enter("fill of 16 bytes", clock.back_to_back(tiny, kTrain));
        heat.enter(subject.name, clock.back_to_back(made.launch, kTrain), right, work.point(),
                   bytes, {least});
        work.measure = "latency";
        const auto soonest = heat.enter("fill of 16 bytes", clock.by_wall(tiny, sampling));
        heat.enter(subject.name, clock.by_wall(made.launch, sampling), {}, work.point(), bytes,
                   {soonest});
        return heat;
    }
};

// Which shapes GCM has in device memory, in batches and by itself.
bool has_gcm(const Workload& workload, bool cuda, const Work& work) {
    const bool one = work.messages == 1, seals = work.cipher.direction == Direction::encrypt;
    if (work.measure == "keys")
        return cuda && !work.mac_only && seals && work.size == kKeySetSize &&
               work.placement == "apart";
    if (work.keys == 0 || (work.size == kKeySetSize && one)) return false;
    if (work.measure == "launch")  // which OpenCL has not
        return cuda && work.placement == "apart" && work.keys == 1 && one && !work.mac_only &&
               work.size == workload.launched.front();
    if (work.placement == "both 8 off")
        return cuda && one && !work.mac_only && seals && work.size == workload.device;
    if (work.placement != "apart" || (!cuda && !work.list.empty())) return false;
    if (one) return work.size == workload.device;
    const Shape batch{work.size, work.messages};
    const bool both_ways = work.list.empty() && work.mix.empty() &&
                           std::ranges::count(workload.gcm_device, batch) != 0;
    return !work.mac_only && (seals || both_ways);
}

// Which AEGIS, XAES-256-GCM and GCM-SIV have: batches whose list is on the host.
bool has_tagged(const Workload& workload, const Work& work) {
    if (work.measure != "kernel" || work.placement != "apart" || !work.list.empty()) return false;
    if (!work.mix.empty()) return work.is(Mode::aegis128l) && work.keys == 1;
    const ModeShape shape{work.cipher.mode, {work.size, work.messages}, work.keys};
    return std::ranges::count(workload.tagged_device, shape) != 0;
}

// Which shapes a way has in device memory.
bool has(const Options& options, const Workload& workload, bool cuda, const Point& point) {
    const Work work(point);
    const bool kernel = work.measure == "kernel", apart = work.placement == "apart";
    if (!has_bits(options, work)) return false;
    if (work.is(Mode::gcm)) return has_gcm(workload, cuda, work);
    if (work.tagged()) return has_tagged(workload, work);
    if (work.keys != 0 || work.measure == "keys") return false;
    if (work.is(Mode::xts))
        return kernel && apart && work.messages == 1 && work.size == workload.device;
    const Shape batch{work.size, work.messages};
    if (!work.parallel())
        return kernel && apart && std::ranges::count(workload.sequential, batch) != 0;
    if (work.messages != 1)
        return kernel && apart && !work.is(Mode::cfb) &&
               std::ranges::count(workload.parallel, batch) != 0;
    const bool swept =
        work.is(Mode::ctr) || (work.is(Mode::ecb) && work.cipher.direction == Direction::encrypt);
    if (!kernel)
        return swept && apart &&
               (work.size == workload.launched.front() ||
                (work.is(Mode::ctr) && std::ranges::count(workload.launched, work.size) != 0));
    if (!apart) {
        const bool common = work.placement == "in place" || work.placement == "unaligned";
        return work.size == workload.device &&
               (work.is(Mode::ctr) ? common || workload.every_placement
                                   : common && work.is(Mode::cbc));
    }
    return work.size == workload.device ||
           (swept && std::ranges::count(workload.device_sweep, work.size) != 0);
}

// Batches of GCM and its like: fields of a point.
measure::Axis gcm_batches(const Workload& workload) {
    measure::Axis shapes;
    for (const auto& [bytes, count] : workload.gcm_device)
        for (const std::uint64_t keys : {std::uint64_t{1}, count})
            shapes.push_back(shape(bytes, count, keys));
    for (const auto& [bytes, count] : workload.gcm_many) shapes.push_back(shape(bytes, count, 1));
    for (const auto& [bytes, count] : workload.gcm_listed)
        for (const char* list : {kListThere, kListBound}) {
            shapes.push_back(shape(bytes, count, 1));
            shapes.back().set("list", list);
        }
    for (const auto& [mode, each, keys] : workload.tagged_device)
        shapes.push_back(shape(each.size, each.count, keys));
    for (const std::uint64_t keys : {1, 64}) {
        if (workload.gcm_imix == 0) break;
        shapes.push_back(shape(0, workload.gcm_imix, keys));
        shapes.back().set("mix", "imix");
    }
    return shapes;
}

}  // namespace

Result<Benchmark> resident(const Suite& suite, const DeviceUnderTest& subject) {
    const Workload& workload = suite.workload;
    DAEL_LET(clock, DeviceClock::create(subject.device));
    DAEL_LET(free, subject.device.memory.free_memory());
    const std::uint64_t most = free / 8 * 3;  // input and output, and room for others
    const std::size_t size = std::min(workload.largest_device(), most) + kMargin;
    DAEL_LET(host, HostBuffer::allocate(size));
    DAEL_LET(in, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
    DAEL_LET(out, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
    measure::Team team(measure::thread_count(0));
    measure::fill_random(team, host.data(), size, 3);
    DAEL_TRY(clock.copy_in(in.data(), host.data(), size));
    const auto state = std::make_shared<Resident>(
        Resident{subject, clock, workload.sampling, std::move(host), in, out, {}});

    measure::Axis shapes;
    for (const auto* batches : {&workload.parallel, &workload.sequential})
        for (const auto& [bytes, count] : *batches) shapes.push_back(shape(bytes, count));
    shapes.push_back(shape(workload.device));
    for (const std::uint64_t bytes : workload.device_sweep) shapes.push_back(shape(bytes));
    shapes.push_back(shape(workload.device, 1, 1));
    if (workload.device_sweep.front() != workload.device)
        shapes.push_back(shape(workload.device_sweep.front(), 1, 1));
    std::ranges::copy(gcm_batches(workload), std::back_inserter(shapes));
    for (const std::uint64_t keys : workload.key_sets)
        shapes.push_back(shape(kKeySetSize, 1, keys));
    std::vector<const char*> placements{"apart", "in place"};
    for (const Shift& shift : kShifts) placements.push_back(shift.name);
    return Benchmark{
        subject.name,
        {measure::Axis{Point{{"where", "device"}, {"threads", std::uint64_t{1}}}},
         measure::axis("bits", workload.bits), ways(suite.options), std::move(shapes),
         measure::axis("measure", std::vector<const char*>{"kernel", "launch", "keys"}),
         measure::axis("placement", placements)},
        [options = suite.options, workload, cuda = subject.name.starts_with("cuda")](
            const Point& point) { return has(options, workload, cuda, point); },
        [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
