// SPDX-License-Identifier: Apache-2.0
// A whole tunnel, from its configuration to its end.
#pragma once

#include <functional>

#include <daelstrom/error.hpp>

#include "vpn/config.hpp"

namespace dael::vpn {

// Sets up interface, addresses, routes and sockets, gives up all rights, says `ready`, and runs
// until it is told to end (`down`, SIGINT, SIGTERM, SIGHUP, SIGQUIT). Then nothing of it is left.
// One in a process, which has one thread still; its signals and rights stay as this leaves them.
// Errors: of what could not be set up, and then nothing was; io where it had to end.
Result<> run_tunnel(Config config, const std::function<void()>& ready);

}  // namespace dael::vpn
