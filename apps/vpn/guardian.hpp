// SPDX-License-Identifier: Apache-2.0
// A process that does one thing once the tunnel's is gone, however that ended: it takes back the
// rules that lead to routes aside (aside.hpp), which nothing in the kernel ties to a process. Until
// then it waits at a socket whose other end the tunnel has. It is the tunnel's `user`, keeps
// CAP_NET_ADMIN alone, of which the tunnel itself has nothing left, has no file or socket but the
// two that it needs, and a sandbox of its own. Signals do not end it, but SIGKILL.
#pragma once

#include <string>

#include <daelstrom/error.hpp>

#include "vpn/aside.hpp"
#include "vpn/config.hpp"

namespace dael::vpn {

class Guardian {
  public:
    // Forks, so this process must have one thread still; the child wipes the secrets of `config`.
    // Routes by `interface` are those that go with the tunnel. Errors: io (no process, or what it
    // says of its own start).
    static Result<Guardian> start(Config& config, const Aside& aside, unsigned interface);
    Guardian(Guardian&& other) noexcept;
    Guardian& operator=(Guardian&&) = delete;
    // Has it do its work, and waits for that. Warns where it could not.
    ~Guardian();

  private:
    explicit Guardian(int socket) noexcept : socket_(socket) {}
    int socket_;
};

}  // namespace dael::vpn
