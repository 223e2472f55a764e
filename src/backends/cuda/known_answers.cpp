// SPDX-License-Identifier: Apache-2.0
// What each kind of kernels is asked before its first use (core/known_answers.hpp).
#include "core/known_answers.hpp"

#include <algorithm>
#include <optional>

#include "backends/cuda/device.hpp"
#include "backends/cuda/keys/keys.hpp"

namespace dael::cuda {
namespace {

using core::Question;
using By = Question::By;

constexpr Direction kEncrypt = Direction::encrypt, kDecrypt = Direction::decrypt;
// Messages of GCM that short messages' kernels take, and those that long ones' do: rows and tiles
// that are whole, and not.
const std::vector<std::uint32_t> kShort{0, 16, 61, 528, 1500, 8100}, kLong{8209, 33000},
    kOfBlock{8209, 16500, 33000};

bool by_quads(Kind kind) {
    return kind == Kind::gcm_quads || kind == Kind::gcm_quads_keys;
}

std::vector<Question> questions(Kind kind, int rounds) {
    const int bits = 32 * (rounds - 6);
    const auto plain = [&](const char* name, Mode mode, Direction direction, By by,
                           std::vector<std::uint32_t> sizes, std::uint32_t keys = 1) {
        return std::vector<Question>{{.name = name,
                                      .cipher = {mode, direction},
                                      .bits = bits,
                                      .by = by,
                                      .sizes = std::move(sizes),
                                      .keys = keys}};
    };
    // Sealing and opening; `shift` keeps sealing from being fused.
    const auto tagged = [&](const char* name, Mode mode, By by,
                            const std::vector<std::uint32_t>& sizes) {
        Question question{.name = name,
                          .cipher = {mode, kEncrypt},
                          .bits = bits,
                          .by = by,
                          .sizes = sizes,
                          .aad = 21,
                          .keys = 2};
        std::vector<Question> list{question};
        question.cipher.direction = kDecrypt;
        list.push_back(question);
        return list;
    };
    const auto gcm = [&](const char* name, By by, const std::vector<std::uint32_t>& sizes,
                         std::uint32_t keys, std::uint32_t shift = 0, bool opens = true) {
        Question question{.name = name,
                          .cipher = {Mode::gcm, kEncrypt},
                          .bits = bits,
                          .by = by,
                          .sizes = sizes,
                          .aad = 21,
                          .keys = keys,
                          .shift = shift};
        std::vector<Question> list{question};
        question.cipher.direction = kDecrypt;
        question.shift = 0;
        if (opens) list.push_back(question);
        return list;
    };
    switch (kind) {
        case Kind::ctr_small:
            return plain("ctr of little data", Mode::ctr, kEncrypt, By::message, {1030});
        case Kind::ctr:
            return plain("ctr", Mode::ctr, kEncrypt, By::batch, {1030, 9000});
        case Kind::ecb_encrypt:
            return plain("ecb encryption", Mode::ecb, kEncrypt, By::message, {1040});
        case Kind::ecb_decrypt:
            return plain("ecb decryption", Mode::ecb, kDecrypt, By::message, {1040});
        case Kind::cbc_encrypt:
            return plain("cbc encryption", Mode::cbc, kEncrypt, By::batch, {160, 48});
        case Kind::cbc_decrypt:
            return plain("cbc decryption", Mode::cbc, kDecrypt, By::message, {1040});
        case Kind::cfb_encrypt:
            return plain("cfb encryption", Mode::cfb, kEncrypt, By::batch, {150, 48});
        case Kind::cfb_decrypt:
            return plain("cfb decryption", Mode::cfb, kDecrypt, By::message, {1030});
        case Kind::ofb:
            return plain("ofb", Mode::ofb, kEncrypt, By::batch, {150, 48});
        case Kind::cbc_keys:
            return plain("cbc encryption with many keys", Mode::cbc, kEncrypt, By::batch,
                         {160, 48, 96}, 2);
        case Kind::xts_encrypt:
            return plain("xts encryption", Mode::xts, kEncrypt, By::message, {1024, 1000});
        case Kind::xts_decrypt:
            return plain("xts decryption", Mode::xts, kDecrypt, By::message, {1024, 1000});
        case Kind::gcm_counter:
            return plain("gcm_ctr", Mode::gcm_ctr, kEncrypt, By::batch, {100, 1500, 9000}, 2);
        case Kind::gcm_short:
            return gcm("gcm of short messages", By::batch, kShort, 2);
        case Kind::gcm_quads:
            return gcm("gcm of short messages by 64", By::batch, kShort, 1);
        case Kind::gcm_quads_keys:
            return gcm("gcm of short messages by 64 with many keys", By::batch, kShort, 2);
        case Kind::gcm_long:
            return gcm("gcm of long messages", By::batch, kLong, 1, 1);
        case Kind::gcm_long_keys:
            return gcm("gcm of long messages with many keys", By::batch, kLong, 2, 1);
        case Kind::gcm_fused:
            return gcm("gcm of long messages, fused", By::batch, kLong, 1, 0, false);
        case Kind::gcm_fused_keys:
            return gcm("gcm of long messages with many keys, fused", By::batch, kLong, 2, 0, false);
        case Kind::gcm_placed:
            return gcm("gcm of lists in device memory", By::placed, {16, 9000, 100, 20000}, 2);
        case Kind::xaes_eight:
            return tagged("xaes256gcm, eight to a warp", Mode::xaes256gcm, By::batch, kShort);
        case Kind::xaes_block:
            return tagged("xaes256gcm of long messages", Mode::xaes256gcm, By::batch, kOfBlock);
        case Kind::xaes_few:
            return tagged("xaes256gcm of a few messages", Mode::xaes256gcm, By::list, kShort);
        case Kind::siv_eight:
            return tagged("gcm_siv, eight to a warp", Mode::gcm_siv, By::batch, kShort);
        case Kind::siv_block:
            return tagged("gcm_siv of long messages", Mode::gcm_siv, By::batch, kOfBlock);
        case Kind::siv_few:
            return tagged("gcm_siv of a few messages", Mode::gcm_siv, By::list, kShort);
        case Kind::gcm_pieces:  // see below
        case Kind::keystream:
            return plain("", Mode::ctr, kEncrypt, By::message, {});
        case Kind::gcm_team:
            return gcm("gcm of a few messages", By::list, {0, 100, 4096, 5000}, 2);
    }
    return {};
}

thread_local bool asks_quads = false;
thread_local std::optional<AegisWay> asks_way;

// Sealing and opening, by batches or as a few messages: bodies of the fast loops, and what is left.
std::vector<Question> aegis_questions(Mode mode, AegisWay way) {
    Question question{
        .name = std::string(name(mode)) + ", way " + std::to_string(static_cast<int>(way)),
        .cipher = {mode, kEncrypt},
        .bits = mode == Mode::aegis256 ? 256 : 128,
        .by = way == AegisWay::few ? By::list : By::placed,  // which asks who orders lists, too
        .sizes = {2304, 1100, 61, 0, 1024},
        .aad = 21,
        .keys = 2};
    std::vector<Question> list{question};
    question.cipher.direction = kDecrypt;
    list.push_back(question);
    return list;
}

// While a thread asks for one of AEGIS's kernels.
struct AskedWay {
    explicit AskedWay(AegisWay way) { asks_way = way; }
    AskedWay(const AskedWay&) = delete;
    ~AskedWay() { asks_way.reset(); }
};

// While a thread asks for kernels that take short messages by 64, or for others.
struct Asked {
    explicit Asked(Kind kind) { asks_quads = by_quads(kind); }
    Asked(const Asked&) = delete;
    ~Asked() { asks_quads = false; }
};

std::string name_of(int index, const DeviceInfo& info) {
    return "cuda:" + std::to_string(index) + " (" + info.name + ")";
}

constexpr std::size_t kPieces[] = {21, 9000, 37};

// A message of all of them, against one of the same bytes on the host.
Result<bool> ask_pieces(CudaDevice& device, const core::MakeTables& tables, const Key& key) {
    const Cipher seal{Mode::gcm, kEncrypt};
    DAEL_LET(host, core::judge(seal, key.bits()));
    std::vector<std::uint8_t> plain(kPieces[0] + kPieces[1] + kPieces[2]), here(plain.size()),
        there(plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::uint8_t>(i * 37);
    Block start{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1}, tag{};
    const Message message{.in = plain.data(),
                          .out = here.data(),
                          .size = plain.size(),
                          .aad = plain.data(),
                          .aad_size = kPieces[0],
                          .tag = tag.data(),
                          .start = start};
    Code code = Code::ok;
    const std::span keys(&key, 1);
    DAEL_TRY(host->run(seal, {keys, nullptr}, {&message, 1}, {&code, 1}));
    DAEL_LET(made, tables(keys));
    DAEL_LET(pieces, device.begin(seal, {keys, made.get()}, 0, start));
    DAEL_TRY(pieces->aad(std::span(plain).first(kPieces[0])));
    std::size_t at = 0;
    for (const std::size_t size : kPieces) {
        DAEL_TRY(pieces->update(plain.data() + at, there.data() + at, size));
        at += size;
    }
    DAEL_LET(sum, pieces->finish());
    return code == Code::ok && here == there && sum == tag;
}

// Runs of two slots and of one, into page-locked memory, against counter mode on the host.
Result<bool> ask_keystream(CudaDevice& device, core::KeystreamMaker& maker, const Key& key) {
    constexpr std::uint32_t kBlocks = 40;
    constexpr std::size_t kSlot = kBlocks * kBlockSize;
    DAEL_LET(host, core::judge({Mode::ctr}, key.bits()));
    core::Pinned memory(device.memory(), 3 * kSlot);
    DAEL_TRY(memory.status());
    const core::DeviceStream stream(device);
    DAEL_TRY(stream.status());
    const std::span keys(&key, 1);
    DAEL_LET(made, maker.keys(keys));
    const Block first{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 5, 0, 0, 0, 1}, other{3};
    const core::KeystreamRun runs[] = {{memory.data(), first, 0, kBlocks, 2},
                                       {memory.data() + 2 * kSlot, other, 0, kBlocks, 1}};
    Result<> ran = maker.begin(*made, runs, stream.stream());
    Result<> waited = maker.wait();
    if (!waited) memory.keep();
    DAEL_TRY(std::move(ran));
    DAEL_TRY(std::move(waited));
    std::vector<std::uint8_t> here(3 * kSlot);
    Block second = first;
    ++second[11];  // 2^32 on
    const Block* const starts[] = {&first, &second, &other};
    for (std::size_t i = 0; i < 3; ++i) {
        const Message message{
            .in = nullptr, .out = here.data() + i * kSlot, .size = kSlot, .start = *starts[i]};
        Code code = Code::ok;
        DAEL_TRY(host->run({Mode::ctr}, {keys, nullptr}, {&message, 1}, {&code, 1}));
    }
    return std::equal(here.begin(), here.end(), memory.data());
}

}  // namespace

Kind kind_of(const Cipher& cipher) {
    const bool decrypts = cipher.direction == kDecrypt;
    switch (cipher.mode) {
        case Mode::ecb:
            return decrypts ? Kind::ecb_decrypt : Kind::ecb_encrypt;
        case Mode::cbc:
            return decrypts ? Kind::cbc_decrypt : Kind::cbc_encrypt;
        case Mode::cfb:
            return decrypts ? Kind::cfb_decrypt : Kind::cfb_encrypt;
        case Mode::ofb:
            return Kind::ofb;
        case Mode::xts:
            return decrypts ? Kind::xts_decrypt : Kind::xts_encrypt;
        default:
            return Kind::ctr;
    }
}

bool CudaDevice::quads_forced() const {
    return quads_forced_ || asks_quads;
}

std::optional<AegisWay> CudaDevice::forced_aegis_way() const {
    return asks_way ? asks_way : aegis_way_;
}

std::string CudaDevice::answers_form() const {
    return info_.driver + ", " + info_.architecture + ", " + info_.layout + ", " +
           std::to_string(static_cast<int>(best_hashing_)) + std::to_string(layout_.xts_inverse);
}

Result<> CudaDevice::believe_slowly(Mode mode, AegisWay way) {
    if (core::asking()) return {};
    const std::uint32_t verdicts = core::verdicts;  // before it asks
    const core::MakeTables make = [this](std::span<const Key> keys) { return tables(keys); };
    for (const Question& question : aegis_questions(mode, way))
        DAEL_TRY(
            core::believe(name_of(index_, info_), answers_form(), question, [&]() -> Result<bool> {
                const AskedWay about(way);
                return core::ask(*this, make, question);
            }));
    believed_aegis_[aegis_index(mode)].fetch_or(bit(way));
    heard_.of(verdicts);
    return {};
}

Result<> CudaDevice::usable() const {
    return core::believed(name_of(index_, info_));
}

Result<> CudaDevice::believe_slowly(Kind kind, int rounds) {
    if (core::asking()) return {};
    const std::uint32_t verdicts = core::verdicts;  // before it asks
    const std::string name = name_of(index_, info_);
    const std::string form = answers_form();
    const core::MakeTables make = [this](std::span<const Key> keys) { return tables(keys); };
    for (Question& question : questions(kind, rounds)) {
        if (kind == Kind::gcm_pieces) question.name = "gcm in pieces";
        if (kind == Kind::keystream) question.name = "keystream";
        DAEL_TRY(core::believe(name, form, question, [&]() -> Result<bool> {
            if (kind == Kind::gcm_pieces || kind == Kind::keystream) {
                std::vector<std::uint8_t> raw(static_cast<std::size_t>(question.bits) / 8);
                for (std::size_t i = 0; i < raw.size(); ++i)
                    raw[i] = static_cast<std::uint8_t>(i * 11 + 3);
                DAEL_LET(key, Key::import(raw));
                if (core::is_spoiled(question.name)) return false;
                if (kind == Kind::gcm_pieces) return ask_pieces(*this, make, key);
                DAEL_LET(maker, keystream_maker());
                return maker ? ask_keystream(*this, *maker, key) : Result<bool>(true);
            }
            const Asked about(kind);
            return core::ask(*this, make, question);
        }));
    }
    believed_[static_cast<std::size_t>(rounds - 10) / 2].fetch_or(bit(kind));
    heard_.of(verdicts);
    return {};
}

Result<> CudaDevice::believe_size(int rounds) {
    std::uint32_t any = 0;
    for (const auto& kinds : believed_) any |= kinds.load();
    for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
        const auto its = static_cast<Kind>(kind);
        if (its == Kind::keystream) continue;  // whose keys come to it for all sizes
        if (rounds == 12 && (its == Kind::xts_encrypt || its == Kind::xts_decrypt)) continue;
        const bool xaes = its >= Kind::xaes_eight && its <= Kind::xaes_few,
                   siv = its >= Kind::siv_eight && its <= Kind::siv_few;
        if ((xaes && rounds != 14) || (siv && rounds == 12)) continue;
        if (any >> kind & 1) DAEL_TRY(believe(its, rounds));
    }
    return {};
}

}  // namespace dael::cuda
