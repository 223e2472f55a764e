// SPDX-License-Identifier: Apache-2.0
// AEGIS by VAES on two blocks at a time.
#include <immintrin.h>

#include <cstring>

#include <daelstrom/key.hpp>

#include "backends/cpu/aegis_code.hpp"
#include "modes/aegis.hpp"

#define DAEL_AEGIS_TARGET "avx2,aes,vaes"
#define DAEL_AEGIS_BLOCKS 2

namespace dael::cpu::aegis {
namespace vaes256 {
namespace {

#include "backends/cpu/aegis_registers.hpp"

template <class Register, std::size_t kCount>
struct Lanes;
using Lanes1 = Lanes<Xmm, 1>;
using Lanes2 = Lanes<Ymm, 1>;
using Lanes4 = Lanes<Ymm, 2>;
using Beside = Lanes<Ymm, 1>;

#include "backends/cpu/aegis_steps.hpp"

}  // namespace
}  // namespace vaes256

const Form kVaes256 = vaes256::kForm;

}  // namespace dael::cpu::aegis
