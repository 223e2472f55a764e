// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <fcntl.h>
#include <openssl/params.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace dael::provider {
namespace {

constexpr Settings kUntold;
// Whole when it is there: who loads the provider beside the first reads for himself, and the later
// of them throws his away. There to the end.
constinit std::atomic<const Settings*> told{nullptr};

void refuse(Settings& to, const char* name, const char* value,
            const char* why = "makes no sense and is left out") noexcept {
    if (*to.fault) return;
    std::snprintf(to.fault, sizeof to.fault, "%s = %.60s %s", name, value, why);
}

// A number of bytes or threads: digits, and K, M or G behind them.
bool number(const char* text, std::uint64_t most, std::uint64_t& out) noexcept {
    if (*text < '0' || *text > '9') return false;
    char* end = nullptr;
    errno = 0;
    std::uint64_t value = std::strtoull(text, &end, 10);
    int shift = 0;
    if (*end == 'K' || *end == 'M' || *end == 'G')
        shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, ++end;
    if (errno != 0 || *end != 0 || value > (most >> shift)) return false;
    out = value << shift;
    return true;
}

void take(Settings& to, const char* name, const char* value) noexcept {
    std::uint64_t count = 0;
    if (std::strcmp(name, "backend") == 0 || std::strcmp(name, "log") == 0) {
        char* const at = *name == 'b' ? to.backend : to.log;
        const std::size_t room = *name == 'b' ? sizeof to.backend : sizeof to.log;
        if (std::strlen(value) < room)
            std::memcpy(at, value, std::strlen(value) + 1);
        else
            refuse(to, name, value);
    } else if (std::strcmp(name, "threads") == 0) {
        if (number(value, 4096, count))
            to.threads = static_cast<int>(count);
        else
            refuse(to, name, value);
    } else if (std::strcmp(name, "vectors") == 0) {
        if (std::strcmp(value, "on") == 0 || std::strcmp(value, "off") == 0)
            to.vectors = value[1] == 'n';
        else
            refuse(to, name, value);
    } else if (std::strcmp(name, "threshold") == 0) {
        // Below, cutting an update costs more than sharing it out can bring.
        // Multiples of it are counted with.
        constexpr std::uint64_t kMax = std::uint64_t{1} << 56;
        if (number(value, std::numeric_limits<std::uint64_t>::max(), count) && count >= 65536)
            to.threshold = count < kMax ? count : kMax;
        else
            refuse(to, name, value);
    } else if (std::strcmp(name, "lookahead") == 0) {
        if (std::strcmp(value, "off") != 0)
            refuse(to, name, value, "is left out: there is none, since it would not pay");
    } else {
        if (number(value, std::numeric_limits<std::int64_t>::max(), count))
            to.warmup = count;
        else
            refuse(to, name, value);
    }
}

}  // namespace

const Settings& settings() noexcept {
    const Settings* const ours = told.load(std::memory_order_acquire);
    return ours ? *ours : kUntold;
}

void read_settings(const OSSL_CORE_HANDLE* handle,
                   OSSL_FUNC_core_get_params_fn* get_params) noexcept {
    if (told.load(std::memory_order_acquire)) return;
    auto* const read = new (std::nothrow) Settings;
    if (!read) return;
    struct Name {
        const char *name, *variable;
    };
    static constexpr Name kNames[] = {
        {"backend", "DAELSTROM_PROVIDER_BACKEND"},     {"threads", "DAELSTROM_PROVIDER_THREADS"},
        {"threshold", "DAELSTROM_PROVIDER_THRESHOLD"}, {"warmup", "DAELSTROM_PROVIDER_WARMUP"},
        {"vectors", "DAELSTROM_PROVIDER_VECTORS"},     {"log", "DAELSTROM_PROVIDER_LOG"},
        {"lookahead", "DAELSTROM_PROVIDER_LOOKAHEAD"}};
    constexpr std::size_t kCount = sizeof kNames / sizeof *kNames;
    char* values[kCount] = {};
    OSSL_PARAM asked[kCount + 1];
    for (std::size_t i = 0; i < kCount; ++i)
        asked[i] = OSSL_PARAM_construct_utf8_ptr(const_cast<char*>(kNames[i].name), &values[i], 0);
    asked[kCount] = OSSL_PARAM_construct_end();
    if (get_params) (void)get_params(handle, asked);
    for (std::size_t i = 0; i < kCount; ++i) {
        if (values[i]) take(*read, kNames[i].name, values[i]);
        if (const char* const value = secure_getenv(kNames[i].variable))
            take(*read, kNames[i].name, value);
    }
    const Settings* none = nullptr;
    if (!told.compare_exchange_strong(none, read, std::memory_order_acq_rel))
        delete read;
    else if (*read->fault)
        log_line("a setting", read->fault);
}

void log_line(const char* what, const char* detail) noexcept {
    const char* const log = settings().log;
    if (std::strcmp(log, "off") == 0 || !*log) return;
    char line[1280];
    int size =
        std::snprintf(line, sizeof line, "daelstrom provider [%ld]: %s%s%.1000s\n",
                      static_cast<long>(getpid()), what, detail ? ": " : "", detail ? detail : "");
    if (size < 0) return;
    const bool to_stderr = std::strcmp(log, "stderr") == 0;
    const int file = to_stderr ? 2 : open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    // A line that cannot be written has nowhere to be reported.
    [[maybe_unused]] const ssize_t written = write(file, line, static_cast<std::size_t>(size));
    if (!to_stderr) close(file);
}

}  // namespace dael::provider
