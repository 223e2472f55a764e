// SPDX-License-Identifier: Apache-2.0
#include "planned_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>

#include <daelstrom/files.hpp>

#include "io/text.hpp"

namespace dael::cli {
namespace {

std::atomic<std::uint64_t> folders_opened{0};

std::uint32_t in_kibibytes(std::uint64_t size) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min(size / 1024 + (size % 1024 != 0), kMax));
}

// The folders that were opened last. Files come folder by folder, and each takes two: that of the
// input and that of the output.
class LastFolders {
  public:
    using Open = std::shared_ptr<const OpenFolder>;
    Open find(std::uint64_t root, const std::string& path) {
        const std::lock_guard lock(mutex_);
        for (const Last& one : last_)
            if (one.open && one.root == root && one.path == path) return one.open;
        return nullptr;
    }
    void add(std::uint64_t root, const std::string& path, const Open& open) {
        Last gone{root, path, open};  // closed without the lock
        const std::lock_guard lock(mutex_);
        std::swap(last_[turn_++ % last_.size()], gone);
    }

  private:
    struct Last {
        std::uint64_t root = 0;
        std::string path;
        Open open;
    };
    std::mutex mutex_;
    std::array<Last, 4> last_;
    std::size_t turn_ = 0;
};

LastFolders& last_folders() {
    static LastFolders all;
    return all;
}

}  // namespace

OpenFolder::OpenFolder(int fd) noexcept : fd_(fd), number_(++folders_opened) {}

OpenFolder::~OpenFolder() {
    ::close(fd_);
}

Result<std::shared_ptr<const OpenFolder>> OpenFolder::below(const std::string& path,
                                                            const std::string& name) const {
    auto fd = files::open_below(fd_, path);
    if (!fd)
        return Error{Code::io, in_quotes(name) + ": a link is on the way there by now, or it is " +
                                   "no folder that can be opened (" + fd.error().message + ")"};
    return std::make_shared<const OpenFolder>(*fd);
}

Result<std::shared_ptr<const OpenFolder>> OpenFolder::once_below(const std::string& path,
                                                                 const std::string& name) const {
    if (auto known = last_folders().find(number_, path)) return known;
    auto opened = below(path, name);
    if (opened) last_folders().add(number_, path, *opened);
    return opened;
}

std::string last_part(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

std::string joined(const std::string& folder, const std::string& name) {
    return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

bool has_suffix(const std::string& path) {
    const std::string name = last_part(path);
    return name.ends_with(kSuffix) && name != kSuffix;
}

std::string without_suffix(const std::string& path) {
    return has_suffix(path) ? path.substr(0, path.size() - std::strlen(kSuffix)) : path;
}

std::string output_path(Naming naming, const std::optional<std::string>& output_dir,
                        const std::string& input, const std::string& below) {
    const std::string path = output_dir ? joined(*output_dir, below) : input;
    if (naming == Naming::seal) return path + kSuffix;
    return naming == Naming::reseal ? path : without_suffix(path);
}

void PlannedFiles::set_naming(Naming naming, const std::optional<std::string>& output_dir) {
    naming_ = naming;
    output_dir_ = output_dir;
}

void PlannedFiles::add(PlannedFile named) {
    bytes_ += named.size;
    files_.push_back({nullptr, named_.size(), 0, in_kibibytes(named.size)});
    named_.push_back(std::move(named));
}

void PlannedFiles::add_root(const std::string& path, std::shared_ptr<const OpenFolder> open,
                            std::shared_ptr<const OutputFolder> outputs) {
    roots_.push_back({joined(path, ""), std::move(open), std::move(outputs)});
}

void PlannedFiles::enter(const std::string& below) {
    folders_.push_back({below, static_cast<std::uint32_t>(roots_.size() - 1), 0});
}

const char* PlannedFiles::keep(const char* name) {
    constexpr std::size_t kChunk = 64 << 10;
    const std::size_t size = std::strlen(name) + 1;
    if (room_.size() < size) {
        const std::size_t chunk = std::max(kChunk, size);
        names_.push_back(std::make_unique_for_overwrite<char[]>(chunk));
        room_ = {names_.back().get(), chunk};
    }
    char* const kept = room_.data();
    std::memcpy(kept, name, size);
    room_ = room_.subspan(size);
    return kept;
}

void PlannedFiles::add(const char* name, const FoundFile& found, std::uint64_t size) {
    // What is mounted over a file lies on a file system of its own.
    const bool is_first =
        files_.empty() || !files_.back().name || files_.back().folder != folders_.size() - 1;
    if (!is_first && folders_.back().device != found.device) {
        Folder other = folders_.back();
        folders_.push_back(std::move(other));
    }
    folders_.back().device = found.device;
    bytes_ += size;
    files_.push_back(
        {name, found.number, static_cast<std::uint32_t>(folders_.size() - 1), in_kibibytes(size)});
}

void PlannedFiles::skip(const char* name, bool is_link) {
    skipped_.push_back({name, static_cast<std::uint32_t>(folders_.size() - 1), is_link});
}

std::string PlannedFiles::path_of(std::uint32_t folder, const char* name) const {
    return roots_[folders_[folder].root].path + folders_[folder].below + name;
}

std::string PlannedFiles::skipped(std::size_t i) const {
    const Skipped& one = skipped_[i];
    return in_quotes(path_of(one.folder, one.name)) +
           " is left alone: " + (one.is_link ? "a symbolic link" : "no regular file");
}

FoundFile PlannedFiles::identity(const File& file) const {
    return {folders_[file.folder].device, file.number};
}

PlannedFile PlannedFiles::operator[](std::size_t i) const {
    const File& file = files_[i];
    if (!file.name) return named_[file.number];
    const Folder& folder = folders_[file.folder];
    const Root& root = roots_[folder.root];
    const std::string below = folder.below + file.name, input = root.path + below;
    return {.input = input,
            .output = output_path(naming_, output_dir_, input, below),
            .found = identity(file),
            .size = std::uint64_t{file.kibibytes} * 1024,
            .name = naming_ == Naming::seal ? below : without_suffix(below),
            .root = root.open,
            .output_root = root.outputs,
            .below = folder.below};
}

bool PlannedFiles::has(const FoundFile& wanted) {
    const auto key = [](const FoundFile& file) { return std::pair(file.device, file.number); };
    const auto of = [&](std::uint32_t i) { return key(identity(files_[i])); };
    if (!by_identity_) {
        std::vector<std::uint32_t> all;
        all.reserve(files_.size() - named_.size());
        for (std::uint32_t i = 0; i < files_.size(); ++i)
            if (files_[i].name) all.push_back(i);
        std::ranges::sort(all, {}, of);
        by_identity_ = std::move(all);
    }
    return std::ranges::binary_search(*by_identity_, key(wanted), {}, of);
}

}  // namespace dael::cli
