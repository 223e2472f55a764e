// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <daelstrom/files.hpp>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "core/quoted.hpp"
#include "files/place.hpp"
#include "files/resolve.hpp"
#include "files/rights.hpp"

namespace dael::files {
namespace {

// Asked each time, since a process may change it. To look by umask() is to set it, for all threads,
// and another one may just create a file: so that is for where there is no /proc.
mode_t current_umask() {
    const Descriptor status(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    std::array<char, 512> text{};
    const ssize_t size = status ? ::read(status.get(), text.data(), text.size()) : 0;
    const std::string_view all(text.data(), static_cast<std::size_t>(size > 0 ? size : 0));
    constexpr std::string_view kLine = "\nUmask:\t";
    if (const auto at = all.find(kLine); at != all.npos) {
        unsigned mask = 0;
        const auto* const from = all.data() + at + kLine.size();
        if (std::from_chars(from, all.data() + all.size(), mask, 8).ec == std::errc{})
            return mask & 0777;
    }
    const mode_t found = ::umask(077);
    ::umask(found);
    return found;
}

}  // namespace

struct NewFile::State {
    State(Faults about, const NewFileOptions& options)
        : faults(std::move(about)),
          existing(options.existing),
          secret(options.secret),
          sync(options.sync),
          mode(options.mode & 0777) {
        if (options.only) only = *options.only;
    }
    ~State() {
        if (here() && place) place->discard();
    }

    // A child of fork() has copies of descriptors, and of the name of a file that is its parent's.
    bool here() const { return process == core::this_process() && pid == ::getpid(); }

    Place::Old replaced_now() const { return {replaced.get(), old, only.has_value()}; }
    Result<> check(const Target& target) const;
    Result<> take_stream(Target& target, int folder, const std::string& path, bool allowed);
    Result<> look_at_input(int input);
    Result<> rights(int to);
    Result<> put(bool durable);
    Result<> commit(Sync how);

