// SPDX-License-Identifier: Apache-2.0
// A sealed stream read from anywhere.
#include <algorithm>
#include <utility>

#include <daelstrom/sealed.hpp>

#include "formats/buffer.hpp"
#include "formats/guard.hpp"
#include "formats/pieces.hpp"
#include "formats/segment_cipher.hpp"

namespace dael::sealed {

using formats::Layout;

struct File::State {
    formats::SegmentCipher cipher;
    ReadAt read;
    std::uint64_t sealed;    // bytes of the stream
    std::uint64_t plain;     // bytes of plaintext, by the stream's size
    std::uint64_t segments;  // of the stream

    // Opens segments `first` to `end`, not included, and hands each to `take` in order.
    template <class Take>
    Result<Ran> open(std::uint64_t first, std::uint64_t end, formats::Buffer& buffer, Take take) {
        const Layout& layout = cipher.layout();
        const std::uint64_t from = first * layout.segment;
        const std::uint64_t size = std::min(sealed, end * layout.segment) - from;
        DAEL_TRY(read(from, buffer.use(size)));
        const auto inside = formats::plain_in_chunk(layout, first, size);
        if (!inside) return inside.error();
        const std::size_t front = first == 0 ? layout.header : 0;
        auto ran = cipher.open({first, *inside, end == segments, true}, buffer.data() + front,
                               buffer.data() + front);
        if (!ran) return ran;
        DAEL_TRY(formats::for_pieces(layout, first, buffer.data(), *inside, take));
        return ran;
    }
};

File::File(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(Engine& engine, const Keys& keys, HostIn aad, ReadAt read,
                        std::uint64_t size) {
    return formats::guarded([&]() -> Result<File> {
        const std::uint64_t wanted = formats::head_size(keys);
        formats::Buffer head(std::min(size, wanted));
        DAEL_TRY(read(0, head.all()));
        auto cipher = formats::find_key(engine, keys, aad, head.all(), size < wanted);
        if (!cipher) return std::move(cipher).error();
        const Layout layout = cipher->layout();
        const auto plain = layout.plain_size(size);
        if (!plain) return plain.error();
        const std::uint64_t segments = (size + layout.segment - 1) / layout.segment;
        return File(std::make_unique<State>(
            State{std::move(*cipher), std::move(read), size, *plain, segments}));
    });
}

std::uint64_t File::size() const noexcept {
    return state_->plain;
}

Result<> File::check_size() {
    return formats::guarded([&]() -> Result<> {
        formats::Buffer buffer(state_->cipher.layout().segment);
        auto opened = state_->open(state_->segments - 1, state_->segments, buffer,
                                   [](HostOut) { return Result<>(); });
        if (!opened) return std::move(opened).error();
        return {};
    });
}

Result<Ran> File::read(std::uint64_t at, HostOut out) {
    if (at > state_->plain || out.size() > state_->plain - at)
        return Error{Code::invalid_argument,
                     "bytes " + std::to_string(at) + " to " + std::to_string(at + out.size()) +
                         " are not all within the " + std::to_string(state_->plain) +
                         " bytes of plaintext"};
    if (out.empty()) return Ran{};
    auto done = formats::guarded([&]() -> Result<Ran> {
        constexpr std::uint64_t kWindow = 32 << 20;
        const Layout& layout = state_->cipher.layout();
        // What ends where the plaintext does takes the last segment in, even if that is empty.
        const std::uint64_t end = at + out.size() == state_->plain
                                      ? state_->segments
                                      : layout.segment_of(at + out.size() - 1) + 1;
        const std::uint64_t first = layout.segment_of(at);
        const std::uint64_t step =
            std::clamp<std::uint64_t>(kWindow / layout.segment, 1, end - first);
        formats::Buffer buffer(step * layout.segment);
        Ran ran;
        std::uint64_t position = layout.plain_at(first), written = 0;
        for (std::uint64_t i = first; i < end; i += step) {
            auto opened =
                state_->open(i, std::min(end, i + step), buffer, [&](HostOut piece) -> Result<> {
                    const std::uint64_t skip =
                        std::min<std::uint64_t>(at + written - position, piece.size());
                    const std::uint64_t size =
                        std::min<std::uint64_t>(piece.size() - skip, out.size() - written);
                    std::copy_n(piece.data() + skip, size, out.data() + written);
                    position += piece.size();
                    written += size;
                    return {};
                });
            if (!opened) return opened;
            ran = std::move(*opened);
        }
        return ran;
    });
    if (!done) wipe(out.data(), out.size());
    return done;
}

Result<Ran> File::read_all(DeviceOut out, Stream stream) {
    if (out.size != state_->plain)
        return Error{Code::invalid_argument, "the plaintext has " + std::to_string(state_->plain) +
                                                 " bytes, as size() tells; the output has " +
                                                 std::to_string(out.size)};
    return formats::guarded([&]() -> Result<Ran> {
        if (out.size != 0) return state_->cipher.open(state_->read, state_->sealed, out, stream);
        // An empty output need not point anywhere, which is how a device is found.
        formats::Buffer buffer(state_->cipher.layout().segment);
        return state_->open(0, 1, buffer, [](HostOut) { return Result<>(); });
    });
}

}  // namespace dael::sealed
