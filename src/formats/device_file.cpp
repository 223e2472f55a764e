// SPDX-License-Identifier: Apache-2.0
// A sealed stream opened straight into device memory.
#include "formats/segment_cipher.hpp"
#include "pipeline/inflow.hpp"
#include "pipeline/key_set.hpp"

namespace dael::formats {

Result<Ran> SegmentCipher::open(const sealed::ReadAt& read, int readers, std::uint64_t sealed,
                                DeviceOut plain, Stream stream) const {
    const std::uint64_t segments = sealed / layout_.segment + (sealed % layout_.segment != 0);
    auto* const to = static_cast<std::uint8_t*>(plain.data);
    pipeline::Source source;
    source.size = sealed;
    source.piece = static_cast<std::size_t>(layout_.segment);
    source.read = read;
    source.readers = readers;
    source.list = [&](std::uint64_t at, std::size_t size, const std::uint8_t* arrived,
                      std::vector<Message>& messages) -> Result<> {
        const std::uint64_t first = at / layout_.segment;
        const auto found = layout_.of_sealed(first, size, at + size == sealed);
        if (!found) return found.error();
        list(Direction::decrypt, *found, first, first + found->count,
             const_cast<std::uint8_t*>(arrived), to + found->plain.at, messages);
        return {};
    };
    source.fault = [&](std::uint64_t i, Code code) {
        return segment_fault(i, i + 1 == segments, code);
    };
    return pipeline::open_into(*engine_, keys_.state(), source, plain, stream);
}

}  // namespace dael::formats
