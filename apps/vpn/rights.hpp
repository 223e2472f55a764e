// SPDX-License-Identifier: Apache-2.0
// What the tunnel may still do once it is set up: everything that took rights is open by then.
#pragma once

#include <string>

#include <daelstrom/error.hpp>

namespace dael::vpn {

// Of this process, which must have one thread still: it becomes `user` (empty: "nobody", where it
// is root), and has no capability, nor ever gets one again; nobody may trace it. Errors:
// invalid_argument (no such user), io.
Result<> drop_rights(const std::string& user);

// From here on the kernel refuses all threads, with EPERM, what a running tunnel has no need of.
// Errors: unsupported (this build or kernel cannot), io.
Result<> close_sandbox();

}  // namespace dael::vpn
