// SPDX-License-Identifier: Apache-2.0
// AEGIS by AES-NI, a block at a time.
#include <immintrin.h>

#include <cstring>

#include <daelstrom/key.hpp>

#include "backends/cpu/aegis_code.hpp"
#include "modes/aegis.hpp"

#define DAEL_AEGIS_TARGET "aes,sse4.2"
#define DAEL_AEGIS_BLOCKS 1

namespace dael::cpu::aegis {
namespace aesni {
namespace {

#include "backends/cpu/aegis_registers.hpp"

template <class Register, std::size_t kCount>
struct Lanes;
using Lanes1 = Lanes<Xmm, 1>;
using Lanes2 = Lanes<Xmm, 2>;
using Lanes4 = Lanes<Xmm, 4>;
using Beside = Lanes<Xmm, 1>;

#include "backends/cpu/aegis_steps.hpp"

}  // namespace
}  // namespace aesni

const Form kAesni = aesni::kForm;

}  // namespace dael::cpu::aegis