    Faults faults;
    const Existing existing;
    const bool secret, sync;
    const mode_t mode;
    std::optional<struct stat> only;
    Descriptor input;
    std::optional<struct stat> input_status;
    std::optional<Place> place;  // none: what is written goes out at once
    Descriptor replaced;         // O_PATH
    struct stat old {};          // of what is replaced
    Descriptor file;
    bool ended = false;
    std::vector<std::string> warnings;
    std::uint32_t process = core::this_process();
    pid_t pid = ::getpid();
};

// Everything that can be refused before anything is made.
Result<> NewFile::State::check(const Target& target) const {
    if (!target.found) {
        if (!only) return {};
        return faults.about(ESTALE, " is no longer there: nothing was replaced");
    }
    if (S_ISDIR(target.status.st_mode))
        return faults.about(EISDIR, " is a directory; give a file name");
    if (only && (!same_file(target.status, *only) || !same_written(target.status, *only) ||
                 !same_time(target.status.st_ctim, only->st_ctim)))
        return faults.about(ESTALE, " is another file by now: nothing was replaced; try again");
    if (!only && input_status && S_ISREG(input_status->st_mode) &&
        same_file(target.status, *input_status))
        return faults.about(EINVAL, " is the input itself; write to another file", Code::overlap);
    return {};
}

// What is no regular file in a folder: there, nothing can be replaced, and no temporary file helps.
Result<> NewFile::State::take_stream(Target& target, int folder, const std::string& path,
                                     bool allowed) {
    if (!allowed)
        return faults.about(EXDEV, " is no regular file; it cannot be put in place whole");
    if (target.ours) {
        const int flags = ::fcntl(*target.ours, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
            return faults.about(EBADF, " is a descriptor that is not open for writing");
        file = Descriptor(::fcntl(*target.ours, F_DUPFD_CLOEXEC, 3));
        if (!file) return faults.failed("open");
        return {};
    }
    if (S_ISREG(target.status.st_mode))
        return faults.about(EXDEV, " is an open file of another process; give its own name");
    file = Descriptor(::openat(folder, path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    struct stat opened {};
    if (!file || ::fstat(file.get(), &opened) != 0) return faults.failed("open");
    if (!same_file(opened, target.status))
        return faults.about(ESTALE, " changed while it was looked at; try again when it rests");
    return {};
}

Result<> NewFile::State::look_at_input(int descriptor) {
    if (descriptor < 0) return {};
    struct stat status {};
    if (::fstat(descriptor, &status) != 0)
        return faults.about(errno, ": its input is no open descriptor", Code::invalid_argument);
    input_status = status;
    // For its access control list, by the time that the file is made.
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) {
        input = Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
        if (!input) return faults.failed("look at the input of");
    }
    return {};
}

Result<NewFile> NewFile::begin(int folder, const std::string& path, const NewFileOptions& options,
                               int* system) {
    return core::guarded([&]() -> Result<NewFile> {
        auto state = std::make_unique<State>(
            Faults(options.name.empty() ? core::quoted(path) : std::string(options.name), system),
            options);
        const Faults& faults = state->faults;
        if (options.only && options.existing != Existing::replaced)
            return faults.about(EINVAL, ": `only` is for what is replaced", Code::invalid_argument);
        DAEL_TRY(state->look_at_input(options.input));
        DAEL_LET(target, resolve(folder, path, options.follow, faults));
        DAEL_TRY(state->check(target));
        const bool there = static_cast<bool>(target.found);
        if (target.ours || (there && !S_ISREG(target.status.st_mode)) ||
            (there && !target.folder)) {
            DAEL_TRY(state->take_stream(target, folder, path, options.streams));
            return NewFile(std::move(state));
        }
        state->place.emplace(std::move(target.folder), std::move(target.name), options.hidden,
                             std::string(options.overwriting));
        if (there && options.existing == Existing::refused)
            return state->place->exists(faults, false);
        state->replaced = std::move(target.found);
        state->old = target.status;
        DAEL_LET(file, state->place->create(faults));
        state->file = std::move(file);
        return NewFile(std::move(state));
    });
}

Result<> NewFile::State::rights(int to) {
    warnings.clear();  // those of a file that had to be copied
    if (secret) return rights_of_a_secret(to, faults, warnings);
    if (replaced && existing == Existing::replaced)
        return rights_of_the_replaced(to, replaced.get(), place->folder(), place->name(), faults,
                                      warnings);
    if (input)
        return rights_after_input(to, input.get(), *input_status, current_umask(), faults,
                                  warnings);
    return rights_of_its_own(to, mode & ~current_umask(), faults, warnings);
}

Result<> NewFile::State::put(bool durable) {
    const Place::How how{durable, [this](int to) { return rights(to); }};
    if (replaced && existing == Existing::replaced)
        return place->put_over(file, replaced_now(), how, faults);
    if (existing == Existing::whatever) return place->put_over(file, how, faults);
    return place->put_new(file, how, faults);
}

Result<> NewFile::State::commit(Sync how) {
    if (!here())
        return faults.about(EPERM, " was begun by the parent of this process, which alone ends it",
                            Code::invalid_argument);
    if (std::exchange(ended, true))
        return faults.about(EINVAL, " has been put in its place or has failed before",
                            Code::invalid_argument);
    if (!place) return file.reset() ? Result<>() : Result<>(faults.failed("write to"));
    // Before the long way to the disk; and once more right before the change.
    if (replaced && existing == Existing::replaced && only && !place->still(replaced_now()))
        return faults.about(ESTALE, " is another file by now: nothing was replaced; try again");
    DAEL_TRY(rights(file.get()));
    // What a network file system could not store shows when a descriptor is closed.
    Descriptor copy(::fcntl(file.get(), F_DUPFD_CLOEXEC, 3));
    if (copy && !copy.reset()) return faults.failed("write to");
    const bool keep = sync || secret || (replaced && existing == Existing::replaced);
    DAEL_TRY(put(keep && how == Sync::alone));
    if (keep && how == Sync::alone) place->keep(faults, warnings);
    file.reset();
    return {};
}

NewFile::NewFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
NewFile::NewFile(NewFile&&) noexcept = default;
NewFile& NewFile::operator=(NewFile&&) noexcept = default;
NewFile::~NewFile() {
    const core::Uncancelled whole;
    state_.reset();
}

int NewFile::fd() const noexcept {
    return state_->file.get();
}
bool NewFile::streams() const noexcept {
    return !state_->place;
}
bool NewFile::replaces() const noexcept {
    return static_cast<bool>(state_->replaced);
}
unsigned long NewFile::others() const noexcept {
    return state_->replaced ? state_->old.st_nlink - 1 : 0;
}
const std::vector<std::string>& NewFile::warnings() const noexcept {
    return state_->warnings;
}

Result<> NewFile::commit(Sync sync, int* system) {
    const core::Uncancelled whole;
    state_->faults.report_to(system);
    auto done = core::guarded([&] { return state_->commit(sync); });
    state_->faults.report_to(nullptr);
    // Not later than now, and not in a child that has the same names.
    if (!done && state_->here() && state_->place) state_->place->discard();
    return done;
}

}  // namespace dael::files
