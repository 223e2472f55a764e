// SPDX-License-Identifier: Apache-2.0
// Fillers and the options of tables, which security associations and ESP share.
#pragma once

#include <daelstrom/daelstrom_keystream.h>

#include <daelstrom/keystream.hpp>

#include "capi/shared.hpp"

struct dael_sa_filler {
    dael::SaFiller filler;
};

namespace dael::capi {

Result<SaTableOptions> table_options(const dael_sa_table_options* options);

}  // namespace dael::capi
