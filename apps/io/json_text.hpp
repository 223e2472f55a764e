// SPDX-License-Identifier: Apache-2.0
// Results for other programs: JSON (RFC 8259), written and never read.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace dael::app {

// In quotes. What is no UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);
// A file's name, which may be any bytes: a string, or where it is no UTF-8 {"bytes": its base64},
// so that no two names are the same.
std::string json_name(std::string_view name);

// An object, or without names an array, member by member.
class JsonText {
  public:
    static JsonText object() { return JsonText('{', '}'); }
    static JsonText array() { return JsonText('[', ']'); }

    JsonText& add(std::string_view name, std::string_view text) {
        return add_text(name, json_string(text));
    }
    JsonText& add(std::string_view name, const char* text) {
        return add(name, std::string_view(text));
    }
    JsonText& add(std::string_view name, bool is) { return add_text(name, is ? "true" : "false"); }
    template <std::integral Number>
    JsonText& add(std::string_view name, Number number) {
        return add_text(name, std::to_string(number));
    }
    JsonText& add(std::string_view name, double number);
    JsonText& add(std::string_view name, const JsonText& value) {
        return add_text(name, value.text());
    }
    JsonText& add_name(std::string_view name, std::string_view file) {
        return add_text(name, json_name(file));
    }
    JsonText& push(const JsonText& value) { return add_text({}, value.text()); }
    JsonText& push(std::string_view text) { return add_text({}, json_string(text)); }

    std::string text() const { return text_ + end_; }  // on one line

  private:
    JsonText(char begin, char end) : text_(1, begin), end_(end) {}
    JsonText& add_text(std::string_view name, std::string_view value);

    std::string text_;
    char end_;
};

}  // namespace dael::app
