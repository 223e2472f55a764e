// SPDX-License-Identifier: Apache-2.0
// Who may do what with a new file: no more people than with what it was made of, or those of the
// file whose place it takes. And what else a file has besides its content: extended attributes.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "files/descriptor.hpp"

namespace dael::files {

// For the file `fd`, which is ours and open to nobody else. Its group becomes the input's where
// that can be had. Errors: io.
Result<> rights_after_input(int fd, int input, const struct stat& input_status, mode_t umask,
                            const Faults& faults, std::vector<std::string>& warnings);
// The permissions `mode`, for all whom the folder lets in besides (an access control list that it
// gives to new files).
Result<> rights_of_its_own(int fd, mode_t mode, const Faults& faults,
                           std::vector<std::string>& warnings);
// Its owner's alone.
Result<> rights_of_a_secret(int fd, const Faults& faults, std::vector<std::string>& warnings);

// What the file `from` has (an O_PATH descriptor; `folder` and `name` are where it lies): owner,
// group, permissions, access control lists, extended attributes, as far as the kernel lets us.
// Where the group cannot stay, the new one may do no more than everybody. Set-user-ID bits and what
// the kernel takes from a file whose content changes (capabilities, its signature) do not go over.
Result<> rights_of_the_replaced(int fd, int from, int folder, const std::string& name,
                                const Faults& faults, std::vector<std::string>& warnings);

}  // namespace dael::files
