// SPDX-License-Identifier: Apache-2.0
// SAs from files in libconfig's form, as Schoenberger's program reads them (thesis, appendix):
//     testapp = { SAs = ( { keybits = 128; key = [...]; nonce = [...]; segments = 4; }, ... ); };
// libconfig's own exceptions end here. Its copies of the keys cannot be wiped by us: the memory
// that it gives back is the allocator's.
#include <algorithm>
#include <array>
#include <libconfig.h++>

#include <daelstrom/keystream.hpp>

#include "core/guard.hpp"
#include "core/quoted.hpp"
#include "core/wipe_at_end.hpp"

namespace dael {
namespace {

using libconfig::Setting;

constexpr std::uint64_t kSegment = std::uint64_t{64} << 10;  // bytes: 8 x 512 counters
constexpr const char* kKnown[] = {"keybits", "key", "nonce",     "segments", "direction", "layout",
                                  "ivs",     "icv", "fresh_key", "limit",    "soft_limit"};

// Where something stands, and what is wrong with it.
class SaSetting {
  public:
    SaSetting(const std::string& path, const Setting& sa, std::size_t index)
        : path_(path), sa_(sa), index_(index) {}

    Error wrong(const char* name, const std::string& what, Code code = Code::bad_format) const {
        const int line = sa_.exists(name) ? static_cast<int>(sa_[name].getSourceLine())
                                          : static_cast<int>(sa_.getSourceLine());
        return {code, core::quoted(path_) + ", line " + std::to_string(line) + ": SA " +
                          std::to_string(index_) + ": " + what};
    }
    bool has(const char* name) const { return sa_.exists(name); }
    const Setting& operator[](const char* name) const { return sa_[name]; }
    int line() const { return static_cast<int>(sa_.getSourceLine()); }

    Result<std::uint64_t> number(const char* name, std::uint64_t most) const {
        const Setting& setting = sa_[name];
        long long value = -1;
        if (setting.getType() == Setting::TypeInt)
            value = static_cast<int>(setting);
        else if (setting.getType() == Setting::TypeInt64)
            value = static_cast<long long>(setting);
        if (value < 0 || static_cast<std::uint64_t>(value) > most)
            return wrong(name,
                         std::string(name) + " must be a number from 0 to " + std::to_string(most));
        return static_cast<std::uint64_t>(value);
    }

    // One of these words; its index.
    Result<std::size_t> word(const char* name, std::initializer_list<const char*> words) const {
        std::string all;
        const Setting& setting = sa_[name];
        const bool text = setting.getType() == Setting::TypeString;
        std::size_t index = 0;
        for (const char* known : words) {
            if (text && std::string(static_cast<const char*>(setting)) == known) return index;
            ++index;
            all += std::string(all.empty() ? "" : ", ") + '"' + known + '"';
        }
        return wrong(name, std::string(name) + " must be one of " + all);
    }

    // A list of numbers below 2^bits.
    Result<std::size_t> list(const char* name, int bits, std::span<std::uint64_t> to) const {
        if (!has(name)) return wrong(name, std::string(name) + " is missing");
        const Setting& setting = sa_[name];
        const bool list = setting.isArray() || setting.isList();
        const auto count = static_cast<std::size_t>(list ? setting.getLength() : 0);
        if (!list || count > to.size())
            return wrong(name, std::string(name) + " must be a list of at most " +
                                   std::to_string(to.size()) + " numbers");
        for (std::size_t i = 0; i < count; ++i) {
            const Setting& one = setting[static_cast<int>(i)];
            // 0xfecdabba is a negative number to libconfig, which has 32 bits for it.
            std::uint64_t value = ~std::uint64_t{0};
            if (one.getType() == Setting::TypeInt)
                value = bits == 32 ? static_cast<std::uint32_t>(static_cast<int>(one))
                                   : static_cast<std::uint64_t>(static_cast<int>(one));
            else if (one.getType() == Setting::TypeInt64)
                value = static_cast<std::uint64_t>(static_cast<long long>(one));
            if (value >> bits != 0)
                return wrong(name, std::string(name) + " has an element that is no number of " +
                                       std::to_string(bits) + " bits");
            to[i] = value;
        }
        return count;
    }

