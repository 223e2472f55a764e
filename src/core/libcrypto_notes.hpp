// SPDX-License-Identifier: Apache-2.0
// libcrypto's error queue (ERR_get_error(3)), kept clean: what it notes of a failure in this thread
// is ours to tell, since its caller would take it for a failure of his own next call. And what it
// says of memory.
#pragma once

#include <daelstrom/error.hpp>

namespace dael::core {

// Around calls of libcrypto: what they note goes with this, and what was noted before stays.
class LibcryptoNotes {
  public:
    LibcryptoNotes() noexcept;
    LibcryptoNotes(const LibcryptoNotes&) = delete;
    LibcryptoNotes& operator=(const LibcryptoNotes&) = delete;
    ~LibcryptoNotes();

    // Whether the call that has failed just now lacked memory. It says so by the last of its notes,
    // or, since notes take memory too, by none. Else memory is asked for.
    bool lacked_memory() const noexcept;
    // The last of its notes; 0: none.
    unsigned long last() const noexcept;
    // What it has noted so far goes already: it keeps no more than 16 notes, the caller's among
    // them.
    void forget() const noexcept;
    // What it was that failed, with arguments that are right: `out_of_memory`, or `code`.
    Error failure(const char* what, Code code = Code::internal) const;
    // Something was not found there: `out_of_memory`, or, where it is not found once more, `other`.
    // Of a lack of memory the last note may say that there is no such thing.
    template <class Find>
    Error absence(Find&& find_once_more, const Error& other) const {
        if (lacked_memory()) return no_memory();
        forget();
        return find_once_more() || lacked_memory() ? no_memory() : other;
    }
    static Error no_memory();
    // Whether libcrypto gets as much as any of its objects takes that we make.
    static bool memory_is_there() noexcept;
    // Gives back what libcrypto has of this thread, which ends now and is ours. Left to its end,
    // that takes the same locks while a fork() may be under way, as it does in threads of others.
    static void end_thread() noexcept;

  private:
    // Of the note before ours. Where it stands tells two alike apart.
    unsigned long before_ = 0;
    const char* place_ = nullptr;
};

}  // namespace dael::core
