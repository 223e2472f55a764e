// SPDX-License-Identifier: Apache-2.0
// Sealed streams chunk by chunk, for C.
#include <daelstrom/daelstrom_sealed.h>
#include <daelstrom/sealed_chunks.hpp>

#include <optional>

#include "capi/sealed.hpp"

using dael::Result;
using dael::sealed::Chunk;
using dael::sealed::Layout;
using dael::sealed::Opener;
using dael::sealed::Range;
using dael::sealed::Sealer;
using namespace dael::capi;

// Both refer to their engine, so that they are made where it stays.
struct dael_sealer {
    dael::Engine engine;
    std::optional<Sealer> sealer;
};
struct dael_opener {
    dael::Engine engine;
    std::optional<Opener> opener;
};

namespace {

Layout cpp(const dael_sealed_layout& layout) noexcept {
    return {.segment = layout.segment, .header = layout.header};
}
dael_sealed_layout c(const Layout& layout) noexcept {
    return {layout.segment, layout.header};
}
Range cpp(const dael_sealed_range& range) noexcept {
    return {.at = range.at, .size = range.size};
}
dael_sealed_range c(const Range& range) noexcept {
    return {range.at, range.size};
}
Chunk cpp(const dael_sealed_chunk& chunk) noexcept {
    return {.first = chunk.first,
            .count = chunk.count,
            .plain = cpp(chunk.plain),
            .sealed = cpp(chunk.sealed),
            .last = chunk.last != 0};
}
dael_sealed_chunk c(const Chunk& chunk) noexcept {
    return {chunk.first, chunk.count, c(chunk.plain), c(chunk.sealed), chunk.last};
}

// A layout that no stream has would divide by zero, or count beyond 64 bits.
Result<> check(const dael_sealed_layout* layout) {
    DAEL_TRY(given({{layout, "layout"}}));
    if (layout->segment > layout->header && layout->segment - layout->header > 16 &&
        layout->segment <= dael::sealed::kMaxSegment)
        return {};
    return dael::Error{dael::Code::invalid_argument,
                       "no stream has this layout; take a sealer's or an opener's"};
}

// Asks a layout for a number, a chunk or a range.
template <class Out, class Ask>
dael_status ask(const dael_sealed_layout* layout, Out* out, Ask&& ask) {
    return call([&]() -> Result<> {
        DAEL_TRY(check(layout));
        DAEL_TRY(given({{out, "the pointer to what comes out"}}));
        DAEL_LET(answer, ask(cpp(*layout)));
        if constexpr (std::is_same_v<Out, std::uint64_t>)
            *out = answer;
        else
            *out = c(answer);
        return {};
    });
}

}  // namespace

