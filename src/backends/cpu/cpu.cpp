// SPDX-License-Identifier: Apache-2.0
// libipsec-mb as a backend: the vector units of x86-64.
#include "backends/cpu/aegis.hpp"
#include "backends/cpu/gcm.hpp"
#include "backends/cpu/gcm_avx512_calls.hpp"
#include "backends/cpu/ipsec_mb.hpp"
#include "backends/cpu/modes.hpp"
#include "backends/cpu/modes_avx512.hpp"
#include "backends/cpu/packet_cipher.hpp"
#include "backends/cpu/pieces.hpp"
#include "backends/cpu/siv.hpp"
#include "backends/cpu/xaes.hpp"
#include "core/backend.hpp"

namespace dael::backends {
namespace {

using cpu::Level;

class Cpu final : public core::Backend {
  public:
    explicit Cpu(Level level)
        : level_(level),
          profile_{"cpu", std::string("libipsec-mb ") + imb_get_version_str() + ", " +
                              cpu::describe(level)} {}
    const core::Profile& profile() const override { return profile_; }
    core::Can can(const Cipher& cipher, int) const override {
        if (cipher.mode == Mode::xts)
            return {core::Can::no, "libipsec-mb has no XTS; use the backend 'auto' or 'openssl'"};
        return {};
    }

    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        if (avx512_) return cpu::GcmAvx512Tables::make(keys);
        DAEL_LET(workspace, cpu::workspace(level_));
        return cpu::Tables::make(*workspace->manager, keys);
    }
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        if (is_aegis(cipher.mode)) {
            cpu::aegis::run(aegis_, cipher, keys.list, messages, codes);
            return {};
        }
        if (cipher.mode == Mode::gcm_siv)
            return cpu::siv::run(siv_, cipher, keys.list, messages, codes);
        if (avx512_ && cipher.mode == Mode::xaes256gcm)
            return cpu::xaes::run_avx512(cipher, keys.list, messages, codes);
        if (avx512_ && cipher.mode == Mode::gcm)
            return cpu::gcm_avx512_run(cipher, keys, messages, codes);
        if (avx512_ && cpu::has_avx512_code(cipher.mode, cipher.direction)) {
            for (const Message& m : messages)
                cpu::run_avx512(cipher.mode, cipher.direction, keys.list[m.key].schedule(), m);
            return {};
        }
        if (cipher.mode == Mode::gcm && keys.tables) {  // which need no manager
            cpu::gcm(nullptr, cipher, keys, messages, codes);
            return {};
        }
        DAEL_LET(workspace, cpu::workspace(level_));
        if (cipher.mode == Mode::xaes256gcm) {
            cpu::xaes::run(*workspace, cipher, keys.list, messages, codes);
            return {};
        }
        if (cipher.mode != Mode::gcm) return cpu::run(*workspace, cipher, keys.list, messages);
        cpu::gcm(workspace, cipher, keys, messages, codes);
        return {};
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        if (is_aegis(cipher.mode)) return cpu::aegis::begin(aegis_, cipher, keys.list[key], start);
        if (cipher.mode == Mode::xaes256gcm)
            return cpu::xaes::begin(*this, cipher, keys.list[key], start);
        if (cipher.mode == Mode::gcm_siv)
            return Error{Code::unsupported,
                         "GCM-SIV has no pieces: what is encrypted depends on the whole message"};
        if (avx512_) {
            const auto& tables = static_cast<const cpu::GcmAvx512Tables&>(*keys.tables);
            return cpu::begin_gcm_avx512(cipher.direction, tables[key], keys.list[key],
                                         start.first);
        }
        const auto& tables = static_cast<const cpu::Tables&>(*keys.tables);
        return cpu::begin(cipher.direction, tables[key], keys.list[key], start.first);
    }
    Result<std::unique_ptr<core::PacketCipher>> packets(const Key& key) override {
        DAEL_LET(workspace, cpu::workspace(level_));
        return cpu::packets(level_, *workspace->manager, key);
    }

  private:
    const Level level_;
    const bool avx512_ = level_ == Level::avx512 && cpu::vectorised(level_);
    const cpu::aegis::Form& aegis_ = cpu::aegis::form(level_);
    const cpu::siv::Form& siv_ = avx512_ ? cpu::siv::kAvx512 : cpu::siv::kAesni;
    const core::Profile profile_;
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
    if (options.form.empty()) {
        for (const Level better : cpu::kLevels)
            if (cpu::available(better)) level = better;
    } else if (const auto asked = cpu::level_by_name(options.form)) {
        level = *asked;
    } else {
        return Error{Code::invalid_argument, "no instruction set '" + options.form +
                                                 "'; there are " +
                                                 names_of([](Level) { return true; })};
    }
    if (!cpu::available(level))
        return Error{Code::backend_absent, "instruction set '" + options.form +
                                               "' is not available: this machine has " +
                                               names_of([](Level l) { return cpu::available(l); })};
    return std::unique_ptr<core::Backend>(std::make_unique<Cpu>(level));
}

// One message of a sequential mode uses one lane of sixteen. GCM is fast with AVX-512 and VAES
// alone: below, libipsec-mb's code has less than half of OpenSSL's rate.
core::Expected expected(const std::string& form) {
    const bool vaes = (form.empty() || form == cpu::name(Level::avx512)) &&
                      cpu::available(Level::avx512) &&
                      cpu::describe(Level::avx512).ends_with("with VAES");
    return {.parallel = 10,
            .cfb_decrypt = 8,
            .sequential = 0.8,
            .sequential_batch = 6,
            .gcm = vaes ? 7.0 : 2.0,
            .aegis = 10.0};
}

std::vector<std::string> forms() {
    std::vector<std::string> names;
    for (const Level level : cpu::kLevels)
        if (cpu::available(level)) names.emplace_back(cpu::name(level));
    return names;
}

}  // namespace

extern const core::BackendEntry cpu;
const core::BackendEntry cpu{.name = "cpu",
                             .summary = "libipsec-mb: the vector units of x86-64",
                             .count = count,
                             .open = open,
                             .expected = expected,
                             .forms = forms};

}  // namespace dael::backends
