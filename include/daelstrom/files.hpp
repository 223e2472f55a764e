// SPDX-License-Identifier: Apache-2.0
// One way to put a file in its place, by descriptors: it is written without a name, or under a
// hidden one beside its own, and gets its name when all is well. So a file is there whole or not at
// all; what it takes the place of is what was looked at when it began, and nothing newer; it lets
// nobody in who could not read what it was made of; what must survive a power cut is on the disk
// before its name is.
//
// Safety: names are looked up in a folder that is held open, and links are followed only where the
// kernel lets this process follow them, and only to what was found behind them then. Where the file
// system has neither RENAME_EXCHANGE nor locks (flock), two programs that replace one file within
// the same microseconds may still not notice each other.
//
// Threads: a NewFile is for one thread at a time; any number of them may be at work at once, on the
// same names too. While it is committed nobody writes to its descriptor. fork(): a child of fork()
// can neither commit nor discard what its parent began: there, commit() is refused, and the
// destructor closes descriptors and leaves the file alone. Destroying it, which discards what was
// not committed, is the only way to close it.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::files {

// What may lie there already. `refused`: nothing, not even by the time that the file is put in its
// place. `replaced`: what is there when the file begins; neither another one nor a newer one; the
// new one gets its owner, group, permissions and attributes. `whatever`: anything by then, of which
// nothing is kept, for caches, where the last one is as good as any.
enum class Existing { refused, replaced, whatever };

// Whoever ends the process at any moment (a handler of signals) wants to know the hidden names.
class DAEL_API HiddenNames {
  public:
    // From enter() to leave() nothing may end the process by a handler.
    virtual void enter() noexcept = 0;
    virtual void leave() noexcept = 0;
    // Between the two: this name, in the folder of this descriptor, is to be removed from now on if
    // the process ends; it is gone. One name at a time.
    virtual void there(int folder, const char* name) noexcept = 0;
    virtual void gone() noexcept = 0;

  protected:
    ~HiddenNames() = default;
};

struct NewFileOptions {
    Existing existing = Existing::refused;
    bool secret = false;  // for its owner alone, whatever it replaces; always on the disk first
    bool sync = false;    // on the disk before it has its name; what is replaced always is
    bool follow = true;   // a link at the path's end; else it is refused
    // A pipe, a device, or a descriptor of this process by its name (/dev/stdout) is written to as
    // it is; else it is refused.
    bool streams = false;
    // What the file is made of, an open descriptor, or -1: the file must not be this one, and lets
    // nobody in who cannot read it. Used by begin() alone.
    int input = -1;
    // The file replaces this one, as it was then: fstat() of what was read. Another one there, or
    // the same with other content, is left alone. Takes `replaced`, and lifts the ban on `input`.
    const struct stat* only = nullptr;
    mode_t mode = 0666;                 // of a new file that is made of nothing; less the umask
    std::string_view name = {};         // what messages call it; empty: the path in quotes
    std::string_view overwriting = {};  // how to overwrite, for messages: "-f overwrites it"
    HiddenNames* hidden = nullptr;      // outlives the file
};

// How a file is brought to the disk by commit(). `alone`: by fsync() where that is due. `together`:
// the caller has called sync_together() before, and will again.
enum class Sync { alone, together };

class DAEL_API NewFile {
  public:
    // `folder`: an open folder that relative paths begin at, or AT_FDCWD. `system` (may be null)
    // gets the errno of what went wrong, here and below: EEXIST, EISDIR, ESTALE for what is another
    // file by now, EXDEV for what is no regular file, or what the system said. Errors: io,
    // overlap (the input itself), invalid_argument, out_of_memory. Nothing is under the name yet.
    static Result<NewFile> begin(int folder, const std::string& path,
                                 const NewFileOptions& options = {}, int* system = nullptr);
    NewFile(NewFile&&) noexcept;
    NewFile& operator=(NewFile&&) noexcept;
    ~NewFile();

    // To be written to, from its beginning. Owned by this, and valid until it goes.
    int fd() const noexcept;
    bool streams() const noexcept;          // what is written goes out at once
    bool replaces() const noexcept;         // a file was there when it began
    unsigned long others() const noexcept;  // other names (hard links) that this file had then

    // Gives it its name. Nothing of it is left after a failure, and what was there still is. Once.
    // Errors: io, invalid_argument (in a child of fork(), twice).
    Result<> commit(Sync sync = Sync::alone, int* system = nullptr);
    // What could not be kept of what was replaced, or be brought to the disk; for people.
    const std::vector<std::string>& warnings() const noexcept;

  private:
    struct DAEL_HIDDEN State;
    explicit NewFile(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// Brings to the disk what was written on the file systems of these descriptors, at one go. Errors:
// io.
DAEL_API Result<> sync_together(std::span<const int> descriptors);

// An open descriptor, for reading, of a regular file that no other process holds by this call until
// it is closed: for what is read, changed and replaced. Waits. It is the one that has the name once
// the lock is ours. Where the file system has no locks, the file is open all the same: `only` still
// finds out. Errors: io.
DAEL_API Result<int> open_locked(int folder, const std::string& path, int* system = nullptr);

// A folder below an open one, by names alone: no link is followed, and no "..". O_PATH, to be
// closed by the caller. "" is the folder itself. Errors: io.
DAEL_API Result<int> open_below(int folder, const std::string& path, int* system = nullptr);

// An AES key as people keep it: 16, 24 or 32 bytes, or 32, 48 or 64 hexadecimal digits with
// optional white space behind them. That many digits are always taken as hexadecimal: by chance,
// raw keys never are. Time depends on the sizes alone. `key` has 32 bytes. Returns the key's size.
// Errors: key_size, with what it is that is none; `name` is what messages call it.
DAEL_API Result<std::size_t> decode_key(HostIn text, HostOut key, std::string_view name);
// The same of a file. `open_to`: the permissions (0 to 077) that others have to it, worth a
// warning; 0 for what is no regular file. Errors: io, key_size.
struct KeyFile {
    std::size_t size = 0;
    unsigned open_to = 0;
};
DAEL_API Result<KeyFile> read_key_file(int folder, const std::string& path, HostOut key,
                                       int* system = nullptr);

}  // namespace dael::files
