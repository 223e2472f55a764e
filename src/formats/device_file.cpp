// SPDX-License-Identifier: Apache-2.0
// A sealed stream opened straight into device memory.
#include "formats/pieces.hpp"
#include "formats/segment_cipher.hpp"
#include "pipeline/engine_state.hpp"

namespace dael::formats {

Result<Ran> SegmentCipher::open(const sealed::ReadAt& read, std::uint64_t sealed, DeviceOut plain,
                                Stream stream) {
    const std::uint64_t segments = sealed / layout_.segment + (sealed % layout_.segment != 0);
    auto* const to = static_cast<std::uint8_t*>(plain.data);
    std::uint64_t first = 0;  // the next chunk's first segment
    pipeline::GcmSource source;
    source.size = sealed;
    source.piece = static_cast<std::size_t>(layout_.segment);
    source.next = [&](HostOut chunk, const std::uint8_t* arrived,
                      std::vector<GcmMessage>& messages) -> Result<> {
        const std::uint64_t from = first * layout_.segment;
        DAEL_TRY(read(from, chunk));
        const auto inside = plain_in_chunk(layout_, first, chunk.size());
        if (!inside) return inside.error();
        list(Direction::decrypt,
             {.first = first, .size = *inside, .last = from + chunk.size() == sealed},
             arrived + (first == 0 ? layout_.header : 0), to + layout_.plain_at(first));
        messages.swap(messages_);
        first += messages.size();
        return {};
    };
    source.fault = [&](std::uint64_t i, Code code) {
        return segment_fault(i, i + 1 == segments, code);
    };
    return engine_->state().open_into(keys_, source, plain, stream);
}

}  // namespace dael::formats
