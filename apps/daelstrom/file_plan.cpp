// SPDX-License-Identifier: Apache-2.0
#include "file_plan.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <daelstrom/files.hpp>

#include "commands.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

namespace fs = std::filesystem;

std::string join(const std::string& folder, const std::string& name) {
    return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool has_suffix(const std::string& path) {
    const std::string name = last_part(path);
    return name.ends_with(kSuffix) && name != kSuffix;
}

class Planner {
  public:
    explicit Planner(const FileRequest& request) : request_(request) {}

    Result<Plan> run() {
        DAEL_TRY(check_options());
        if (request_.inputs.empty() || request_.inputs.front() == "-") {
            plan_.files.push_back(from_stdin());
        } else {
            if (request_.output_dir) {
                plan_.output_root = std::make_shared<OutputFolder>();
                folder("", 0777);
            }
            for (const std::string& input : request_.inputs) add_named(input);
        }
        plan_.single = request_.inputs.size() <= 1 && !walked_;
        if (!plan_.single) DAEL_TRY(check_outputs());
        for (auto& [below, mode] : folders_)
            plan_.folders.push_back(
                {below.empty() ? *request_.output_dir : join(*request_.output_dir, below), below,
                 mode});
        return std::move(plan_);
    }

  private:
    using Identity = std::pair<dev_t, ino_t>;

    Result<> check_options() const {
        const auto& inputs = request_.inputs;
        const bool several = inputs.size() > 1;
        if (several && std::ranges::find(inputs, "-") != inputs.end())
            return usage(
                "standard input cannot be one of several inputs; give it a call of its own");
        if (several && request_.output)
            return usage("-o names one output, and there are " + std::to_string(inputs.size()) +
                         " inputs; leave it out, or give --output-dir");
        if (several && request_.to_stdout)
            return usage("--range takes one input, and there are " + std::to_string(inputs.size()));
        if (request_.output_dir && (inputs.empty() || inputs.front() == "-"))
            return usage(
                "standard input has no name to have in a folder; give -o FILE in the "
                "place of --output-dir");
        return {};
    }

    PlannedFile from_stdin() const {
        PlannedFile file{"-", request_.output, std::nullopt, 0, {}};
        if (request_.naming == Naming::seal) file.name = name_of("");
        struct stat status {};
        if (::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode))
            file.size = static_cast<std::uint64_t>(status.st_size);
        return file;
    }

    void fail(std::string message) { plan_.failures.push_back(std::move(message)); }

    void add_named(const std::string& input) {
        struct stat status {};
        if (::stat(input.c_str(), &status) != 0)
            return fail("cannot open " + in_quotes(input) + ": " + std::strerror(errno));
        if (S_ISDIR(status.st_mode)) {
            if (!request_.recursive)
                return fail(in_quotes(input) +
                            " is a directory; --recursive takes the files in it, and tar makes "
                            "one file of it");
            if (request_.output)
                return fail("-o names one output, and " + in_quotes(input) +
                            " is a directory; leave it out, or give --output-dir");
            if (request_.to_stdout)
                return fail("--range takes a file, and " + in_quotes(input) + " is a directory");
            walked_ = true;
            // Read once more when it is walked; what holds it may be a folder that only lets
            // through.
            const int fd = ::open(input.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
            if (fd < 0)
                return fail("cannot read the folder " + in_quotes(input) + ": " +
                            std::strerror(errno));
            root_ = std::make_shared<const OpenFolder>(fd);
            if (request_.output_dir) folder("", status.st_mode);
            return walk(fd, ".", input, "");
        }
        note_input(input, status);  // whatever becomes of it: it must not be written
        PlannedFile file{input, request_.output, std::nullopt,
                         static_cast<std::uint64_t>(status.st_size), name_of(last_part(input))};
        if (!file.output && !request_.to_stdout) {
            if (!S_ISREG(status.st_mode))
                return fail(in_quotes(input) + " is no regular file" +
                            (request_.naming == Naming::reseal ? " that can be replaced"
                                                               : "; give -o FILE"));
            const std::string refused = refuse_name(input);
            if (!refused.empty()) return fail(refused);
            file.output = output_of(input, last_part(input));
        }
        plan_.files.push_back(std::move(file));
    }

    void note_input(const std::string& path, const struct stat& status) {
        inputs_.emplace(Identity(status.st_dev, status.st_ino), path);
    }

    std::string refuse_name(const std::string& path) const {
        if (request_.naming == Naming::seal && has_suffix(path))
            return in_quotes(path) + " ends in " + kSuffix +
                   " already; give -o FILE to seal it once more";
        if (request_.naming == Naming::open && !has_suffix(path))
            return in_quotes(path) + " does not end in " + kSuffix +
                   "; give -o FILE (-o - is standard output)";
        return {};
    }

    // `below`: where it lies in a folder that is made.
    std::string output_of(const std::string& input, const std::string& below) const {
        const std::string path = request_.output_dir ? join(*request_.output_dir, below) : input;
        if (request_.naming == Naming::seal) return path + kSuffix;
        if (request_.naming == Naming::reseal) return path;
        return path.substr(0, path.size() - std::strlen(kSuffix));
    }

    // PlannedFile::name of what lies `below`.
    std::string name_of(const std::string& below) const {
        const auto bare = [](const std::string& path) {
            return has_suffix(path) ? path.substr(0, path.size() - std::strlen(kSuffix)) : path;
        };
        if (request_.naming != Naming::seal) return bare(below);
        if (!request_.output) return below;
        return request_.output == "-" ? "" : bare(last_part(*request_.output));
    }

    // A folder is as open as the one after which it is made, or as the strictest of several.
    // `below`: where it lies in the one for the outputs.
    void folder(const std::string& below, mode_t mode) {
        const auto [found, made] = folders_.try_emplace(below, mode & 0777);
        if (!made) found->second &= mode;
    }

    // The folder of this name in the open one. `below`: where it lies in the one that was named,
    // with a slash at its end.
    void walk(int parent, const std::string& name, const std::string& path,
              const std::string& below) {
        const int fd =
            ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR* const opened = fd < 0 ? nullptr : ::fdopendir(fd);
        if (!opened) {
            fail("cannot read the folder " + in_quotes(path) + ": " + std::strerror(errno));
            if (fd >= 0) ::close(fd);
            return;
        }
        const std::unique_ptr<DIR, int (*)(DIR*)> all(opened, &::closedir);
        std::vector<std::string> names;
        for (;;) {
            errno = 0;
            const dirent* const entry = ::readdir(opened);
            if (!entry) break;
            if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
                names.emplace_back(entry->d_name);
        }
        if (errno != 0)
            return fail("cannot read the folder " + in_quotes(path) + ": " + std::strerror(errno));
        std::ranges::sort(names);
        for (const std::string& entry : names) visit(fd, entry, join(path, entry), below);
    }

    void visit(int folder_fd, const std::string& name, const std::string& path,
               const std::string& below) {
        struct stat status {};
        if (::fstatat(folder_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
            return fail("cannot open " + in_quotes(path) + ": " + std::strerror(errno));
        if (S_ISDIR(status.st_mode)) {
            if (request_.output_dir) folder(below + name, status.st_mode);
            return walk(folder_fd, name, path, below + name + "/");
        }
        const bool wanted = (request_.naming != Naming::seal) == has_suffix(path);
        if (!wanted) {
            ++plan_.other_names;
        } else if (!S_ISREG(status.st_mode)) {
            plan_.skipped.push_back(
                in_quotes(path) + " is left alone: " +
                (S_ISLNK(status.st_mode) ? "a symbolic link" : "no regular file"));
        } else {
            note_input(path, status);
            plan_.files.push_back({path, output_of(path, below + name), status,
                                   static_cast<std::uint64_t>(status.st_size),
                                   name_of(below + name), root_, plan_.output_root, below});
        }
    }

    // One name for each place where a file may come to lie. What is behind a link counts where that
    // would be overwritten.
    std::string place_of(const std::string& output) {
        if (request_.overwrite || request_.naming == Naming::reseal)
            if (char* real = ::realpath(output.c_str(), nullptr)) {
                std::string place = real;
                std::free(real);
                return place;
            }
        const std::string folder = folder_of(output);
        auto [known, is_new] = real_folders_.try_emplace(folder);
        if (is_new) {
            std::error_code error;
            known->second = fs::weakly_canonical(fs::absolute(folder), error);
            if (error) known->second = folder;
        }
        return join(known->second, last_part(output));
    }

    Result<> check_outputs() {
        std::map<std::string, const PlannedFile*> places;
        for (const PlannedFile& file : plan_.files) {
            if (!file.output) continue;
            const auto [other, is_new] = places.try_emplace(place_of(*file.output), &file);
            if (!is_new)
                return Error{Code::overlap, in_quotes(other->second->input) + " and " +
                                                in_quotes(file.input) + " would both go to " +
                                                in_quotes(*file.output) +
                                                "; seal, open or reseal them in two calls"};
            struct stat status {};
            if (request_.naming == Naming::reseal || ::stat(file.output->c_str(), &status) != 0)
                continue;
            const auto input = inputs_.find({status.st_dev, status.st_ino});
            if (input != inputs_.end())
                return Error{Code::overlap, in_quotes(*file.output) +
                                                " is an input, and would be the output of " +
                                                in_quotes(file.input) +
                                                "; do them in two calls, or give --output-dir"};
        }
        return {};
    }

    const FileRequest& request_;
    Plan plan_;
    bool walked_ = false;
    std::shared_ptr<const OpenFolder> root_;  // the folder that is walked
    std::map<Identity, std::string> inputs_;  // named ones, and those found in folders
    std::map<std::string, mode_t> folders_;   // for outputs; in this order outer ones come first
    std::map<std::string, std::string> real_folders_;
};

}  // namespace

std::string last_part(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

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

Result<Plan> plan_files(const FileRequest& request) {
    return Planner(request).run();
}

}  // namespace dael::cli
