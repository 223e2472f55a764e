// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"
namespace daelpy { void bind_batch(nb::module_&) {} }
