// SPDX-License-Identifier: Apache-2.0
// What the tunnel may still do once it is set up, when everything that took rights is open; and the
// guardian that it leaves some.
#pragma once

#include <cstdint>
#include <string>

#include <daelstrom/error.hpp>

namespace dael::vpn {

// Of this process, which must have one thread still: it becomes `user` (empty: "nobody", where it
// is root), and has no capability but those of `kept` (a bit each), nor ever gets one again; nobody
// may trace it. Errors: invalid_argument (no such user), io.
Result<> drop_rights(const std::string& user, std::uint32_t kept = 0);

// From here on the kernel refuses all threads, with EPERM, what a running tunnel, or its guardian,
// has no need of. Errors: unsupported (this build or kernel cannot), io.
enum class Sandbox { tunnel, guardian };
Result<> close_sandbox(Sandbox whose);

}  // namespace dael::vpn
