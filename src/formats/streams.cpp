// SPDX-License-Identifier: Apache-2.0
// Sealing and opening whole streams, in memory and through callbacks.
#include <algorithm>
#include <optional>

#include <daelstrom/sealed.hpp>

#include "formats/buffer.hpp"
#include "formats/guard.hpp"
#include "formats/pieces.hpp"
#include "formats/segment_cipher.hpp"

namespace dael::sealed {
namespace {

using formats::Buffer;
using formats::Layout;
using formats::SegmentCipher;

// What goes through an engine at a time: enough for many cores, and for a device's pipeline.
constexpr std::uint64_t kChunk = 32 << 20, kWindow = 256 << 20;  // bytes

std::uint64_t segments_in(std::uint64_t bytes, const Layout& layout) {
    return std::max<std::uint64_t>(1, bytes / layout.segment);
}

// A stream whose next bytes can be looked at. These are kept as long as this lives.
class Source {
  public:
    explicit Source(const Read& read) : read_(read) {}

    // Up to `size` bytes that will be read next; nothing must be left of an earlier look.
    Result<HostIn> peek(std::size_t size) {
        auto got = read_(kept_.emplace(size).all());
        if (!got) return std::move(got).error();
        left_ = kept_->use(*got);
        return left_;
    }
    Result<std::size_t> fill(HostOut out) {
        const std::size_t first = std::min(out.size(), left_.size());
        std::copy_n(left_.begin(), first, out.begin());
        left_ = left_.subspan(first);
        if (first == out.size()) return first;
        auto got = read_(out.subspan(first));
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
    const Read& read_;
    std::optional<Buffer> kept_;
    HostIn left_;
};

}  // namespace

Result<std::uint64_t> sealed_size(const Keys& keys, std::uint64_t plain) {
    return keys.state().keys.front().layout().sealed_size(plain);
}

Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, HostIn plain, HostOut sealed) {
    return formats::guarded([&]() -> Result<Done> {
        const auto size = sealed_size(keys, plain.size());
        if (!size) return size.error();
        if (sealed.size() != *size)
            return Error{Code::invalid_argument, "sealing makes " + std::to_string(*size) +
                                                     " bytes; the output has " +
                                                     std::to_string(sealed.size())};
        auto cipher = SegmentCipher::start(engine, keys.state().keys.front(), aad);
        if (!cipher) return std::move(cipher).error();
        const Layout& layout = cipher->layout();
        std::ranges::copy(cipher->header(), sealed.begin());
        Done done{*size, {}};
        const std::uint64_t end = layout.segments(plain.size());
        for (std::uint64_t first = 0; first < end;) {
            const std::uint64_t next = std::min(end, first + segments_in(kWindow, layout));
            const std::uint64_t from = layout.plain_at(first);
            const std::uint64_t to = next == end ? plain.size() : layout.plain_at(next);
            auto ran =
                cipher->seal({first, to - from, next == end}, plain.data() + from,
                             sealed.data() + std::max(layout.header, first * layout.segment));
            if (!ran) return std::move(ran).error();
            done.ran = std::move(*ran);
            first = next;
        }
        return done;
    });
}

Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, HostIn sealed, HostOut plain) {
    auto opened = formats::guarded([&]() -> Result<Done> {
        const auto head = sealed.first(std::min(sealed.size(), formats::head_size(keys)));
        auto cipher = formats::find_key(engine, keys, aad, head, head.size() == sealed.size());
        if (!cipher) return std::move(cipher).error();
        const Layout& layout = cipher->layout();
        const auto size = layout.plain_size(sealed.size());
        if (!size) return size.error();
        if (plain.size() < *size)
            return Error{Code::invalid_argument, "opening makes " + std::to_string(*size) +
                                                     " bytes; the output has room for " +
                                                     std::to_string(plain.size())};
        Done done{*size, {}};
        const std::uint64_t end = (sealed.size() + layout.segment - 1) / layout.segment;
        for (std::uint64_t first = 0; first < end;) {
            const std::uint64_t next = std::min(end, first + segments_in(kWindow, layout));
            const std::uint64_t from = layout.plain_at(first);
            const std::uint64_t to = next == end ? *size : layout.plain_at(next);
            auto ran = cipher->open({first, to - from, next == end},
                                    sealed.data() + std::max(layout.header, first * layout.segment),
                                    plain.data() + from);
            if (!ran) return std::move(ran).error();
            done.ran = std::move(*ran);
            first = next;
        }
        return done;
    });
    if (!opened) wipe(plain.data(), plain.size());
    return opened;
}

Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, const Read& plain,
                  const Write& sealed) {
    return formats::guarded([&]() -> Result<Done> {
        auto cipher = SegmentCipher::start(engine, keys.state().keys.front(), aad);
        if (!cipher) return std::move(cipher).error();
        const Layout& layout = cipher->layout();
        const std::uint64_t count = segments_in(kChunk, layout);
        Buffer buffer(count * layout.segment);
        std::ranges::copy(cipher->header(), buffer.data());
        Source source(plain);
        Done done;
        for (std::uint64_t first = 0;; first += count) {
            formats::Run run{.first = first, .in_place = true};
            const std::uint64_t most = layout.plain_at(first + count) - layout.plain_at(first);
            DAEL_TRY(formats::for_pieces(
                layout, first, buffer.data(), most, [&](HostOut piece) -> Result<> {
                    if (run.last) return {};
                    buffer.use(
                        static_cast<std::size_t>(piece.data() + piece.size() - buffer.data()));
                    auto got = source.fill(piece);
                    if (!got) return std::move(got).error();
                    run.size += *got;
                    run.last = *got < piece.size();
                    return {};
                }));
            if (!run.last) {
                auto ended = source.ended();
                if (!ended) return std::move(ended).error();
                run.last = *ended;
            }
            const std::size_t front = first == 0 ? layout.header : 0;
            auto ran = cipher->seal(run, buffer.data() + front, buffer.data() + front);
            if (!ran) return std::move(ran).error();
            done.ran = std::move(*ran);
            const auto total = layout.sealed_size(layout.plain_at(first) + run.size);
            if (!total) return total.error();
            DAEL_TRY(sealed(buffer.use(*total - done.size)));
            done.size = *total;
            if (run.last) return done;
        }
    });
}

Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, const Read& sealed,
                  const Write& plain) {
    return formats::guarded([&]() -> Result<Done> {
        Source source(sealed);
        const std::size_t head_size = formats::head_size(keys);
        const auto head = source.peek(head_size);
        if (!head) return head.error();
        auto cipher = formats::find_key(engine, keys, aad, *head, head->size() < head_size);
        if (!cipher) return std::move(cipher).error();
        const Layout& layout = cipher->layout();
        const std::uint64_t count = segments_in(kChunk, layout);
        Buffer buffer(count * layout.segment);
        Done done;
        for (std::uint64_t first = 0;; first += count) {
            auto got = source.fill(buffer.all());
            if (!got) return std::move(got).error();
            buffer.use(*got);
            auto ended = *got < buffer.size() ? Result<bool>(true) : source.ended();
            if (!ended) return std::move(ended).error();
            const auto size = formats::plain_in_chunk(layout, first, *got);
            if (!size) return size.error();
            const std::size_t front = first == 0 ? layout.header : 0;
            auto ran = cipher->open({first, *size, *ended, true}, buffer.data() + front,
                                    buffer.data() + front);
            if (!ran) return std::move(ran).error();
            done.ran = std::move(*ran);
            done.size += *size;
            DAEL_TRY(formats::for_pieces(layout, first, buffer.data(), *size,
                                         [&](HostOut piece) { return plain(piece); }));
            if (*ended) return done;
        }
    });
}

}  // namespace dael::sealed