  private:
    const std::string& path_;
    const Setting& sa_;
    const std::size_t index_;
};

Result<Key> key_at(const SaSetting& at) {
    std::array<std::uint64_t, 64> elements{};
    std::array<std::uint8_t, 64> bytes{};
    const core::WipeAtEnd wiped_elements(elements), wiped_bytes(bytes);
    DAEL_LET(count, at.list("key", 8, elements));
    if (at.has("keybits")) {
        DAEL_LET(bits, at.number("keybits", 1024));
        if (bits != 8 * count)
            return at.wrong("keybits",
                            "keybits is " + std::to_string(bits) + ", and the key has " +
                                std::to_string(count) + " bytes, which are " +
                                std::to_string(8 * count) + " bits",
                            Code::key_size);
    }
    if (count != 16 && count != 24 && count != 32)
        return at.wrong("key",
                        "the key is " + std::to_string(count) + " bytes; AES takes 16, 24 or 32",
                        Code::key_size);
    std::copy_n(elements.begin(), count, bytes.begin());
    return Key::import({bytes.data(), count});
}

Result<SaEntry> entry_at(const SaSetting& at) {
    DAEL_LET(key, key_at(at));
    SaOptions options;
    options.fresh_key = false;
    if (at.has("direction")) {
        DAEL_LET(which, at.word("direction", {"send", "receive"}));
        options.direction = which == 0 ? SaDirection::sending : SaDirection::receiving;
    }
    if (at.has("layout")) {
        DAEL_LET(which, at.word("layout", {"rfc4106", "stream"}));
        options.layout = which == 0 ? SaLayout::rfc4106 : SaLayout::stream;
    }
    if (at.has("ivs")) {
        DAEL_LET(which, at.word("ivs", {"by_size", "counting"}));
        options.ivs = which == 0 ? SaIvs::by_size : SaIvs::counting;
    }
    // Words of 32 bits: the salt, and in layout stream the first IV.
    std::array<std::uint64_t, 4> words{};
    DAEL_LET(count, at.list("nonce", 32, words));
    if (count == 0) return at.wrong("nonce", "nonce must have 1 to 4 words, the first the salt");
    for (std::size_t i = 0; i < 4; ++i)
        options.salt[i] = static_cast<std::uint8_t>(words[0] >> (24 - 8 * i));
    for (std::size_t i = 0; i < 12; ++i)
        options.first_iv[i] = static_cast<std::uint8_t>(words[1 + i / 4] >> (24 - 8 * (i % 4)));
    if (at.has("segments")) {
        DAEL_LET(segments, at.number("segments", 1u << 20));
        options.quota = segments * kSegment;
    }
    if (at.has("icv")) {
        DAEL_LET(size, at.number("icv", 16));
        if (size != 8 && size != 12 && size != 16)
            return at.wrong("icv", "icv must be 8, 12 or 16 bytes (RFC 4106, section 6)");
        options.tag_size = static_cast<std::uint8_t>(size);
    }
    constexpr std::uint64_t kMax = ~std::uint64_t{0} >> 1;
    if (at.has("limit")) {
        DAEL_LET(limit, at.number("limit", kMax));
        options.limit = limit;
    }
    if (at.has("soft_limit")) {
        DAEL_LET(limit, at.number("soft_limit", kMax));
        options.soft_limit = limit;
    }
    if (at.has("fresh_key")) {
        if (at["fresh_key"].getType() != Setting::TypeBoolean)
            return at.wrong("fresh_key", "fresh_key must be true or false");
        options.fresh_key = static_cast<bool>(at["fresh_key"]);
    }
    return SaEntry{std::move(key), options, at.line()};
}

Result<std::vector<SaEntry>> entries_of(const std::string& path, const libconfig::Config& config) {
    const char* const where = config.exists("testapp.SAs") ? "testapp.SAs" : "SAs";
    if (!config.exists(where))
        return Error{
            Code::bad_format,
            core::quoted(path) + ": no list of SAs; give `testapp = { SAs = ( { ... }, ... ); };`"};
    const Setting& list = config.lookup(where);
    if (!list.isList())
        return Error{Code::bad_format, core::quoted(path) + ", line " +
                                           std::to_string(list.getSourceLine()) +
                                           ": SAs must be a list, in round brackets"};
    std::vector<SaEntry> entries;
    for (int i = 0; i < list.getLength(); ++i) {
        const Setting& sa = list[i];
        const SaSetting at(path, sa, static_cast<std::size_t>(i) + 1);
        if (!sa.isGroup()) return at.wrong("", "it must be a group, in curly brackets");
        for (int j = 0; j < sa.getLength(); ++j) {
            const char* const name = sa[j].getName();
            if (std::ranges::none_of(
                    kKnown, [&](const char* known) { return std::string_view(known) == name; }))
                return at.wrong(name, "there is no setting " + core::quoted(name));
        }
        DAEL_LET(entry, entry_at(at));
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace

Result<std::vector<SaEntry>> load_sas(const std::string& path) {
    return core::guarded([&]() -> Result<std::vector<SaEntry>> {
        libconfig::Config config;
        try {
            config.readFile(path.c_str());
            return entries_of(path, config);
        } catch (const libconfig::FileIOException&) {
            return Error{Code::io, core::quoted(path) + " cannot be read"};
        } catch (const libconfig::ParseException& fault) {
            return Error{Code::bad_format, core::quoted(path) + ", line " +
                                               std::to_string(fault.getLine()) + ": " +
                                               fault.getError()};
        } catch (const libconfig::SettingException& fault) {
            return Error{Code::bad_format, core::quoted(path) + ": the setting " +
                                               core::quoted(fault.getPath()) +
                                               " is not what it should be"};
        }
    });
}

}  // namespace dael
