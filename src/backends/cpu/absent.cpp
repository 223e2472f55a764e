// SPDX-License-Identifier: Apache-2.0
// Stands in for the cpu backend where libipsec-mb does not exist.
#include "core/backend.hpp"

namespace dael::backends {

extern const core::BackendEntry cpu;
const core::BackendEntry cpu{
    .name = "cpu",
    .summary = "libipsec-mb: the vector units of x86-64",
    .count =
        [](std::string* why) {
            *why = "this build has no libipsec-mb (x86-64 only; libipsec-mb-dev, 1.3 or later)";
            return 0;
        },
    .open = [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return Error{Code::backend_absent, "this build has no libipsec-mb"};
    }};

}  // namespace dael::backends
