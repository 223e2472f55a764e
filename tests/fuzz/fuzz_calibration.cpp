// SPDX-License-Identifier: Apache-2.0
// A calibration file is data that anybody's program may have written: whatever is in it, it is read
// or ignored, and what was read makes a plan with finite figures.
#include <cmath>
#include <filesystem>
#include <fstream>

#include <daelstrom/engine.hpp>
#include <daelstrom/plan.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

const std::string& path() {
    static const std::string path = [] {
        const std::string file = calibration_path();
        require(!file.empty(), "XDG_CACHE_HOME or HOME is set");
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        return file;
    }();
    return path;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    // The seeds say MACHINE where a file names the machine that it is for.
    static const std::string machine = describe_machine();
    std::string text(reinterpret_cast<const char*>(input), size);
    replace_all(text, "MACHINE", machine);
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;

    const auto loaded = load_calibration();
    if (!loaded) return 0;
    require(loaded->machine == machine, "a calibration of another machine is none");
    for (const HostRate& rate : loaded->hosts)
        require(rate.one_core > 0 && std::isfinite(rate.one_core), "rates are positive and finite");
    const auto engine = value(Engine::open({.backend = "auto"}), "engine");
    for (const std::uint64_t bytes : {0, 1, 4096, 1 << 30})
        for (const Mode mode : kModes)
            for (const Option& option : engine.explain({.cipher = {mode}, .size = bytes}).options)
                require(!option.possible || std::isfinite(option.seconds),
                        "predictions are finite");
    return 0;
}
