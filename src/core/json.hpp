// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259) of which strings may be secret: nothing is copied, strings are handed out as they
// stand in the text. As strict as the readers that Tink stands on: no byte order mark, no control
// characters within strings, UTF-8 that is valid and escapes that are whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <daelstrom/error.hpp>

namespace dael::core {

// The characters of a string as it stands in JSON, with its escapes undone. What this branches on
// is which characters are quotes, escapes or outside of ASCII, never which letter or digit.
class JsonCharacters {
  public:
    explicit JsonCharacters(std::span<const std::uint8_t> string) : left_(string) {}
    bool more() const noexcept { return !left_.empty(); }
    // The next one's code point; -1 where there is none.
    std::int32_t next() noexcept;

  private:
    std::int32_t escape() noexcept;
    std::int32_t hex() noexcept;
    std::int32_t utf8(std::uint8_t first) noexcept;

    std::span<const std::uint8_t> left_;
};

// A string's text in UTF-8. For what is no secret.
std::string json_text(std::span<const std::uint8_t> string);

// The reverse: a string of JSON, in its quotes. Text that is no UTF-8 stays what it is.
std::string json_quoted(std::string_view text);

// Reads values one after another, each of which the caller must want. Errors: bad_format, from
// which on nothing more may be read.
class JsonReader {
  public:
    using Bytes = std::span<const std::uint8_t>;
    enum class Kind { object, array, string, number, other, null };

    // `name`: what errors call the text.
    JsonReader(Bytes text, std::string_view name) : left_(text), name_(name) {}

    // What value comes next, as its first character tells.
    Result<Kind> kind();
    Result<bool> took_null();  // takes the value if it is null
    Result<Bytes> string();    // between its quotes
    Result<std::string_view> number();
    Result<> end();  // of the text
    // Calls member(name), which reads the value; the name as string() has it.
    template <class Member>
    Result<> object(Member member) {
        DAEL_TRY(take('{'));
        if (taken('}')) return {};
        do {
            auto name = string();
            if (!name) return std::move(name).error();
            DAEL_TRY(take(':'));
            DAEL_TRY(member(*name));
        } while (taken(','));
        return take('}');
    }
    // Calls element(), which reads one.
    template <class Element>
    Result<> array(Element element) {
        DAEL_TRY(take('['));
        if (taken(']')) return {};
        do {
            DAEL_TRY(element());
        } while (taken(','));
        return take(']');
    }

  private:
    void skip_space();
    bool taken(char c);  // also takes the white space before it
    Result<> take(char c);
    Error not_json() const;

    Bytes left_;
    std::string_view name_;
};

}  // namespace dael::core
