// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/binary_cache.hpp"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "core/cache_folder.hpp"

namespace dael::opencl {
namespace {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::span<const unsigned char> bytes) {
    Digest digest{};
    unsigned size = 0;
    // Fails for want of memory only; zeros then match nothing that was stored.
    (void)EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
    return digest;
}

// Ours alone to write to. Makes it if need be.
bool usable(const std::string& folder) {
    std::error_code fault;
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), fault);
    (void)mkdir(folder.c_str(), 0700);  // whatever the umask would leave to others
    struct stat status {};
    return stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Empty where there is no place.
std::string path_of(const std::string& identity) {
    const std::string cache = core::cache_folder();
    if (cache.empty() || !usable(cache + "/opencl")) return {};
    std::string path = cache + "/opencl/";
    for (const unsigned char byte :
         sha256({reinterpret_cast<const unsigned char*>(identity.data()), identity.size()})) {
        constexpr char kHex[] = "0123456789abcdef";
        path += {kHex[byte >> 4], kHex[byte & 15]};
    }
    return path + ".bin";
}

}  // namespace

std::optional<Binary> load_binary(const std::string& identity) {
    const std::string path = path_of(identity);
    if (path.empty()) return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    const Binary content{std::istreambuf_iterator<char>(file), {}};
    Digest digest;
    if (content.size() <= digest.size()) return std::nullopt;
    Binary binary(content.begin() + digest.size(), content.end());
    std::copy_n(content.begin(), digest.size(), digest.begin());
    if (digest != sha256(binary)) return std::nullopt;
    return binary;
}

void store_binary(const std::string& identity, const Binary& binary) noexcept try {
    const std::string path = path_of(identity);
    if (path.empty()) return;
    std::string temporary = path + ".XXXXXX";
    const int descriptor = mkstemp(temporary.data());
    if (descriptor < 0) return;
    std::FILE* const file = fdopen(descriptor, "wb");
    if (!file) {
        close(descriptor);
        unlink(temporary.c_str());
        return;
    }
    const Digest digest = sha256(binary);
    const bool written = std::fwrite(digest.data(), digest.size(), 1, file) == 1 &&
                         std::fwrite(binary.data(), binary.size(), 1, file) == 1;
    const bool closed = std::fclose(file) == 0;
    if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0)
        unlink(temporary.c_str());
} catch (...) {
}

}  // namespace dael::opencl
