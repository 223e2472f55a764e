// SPDX-License-Identifier: Apache-2.0
// A build without libconfig++.
#include <daelstrom/keystream.hpp>

namespace dael {

Result<std::vector<SaEntry>> load_sas(const std::string&) {
    return Error{Code::unsupported,
                 "files of SAs: this build has no libconfig++; install libconfig++-dev and build "
                 "again, or add the SAs in code"};
}

}  // namespace dael
