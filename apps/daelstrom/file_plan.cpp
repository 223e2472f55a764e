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

#include "commands.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

class Planner {
  public:
    explicit Planner(const FileRequest& request) : request_(request) {}

    Result<FilePlan> run() {
        DAEL_TRY(check_options());
        plan_.files.set_naming(request_.naming, request_.output_dir);
        if (request_.inputs.empty() || request_.inputs.front() == "-") {
            plan_.files.add(from_stdin());
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
                {below.empty() ? *request_.output_dir : joined(*request_.output_dir, below), below,
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
            plan_.files.add_root(input, std::make_shared<const OpenFolder>(fd), plan_.output_root);
            if (request_.output_dir) folder("", status.st_mode);
            return walk(fd, ".", input, "");
        }
        named_.emplace(status.st_dev,
                       status.st_ino);  // whatever becomes of it: it must not be written
        PlannedFile file{input, request_.output, std::nullopt,
                         static_cast<std::uint64_t>(status.st_size), name_of(last_part(input))};
        if (!file.output && !request_.to_stdout) {
            if (!S_ISREG(status.st_mode))
                return fail(in_quotes(input) + " is no regular file" +
                            (request_.naming == Naming::reseal ? " that can be replaced"
                                                               : "; give -o FILE"));
            const std::string refused = refuse_name(input);
            if (!refused.empty()) return fail(refused);
            file.output =
                output_path(request_.naming, request_.output_dir, input, last_part(input));
        }
        plan_.files.add(std::move(file));
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

    // PlannedFile::name of what lies `below`.
    std::string name_of(const std::string& below) const {
        if (request_.naming != Naming::seal) return without_suffix(below);
        if (!request_.output) return below;
        return request_.output == "-" ? "" : without_suffix(last_part(*request_.output));
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
        std::vector<const char*> names;
        for (;;) {
            errno = 0;
            const dirent* const entry = ::readdir(opened);
            if (!entry) break;
            if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
                names.push_back(plan_.files.keep(entry->d_name));
        }
        if (errno != 0)
            return fail("cannot read the folder " + in_quotes(path) + ": " + std::strerror(errno));
        std::ranges::sort(names,
                          [](const char* a, const char* b) { return std::strcmp(a, b) < 0; });
        bool is_here = false;  // what is added lies in this folder, not in one below
        for (const char* entry : names) is_here = visit(fd, entry, path, below, is_here);
    }

    bool visit(int folder_fd, const char* name, const std::string& folder_path,
               const std::string& below, bool is_here) {
        struct stat status {};
        const auto path = [&] { return joined(folder_path, name); };
        if (::fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            fail("cannot open " + in_quotes(path()) + ": " + std::strerror(errno));
            return is_here;
        }
        if (S_ISDIR(status.st_mode)) {
            if (request_.output_dir) folder(below + name, status.st_mode);
            walk(folder_fd, name, path(), below + name + "/");
            return false;
        }
        const bool wanted = (request_.naming != Naming::seal) == has_suffix(name);
        if (!wanted) {
            ++plan_.other_names;
            return is_here;
        }
        if (!is_here) plan_.files.enter(below);
        if (S_ISREG(status.st_mode))
            plan_.files.add(name, {status.st_dev, status.st_ino},
                            static_cast<std::uint64_t>(status.st_size));
        else
            plan_.files.skip(name, S_ISLNK(status.st_mode));
        return true;
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
        if (folder != last_folder_ || last_real_folder_.empty()) {
            std::error_code error;
            last_real_folder_ = fs::weakly_canonical(fs::absolute(folder), error);
            if (error) last_real_folder_ = folder;
            last_folder_ = folder;
        }
        return joined(last_real_folder_, last_part(output));
    }

    // The first file whose output has the place of an earlier one's, and that one.
    struct Collision {
        std::size_t file, earlier;
    };
    std::optional<Collision> collision() {
        struct Hashed {
            std::size_t hash;
            std::uint32_t file;
        };
        std::vector<Hashed> places;  // rather than the places themselves, which are long
        places.reserve(plan_.files.size());
        for (std::uint32_t i = 0; i < plan_.files.size(); ++i)
            if (const PlannedFile file = plan_.files[i]; file.output)
                places.push_back({std::hash<std::string>()(place_of(*file.output)), i});
        std::ranges::sort(places, [](const Hashed& a, const Hashed& b) {
            return std::pair(a.hash, a.file) < std::pair(b.hash, b.file);
        });
        std::optional<Collision> first;
        for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
            while (end < places.size() && places[end].hash == places[begin].hash) ++end;
            if (end - begin == 1) continue;
            std::map<std::string, std::size_t> seen;
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t file = places[i].file;
                const auto [other, is_new] =
                    seen.try_emplace(place_of(*plan_.files[file].output), file);
                if (!is_new && (!first || file < first->file)) first = {file, other->second};
            }
        }
        return first;
    }

    Result<> check_outputs() {
        const auto both = collision();
        const std::size_t end = both ? both->file : plan_.files.size();
        for (std::size_t i = 0; i < end && request_.naming != Naming::reseal; ++i) {
            const PlannedFile file = plan_.files[i];
            struct stat status {};
            if (!file.output || ::stat(file.output->c_str(), &status) != 0) continue;
            if (named_.contains({status.st_dev, status.st_ino}) ||
                plan_.files.has({status.st_dev, status.st_ino}))
                return Error{Code::overlap, in_quotes(*file.output) +
                                                " is an input, and would be the output of " +
                                                in_quotes(file.input) +
                                                "; do them in two calls, or give --output-dir"};
        }
        if (!both) return {};
        const PlannedFile file = plan_.files[both->file];
        return Error{Code::overlap, in_quotes(plan_.files[both->earlier].input) + " and " +
                                        in_quotes(file.input) + " would both go to " +
                                        in_quotes(*file.output) +
                                        "; seal, open or reseal them in two calls"};
    }

    const FileRequest& request_;
    FilePlan plan_;
    bool walked_ = false;
    std::set<Identity> named_;               // those inputs that were named
    std::map<std::string, mode_t> folders_;  // for outputs; in this order outer ones come first
    std::string last_folder_, last_real_folder_;
};

}  // namespace

Result<FilePlan> plan_files(const FileRequest& request) {
    return Planner(request).run();
}

}  // namespace dael::cli
