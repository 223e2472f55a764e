// SPDX-License-Identifier: Apache-2.0
#include "core/registry.hpp"

#include <charconv>

#include "core/quoted.hpp"

namespace dael::core {
namespace {

std::string known_names() {
    std::string names;
    for (const auto& entry : backend_list())
        names += (names.empty() ? "" : ", ") + std::string(entry.name);
    return names;
}

}  // namespace

void visit_devices(const DeviceVisit& visit) {
    for (const BackendEntry& entry : backend_list()) {
        std::string missing;
        const int count = !entry.device_name ? 0
                          : entry.offered    ? entry.offered()
                                             : entry.count(&missing);
        for (int index = 0; index < count; ++index) {
            const std::string name = entry.device_name(index);
            if (!name.empty() && visit(entry, index, name)) return;
        }
    }
}

Result<std::unique_ptr<Backend>> open_backend(std::string_view name, BackendOptions options) {
    const std::string asked = quoted(name);
    std::string_view index;
    if (const auto colon = name.find(':'); colon != name.npos) {
        index = name.substr(colon + 1);
        name = name.substr(0, colon);
        const auto [end, fault] =
            std::from_chars(index.data(), index.data() + index.size(), options.index);
        if (fault != std::errc{} || end != index.data() + index.size() || options.index < 0)
            return Error{Code::unknown_backend,
                         "backend " + asked + ": what follows the colon must be a device number"};
    }
    for (const auto& entry : backend_list()) {
        if (name != entry.name) continue;
        std::string why;
        const int count = entry.count(&why);
        if (count == 0)
            return Error{Code::backend_absent, "backend " + asked + " is not available: " + why};
        if (options.index >= count)
            return Error{Code::backend_absent, "backend " + asked +
                                                   " is not available: this machine has " +
                                                   std::to_string(count) + ", numbered from 0"};
        if (!options.form.empty() && !entry.forms)
            return Error{Code::invalid_argument,
                         "form " + quoted(options.form) + " has no meaning for " + asked +
                             ", which has one form only; leave one of them out"};
        // Backends say in their own words which forms they have, and repeat the one they were
        // given.
        if (quoted(options.form) != "'" + options.form + "'")
            return Error{Code::invalid_argument,
                         "backend " + asked + " has no form " + quoted(options.form)};
        return entry.open(options);
    }
    return Error{Code::unknown_backend, "no backend " + asked + "; there are " + known_names()};
}

}  // namespace dael::core
