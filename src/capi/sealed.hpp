// SPDX-License-Identifier: Apache-2.0
// What the files of sealed data in the C ABI share.
#pragma once

#include <daelstrom/daelstrom_sealed.h>
#include <daelstrom/sealed.hpp>

#include <memory>

#include "capi/shared.hpp"

struct dael_sealed_keys {
    std::shared_ptr<const dael::sealed::Keys> keys;
};

namespace dael::capi {

inline Result<dael_sealed_keys*> make_keys(Result<sealed::Keys> keys) {
    if (!keys) return std::move(keys).error();
    return new dael_sealed_keys{std::make_shared<const sealed::Keys>(*std::move(keys))};
}

// Fills a structure of the caller's, which says how long it is, as far as both know it; it then
// says how far that was.
template <class Sized>
Result<> fill_sized(Sized* given, const char* name, Sized known) {
    const std::size_t theirs = given->struct_size;
    if (theirs < sizeof theirs || theirs > 4096)
        return Error{Code::invalid_argument, std::string(name) + " says that it has " +
                                                 std::to_string(theirs) +
                                                 " bytes; set its struct_size to its sizeof"};
    known.struct_size = std::min(theirs, sizeof known);
    std::memcpy(given, &known, known.struct_size);
    return {};
}

inline std::uint32_t segment_or_large(std::uint32_t segment) noexcept {
    return segment == 0 ? sealed::kLargeSegment : segment;
}

}  // namespace dael::capi
