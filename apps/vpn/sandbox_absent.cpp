// SPDX-License-Identifier: Apache-2.0
// A build without libseccomp.
#include "vpn/rights.hpp"

namespace dael::vpn {

Result<> close_sandbox(Sandbox) {
    return Error{Code::unsupported,
                 "this build has no libseccomp; install libseccomp-dev and build again"};
}

}  // namespace dael::vpn
