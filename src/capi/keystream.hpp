// SPDX-License-Identifier: Apache-2.0
// Fillers and the options of tables, which security associations and ESP share.
#pragma once

#include <daelstrom/daelstrom_packets.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include <daelstrom/keystream.hpp>

#include "capi/shared.hpp"

struct dael_sa_filler {
    dael::SaFiller filler;
};

namespace dael::capi {

Result<SaTableOptions> table_options(const dael_sa_table_options* options);
Result<std::chrono::milliseconds> milliseconds(std::uint64_t count);

// Before a state is asked for: that there is room for all of it.
Result<> whole_state(const dael_sa_state* state);
Result<SaState> read_state(const dael_sa_state* given);
Result<> write_state(dael_sa_state* out, const SaState& state);

// As much of `all` as a caller's structure has room for, which says its size, and says afterwards
// how much of it is there.
template <class Sized>
Result<> write_sized(Sized* to, const Sized& all, const char* name) {
    const std::size_t theirs = to->struct_size;
    if (theirs < sizeof theirs)
        return Error{Code::invalid_argument, std::string(name) + " says that it has " +
                                                 std::to_string(theirs) +
                                                 " bytes; set struct_size to sizeof(" + name + ")"};
    const std::size_t known = std::min(theirs, sizeof all);
    std::memcpy(to, &all, known);
    to->struct_size = known;
    return {};
}

}  // namespace dael::capi
