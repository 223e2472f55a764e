// SPDX-License-Identifier: Apache-2.0
// Every host backend gives the same bytes for the same batch, whatever the modes, keys, IVs,
// offsets, lengths, alignments and overlaps.
#include <map>

#include "core/registry.hpp"
#include "fuzz/fuzz.hpp"
#include "modes/segment.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

using Backends = std::map<std::string, std::unique_ptr<core::Backend>>;

const Backends& backends() {
    static const Backends all = [] {
        Backends opened;
        for (const char* name : {"reference", "openssl"})
            opened[name] = value(core::open_backend(name), name);
        for (const char* isa : {"sse", "avx2", "avx512"})
            if (auto cpu = core::open_backend("cpu", {isa, 0}))
                opened[std::string("cpu ") + isa] = std::move(*cpu);
        return opened;
    }();
    return all;
}

struct Plan {
    std::size_t size = 0, in_at = 0, out_at = 0;
    bool in_place = false;
    Block iv{};
    std::uint64_t offset = 0;
};

// The outputs of all messages, one behind the other. Each lies in a buffer of exactly its size, so
// that AddressSanitizer sees what goes past it.
Bytes run(core::Backend& backend, const Key& key, Mode mode, Direction direction,
          const std::vector<Plan>& plans, const Bytes& content) {
    std::vector<Bytes> ins, outs;
    std::vector<core::Segment> segments;
    for (const Plan& plan : plans) {
        Bytes in(plan.in_at + plan.size);
        for (std::size_t i = 0; i < plan.size; ++i)
            in[plan.in_at + i] = content[i % content.size()];
        ins.push_back(std::move(in));
        outs.emplace_back(plan.out_at + plan.size);
    }
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const Plan& plan = plans[i];
        std::uint8_t* const in = ins[i].data() + plan.in_at;
        std::uint8_t* const out = plan.in_place ? in : outs[i].data() + plan.out_at;
        const Message message{in, out, plan.size, plan.iv, plan.offset};
        value(modes::check(mode, message), "check");
        segments.push_back(modes::to_segment(message));
    }
    value(backend.run({mode, direction, &key}, segments), "run");
    Bytes all;
    for (const core::Segment& segment : segments)
        all.insert(all.end(), segment.out, segment.out + segment.size);
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    const Mode mode = fuzz::mode(data);
    const Direction direction = fuzz::direction(data);
    const Key key = fuzz::key(data);
    std::vector<Plan> plans(data.ConsumeIntegralInRange<std::size_t>(1, 20));
    for (Plan& plan : plans) {
        plan.size = data.ConsumeIntegralInRange<std::size_t>(0, plans.size() == 1 ? 1200 : 200);
        if (whole_blocks_only(mode)) plan.size = plan.size / kBlockSize * kBlockSize;
        plan.in_at = data.ConsumeIntegralInRange<std::size_t>(0, 15);
        plan.out_at = data.ConsumeIntegralInRange<std::size_t>(0, 15);
        plan.in_place = data.ConsumeBool();
        plan.iv = block(data);
        // Less than 2^63, so that offset and size stay within the mode's limit.
        if (mode == Mode::ctr)
            plan.offset =
                data.ConsumeIntegral<std::uint64_t>() >> data.ConsumeIntegralInRange(1, 63);
    }
    Bytes content = data.ConsumeRemainingBytes<std::uint8_t>();
    content.push_back(0);

    const Bytes want = run(*backends().at("reference"), key, mode, direction, plans, content);
    for (const auto& [name, backend] : backends())
        require(run(*backend, key, mode, direction, plans, content) == want,
                name + " and the reference agree in " + std::string(dael::name(mode)) + " " +
                    std::string(dael::name(direction)));
    return 0;
}
