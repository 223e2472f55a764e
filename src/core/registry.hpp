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

// In the order in which `daelstrom devices` shows them. Made by the compiler: what is made at the
// first call is waited for by a child of fork() that another thread's first call was amid.
class BackendList {
  public:
    class Iterator {
      public:
        explicit constexpr Iterator(const BackendEntry* const* at) noexcept : at_(at) {}
        const BackendEntry& operator*() const noexcept { return **at_; }
        Iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        bool operator==(const Iterator&) const noexcept = default;

      private:
        const BackendEntry* const* at_;
    };
    explicit constexpr BackendList(std::span<const BackendEntry* const> entries) noexcept
        : entries_(entries) {}
    Iterator begin() const noexcept { return Iterator(entries_.data()); }
    Iterator end() const noexcept { return Iterator(entries_.data() + entries_.size()); }

  private:
    std::span<const BackendEntry* const> entries_;
};
// Defined in src/backends/list.cpp.
BackendList backend_list() noexcept;

// Enters one more, behind the library's own: an exhibit of a program that links the static library.
// Before anything else of the library is called, by one thread. False: there is no room.
bool add_backend(const BackendEntry& entry) noexcept;

// Every device that may be used without being asked for by name, in the list's order, with what its
// driver calls it, until `visit` returns true. Drivers of kinds after that are not touched.
using DeviceVisit = std::function<bool(const BackendEntry&, int index, const std::string& name)>;
void visit_devices(const DeviceVisit& visit);

// Opens "cpu", "cuda" or "cuda:1". Errors: unknown_backend, with the known names; backend_absent,
// with what is missing; invalid_argument, for a form that it has not: any, where there is one only.
Result<std::unique_ptr<Backend>> open_backend(std::string_view name, BackendOptions options = {});

}  // namespace dael::core
