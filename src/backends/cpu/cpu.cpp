// SPDX-License-Identifier: Apache-2.0
// libipsec-mb as a backend: the vector units of x86-64.
#include "backends/cpu/gcm.hpp"
#include "backends/cpu/ipsec_mb.hpp"
#include "backends/cpu/modes.hpp"
#include "core/backend.hpp"

namespace dael::backends {
namespace {

using cpu::Level;

class Cpu final : public core::Backend {
  public:
    explicit Cpu(Level level) noexcept : level_(level) {}
    std::string_view name() const override { return "cpu"; }
    std::string description() const override {
        return std::string("libipsec-mb ") + imb_get_version_str() + ", " + cpu::describe(level_);
    }
    bool supports(Mode, Direction, std::size_t) const override { return true; }

    Result<> run(const core::Operation& operation,
                 std::span<const core::Segment> segments) override {
        const auto workspace = cpu::workspace(level_);
        if (!workspace) return workspace.error();
        return cpu::run(**workspace, operation, segments);
    }

    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override {
        const auto workspace = cpu::workspace(level_);
        if (!workspace) return workspace.error();
        return cpu::prepare_gcm_keys((*workspace)->manager, keys);
    }
    Result<> gcm(Direction direction, const core::PreparedKeys& keys,
                 std::span<const core::GcmSegment> segments, std::span<Code> results) override {
        cpu::gcm(direction, keys, segments, results);
        return {};
    }
    Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                        const core::PreparedKeys& keys,
                                                        std::uint32_t key,
                                                        std::span<const std::uint8_t> iv) override {
        return cpu::gcm_stream(direction, keys, key, iv);
    }

  private:
    Level level_;
};

std::string names_of(bool (*wanted)(Level)) {
    std::string names;
    for (const Level level : cpu::kLevels)
        if (wanted(level)) names += (names.empty() ? "" : ", ") + std::string(cpu::name(level));
    return names;
}

int count(std::string* why) {
    if (cpu::available(Level::sse)) return 1;
    *why = "libipsec-mb needs a CPU with SSE4.2, AES-NI and PCLMULQDQ; use the openssl backend";
    return 0;
}

Result<std::unique_ptr<core::Backend>> open(const core::BackendOptions& options) {
    Level level = Level::sse;
    if (options.isa.empty()) {
        for (const Level better : cpu::kLevels)
            if (cpu::available(better)) level = better;
    } else if (const auto asked = cpu::level_by_name(options.isa)) {
        level = *asked;
    } else {
        return Error{Code::invalid_argument, "no instruction set '" + options.isa +
                                                 "'; there are " +
                                                 names_of([](Level) { return true; })};
    }
    if (!cpu::available(level))
        return Error{Code::backend_absent, "instruction set '" + options.isa +
                                               "' is not available: this machine has " +
                                               names_of([](Level l) { return cpu::available(l); })};
    return std::unique_ptr<core::Backend>(std::make_unique<Cpu>(level));
}

}  // namespace

extern const core::BackendEntry cpu;
const core::BackendEntry cpu{"cpu", "libipsec-mb: the vector units of x86-64", count, open};

}  // namespace dael::backends
