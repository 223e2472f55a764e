// SPDX-License-Identifier: Apache-2.0
// Finds backends by name. The list itself is src/backends/list.cpp, the one place that names them
// all.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dael::core {

// In the order in which `daelstrom devices` shows them. Defined in src/backends/list.cpp.
std::span<const BackendEntry> backend_list() noexcept;

// Every device that may be used without being asked for by name, in the list's order, with what its
// driver calls it, until `visit` returns true. Drivers of kinds after that are not touched.
using DeviceVisit = std::function<bool(const BackendEntry&, int index, const std::string& name)>;
void visit_devices(const DeviceVisit& visit);

// Opens "cpu", "cuda" or "cuda:1". Errors: unknown_backend, with the known names; backend_absent,
// with what is missing; invalid_argument, for a form that it has not: any, where there is one only.
Result<std::unique_ptr<Backend>> open_backend(std::string_view name, BackendOptions options = {});

}  // namespace dael::core
