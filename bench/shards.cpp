// SPDX-License-Identifier: Apache-2.0
// One message that lies in parts on several devices, in one call with one tag; held against one
// device that has all of it.
#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/sides.hpp"

namespace dael::bench {
namespace {

using measure::Heat;

constexpr std::uint64_t kMostMessage = std::uint64_t{1} << 30;  // what OpenSSL checks whole

struct OverDevices {
    Sides sides;
    std::shared_ptr<Engine> set;

    // The call by an engine, with an equal part on each of these sides, which has it where it has
    // it of the whole.
    struct Call {
        std::shared_ptr<Engine> engine;
        std::vector<const Side*> sides;
        std::vector<Shard> shards;
        std::shared_ptr<KeySet> keys;
        Cipher cipher;
        Message message;
        std::shared_ptr<Block> tag = std::make_shared<Block>();

        Result<> run() const {
            Message its = message;
            if (authenticates(cipher.mode)) its.tag = tag->data();
            DAEL_TRY(engine->run_shards(cipher, *keys, its, shards));
            return {};
        }
        Fetch output() const {
            return [*this](std::uint64_t at, std::uint8_t* bytes, std::size_t size) -> Result<> {
                for (std::size_t i = 0; size != 0; ++i) {
                    if (at >= shards[i].size) {
                        at -= shards[i].size;
                        continue;
                    }
                    const auto here = std::min<std::uint64_t>(size, shards[i].size - at);
                    DAEL_TRY(sides[i]->clock.fetch_from(shards[i].out)(at, bytes, here));
                    bytes += here;
                    size -= here;
                    at = 0;
                }
                return {};
            };
        }
    };

    Result<Call> call(const Work& work, std::shared_ptr<Engine> engine,
                      std::vector<const Side*> at_it) const {
        Call made{std::move(engine), std::move(at_it), {}, {}, work.cipher, {}};
        const bool opens = work.cipher.direction == Direction::decrypt;
        const std::uint64_t part = work.bytes() / made.sides.size();
        for (std::size_t i = 0; i < made.sides.size(); ++i) {
            const Side& side = *made.sides[i];
            const std::uint64_t begin = i * part;
            const std::uint64_t size = i + 1 < made.sides.size() ? part : work.bytes() - begin;
            made.shards.push_back({(opens ? side.sealed : side.in).data() + begin,
                                   side.out.data() + begin, size, side.stream.get()});
        }
        DAEL_LET(keys, make_keys(work));
        DAEL_LET(key_set, made.engine->keys(keys));
        made.keys = std::make_shared<KeySet>(std::move(key_set));
        made.message = lay_out(work, nullptr, nullptr, nullptr).front();
        made.message.size = 0;
        if (!opens) return made;
        // What it opens was sealed by the same devices.
        Work sealing = work;
        sealing.cipher.direction = Direction::encrypt;
        DAEL_LET(seal, call(sealing, made.engine, made.sides));
        for (std::size_t i = 0; i < seal.shards.size(); ++i)
            seal.shards[i].out = const_cast<std::uint8_t*>(made.shards[i].in);
        DAEL_TRY(seal.run());
        *made.tag = *seal.tag;
        return made;
    }

    Result<> check(const Work& work, const Call& call) const {
        for (const Side* side : call.sides)
            DAEL_TRY(side->clock.fill(side->out.data(), kPoison, work.bytes()));
        DAEL_TRY(call.run());
        if (work.cipher.direction == Direction::decrypt)
            return check_opened(work, sides.host.data(), call.output());
        return check_output(work, sides.host.data(), call.output(),
                            work.is(Mode::gcm) ? measure::fetch_from(call.tag->data()) : Fetch{});
    }

    Result<Heat> prepare(const Work& work) const {
        Heat heat;
        std::vector<const Side*> all;
        for (const Side& side : sides.each) all.push_back(&side);
        const auto copies = sides.enter_copies(heat, work.bytes());
        const auto enter = [&](const std::string& name, Call made,
                               std::vector<std::size_t> others) {
            Work own = work;
            own.backend = name;
            return heat.enter(
                name, measure::wall_clock([made] { return made.run(); }, sides.sampling),
                [this, own, made] { return check(own, made); }, own.point(),
                static_cast<double>(work.bytes()), std::move(others));
        };
        std::vector<std::size_t> against;
        for (const Side& side : sides.each) {
            DAEL_LET(alone, call(work, side.subject.engine, {&side}));
            against.push_back(enter(side.subject.name, alone, {copies}));
        }
        against.push_back(copies);
        DAEL_LET(together, call(work, set, all));
        enter(sides.names(), together, std::move(against));
        return heat;
    }
};

}  // namespace

Result<Benchmark> over_devices(const Suite& suite, const Devices& all) {
    DAEL_LET(room, Sides::room(suite, all));
    const std::uint64_t size = std::min(kMostMessage, room) / kBlockSize * kBlockSize;
    measure::Axis work;
    for (const Point& cipher : devices_work(suite.options, {size}))
        for (const char* direction : {"encrypt", "decrypt"}) {
            Point point = cipher;
            point.set(shape(size, 1, Work(cipher).is(Mode::gcm) ? 1 : 0));
            point.set(Point{{"direction", direction}});
            if (Work(point).is(Mode::gcm) || direction == std::string_view("encrypt"))
                work.push_back(point);
        }
    DAEL_LET(sides, Sides::make(suite, all, size, 13));
    const auto state =
        std::make_shared<const OverDevices>(OverDevices{std::move(sides), all.sets.front().engine});
    return Benchmark{
        "over devices",
        {measure::Axis{
             Point{{"where", "device"}, {"measure", "shards"}, {"threads", std::uint64_t{1}}}},
         work},
        {},
        [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
