// SPDX-License-Identifier: Apache-2.0
// What a message costs through EVP, by OpenSSL's default provider, by daelstrom and by one that
// encrypts nothing (nothing.cpp): nanoseconds, in turns, for the ways in which programs call.
//
//     provider_messages --module FOLDER [--nothing FOLDER] [--ciphers A,B] [--ways iv,context]
//                       [--sizes 16,1024] [--turns 41] [--json FILE]
//
// FOLDER has daelstrom.so, or nothing.so. A line's ratio is default's time by daelstrom's: above 1
// daelstrom is faster. Times are those of the quickest turn, of many that are short: what else a
// machine does makes turns longer, and no turn shorter.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kTurn = 8e-4;  // seconds of one side in one turn

struct Free {
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER, Free>;
using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    ERR_print_errors_fp(stderr);
    std::exit(1);
}
void check(bool ok, const char* what) {
    if (!ok) fail(what);
}

// One side of the comparison, with its buffers.
class Side {
  public:
    Side(const char* title, const char* module, const std::string& folder)
        : name(title), library_(OSSL_LIB_CTX_new()) {
        if (!folder.empty()) OSSL_PROVIDER_set_default_search_path(library_, folder.c_str());
        check(OSSL_PROVIDER_load(library_, module) != nullptr, module);
    }
    void take(const std::string& cipher, bool encrypts, std::size_t size) {
        cipher_.reset(EVP_CIPHER_fetch(library_, cipher.c_str(), nullptr));
        check(cipher_ != nullptr, cipher.c_str());
        gcm_ = EVP_CIPHER_get_mode(cipher_.get()) == EVP_CIPH_GCM_MODE;
        encrypts_ = encrypts;
        size_ = static_cast<int>(size);
        in_.assign(size + 64, 0x5c);
        out_.assign(size + 64, 0);
        context_.reset(EVP_CIPHER_CTX_new());
        if (gcm_ && !encrypts) {  // what decrypts without a fault
            encrypts_ = true;
            begin(context_.get(), cipher_.get(), keys_[0]);
            finish(context_.get());
            std::swap(in_, out_);
            encrypts_ = false;
            context_.reset(EVP_CIPHER_CTX_new());
        }
        begin(context_.get(), cipher_.get(), keys_[0]);
        check(EVP_CIPHER_CTX_set_padding(context_.get(), 0) == 1, "no padding");
    }
    // `count` messages in one of the ways.
    void run(const std::string& way, std::size_t count) {
        EVP_CIPHER_CTX* const x = context_.get();
        if (way == "update") {
            begin(x, nullptr, nullptr);
            for (std::size_t i = 0; i < count; ++i) update(x);
        } else if (way == "iv" || way == "key" || way == "keys") {
            const bool with_key = way != "iv", two = way == "keys" && encrypts_;
            for (std::size_t i = 0; i < count; ++i) {
                begin(x, nullptr, with_key ? keys_[two ? i & 1 : 0] : nullptr);
                finish(x);
            }
        } else if (way == "context") {
            for (std::size_t i = 0; i < count; ++i) {
                const Context fresh(EVP_CIPHER_CTX_new());
                begin(fresh.get(), cipher_.get(), keys_[0]);
                EVP_CIPHER_CTX_set_padding(fresh.get(), 0);
                finish(fresh.get());
            }
        } else {
            check(way == "tls12" && gcm_ && encrypts_, "no such way");
            begin(x, nullptr, keys_[0]);
            EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_SET_IV_FIXED, 4, aad_);
            aad_[11] = static_cast<unsigned char>((size_ + 8) >> 8);
            aad_[12] = static_cast<unsigned char>(size_ + 8);
            for (std::size_t i = 0; i < count; ++i) {
                EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_TLS1_AAD, 13, aad_);
                check(
                    EVP_Cipher(x, out_.data(), out_.data(), static_cast<unsigned>(size_ + 24)) > 0,
                    "a record");
            }
        }
    }
    const char* const name;

  private:
    void begin(EVP_CIPHER_CTX* x, const EVP_CIPHER* cipher, const unsigned char* key) {
        check(EVP_CipherInit_ex2(x, cipher, key, iv_, encrypts_, nullptr) == 1, "init");
    }
    void update(EVP_CIPHER_CTX* x) {
        int made = 0;
        check(EVP_CipherUpdate(x, out_.data(), &made, in_.data(), size_) == 1, "update");
    }
    void finish(EVP_CIPHER_CTX* x) {
        int made = 0;
        unsigned char end[16];
        if (gcm_) check(EVP_CipherUpdate(x, nullptr, &made, aad_, 13) == 1, "aad");
        update(x);
        if (gcm_ && !encrypts_) EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_TAG, 16, tag_);
        check(EVP_CipherFinal_ex(x, end, &made) == 1, "final");
        if (gcm_ && encrypts_) EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_GET_TAG, 16, tag_);
    }

    OSSL_LIB_CTX* library_;
    Cipher cipher_;
    Context context_;
    std::vector<unsigned char> in_, out_;
    unsigned char keys_[2][32] = {{1, 2, 3}, {4, 5, 6}}, iv_[16] = {7, 8, 9}, aad_[13] = {},
                  tag_[16];
    bool gcm_ = false, encrypts_ = true;
    int size_ = 0;
};

