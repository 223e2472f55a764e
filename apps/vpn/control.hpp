// SPDX-License-Identifier: Apache-2.0
// How `daelstrom vpn status` and `down` reach a tunnel that runs: a Unix socket without a file, by
// the interface's name and, as that is, one for each network namespace. It goes with the process,
// whatever ends it. Root may ask, and whoever started the tunnel.
//
// And a socket with a path, where that is asked for, that answers HTTP with figures for Prometheus:
// for all whom the file's mode lets in. Its file is taken away in the end where this process may
// still do that; a start takes away one that is left over.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::vpn {

// The signals that end a tunnel: blocked in all of its threads, and read by Control.
sigset_t end_signals() noexcept;

class Control {
  public:
    // Errors: io (the name is taken: such a tunnel runs already).
    static Result<Control> open(const std::string& interface, const std::string& metrics_path);
    Control(Control&&) noexcept;
    Control& operator=(Control&&) = delete;
    ~Control();

    // Answers by `answer(question)`: "status", "json" or "metrics"; for "down" it is called too and
    // serve() ends, as for one of end_signals(), which must be blocked. Whoever said "down" is told
    // that it is done when this is destroyed.
    Result<> serve(const std::function<std::string(std::string_view)>& answer);
    // From any thread: ends serve().
    void stop() noexcept;

  private:
    Control() = default;
    struct Asker;
    Asker asker(int fd) const;
    void serve_client(const std::function<std::string(std::string_view)>& answer, bool& stopped);
    void serve_scraper(const std::function<std::string(std::string_view)>& answer) const;

    int listener_ = -1, metrics_ = -1, signals_ = -1, wake_ = -1;
    uid_t owner_ = 0;
    std::string metrics_path_;
    std::vector<int> waiting_;  // for the end
};

// Asks a tunnel; the whole answer, once the other side is done with it. Errors: io (none runs under
// that name; not allowed).
Result<std::string> ask(const std::string& interface, std::string_view question);

}  // namespace dael::vpn
