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

// Gives the rows of several streams the figure `hidden`: what they gain on the same chunks on one
// stream, as a share of what the copies alone (the row's first ceiling) take. Not where those are a
// small part of it all.
void mark_hidden(std::vector<measure::Row>& rows);

// Gives rows of the scheduler's own choice the figure `of_best`: their rate over the fastest of the
// same work with a share that was fixed.
void mark_best(std::vector<measure::Row>& rows);

}  // namespace dael::lab
