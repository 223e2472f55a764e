// SPDX-License-Identifier: Apache-2.0
#include "io/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "io/json_text.hpp"
#include "io/text.hpp"

namespace dael::app {
namespace {

using std::chrono::milliseconds;

std::size_t terminal_width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(Show show, std::string what, std::optional<std::uint64_t> total)
    : enabled_(show == Show::always || show == Show::json ||
               (show == Show::automatic && ::isatty(STDERR_FILENO))),
      json_(show == Show::json),
      terminal_(!json_ && ::isatty(STDERR_FILENO)),
      what_(std::move(what)),
      total_(total),
      next_(start_ + (show == Show::automatic ? milliseconds(300) : milliseconds(0))) {}

void Progress::advance(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (!enabled_) return;
    const auto now = Clock::now();
    if (now < next_) return;
    // A terminal is redrawn ten times a second; a log gets a line each second.
    next_ = now + (terminal_ ? milliseconds(100) : milliseconds(1000));
    const double seconds = std::chrono::duration<double>(now - start_).count();
    draw(json_ ? json_line(seconds) : line(seconds), false);
}

std::string Progress::line(double seconds) const {
    const auto done = static_cast<double>(done_);
    const double rate = seconds > 0 ? done / seconds : 0;
    std::string text = what_ + "  " + format_size(done);
    if (total_ && *total_ > 0) {
        const auto total = static_cast<double>(*total_);
        const auto percent = static_cast<int>(std::min(100.0, 100 * done / total));
        text += " of " + format_size(total) + "  " + std::to_string(percent) + "%";
    }
    text += "  " + format_rate(rate);
    if (total_ && *total_ > done_ && rate > 0)
        text += "  " + format_clock((static_cast<double>(*total_) - done) / rate) + " left";
    return text;
}

std::string Progress::json_line(double seconds) const {
    JsonText text = JsonText::object();
    text.add("what", what_).add("done", done_);
    if (total_) text.add("total", *total_);
    return text.add("seconds", seconds).text();
}

void Progress::draw(const std::string& text, bool last) {
    std::string out;
    if (terminal_) {
        const std::size_t width = terminal_width();
        out = "\r" + (text.size() < width ? text : text.substr(0, width - 1)) + "\x1b[K";
        if (last) out += '\n';
    } else {
        out = text + '\n';
    }
    drawn_ = true;
    (void)!::write(STDERR_FILENO, out.data(), out.size());
}

void Progress::finish(std::string_view by) {
    const std::lock_guard lock(mutex_);
    if (!enabled_ || (!drawn_ && Clock::now() < next_)) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (json_) {
        draw(json_line(seconds), true);
        return;
    }
    const auto done = static_cast<double>(done_);
    draw(what_ + "  " + format_size(done) + " in " + format_seconds(seconds) + ", " +
             format_rate(seconds > 0 ? done / seconds : 0) + " on " + std::string(by),
         true);
}

void Progress::clear() {
    const std::lock_guard lock(mutex_);
    if (drawn_ && terminal_) (void)!::write(STDERR_FILENO, "\r\x1b[K", 4);
}

}  // namespace dael::app
