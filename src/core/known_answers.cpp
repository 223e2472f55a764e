// SPDX-License-Identifier: Apache-2.0
#include "core/known_answers.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "core/process.hpp"
#include "core/registry.hpp"

namespace dael::core {
namespace {

thread_local int asks_now = 0;
struct Asking {
    Asking() { ++asks_now; }
    ~Asking() { --asks_now; }
};

// Bytes that look like no others, the same in every process.
class Bytes {
  public:
    explicit Bytes(std::uint64_t seed) : state_(seed) {}
    std::uint8_t operator()() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint8_t>(state_ >> 56);
    }
    template <class Range>
    void fill(Range& range) {
        std::ranges::generate(range, std::ref(*this));
    }

  private:
    std::uint64_t state_;
};

Result<std::vector<Key>> make_keys(const Question& question) {
    const bool xts = question.cipher.mode == Mode::xts;
    std::vector<Key> keys;
    for (std::uint32_t i = 0; i < question.keys; ++i) {
        std::vector<std::uint8_t> raw(static_cast<std::size_t>(question.bits) / 8 * (xts ? 2 : 1));
        Bytes(1 + i).fill(raw);
        DAEL_LET(key, xts ? Key::import_xts(raw) : Key::import(raw));
        keys.push_back(std::move(key));
    }
    return keys;
}

// Where everything lies, by offset: in host memory and, alike, in the device's.
struct Layout {
    explicit Layout(const Question& q) {
        for (const std::uint32_t bytes : q.sizes) {
            const auto data = [&] { return add(q.shift + bytes + 16) + q.shift; };
            const std::size_t out = data();
            places.push_back({q.in_place ? out : data(), out, add(q.aad), add(q.cipher.tag)});
        }
    }
    struct Place {
        std::size_t in, out, aad, tag;
    };
    std::vector<Place> places;
    std::size_t size = 0;

  private:
    std::size_t add(std::size_t bytes) {
        const std::size_t at = size;
        size += (bytes + 31) / 16 * 16;
        return at;
    }
};

std::vector<Message> messages_at(std::uint8_t* base, const Layout& layout, const Question& q) {
    std::vector<Message> list;
    for (std::size_t i = 0; i < q.sizes.size(); ++i) {
        const Layout::Place& at = layout.places[i];
        Message m{.in = q.keystream ? nullptr : base + at.in,
                  .out = base + at.out,
                  .size = q.sizes[i],
                  .start = {}};
        if (authenticates(q.cipher.mode)) {
            m.aad = q.aad != 0 ? base + at.aad : nullptr;
            m.aad_size = q.aad;
            m.tag = base + at.tag;
        }
        Bytes bytes(100 + i);
        if (q.cipher.mode == Mode::xts)
            m.start[0] = static_cast<std::uint8_t>(7 + i);
        else if (q.cipher.mode != Mode::ecb)
            bytes.fill(m.start);
        if (makes_keystream(q.cipher.mode)) m.start[12] = 0;  // the low 32 bits do not wrap
        if (q.wraps && i == 0) {
            m.start.fill(0xff);
            m.start[0] = 5;
            m.start[15] = 0xf0;
        }
        if (q.cipher.mode == Mode::gcm) std::ranges::copy("\0\0\0\1", m.start.begin() + 12);
        if (q.cipher.mode == Mode::gcm_siv) std::fill(m.start.begin() + 12, m.start.end(), 0);
        if (has_start_rest(q.cipher.mode)) bytes.fill(m.start_rest);
        if (q.cipher.mode == Mode::xaes256gcm)
            std::fill(m.start_rest.begin() + 8, m.start_rest.end(), 0);
        m.key = static_cast<std::uint32_t>(i % q.keys);
        list.push_back(m);
    }
    return list;
}

// Memory of the device as long as it lasts.
class DeviceMemory {
  public:
    DeviceMemory(Device& device, std::size_t size) : device_(device) {
        auto made = device.memory().allocate(size);
        if (made)
            memory_ = static_cast<std::uint8_t*>(*made);
        else
            status_ = std::move(made).error();
    }
    ~DeviceMemory() {
        if (memory_) device_.memory().release(memory_);
    }
    Result<> status() const { return status_; }
    std::uint8_t* data() const { return memory_; }

