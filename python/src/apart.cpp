// SPDX-License-Identifier: Apache-2.0
#include "apart.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "errors.hpp"

namespace daelpy {
namespace {

struct Span {
    std::uintptr_t begin, end;
    std::size_t message;
};

void add(std::vector<Span>& spans, const void* at, std::uint64_t size, std::size_t message) {
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    if (size != 0) spans.push_back({begin, begin + size, message});
}

// They lie in order as a rule, as the rows of an array do.
void in_order(std::vector<Span>& spans) {
    const auto earlier = [](const Span& a, const Span& b) { return a.begin < b.begin; };
    if (!std::ranges::is_sorted(spans, earlier)) std::ranges::sort(spans, earlier);
}

[[noreturn]] void refuse(const Span& out, const char* what, std::size_t other) {
    value_error("the output of message " + std::to_string(out.message) + " overlaps the " + what +
                " of message " + std::to_string(other));
}

// Reads of others within outputs, both in order. Outputs do not overlap each other.
void check_reads(const std::vector<Span>& outs, std::vector<Span>& reads, const char* what,
                 std::span<const dael_message> messages, bool in_place) {
    in_order(reads);
    std::size_t from = 0;
    for (const Span& read : reads) {
        while (from < outs.size() && outs[from].end <= read.begin) ++from;
        for (std::size_t i = from; i < outs.size() && outs[i].begin < read.end; ++i) {
            const Span& out = outs[i];
            const dael_message& m = messages[read.message];
            if (in_place && out.message == read.message && m.in == m.out) continue;
            refuse(out, what, read.message);
        }
    }
}

}  // namespace

void check_apart(std::span<const dael_message> messages, std::span<const std::size_t> without,
                 bool seals, std::uint64_t tag) {
    std::vector<Span> outs, data, aad;
    outs.reserve(messages.size());
    data.reserve(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (!without.empty() && without.front() == i) {
            without = without.subspan(1);
            continue;
        }
        const dael_message& m = messages[i];
        add(outs, m.out, m.size + (seals ? tag : 0), i);
        add(data, m.in, m.size + (seals ? 0 : tag), i);
        // What all of them share is looked at once.
        if (i == 0 || m.aad != messages[i - 1].aad) add(aad, m.aad, m.aad_size, i);
    }
    in_order(outs);
    for (std::size_t i = 1; i < outs.size(); ++i)
        if (outs[i].begin < outs[i - 1].end) refuse(outs[i], "output", outs[i - 1].message);
    check_reads(outs, data, "data", messages, true);
    check_reads(outs, aad, "additional data", messages, false);
}

}  // namespace daelpy
