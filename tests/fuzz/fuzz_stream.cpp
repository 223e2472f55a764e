// SPDX-License-Identifier: Apache-2.0
// A message cut into chunks, for streams (Chain) or for threads (slice, split), comes out as it
// does in one piece; padding comes off as it went on, and nothing else comes off.
#include <algorithm>

#include <daelstrom/padding.hpp>
#include "core/registry.hpp"
#include "fuzz/fuzz.hpp"
#include "modes/segment.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

core::Backend& backend() {
    static const auto openssl = value(core::open_backend("openssl"), "openssl");
    return *openssl;
}

struct Case {
    core::Operation operation;
    Block iv{};
    std::uint64_t offset = 0;
    Bytes in, want;  // `want` as OpenSSL has it in one call
};

void run(const core::Operation& operation, const core::Segment& segment) {
    value(backend().run(operation, std::span(&segment, 1)), "run");
}

void check_chain(FuzzedDataProvider& data, const Case& c) {
    modes::Chain chain(c.operation.mode, c.operation.direction, c.iv, c.offset);
    Bytes out = c.in;
    const bool in_place = data.ConsumeBool();
    std::size_t done = 0;
    while (done < c.in.size()) {
        // Every chunk but the last ends where a block ends.
        const std::size_t head =
            done == 0 && c.operation.mode == Mode::ctr ? c.offset % kBlockSize : 0;
        const std::size_t blocks = data.ConsumeIntegralInRange<std::size_t>(1, 20);
        const std::size_t size = std::min(blocks * kBlockSize - head, c.in.size() - done);
        const auto segment =
            chain.begin((in_place ? out : c.in).data() + done, out.data() + done, size);
        run(c.operation, segment);
        chain.end();
        done += size;
    }
    require(out == c.want, "a chain of chunks gives what one call gives");
}

void check_split(FuzzedDataProvider& data, const Case& c) {
    if (!parallel_within_message(c.operation.mode, c.operation.direction)) return;
    Bytes out = c.in;
    const Message message{out.data(), out.data(), out.size(), c.iv, c.offset};
    value(modes::check(c.operation.mode, message), "check");
    const core::Segment whole = modes::to_segment(message);
    auto pieces = modes::split(c.operation.mode, whole,
                               kBlockSize * data.ConsumeIntegralInRange<std::size_t>(1, 40));
    std::size_t total = 0;
    for (const auto& piece : pieces) {
        require(piece.in == out.data() + total && piece.out == piece.in, "pieces lie end to end");
        total += piece.size;
    }
    require(total == out.size(), "the pieces are the whole");
    if (data.ConsumeBool()) std::ranges::reverse(pieces);  // in place and in any order
    for (const auto& piece : pieces) run(c.operation, piece);
    require(out == c.want, "the pieces of a split give what one call gives");
}

void check_padding(FuzzedDataProvider& data) {
    const Bytes tail =
        data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(0, 15));
    const Block padded = dael::pad(tail);
    require(value(dael::unpad(padded), "padding that was put on") == tail.size(),
            "unpad undoes pad");
    require(std::ranges::equal(tail, std::span(padded).first(tail.size())), "pad keeps the data");

    // RFC 5652 6.3, in the plain way.
    const Block last = block(data);
    const std::size_t count = last[kBlockSize - 1];
    const bool valid = count >= 1 && count <= kBlockSize &&
                       std::all_of(last.end() - static_cast<std::ptrdiff_t>(count), last.end(),
                                   [&](std::uint8_t byte) { return byte == count; });
    const auto kept = dael::unpad(last);
    require(static_cast<bool>(kept) == valid, "unpad takes what RFC 5652 takes");
    if (kept)
        require(*kept == kBlockSize - count, "unpad keeps the rest");
    else
        require(kept.code() == Code::bad_padding, "one code for every fault");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    check_padding(data);
    const Mode mode = fuzz::mode(data);
    const Direction direction = fuzz::direction(data);
    const Key key = fuzz::key(data);
    Case c{{mode, direction, &key}, block(data), 0, {}, {}};
    if (mode == Mode::ctr)
        c.offset = data.ConsumeIntegral<std::uint64_t>() >> data.ConsumeIntegralInRange(1, 63);
    std::size_t length = data.ConsumeIntegralInRange<std::size_t>(0, 2000);
    if (whole_blocks_only(mode)) length = length / kBlockSize * kBlockSize;
    c.in = bytes(data, length);
    c.want.resize(length);
    const Message message{c.in.data(), c.want.data(), length, c.iv, c.offset};
    value(modes::check(mode, message), "check");
    run(c.operation, modes::to_segment(message));
    check_chain(data, c);
    check_split(data, c);
    return 0;
}
