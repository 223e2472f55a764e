// SPDX-License-Identifier: Apache-2.0
// Sealing and opening whole streams, in memory and through callbacks.
#include <algorithm>
#include <optional>

#include <daelstrom/key.hpp>
#include <daelstrom/sealed.hpp>

#include "core/guard.hpp"
#include "formats/chunks.hpp"
#include "formats/wiped_buffer.hpp"

namespace dael::sealed {
namespace {

using formats::WipedBuffer;

// What goes through an engine at a time: enough for many cores, and for a device's pipeline.
constexpr std::uint64_t kChunk = 32 << 20;  // bytes

std::uint64_t segments_in(std::uint64_t bytes, const Layout& layout) {
    return std::max<std::uint64_t>(1, bytes / layout.segment);
}

// A stream whose next bytes can be looked at. These are kept as long as this lives.
class PeekableStream {
  public:
    explicit PeekableStream(const Read& read) : read_(read) {}

    // Up to `size` bytes that will be read next; nothing must be left of an earlier look.
    Result<HostIn> peek(std::size_t size) {
        auto got = read_whole(kept_.emplace(size).use(size));
        if (!got) return std::move(got).error();
        left_ = kept_->use(*got);
        return left_;
    }
    // Less than out.size() bytes come at the end alone.
    Result<std::size_t> fill(HostOut out) {
        const std::size_t first = std::min(out.size(), left_.size());
        std::copy_n(left_.begin(), first, out.begin());
        left_ = left_.subspan(first);
        auto got = read_whole(out.subspan(first));
        if (got) *got += first;
        return got;
    }
    // Whether nothing follows.
    Result<bool> ended() {
        if (!left_.empty()) return false;
        auto next = peek(1);
        if (!next) return std::move(next).error();
        return next->empty();
    }

  private:
    // However little comes at a time, as read() has it of pipes: only nothing at all is the end.
    Result<std::size_t> read_whole(HostOut out) {
        std::size_t size = 0;
        while (size < out.size() && !ended_) {
            auto got = read_(out.subspan(size));
            if (!got) return got;
            if (*got > out.size() - size)
                return Error{Code::invalid_argument, "the reading callback says that it has put " +
                                                         std::to_string(*got) +
                                                         " bytes where there is room for " +
                                                         std::to_string(out.size() - size)};
            ended_ = *got == 0;
            size += *got;
        }
        return size;
    }

