// SPDX-License-Identifier: Apache-2.0
// A sealed stream read from anywhere.
#include <algorithm>
#include <utility>

#include <daelstrom/sealed.hpp>

#include "core/guard.hpp"
#include "core/wipe_at_end.hpp"
#include "formats/chunks.hpp"
#include "formats/wiped_buffer.hpp"

namespace dael::sealed {

struct File::State {
    Opener opener;
    ReadAt read;
    std::uint64_t sealed;  // bytes of the stream
    std::uint64_t plain;   // bytes of plaintext, by the stream's size

    // Opens a chunk in `buffer`.
    Result<Ran> open(const Chunk& chunk, formats::WipedBuffer& buffer) const {
        const HostOut bytes = buffer.use(chunk.sealed.size);
        DAEL_TRY(read(chunk.sealed.at, bytes));
        return opener.open_in_place(chunk, bytes);
    }
};

File::File(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(Engine& engine, const Keys& keys, HostIn aad, ReadAt read,
                        std::uint64_t size) {
    return core::guarded([&]() -> Result<File> {
        const std::uint64_t wanted = Opener::head_size(keys);
        formats::WipedBuffer head(std::min(size, wanted));
        DAEL_TRY(read(0, head.all()));
        auto opener = Opener::start(engine, keys, aad, head.all(), size < wanted);
        if (!opener) return std::move(opener).error();
        const auto plain = opener->layout().plain_size(size);
        if (!plain) return plain.error();
        return File(
            std::make_unique<State>(State{std::move(*opener), std::move(read), size, *plain}));
    });
}

std::uint64_t File::size() const noexcept {
    return state_->plain;
}

Result<> File::check_size() {
    return core::guarded([&]() -> Result<> {
        const auto last = state_->opener.layout().covering({state_->plain, 0}, state_->plain);
        if (!last) return last.error();
        formats::WipedBuffer buffer(last->sealed.size);
        auto opened = state_->open(*last, buffer);
        if (!opened) return std::move(opened).error();
        return {};
    });
}

Result<Ran> File::read(std::uint64_t at, HostOut out) {
    const Layout& layout = state_->opener.layout();
    const auto all = layout.covering({at, out.size()}, state_->plain);
    if (!all) return all.error();
    // Nothing is read without a look either: that the plaintext is empty, or ends here, is as much
    // to be verified as a byte of it.
    core::WipeAtEnd unless_done(out.data(), out.size());
    auto done = core::guarded([&]() -> Result<Ran> {
        constexpr std::uint64_t kWindow = 32 << 20;  // bytes
        const std::uint64_t end = all->first + all->count;
        const std::uint64_t step =
            std::clamp<std::uint64_t>(kWindow / layout.segment, 1, all->count);
        formats::WipedBuffer buffer(step * layout.segment);
        Ran ran;
        std::uint64_t written = 0;
        for (std::uint64_t first = all->first; first < end; first += step) {
            // What the range has of these segments, and all of them where they reach the end.
            const std::uint64_t next = std::min(end, first + step);
            const std::uint64_t from = layout.plain_at(first);
            const std::uint64_t to = next == end ? at + out.size() : layout.plain_at(next);
            const auto chunk = layout.covering({from, to - from}, state_->plain);
            if (!chunk) return chunk.error();
            auto opened = state_->open(*chunk, buffer);
            if (!opened) return opened;
            ran = std::move(*opened);
            for (std::uint64_t i = 0; i < chunk->count; ++i) {
                const Range place = layout.place(*chunk, i);
                const std::uint64_t begin = layout.plain_at(chunk->first + i);
                const std::uint64_t skip = at > begin ? std::min(at - begin, place.size) : 0;
                const auto size = std::min<std::uint64_t>(place.size - skip, out.size() - written);
                std::copy_n(buffer.data() + place.at + skip, size, out.data() + written);
                written += size;
            }
        }
        return ran;
    });
    if (done) unless_done.keep();
    return done;
}

Result<Ran> File::read_all(DeviceOut out, Stream stream, int readers) {
    if (out.size != state_->plain)
        return Error{Code::invalid_argument, "the plaintext has " + std::to_string(state_->plain) +
                                                 " bytes, as size() tells; the output has " +
                                                 std::to_string(out.size)};
    return core::guarded([&]() -> Result<Ran> {
        const auto& cipher = state_->opener.state().cipher;
        if (out.size != 0) return cipher.open(state_->read, readers, state_->sealed, out, stream);
        // An empty output need not point anywhere, which is how a device is found.
        formats::WipedBuffer buffer(state_->sealed);
        const auto all = state_->opener.layout().covering({}, 0);
        if (!all) return all.error();
        return state_->open(*all, buffer);
    });
}

}  // namespace dael::sealed
