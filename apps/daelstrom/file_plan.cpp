// SPDX-License-Identifier: Apache-2.0
#include "file_plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "commands.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

namespace fs = std::filesystem;

std::string join(const std::string& folder, const std::string& name) {
    return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string last_part(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
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
            if (request_.output_dir) folder(*request_.output_dir, 0777);
            for (const std::string& input : request_.inputs) add_named(input);
        }
        plan_.single = request_.inputs.size() <= 1 && !walked_;
        if (!plan_.single) DAEL_TRY(check_outputs());
        for (auto& [path, mode] : folders_) plan_.folders.push_back({path, mode});
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
            if (request_.output_dir) folder(*request_.output_dir, status.st_mode);
            return walk(input, "");
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
    void folder(const std::string& path, mode_t mode) {
        const auto [found, made] = folders_.try_emplace(path, mode & 0777);
        if (!made) found->second &= mode;
    }

    // `below`: where this folder lies in the one that was named, with a slash at its end.
    void walk(const std::string& path, const std::string& below) {
        std::error_code error;
        std::vector<std::string> names;
        for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error))
            names.push_back(i->path().filename());
        if (error)
            return fail("cannot read the folder " + in_quotes(path) + ": " + error.message());
        std::ranges::sort(names);
        for (const std::string& name : names) visit(join(path, name), below + name);
    }

    void visit(const std::string& path, const std::string& below) {
        struct stat status {};
        if (::lstat(path.c_str(), &status) != 0)
            return fail("cannot open " + in_quotes(path) + ": " + std::strerror(errno));
        if (S_ISDIR(status.st_mode)) {
            if (request_.output_dir) folder(join(*request_.output_dir, below), status.st_mode);
            return walk(path, below + "/");
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
            plan_.files.push_back({path, output_of(path, below), status,
                                   static_cast<std::uint64_t>(status.st_size), name_of(below)});
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
    std::map<Identity, std::string> inputs_;  // named ones, and those found in folders
    std::map<std::string, mode_t> folders_;   // in this order outer ones come first
    std::map<std::string, std::string> real_folders_;
};

}  // namespace

Result<Plan> plan_files(const FileRequest& request) {
    return Planner(request).run();
}

}  // namespace dael::cli
