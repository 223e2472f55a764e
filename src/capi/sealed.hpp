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

inline std::uint32_t segment_or_large(std::uint32_t segment) noexcept {
    return segment == 0 ? sealed::kLargeSegment : segment;
}

}  // namespace dael::capi
