// SPDX-License-Identifier: Apache-2.0
// XTS on an engine. Data in host memory stays on the host unless a device was asked for by name.
#include "modes/xts.hpp"

#include <algorithm>

#include "core/guard.hpp"
#include "modes/segment.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/host.hpp"

namespace dael {

Result<Ran> Engine::State::xts(Direction direction, const XtsKey& key, const XtsSectors& sectors,
                               HostIn in, HostOut out) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    return core::guarded([&]() -> Result<Ran> {
        DAEL_TRY(modes::check(sectors, in.data(), out.data(), in.size()));
        const core::Segment segment = modes::to_segment(sectors, in.data(), out.data(), in.size());
        const core::XtsOperation operation{direction, &key, sectors.size};
        if (hosts_.empty()) {
            pipeline::Lane& lane = *lanes_.front();
            started_ = true;
            auto done = lane.transfer.run(operation, segment, transfer_options(lane));
            if (!done) return std::move(done).error();
            return Ran{std::string(lane.backend->name()), done->threads, done->chunks};
        }
        // Of those without XTS, the first says so.
        const auto able = std::ranges::find_if(hosts_, [](const auto& h) { return h->has_xts(); });
        core::Backend& host = able != hosts_.end() ? **able : *hosts_.front();
        auto threads = pipeline::run_on_host(host, pool_, operation, segment, pool_.threads());
        if (!threads) return std::move(threads).error();
        return Ran{std::string(host.name()), *threads, 0};
    });
}

Result<Ran> Engine::State::xts(Direction direction, const XtsKey& key, const XtsSectors& sectors,
                               DeviceIn in, DeviceOut out, Stream stream) {
    if (in.size != out.size) return modes::sizes_differ(in.size, out.size);
    return core::guarded([&]() -> Result<Ran> {
        const auto* from = static_cast<const std::uint8_t*>(in.data);
        auto* to = static_cast<std::uint8_t*>(out.data);
        DAEL_TRY(modes::check(sectors, from, to, in.size));
        auto lane = lane_of(from);
        if (!lane) return std::move(lane).error();
        if (in.size != 0)
            DAEL_TRY((*lane)->device.xts({direction, &key, sectors.size},
                                         modes::to_segment(sectors, from, to, in.size), stream));
        return Ran{std::string((*lane)->backend->name()), 1, 0};
    });
}

}  // namespace dael
