// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/binary_cache.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include <daelstrom/files.hpp>

#include "core/cache_folder.hpp"
#include "core/guard.hpp"
#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"

namespace dael::opencl {
namespace {

using Bytes = std::span<const unsigned char>;
using Digest = std::array<unsigned char, 32>;

// None where memory ran out.
std::optional<Digest> sha256(std::initializer_list<Bytes> parts) {
    const core::LibcryptoNotes notes;
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          EVP_MD_CTX_free);
    const std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> algorithm(
        EVP_MD_fetch(core::libcrypto(), "SHA256", nullptr), EVP_MD_free);
    if (!context || !algorithm || EVP_DigestInit_ex2(context.get(), algorithm.get(), nullptr) != 1)
        return std::nullopt;
    for (const Bytes part : parts)
        if (EVP_DigestUpdate(context.get(), part.data(), part.size()) != 1) return std::nullopt;
    Digest digest;
    if (EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1) return std::nullopt;
    return digest;
}

Bytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

// What a file begins with: of its content, and of what the content is for.
std::optional<Digest> seal_of(const std::string& identity, Bytes binary) {
    static constexpr unsigned char kEnd[] = {0};  // no identity has one
    return sha256({bytes_of(identity), kEnd, binary});
}

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { reset(); }

    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    bool reset() {
        const int number = std::exchange(number_, -1);
        return number < 0 || close(number) == 0;
    }
    // Of this kind (S_IFDIR, S_IFREG), our own, and nobody else's to write to.
    bool ours(mode_t kind, std::size_t* size = nullptr) const {
        struct stat status {};
        if (number_ < 0 || fstat(number_, &status) != 0) return false;
        if (size) *size = static_cast<std::size_t>(status.st_size);
        return (status.st_mode & S_IFMT) == kind && status.st_uid == geteuid() &&
               (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    }

  private:
    int number_;
};

// The folder, made if need be. All that follows goes by its descriptor: what has the path by then
// may be another's.
int open_folder() {
    const std::string cache = core::cache_folder();
    if (cache.empty()) return -1;
    std::error_code fault;
    std::filesystem::create_directories(cache, fault);
    const std::string path = cache + "/opencl";
    (void)mkdir(path.c_str(), 0700);  // whatever the umask would leave to others
    return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// The file's name in it; empty where there is none.
std::string file_name(const std::string& identity) {
    const auto digest = sha256({bytes_of(identity)});
    if (!digest) return {};
    std::string name;
    for (const unsigned char byte : *digest) {
        constexpr char kHex[] = "0123456789abcdef";
        name += {kHex[byte >> 4], kHex[byte & 15]};
    }
    return name + ".bin";
}

bool read_all(int file, std::span<unsigned char> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = read(file, bytes.data(), bytes.size());
        if (got <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

bool write_all(int file, Bytes bytes) {
    while (!bytes.empty()) {
        const ssize_t written = write(file, bytes.data(), bytes.size());
        if (written <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace

std::optional<Binary> load_binary(const std::string& identity) {
    const std::string name = file_name(identity);
    const Descriptor folder(name.empty() ? -1 : open_folder());
    if (!folder.ours(S_IFDIR)) return std::nullopt;
    const Descriptor file(openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    std::size_t size = 0;
    Digest found;
    if (!file.ours(S_IFREG, &size) || size <= found.size()) return std::nullopt;
    Binary binary(size - found.size());
    if (!read_all(file.get(), found) || !read_all(file.get(), binary)) return std::nullopt;
    if (seal_of(identity, binary) != found) return std::nullopt;
    return binary;
}

void store_binary(const std::string& identity, const Binary& binary) noexcept try {
    const core::Uncancelled whole;
    const std::string name = file_name(identity);
    const auto seal = seal_of(identity, binary);
    const Descriptor folder(name.empty() || !seal ? -1 : open_folder());
    if (!folder.ours(S_IFDIR)) return;
    // A link, which was not read either, gives way; what it leads to stays.
    struct stat there {};
    if (fstatat(folder.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(there.st_mode))
        (void)unlinkat(folder.get(), name.c_str(), 0);
    auto file = files::NewFile::begin(
        folder.get(), name, {.existing = files::Existing::whatever, .follow = false, .mode = 0600});
    if (file && write_all(file->fd(), *seal) && write_all(file->fd(), binary)) (void)file->commit();
} catch (...) {
}

}  // namespace dael::opencl
