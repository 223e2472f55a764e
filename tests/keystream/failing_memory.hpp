// SPDX-License-Identifier: Apache-2.0
// operator new that fails when it is told to, for the calling thread alone: devices made of threads
// and fillers go on.
#pragma once

namespace dael::test {

// Allocations of this thread until one fails; below 0: none does.
extern thread_local long allocations_left;

}  // namespace dael::test