  private:
    Device& device_;
    std::uint8_t* memory_ = nullptr;
    Result<> status_;
};
// The codes of a run, or ok for all where there are none.
Result<std::vector<std::uint32_t>> run_there(Device& device, const MakeTables& tables,
                                             const std::vector<Key>& keys, const Question& q,
                                             std::span<const Message> messages, Stream stream) {
    std::vector<std::uint32_t> codes(messages.size(), 0);
    if (q.by == Question::By::message || q.by == Question::By::reach) {
        for (const Message& m : messages)
            DAEL_TRY(q.by == Question::By::reach
                         ? device.run_in_reach(q.cipher, {keys, nullptr}, m, stream)
                         : device.run(q.cipher, {keys, nullptr}, m, stream));
        DAEL_TRY(device.order().wait(stream));
        return codes;
    }
    DAEL_LET(made, tables(keys));
    const KeyList with{keys, made.get()};
    const std::size_t bytes = codes.size() * sizeof codes[0];
    if (q.by == Question::By::list) {
        const DeviceMemory memory(device, bytes);
        DAEL_TRY(memory.status());
        auto* const there = reinterpret_cast<std::uint32_t*>(memory.data());
        DAEL_TRY(device.run(q.cipher, with, messages, LaunchOptions{.codes = there}, stream));
        DAEL_TRY(device.memory().copy_out(codes.data(), there, bytes, stream));
        DAEL_TRY(device.order().wait(stream));
        return codes;
    }
    const bool placed = q.by == Question::By::placed;
    const DeviceMemory list(device, placed ? messages.size_bytes() : 1);
    DAEL_TRY(list.status());
    Messages all{messages.data(), static_cast<std::uint32_t>(messages.size())};
    if (placed) {
        DAEL_TRY(
            device.memory().copy_in(list.data(), messages.data(), messages.size_bytes(), stream));
        DAEL_TRY(device.order().wait(stream));
        all.list = reinterpret_cast<const Message*>(list.data());
        all.place = Place::device;
    }
    DAEL_LET(batch, device.prepare(q.cipher, with, all));
    const Result<> ran = device.run(*batch, stream);
    const std::uint32_t* const results = batch->results();
    Result<> copied;
    if (ran && results) copied = device.memory().copy_out(codes.data(), results, bytes, stream);
    const Result<> waited = device.order().wait(stream);
    for (const Result<>& result : {ran, copied, waited, batch->outcome()})
        if (!result) return result.error();
    return codes;
}

// A question worked out by a host backend.
struct Paper {
    static Result<Paper> of(const Question& q);
    // Whether this is what memory held afterwards, with these codes; which is also: nothing was
    // written beside.
    bool is_right(const Question& q, const std::vector<std::uint32_t>& results,
                  std::vector<std::uint8_t> back) const;

    std::vector<Key> keys;
    Layout layout;
    std::vector<std::uint8_t> image, answer;  // memory before and after
    std::vector<Code> codes;
};

Result<Paper> Paper::of(const Question& q) {
    Cipher cipher = q.cipher;
    if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;  // as backends on the host have it
    DAEL_LET(host, judge(cipher, q.bits));
    DAEL_LET(keys, make_keys(q));
    Paper paper{std::move(keys), Layout(q), {}, {}, std::vector<Code>(q.sizes.size())};
    const bool opens = q.cipher.direction == Direction::decrypt;
    std::vector<std::uint8_t>& here = paper.answer;
    here.resize(paper.layout.size);
    Bytes(1000).fill(here);
    auto messages = messages_at(here.data(), paper.layout, q);
    if (authenticates(q.cipher.mode) && opens) {
        // What is to be opened is sealed first, where it lies.
        auto sealed = messages;
        for (Message& m : sealed) m.out = const_cast<std::uint8_t*>(m.in);
        cipher.direction = Direction::encrypt;
        DAEL_TRY(host->run(cipher, {paper.keys, nullptr}, sealed, paper.codes));
        cipher.direction = Direction::decrypt;
        messages.back().tag[3] ^= 0x20;
    }
    paper.image = here;
    DAEL_TRY(host->run(cipher, {paper.keys, nullptr}, messages, paper.codes));
    // What a forged message's output is here, after the host's refusal, is the host's affair. A
    // device leaves it as it was or, in AEGIS and GCM-SIV, which decrypt before they know, full of
    // zeros.
    for (std::size_t i = 0; i < paper.codes.size(); ++i) {
        if (paper.codes[i] == Code::ok || q.in_place) continue;
        std::uint8_t* const out = here.data() + paper.layout.places[i].out;
        if (is_aegis(q.cipher.mode) || q.cipher.mode == Mode::gcm_siv)
            std::memset(out, 0, q.sizes[i]);
        else
            std::memcpy(out, paper.image.data() + paper.layout.places[i].out, q.sizes[i]);
    }
    return paper;
}

bool Paper::is_right(const Question& q, const std::vector<std::uint32_t>& results,
                     std::vector<std::uint8_t> back) const {
    if (is_spoiled(q.name)) back[layout.places[0].out] ^= 1;
    return back == answer && std::ranges::equal(results, codes, [](std::uint32_t a, Code b) {
               return static_cast<Code>(a) == b;
           });
}

struct Known {
    const std::uint32_t process = this_process();
    std::mutex mutex;                          // guards what follows
    std::set<std::string> right;               // device, form, question
    std::map<std::string, std::string> wrong;  // device: what
    std::string spoiled;
    std::mutex opening;                                      // guards:
    std::map<std::string, std::unique_ptr<Backend>> judges;  // null: not on this machine
};
// Each process has its own: a child of fork() may find its parent's locks held. Never destroyed,
// since static destructors may still open engines.
Known& known() {
    static std::atomic<Known*> all{nullptr};
    Known* now = all.load(std::memory_order_acquire);
    if (now && now->process == this_process()) return *now;
    auto fresh = std::make_unique<Known>();
    return all.compare_exchange_strong(now, fresh.get()) ? *fresh.release() : *now;
}
Error computes_wrongly(const std::string& device, const std::string& what) {
    return {Code::device, device + ": computes wrongly: " + what +
                              " gave another answer than AES has; it is left alone: bring its "
                              "driver up to date, or take another backend"};
}

}  // namespace