double seconds(Side& side, const std::string& way, std::size_t count) {
    const auto start = Clock::now();
    side.run(way, count);
    return std::chrono::duration<double>(Clock::now() - start).count();
}
double least(const std::vector<double>& all) {
    return *std::min_element(all.begin(), all.end());
}
std::string processor() {
    std::ifstream from("/proc/cpuinfo");
    for (std::string line; std::getline(from, line);)
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    return "";
}
std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> all;
    std::stringstream from(text);
    for (std::string one; std::getline(from, one, ',');) all.push_back(one);
    return all;
}

}  // namespace

int main(int count, char** words) {
    std::string module, nothing, json;
    std::string ciphers = "AES-256-CTR,AES-256-GCM,AES-128-GCM,AES-256-ECB,AES-256-CBC,AES-256-CFB";
    std::string ways = "update,iv,key,keys,context,tls12";
    std::string sizes = "16,64,256,512,1024,1400,4096,16384";
    int turns = 41;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string option = words[i], value = words[i + 1];
        if (option == "--module")
            module = value;
        else if (option == "--nothing")
            nothing = value;
        else if (option == "--ciphers")
            ciphers = value;
        else if (option == "--ways")
            ways = value;
        else if (option == "--sizes")
            sizes = value;
        else if (option == "--turns")
            turns = std::atoi(words[i + 1]);
        else if (option == "--json")
            json = value;
        else
            fail("an option is unknown: they stand at the head of messages.cpp");
    }
    if (module.empty() || turns < 1) fail("--module FOLDER is needed, which has daelstrom.so");
    // As after the first moments of a process: the engine opens at once, a key after 16 KiB.
    setenv("DAELSTROM_PROVIDER_WARMUP", "1", 0);
    std::vector<Side> sides;
    sides.reserve(3);
    sides.emplace_back("default", "default", "");
    sides.emplace_back("daelstrom", "daelstrom", module);
    if (!nothing.empty()) sides.emplace_back("nothing", "nothing", nothing);
    std::string rows;
    std::printf("%s\n%-12s %-7s %-8s %6s %10s %10s %8s %7s\n", OpenSSL_version(OPENSSL_VERSION),
                "cipher", "", "way", "bytes", "default ns", "daelstrom", "nothing", "ratio");
    for (const auto& cipher : split(ciphers))
        for (const bool encrypts : {true, false})
            for (const auto& way : split(ways))
                for (const auto& text : split(sizes)) {
                    const bool gcm = cipher.find("GCM") != cipher.npos;
                    if ((way == "tls12" && (!gcm || !encrypts)) ||
                        (way == "keys" && gcm && !encrypts))
                        continue;
                    if (cipher.find("CTR") != cipher.npos && !encrypts) continue;
                    const std::size_t size = std::stoul(text);
                    if ((cipher.find("ECB") != cipher.npos || cipher.find("CBC") != cipher.npos) &&
                        size % 16)
                        continue;
                    for (Side& side : sides) side.take(cipher, encrypts, size);
                    std::size_t messages = 64;
                    for (Side& side : sides)
                        side.run(way, 64 + (64 << 10) / size);  // what is warmed up is
                    while (seconds(sides[0], way, messages) < kTurn / 2) messages *= 2;
                    std::vector<double> times[3];
                    for (int turn = 0; turn < turns; ++turn) {
                        for (std::size_t i = 0; i < sides.size(); ++i)
                            times[i].push_back(seconds(sides[i], way, messages) * 1e9 /
                                               static_cast<double>(messages));
                    }
                    const double floor = sides.size() > 2 ? least(times[2]) : 0;
                    const char* const direction = encrypts ? "encrypt" : "decrypt";
                    std::printf("%-12s %-7s %-8s %6zu %10.1f %10.1f %8.1f %6.2fx\n", cipher.c_str(),
                                direction, way.c_str(), size, least(times[0]), least(times[1]),
                                floor, least(times[0]) / least(times[1]));
                    std::fflush(stdout);
                    char row[400];
                    std::snprintf(row, sizeof row,
                                  "%s\n  {\"cipher\": \"%s\", \"direction\": \"%s\", \"way\": "
                                  "\"%s\", \"size\": %zu, "
                                  "\"default\": %.1f, \"daelstrom\": %.1f, \"nothing\": %.1f, "
                                  "\"ratio\": %.3f}",
                                  rows.empty() ? "" : ",", cipher.c_str(), direction, way.c_str(),
                                  size, least(times[0]), least(times[1]), floor,
                                  least(times[0]) / least(times[1]));
                    rows += row;
                }
    if (!json.empty())
        std::ofstream(json) << "{\"openssl\": \"" << OpenSSL_version(OPENSSL_VERSION)
                            << "\", \"processor\": \"" << processor()
                            << "\", \"unit\": \"ns a message\", \"turns\": " << turns
                            << ", \"rows\": [" << rows << "]}\n";
}
