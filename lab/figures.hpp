// SPDX-License-Identifier: Apache-2.0
// What studies find out besides rates, apart from their runs, so that it can be tested.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "measure/report.hpp"

namespace dael::lab {

// Of 100 blocks of 16 bytes, how many occur more than once.
double repeated_blocks(std::span<const std::uint8_t> bytes);

// Gives the row from whose size on a way is always faster than OpenSSL on one core, at the same
// work from host memory, the figure `crossover`.
void mark_crossovers(std::vector<measure::Row>& rows);

}  // namespace dael::lab