extern "C" {

dael_status dael_sealed_size_of_plain(const dael_sealed_layout* layout, uint64_t plain,
                                      uint64_t* sealed) {
    return ask(layout, sealed, [&](const Layout& all) { return all.sealed_size(plain); });
}
dael_status dael_sealed_plain_size(const dael_sealed_layout* layout, uint64_t sealed,
                                   uint64_t* plain) {
    return ask(layout, plain, [&](const Layout& all) { return all.plain_size(sealed); });
}
dael_status dael_sealed_covering(const dael_sealed_layout* layout, const dael_sealed_range* plain,
                                 uint64_t size, dael_sealed_chunk* chunk) {
    return ask(layout, chunk, [&](const Layout& all) -> Result<Chunk> {
        DAEL_TRY(given({{plain, "plain"}}));
        return all.covering(cpp(*plain), size);
    });
}
dael_status dael_sealed_chunk_of(const dael_sealed_layout* layout, uint64_t first, uint64_t sealed,
                                 int last, dael_sealed_chunk* chunk) {
    return ask(layout, chunk,
               [&](const Layout& all) { return all.of_sealed(first, sealed, last != 0); });
}
dael_status dael_sealed_place(const dael_sealed_layout* layout, const dael_sealed_chunk* chunk,
                              uint64_t i, dael_sealed_range* place) {
    return ask(layout, place, [&](const Layout& all) -> Result<Range> {
        DAEL_TRY(given({{chunk, "chunk"}}));
        if (i >= chunk->count)
            return dael::Error{dael::Code::invalid_argument, "the chunk has no segment " +
                                                                 std::to_string(i) + ", but " +
                                                                 std::to_string(chunk->count)};
        return all.place(cpp(*chunk), i);
    });
}

dael_status dael_sealer_start(dael_engine* engine, const dael_sealed_keys* keys, const void* aad,
                              size_t aad_size, dael_sealer** sealer) {
    return hand_out(sealer, "sealer", [&]() -> Result<dael_sealer*> {
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}}));
        DAEL_TRY(readable(aad, aad_size, "aad"));
        auto made = std::unique_ptr<dael_sealer>(
            new dael_sealer{dael::Engine(engine->engine.state()), std::nullopt});
        DAEL_LET(started, Sealer::start(made->engine, *keys->keys, bytes(aad, aad_size)));
        made->sealer.emplace(std::move(started));
        return made.release();
    });
}
void dael_sealer_free(dael_sealer* sealer) {
    release(sealer);
}
dael_status dael_sealer_layout(const dael_sealer* sealer, dael_sealed_layout* layout) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sealer, "sealer"}, {layout, "layout"}}));
        *layout = c(sealer->sealer->layout());
        return {};
    });
}
dael_status dael_sealer_next(const dael_sealer* sealer, uint64_t plain, int last,
                             dael_sealed_chunk* chunk) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sealer, "sealer"}, {chunk, "chunk"}}));
        DAEL_LET(next, sealer->sealer->next(plain, last != 0));
        *chunk = c(next);
        return {};
    });
}
dael_status dael_sealer_seal(dael_sealer* sealer, const void* plain, size_t plain_size,
                             void* sealed, size_t sealed_size, int last, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sealer, "sealer"}}));
        DAEL_TRY(readable(plain, plain_size, "plain"));
        DAEL_TRY(readable(sealed, sealed_size, "sealed"));
        return report(
            sealer->sealer->seal(bytes(plain, plain_size), bytes(sealed, sealed_size), last != 0),
            ran);
    });
}
dael_status dael_sealer_seal_in_place(dael_sealer* sealer, void* chunk, size_t chunk_size,
                                      uint64_t plain, int last, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sealer, "sealer"}}));
        DAEL_TRY(readable(chunk, chunk_size, "chunk"));
        return report(sealer->sealer->seal_in_place(bytes(chunk, chunk_size), plain, last != 0),
                      ran);
    });
}

size_t dael_opener_head_size(const dael_sealed_keys* keys) {
    return keys ? Opener::head_size(*keys->keys) : 0;
}
dael_status dael_opener_start(dael_engine* engine, const dael_sealed_keys* keys, const void* aad,
                              size_t aad_size, const void* head, size_t head_size, int whole,
                              dael_opener** opener) {
    return hand_out(opener, "opener", [&]() -> Result<dael_opener*> {
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}}));
        DAEL_TRY(readable(aad, aad_size, "aad"));
        DAEL_TRY(readable(head, head_size, "head"));
        auto made = std::unique_ptr<dael_opener>(
            new dael_opener{dael::Engine(engine->engine.state()), std::nullopt});
        DAEL_LET(started, Opener::start(made->engine, *keys->keys, bytes(aad, aad_size),
                                        bytes(head, head_size), whole != 0));
        made->opener.emplace(std::move(started));
        return made.release();
    });
}
void dael_opener_free(dael_opener* opener) {
    release(opener);
}
dael_status dael_opener_layout(const dael_opener* opener, dael_sealed_layout* layout) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{opener, "opener"}, {layout, "layout"}}));
        *layout = c(opener->opener->layout());
        return {};
    });
}
dael_status dael_opener_open(const dael_opener* opener, const dael_sealed_chunk* chunk,
                             const void* sealed, size_t sealed_size, void* plain, size_t plain_size,
                             dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{opener, "opener"}, {chunk, "chunk"}}));
        DAEL_TRY(readable(sealed, sealed_size, "sealed"));
        DAEL_TRY(readable(plain, plain_size, "plain"));
        return report(
            opener->opener->open(cpp(*chunk), bytes(sealed, sealed_size), bytes(plain, plain_size)),
            ran);
    });
}
dael_status dael_opener_open_in_place(const dael_opener* opener, const dael_sealed_chunk* chunk,
                                      void* data, size_t size, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{opener, "opener"}, {chunk, "chunk"}, {data, "bytes"}}));
        return report(opener->opener->open_in_place(cpp(*chunk), bytes(data, size)), ran);
    });
}

}  // extern "C"
