// SPDX-License-Identifier: Apache-2.0
// How a file gets its name in a folder: new, in the place of one that is known, or of any.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include <daelstrom/files.hpp>

#include "files/descriptor.hpp"

namespace dael::files {

class Place {
  public:
    Place(Descriptor folder, std::string name, HiddenNames* watch, std::string overwriting)
        : folder_(std::move(folder)),
          name_(std::move(name)),
          watch_(watch),
          overwriting_(std::move(overwriting)) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() = default;  // discard() was called, or nothing is hidden any more

    int folder() const noexcept { return folder_.get(); }
    const std::string& name() const noexcept { return name_; }

    // A file of nobody's but ours, empty: without a name where that can be had, and be given one
    // later (by /proc); else under a hidden name. Errors: io.
    Result<Descriptor> create(const Faults& faults);
    // Gives it its name; afterwards it is hidden no more. `fd` becomes another descriptor where the
    // file had to be copied, and then gets its rights once more. With `durable` it is on the disk
    // before that.
    using Rights = std::function<Result<>(int fd)>;
    struct How {
        bool durable = false;
        Rights rights;
    };
    Result<> put_new(Descriptor& fd, const How& how, const Faults& faults);
    Result<> put_over(Descriptor& fd, const How& how, const Faults& faults);  // whatever is there
    // What is replaced, and nothing else; with `content`: nor the same with other content.
    struct Old {
        int fd = -1;            // held open, so that no other file can get its number meanwhile
        struct stat status {};  // as it was found
        bool content = false;
    };
    Result<> put_over(Descriptor& fd, const Old& old, const How& how, const Faults& faults);
    // What was hidden is removed.
    void discard() noexcept;

    // Whether it is what has the name still.
    bool still(const Old& old) const;
    Error exists(const Faults& faults, bool by_now) const;
    // Brings the folder to the disk.
    void keep(const Faults& faults, std::vector<std::string>& warnings) const;

  private:
    Result<> hide(Descriptor& fd, const How& how, const Faults& faults);
    Result<> copy_hidden(Descriptor& fd, const How& how, const Faults& faults);
    Result<Descriptor> create_hidden(const Faults& faults);
    int link_to(int fd, const char* name) const;
    int rename_new();
    bool is_named(int fd) const;
    Result<> exchanged(int fd, const Old& old, const Faults& faults);
    Error lost_sight(const Faults& faults);
    Result<> put_back(struct stat ours, const Faults& faults);
    void forget() noexcept;  // the hidden name, which is no longer there

    Descriptor folder_;
    std::string name_, hidden_;
    HiddenNames* watch_;
    std::string overwriting_;
};

// Waits until the content is on the disk. Errors: io.
Result<> sync_file(int fd, const Faults& faults);

}  // namespace dael::files
