// SPDX-License-Identifier: Apache-2.0
// daelstrom._core: what the Python package is made of. Its types stand in daelstrom/_core.pyi.
#include "engine.hpp"

NB_MODULE(_core, m) {
    nanobind::set_leak_warnings(false);  // of objects that live as long as the process
    daelpy::bind_engine(m);
    daelpy::bind_gcm(m);
    daelpy::bind_modes(m);
    daelpy::bind_pieces(m);
    daelpy::bind_batch(m);
    daelpy::bind_sealed(m);
    daelpy::bind_weights(m);
}