Result<Backend*> judge(const Cipher& cipher, int bits) {
    Known& its = known();
    const std::lock_guard lock(its.opening);
    Error none{Code::backend_absent, "no backend on the host to judge a device by"};
    for (const char* name : {"cpu", "openssl", "reference"}) {
        auto found = its.judges.find(name);
        if (found == its.judges.end()) {
            auto opened = open_backend(name);
            if (!opened && opened.code() != Code::backend_absent) {  // it may open another time
                none = std::move(opened).error();
                continue;
            }
            found = its.judges.emplace(name, opened ? std::move(*opened) : nullptr).first;
        }
        if (found->second && found->second->can(cipher, bits).answer != Can::no)
            return found->second.get();
    }
    return none;
}

Result<bool> ask(Device& device, const MakeTables& tables, const Question& q) {
    DAEL_LET(paper, Paper::of(q));
    const DeviceMemory memory(device, paper.image.size());
    DAEL_TRY(memory.status());
    const DeviceStream stream(device);
    DAEL_TRY(stream.status());
    DAEL_TRY(device.memory().copy_in(memory.data(), paper.image.data(), paper.image.size(),
                                     stream.stream()));
    const auto there = messages_at(memory.data(), paper.layout, q);
    DAEL_LET(results, run_there(device, tables, paper.keys, q, there, stream.stream()));
    std::vector<std::uint8_t> back(paper.image.size());
    DAEL_TRY(device.memory().copy_out(back.data(), memory.data(), back.size(), stream.stream()));
    DAEL_TRY(device.order().wait(stream.stream()));
    return paper.is_right(q, results, std::move(back));
}

Result<bool> ask(const RunOnHost& run, const Question& q) {
    DAEL_LET(paper, Paper::of(q));
    std::vector<std::uint8_t> back = paper.image;
    DAEL_TRY(run(paper.keys, messages_at(back.data(), paper.layout, q)));
    return paper.is_right(q, std::vector<std::uint32_t>(q.sizes.size(), 0), std::move(back));
}

bool asking() noexcept {
    return asks_now != 0;
}

Result<> believed(const std::string& device_name) {
    const std::lock_guard lock(known().mutex);
    const auto found = known().wrong.find(device_name);
    if (found == known().wrong.end()) return {};
    return computes_wrongly(device_name, found->second);
}

Result<> believe(const std::string& device_name, const std::string& form, const Question& question,
                 const std::function<Result<bool>()>& asks) {
    ++beliefs;
    if (asking()) return {};
    DAEL_TRY(believed(device_name));
    const std::string what = question.name + ", AES-" + std::to_string(question.bits);
    const std::string id = device_name + '\n' + form + '\n' + what + '\n' +
                           std::string(name(question.cipher.mode)) + '\n' +
                           std::string(name(question.cipher.direction));
    {
        const std::lock_guard lock(known().mutex);
        if (known().right.contains(id)) return {};
    }
    Result<bool> right = false;
    {
        const Asking now;  // two threads may ask the same: nobody waits for the other's device
        right = asks();
    }
    if (!right) return std::move(right).error();
    const std::lock_guard lock(known().mutex);
    if (*right) {
        known().right.insert(id);
        return {};
    }
    known().wrong.emplace(device_name, what);
    ++verdicts;
    return computes_wrongly(device_name, what);
}

bool is_spoiled(const std::string& name) {
    const std::lock_guard lock(known().mutex);
    return !known().spoiled.empty() && known().spoiled == name;
}
void spoil_answers(std::string name) {
    const std::lock_guard lock(known().mutex);
    known().spoiled = std::move(name);
}
void forget_answers() {
    const std::lock_guard lock(known().mutex);
    known().right.clear();
    known().wrong.clear();
}

}  // namespace dael::core
