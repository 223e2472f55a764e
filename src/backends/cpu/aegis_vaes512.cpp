// SPDX-License-Identifier: Apache-2.0
// AEGIS by VAES on four blocks at a time.
#include <immintrin.h>

#include <cstring>

#include <daelstrom/key.hpp>

#include "backends/cpu/aegis_code.hpp"
#include "modes/aegis.hpp"

#define DAEL_AEGIS_TARGET "avx512f,avx512bw,avx512vl,avx512dq,vaes,aes,bmi2"
#define DAEL_AEGIS_BLOCKS 4

namespace dael::cpu::aegis {
namespace vaes512 {
namespace {

#include "backends/cpu/aegis_registers.hpp"

template <class Register, std::size_t kCount>
struct Lanes;
using Lanes1 = Lanes<Xmm, 1>;
using Lanes2 = Lanes<Ymm, 1>;
using Lanes4 = Lanes<Zmm, 1>;
using Beside = Lanes<Zmm, 1>;

#include "backends/cpu/aegis_steps.hpp"

}  // namespace
}  // namespace vaes512

const Form kVaes512 = vaes512::kForm;

}  // namespace dael::cpu::aegis
