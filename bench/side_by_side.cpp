// SPDX-License-Identifier: Apache-2.0
// Data that lies in the memory of each of several devices: one with all of it to do, and all of
// them, each with its own part.
#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/sides.hpp"

namespace dael::bench {
namespace {

using measure::DeviceBuffer;
using measure::Heat;
using measure::MemoryKind;

// What one device has to do, and what became of it.
struct Task {
    const Side* side;
    std::function<Result<>()> launch;
    std::function<Result<>()> codes = [] { return Result<>{}; };
};

struct SideBySide {
    Sides sides;
    std::vector<DeviceBuffer> tags;  // of each side

    std::uint8_t* tags_of(const Side& side) const {
        return tags[static_cast<std::size_t>(&side - sides.each.data())].data();
    }

    static Result<> once(const std::vector<Task>& tasks) {
        for (const Task& task : tasks) DAEL_TRY(task.launch());
        for (const Task& task : tasks)
            DAEL_TRY(task.side->subject.device.order.wait(task.side->stream.get()));
        return {};
    }

    // A batch, made ready.
    static Result<Task> batch(const Side& side, const Work& work,
                              std::span<const Message> messages) {
        DAEL_LET(keys, make_keys(work));
        DAEL_LET(set, side.subject.engine->keys(keys));
        DAEL_LET(made, side.subject.engine->prepare(
                           work.cipher, set,
                           {.list = messages.data(),
                            .count = static_cast<std::uint32_t>(messages.size())}));
        const auto held = std::make_shared<Batch>(std::move(made));
        return Task{&side,
                    [&side, held]() -> Result<> {
                        DAEL_TRY(side.subject.engine->launch(*held, side.stream.get()));
                        return {};
                    },
                    [&side, held, work]() -> Result<> {
                        DAEL_LET(codes, held->results(side.stream.get()));
                        return check_codes(work, codes);
                    }};
    }

    // The messages from `first` on, on the side that has them in its memory.
    Result<Task> task(const Side& side, const Work& work, std::uint64_t first,
                      std::uint64_t count) const {
        const bool opens = work.is(Mode::gcm);
        const auto all = lay_out(work, opens ? side.sealed.data() : side.in.data(), side.out.data(),
                                 tags_of(side));
        std::vector<Message> own(all.begin() + static_cast<std::ptrdiff_t>(first),
                                 all.begin() + static_cast<std::ptrdiff_t>(first + count));
        if (opens) return batch(side, work, own);
        DAEL_LET(keys, make_keys(work));
        return Task{
            &side,
            [&side, cipher = work.cipher, own = std::move(own),
             key = std::make_shared<Key>(std::move(keys.front()))]() -> Result<> {
                for (const Message& message : own)
                    DAEL_TRY(side.subject.engine->run(cipher, *key, message, side.stream.get()));
                return {};
            }};
    }

    Result<> seal(const Side& side, Work work) const {
        work.cipher.direction = Direction::encrypt;
        DAEL_TRY(side.clock.fill(side.sealed.data(), kPoison, work.bytes()));
        DAEL_LET(sealing, batch(side, work,
                                lay_out(work, side.in.data(), side.sealed.data(), tags_of(side))));
        DAEL_TRY(once({sealing}));
        return check_output(work, sides.host.data(), side.clock.fetch_from(side.sealed.data()),
                            side.clock.fetch_from(tags_of(side)));
    }

    // Each task's part is that of its place among them.
    Result<> check(const Work& work, const std::vector<Task>& tasks) const {
        for (const Task& task : tasks)
            DAEL_TRY(task.side->clock.fill(task.side->out.data(), kPoison, work.bytes()));
        DAEL_TRY(once(tasks));
        for (const Task& task : tasks) DAEL_TRY(task.codes());
        const std::uint64_t part = work.bytes() / tasks.size();
        const Fetch fetch = [&](std::uint64_t at, std::uint8_t* bytes, std::size_t size) {
            const Side& side = *tasks[at / part].side;
            return side.clock.fetch_from(side.out.data())(at, bytes, size);
        };
        return work.is(Mode::gcm) ? check_opened(work, sides.host.data(), fetch)
                                  : check_output(work, sides.host.data(), fetch);
    }

    measure::Sampler wall(std::vector<Task> tasks) const {
        return measure::wall_clock([tasks = std::move(tasks)] { return once(tasks); },
                                   sides.sampling);
    }

    Result<Heat> prepare(Work work) const {
        const bool opens = work.is(Mode::gcm);
        if (opens) work.cipher.direction = Direction::decrypt;
        std::vector<Task> together;
        std::vector<std::vector<Task>> alone;
        for (const Side& side : sides.each) {
            if (opens) DAEL_TRY(seal(side, work));
            const std::uint64_t count = work.messages / sides.each.size();
            DAEL_LET(own, task(side, work, together.size() * count, count));
            DAEL_LET(whole, task(side, work, 0, work.messages));
            together.push_back(own);
            alone.push_back({whole});
        }
        Heat heat;
        const auto bytes = static_cast<double>(work.bytes());
        const auto copy = sides.enter_copies(heat, work.bytes());
        std::vector<measure::Sampler> each;
        std::vector<std::size_t> against;
        const auto enter = [&](const std::string& name, const std::vector<Task>& tasks,
                               std::vector<std::size_t> others) {
            Work own = work;
            own.backend = name;
            return heat.enter(
                name, wall(tasks), [this, own, tasks] { return check(own, tasks); }, own.point(),
                bytes, std::move(others));
        };
        for (std::size_t i = 0; i < sides.each.size(); ++i) {
            each.push_back(wall(alone[i]));
            against.push_back(enter(sides.each[i].subject.name, alone[i], {copy}));
        }
        against.push_back(heat.enter("each alone, added", added(std::move(each))));
        against.push_back(copy);
        enter(sides.names(), together, std::move(against));
        return heat;
    }
};

}  // namespace

Result<Benchmark> side_by_side(const Suite& suite, const Devices& all) {
    DAEL_LET(largest, Sides::room(suite, all));
    const auto work = devices_work(suite.options, {largest}, all.devices.size());
    std::uint64_t size = 0, messages = 0;
    for (const Point& point : work) {
        size = std::max<std::uint64_t>(size, Work(point).bytes());
        messages = std::max(messages, Work(point).messages);
    }
    DAEL_LET(sides, Sides::make(suite, all, size, 12));
    const auto state = std::make_shared<SideBySide>(SideBySide{std::move(sides), {}});
    for (const Side& side : state->sides.each) {
        DAEL_LET(tags, DeviceBuffer::allocate(side.subject.device, MemoryKind::device,
                                              messages * gcm::kTagSize));
        state->tags.push_back(tags);
    }
    return Benchmark{
        "side by side",
        {measure::Axis{
             Point{{"where", "device"}, {"measure", "together"}, {"threads", std::uint64_t{1}}}},
         work},
        {},
        [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
