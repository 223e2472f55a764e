// SPDX-License-Identifier: Apache-2.0
// What a file has besides its content: owner, group, permissions, access control lists and extended
// attributes.
#pragma once

#include <string>

#include <daelstrom/error.hpp>

namespace dael::app {

// Gives the open file `to` what the file `from` has (an O_PATH descriptor will do), as far as the
// kernel lets us; a warning that calls the file `name` says what it does not. Where the group
// cannot stay, the new one may do no more than everybody. Set-user-ID bits and what the kernel
// takes from a file whose content changes (capabilities, its signature) do not go over. Errors
// (io): the permissions cannot be set.
Result<> inherit_attributes(int to, int from, const std::string& name);

}  // namespace dael::app
