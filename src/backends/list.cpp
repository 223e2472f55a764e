// SPDX-License-Identifier: Apache-2.0
// The list of backends: adding one takes a folder beside this file and one line in each half of
// this one. A backend that this build leaves out is still listed, with the reason (its folder's
// absent.cpp).
#include <array>

#include "core/registry.hpp"

namespace dael::backends {

extern const core::BackendEntry reference;
extern const core::BackendEntry openssl;
extern const core::BackendEntry cpu;
extern const core::BackendEntry cuda;
extern const core::BackendEntry opencl;
extern const core::BackendEntry opengl;

}  // namespace dael::backends

namespace dael::core {

BackendList backend_list() noexcept {
    static constexpr std::array entries{
        &backends::reference, &backends::openssl, &backends::cpu,
        &backends::cuda,      &backends::opencl,  &backends::opengl,
    };
    return BackendList(entries);
}

}  // namespace dael::core
