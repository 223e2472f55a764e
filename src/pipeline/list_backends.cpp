// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/engine.hpp>

#include "core/registry.hpp"

namespace dael {

std::vector<BackendInfo> backend_kinds() {
    std::vector<BackendInfo> list;
    for (const core::BackendEntry& entry : core::backend_list())
        list.push_back({entry.name, {}, entry.summary, false, {}});
    return list;
}

std::vector<BackendInfo> list_backends(std::string_view kind) {
    std::vector<BackendInfo> list;
    for (const core::BackendEntry& entry : core::backend_list()) {
        if (!kind.empty() && kind != entry.name) continue;
        BackendInfo info{entry.name, {}, entry.summary, false, {}};
        const int count = entry.count(&info.missing);
        if (count == 0) list.push_back(info);
        for (int index = 0; index < count; ++index) {
            auto backend = entry.open({.form = {}, .index = index});
            info.present = static_cast<bool>(backend);
            info.name = backend ? (*backend)->profile().name : entry.name;
            if (!backend && (count > 1 || entry.device_name))
                info.name += ":" + std::to_string(index);
            info.description = backend ? (*backend)->profile().description : "";
            info.missing = backend ? "" : backend.error().message;
            list.push_back(info);
        }
    }
    return list;
}

}  // namespace dael