    const Read& read_;
    bool ended_ = false;
    std::optional<WipedBuffer> kept_;
    HostIn left_;
};

// A chunk of so many segments as there is room for, of which nothing but that is known yet.
Chunk whole_chunk(const Layout& layout, std::uint64_t first, std::uint64_t count) {
    const std::uint64_t at = layout.plain_at(first);
    return {.first = first,
            .count = count,
            .plain = {at, layout.plain_at(first + count) - at},
            .sealed = {first * layout.segment, count * layout.segment}};
}

}  // namespace

Result<std::uint64_t> sealed_size(const Keys& keys, std::uint64_t plain) {
    return keys.state().keys.front().layout().sealed_size(plain);
}

Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, HostIn plain, HostOut sealed) {
    return core::guarded([&]() -> Result<Done> {
        const auto size = sealed_size(keys, plain.size());
        if (!size) return size.error();
        if (sealed.size() != *size)
            return Error{Code::invalid_argument, "sealing makes " + std::to_string(*size) +
                                                     " bytes; the output has " +
                                                     std::to_string(sealed.size())};
        DAEL_TRY(formats::check_apart(plain, sealed));
        auto sealer = Sealer::start(engine, keys, aad);
        if (!sealer) return std::move(sealer).error();
        auto ran = sealer->seal(plain, sealed, true);
        if (!ran) return std::move(ran).error();
        return Done{*size, std::move(*ran)};
    });
}

Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, HostIn sealed, HostOut plain) {
    DAEL_TRY(formats::check_apart(sealed, plain));
    auto opened = core::guarded([&]() -> Result<Done> {
        const auto head = sealed.first(std::min(sealed.size(), Opener::head_size(keys)));
        const auto opener = Opener::start(engine, keys, aad, head, head.size() == sealed.size());
        if (!opener) return opener.error();
        const auto chunk = opener->layout().of_sealed(0, sealed.size(), true);
        if (!chunk) return chunk.error();
        const std::uint64_t size = chunk->plain.size;
        if (plain.size() < size)
            return Error{Code::invalid_argument, "opening makes " + std::to_string(size) +
                                                     " bytes; the output has room for " +
                                                     std::to_string(plain.size())};
        auto ran = opener->open(*chunk, sealed, plain.first(size));
        if (!ran) return std::move(ran).error();
        return Done{size, std::move(*ran)};
    });
    // What was written by then the opener has wiped; what is refused costs the caller nothing.
    if (!opened && opened.code() == Code::authentication) wipe(plain.data(), plain.size());
    return opened;
}

Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, const Read& plain,
                  const Write& sealed) {
    return core::guarded([&]() -> Result<Done> {
        auto sealer = Sealer::start(engine, keys, aad);
        if (!sealer) return std::move(sealer).error();
        const Layout& layout = sealer->layout();
        const std::uint64_t count = segments_in(kChunk, layout);
        WipedBuffer buffer(count * layout.segment);
        PeekableStream source(plain);
        Done done;
        for (std::uint64_t first = 0;; first += count) {
            const Chunk room = whole_chunk(layout, first, count);
            std::uint64_t size = 0;
            bool last = false;
            for (std::uint64_t i = 0; i < count && !last; ++i) {
                const Range place = layout.place(room, i);
                auto got = source.fill(buffer.use(place.at + place.size).subspan(place.at));
                if (!got) return std::move(got).error();
                size += *got;
                last = *got < place.size;
            }
            if (!last) {
                auto ended = source.ended();
                if (!ended) return std::move(ended).error();
                last = *ended;
            }
            const auto chunk = sealer->next(size, last);
            if (!chunk) return chunk.error();
            const HostOut bytes = buffer.use(chunk->sealed.size);
            auto ran = sealer->seal_in_place(bytes, size, last);
            if (!ran) return std::move(ran).error();
            DAEL_TRY(sealed(bytes));
            done.size += bytes.size();
            done.ran = std::move(*ran);
            if (last) return done;
        }
    });
}

Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, const Read& sealed,
                  const Write& plain) {
    return core::guarded([&]() -> Result<Done> {
        PeekableStream source(sealed);
        const std::size_t head_size = Opener::head_size(keys);
        const auto head = source.peek(head_size);
        if (!head) return head.error();
        const auto opener = Opener::start(engine, keys, aad, *head, head->size() < head_size);
        if (!opener) return opener.error();
        const Layout& layout = opener->layout();
        const std::uint64_t count = segments_in(kChunk, layout);
        WipedBuffer buffer(count * layout.segment);
        Done done;
        for (std::uint64_t first = 0;; first += count) {
            auto got = source.fill(buffer.all());
            if (!got) return std::move(got).error();
            auto ended = *got < buffer.size() ? Result<bool>(true) : source.ended();
            if (!ended) return std::move(ended).error();
            const auto chunk = layout.of_sealed(first, *got, *ended);
            if (!chunk) return chunk.error();
            const HostOut bytes = buffer.use(*got);
            auto ran = opener->open_in_place(*chunk, bytes);
            if (!ran) return std::move(ran).error();
            done.ran = std::move(*ran);
            for (std::uint64_t i = 0; i < chunk->count; ++i) {
                const Range place = layout.place(*chunk, i);
                if (place.size != 0) DAEL_TRY(plain(bytes.subspan(place.at, place.size)));
            }
            done.size += chunk->plain.size;
            if (*ended) return done;
        }
    });
}

}  // namespace dael::sealed
