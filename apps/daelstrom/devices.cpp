// SPDX-License-Identifier: Apache-2.0
// `devices`: every backend that daelstrom knows, and what this machine has of it.
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

#include "backend_list.hpp"
#include "commands.hpp"

namespace dael::cli {
namespace {

void print_json(const std::vector<BackendInfo>& backends) {
    auto rows = nlohmann::json::array();
    for (const BackendInfo& backend : backends) {
        nlohmann::json row{
            {"name", backend.name}, {"summary", backend.summary}, {"present", backend.present}};
        if (backend.present)
            row["description"] = backend.description;
        else
            row["missing"] = backend.missing;
        rows.push_back(std::move(row));
    }
    std::cout << rows.dump(2) << '\n';
}

void print_table(const std::vector<BackendInfo>& backends) {
    std::size_t width = 0;
    for (const BackendInfo& backend : backends) width = std::max(width, backend.name.size());
    const std::string indent(width + 2, ' ');
    for (const BackendInfo& backend : backends)
        std::cout << backend.name << indent.substr(backend.name.size())
                  << (backend.present ? backend.description : "not here: " + backend.missing)
                  << '\n'
                  << indent << backend.summary << '\n';
}

}  // namespace

void add_devices(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "devices");
    const auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "As JSON, for programs");
    command->callback([&context, json] {
        context.action = [json]() -> Result<> {
            const auto backends = list_backends_apart();
            *json ? print_json(backends) : print_table(backends);
            return {};
        };
    });
}

}  // namespace dael::cli
