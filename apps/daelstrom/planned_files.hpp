// SPDX-License-Identifier: Apache-2.0
// The files of a plan, in little memory: of one that was found in a folder only what cannot be had
// from its folder, some 24 bytes and its name. It is put together anew each time that it is asked
// for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "commands.hpp"
#include "io/input.hpp"

namespace dael::cli {

inline constexpr const char* kSuffix = ".sealed";

// What the names of outputs are made of. `seal`: "x" becomes "x.sealed"; `open`: the reverse;
// `reseal`: the file itself.
enum class Naming { seal, open, reseal };

// A folder that stays open: a descriptor for *at() calls.
class OpenFolder {
  public:
    explicit OpenFolder(int fd) noexcept;
    OpenFolder(const OpenFolder&) = delete;
    OpenFolder& operator=(const OpenFolder&) = delete;
    ~OpenFolder();
    int fd() const noexcept { return fd_; }
    // What lies below it. Errors (io), calling it `name`: a link is on the way, or it is no folder.
    Result<std::shared_ptr<const OpenFolder>> below(const std::string& path,
                                                    const std::string& name) const;
    // The same, or what it was when this was last asked for: for file after file of one folder. Any
    // number of threads.
    Result<std::shared_ptr<const OpenFolder>> once_below(const std::string& path,
                                                         const std::string& name) const;

  private:
    const int fd_;
    const std::uint64_t number_;  // of no other one, ever
};

// Where outputs lie: it is made, and opened, when the plan is carried out.
struct OutputFolder {
    std::shared_ptr<const OpenFolder> open;
};

struct PlannedFile {
    std::string input;
    std::optional<std::string> output;  // none: standard output
    std::optional<FoundFile> found;     // in a folder, where it may be another one by now
    std::uint64_t size = 0;             // bytes, as far as is known; in a folder a little more
    // What the sealed file is called below the folder that was named, or among named files, without
    // its suffix. Empty: it has no name.
    std::string name;
    // In a folder: the one that was named, the one where outputs lie if it is another, and the way
    // from there to the folder of the file, which is the same in both.
    std::shared_ptr<const OpenFolder> root = {};
    std::shared_ptr<const OutputFolder> output_root = {};
    std::string below = {};
};

class PlannedFiles {
  public:
    std::size_t size() const noexcept { return files_.size(); }
    bool empty() const noexcept { return files_.empty(); }
    PlannedFile operator[](std::size_t i) const;
    std::uint64_t bytes() const noexcept { return bytes_; }  // of all of them
    bool is_larger(std::size_t i, std::uint64_t kibibytes) const noexcept {
        return files_[i].kibibytes > kibibytes;
    }
    // Those that were named themselves.
    const std::deque<PlannedFile>& named() const noexcept { return named_; }
    // Whether one of those in folders is this file. The first call sorts them all.
    bool has(const FoundFile& file);

    // What is left alone, each as a message.
    std::size_t skipped() const noexcept { return skipped_.size(); }
    std::string skipped(std::size_t i) const;

    // While the plan is made.
    void set_naming(Naming naming, const std::optional<std::string>& output_dir);
    void add(PlannedFile named);
    // A folder that is walked: the one that was named, and what of it is opened.
    void add_root(const std::string& path, std::shared_ptr<const OpenFolder> open,
                  std::shared_ptr<const OutputFolder> outputs);
    // A folder in that, with a slash behind it, or "" for itself; the files added next lie there.
    void enter(const std::string& below);
    // A copy of the name, which stays as long as this.
    const char* keep(const char* name);
    // `name`, here and below, is one that was kept.
    void add(const char* name, const FoundFile& found, std::uint64_t size);
    void skip(const char* name, bool is_link);

  private:
    struct Root {
        std::string path;  // with a slash behind it
        std::shared_ptr<const OpenFolder> open;
        std::shared_ptr<const OutputFolder> outputs;
    };
    struct Folder {
        std::string below;
        std::uint32_t root = 0;
        dev_t device = 0;  // of the files in it
    };
    struct File {
        const char* name = nullptr;   // null: it was named, and `number` is its place there
        std::uint64_t number = 0;     // of its inode
        std::uint32_t folder = 0;     // its place in folders_
        std::uint32_t kibibytes = 0;  // rounded up; as many as can be said of what is larger
    };
    struct Skipped {
        const char* name = nullptr;
        std::uint32_t folder = 0;
        bool is_link = false;
    };
    FoundFile identity(const File& file) const;
    std::string path_of(std::uint32_t folder, const char* name) const;

    Naming naming_ = Naming::seal;
    std::optional<std::string> output_dir_;
    std::uint64_t bytes_ = 0;
    // Lists that grow without a copy of themselves.
    std::deque<File> files_;
    std::deque<PlannedFile> named_;
    std::deque<Skipped> skipped_;
    std::deque<Folder> folders_;
    std::deque<Root> roots_;
    std::optional<std::vector<std::uint32_t>> by_identity_;  // places in files_
    std::vector<std::unique_ptr<char[]>> names_;
    std::span<char> room_;  // that the last of these has left
};

// A path's last part: the name in its folder.
std::string last_part(const std::string& path);
std::string joined(const std::string& folder, const std::string& name);
bool has_suffix(const std::string& path);
// The path without its suffix, if it has it.
std::string without_suffix(const std::string& path);
// Where the output for `input` goes; `below`: where it lies in a folder that is made.
std::string output_path(Naming naming, const std::optional<std::string>& output_dir,
                        const std::string& input, const std::string& below);

}  // namespace dael::cli
