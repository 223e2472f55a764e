// SPDX-License-Identifier: Apache-2.0
#include "bench/packets.hpp"

#include <openssl/evp.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

#include "bench/check.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace dael::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::size_t kAad = 8, kIv = 8, kTag = 16, kBeside = kAad + kIv + kTag;

}  // namespace

Mix Mix::imix() {
    Mix mix{"imix", {}};
    mix.sizes.insert(mix.sizes.end(), 7, 64);
    mix.sizes.insert(mix.sizes.end(), 4, 570);
    mix.sizes.push_back(1500);
    std::mt19937 random(7);
    // The same order in every run and by every compiler: shuffle() is not.
    for (std::size_t i = mix.sizes.size() - 1; i > 0; --i)
        std::swap(mix.sizes[i], mix.sizes[random() % (i + 1)]);
    return mix;
}

Mix Mix::of(const Point& point) {
    return point.text("mix") == "imix" ? imix() : of(point.number("size"));
}

double Mix::mean() const {
    return static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0})) /
           static_cast<double>(sizes.size());
}

Point Mix::point() const {
    return {{"mix", name},
            {"size", name.empty() ? std::uint64_t{sizes.front()} : std::uint64_t{0}}};
}

Result<std::shared_ptr<Packets>> Packets::make(const Mix& mix, std::size_t working_set) {
    const auto packets = std::make_shared<Packets>();
    const std::size_t count = std::max(
        mix.sizes.size(), static_cast<std::size_t>(static_cast<double>(working_set) / mix.mean()));
    std::vector<std::size_t> offsets;
    std::size_t end = 0;
    for (std::size_t i = 0; i < count; ++i) {
        offsets.push_back(end);
        const std::size_t size = mix.sizes[i % mix.sizes.size()];
        packets->bytes += size;
        end += (size + 63) / 64 * 64;  // each on a cache line of its own, as in a ring of buffers
    }
    for (measure::HostBuffer* buffer : {&packets->in, &packets->out}) {
        DAEL_LET(memory, measure::HostBuffer::allocate(end));
        *buffer = std::move(memory);
    }
    measure::Team alone(1);
    measure::fill_random(alone, packets->in.data(), end, 3);
    packets->beside_.resize(count * kBeside);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint8_t* const beside = packets->beside_.data() + i * kBeside;
        beside[3] = 0x11;  // the header of ESP: SPI and sequence number
        beside[7] = static_cast<std::uint8_t>(i);
        packets->list.push_back({.in = packets->in.data() + offsets[i],
                                 .out = packets->out.data() + offsets[i],
                                 .size = mix.sizes[i % mix.sizes.size()],
                                 .aad = beside,
                                 .aad_size = kAad,
                                 .iv = beside + kAad,
                                 .tag = beside + kAad + kIv});
    }
    return packets;
}

Result<> seal_all(const Sealer& sealer, const Packets& packets) {
    const std::span<const SaPacket> all(packets.list);
    for (std::size_t at = 0; at < all.size(); at += sealer.burst)
        DAEL_TRY(sealer.seal(all.subspan(at, std::min(sealer.burst, all.size() - at))));
    return {};
}

Result<> check_sealed(const Sealer& sealer, const Packets& packets,
                      std::span<const std::uint8_t> key, std::size_t sealed) {
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
        EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    const auto* cipher =
        EVP_get_cipherbyname(("AES-" + std::to_string(key.size() * 8) + "-GCM").c_str());
    if (!context || EVP_DecryptInit_ex(context.get(), cipher, nullptr, key.data(), nullptr) != 1)
        return Error{Code::internal, "OpenSSL: EVP_DecryptInit_ex failed"};
    std::vector<std::uint8_t> plain;
    for (std::size_t i = 0; i < std::min(sealed, packets.list.size()); ++i) {
        const SaPacket& packet = packets.list[i];
        std::array<std::uint8_t, 12> nonce;
        std::copy(sealer.salt.begin(), sealer.salt.end(), nonce.begin());
        std::memcpy(nonce.data() + sealer.salt.size(), packet.iv, kIv);
        plain.assign(packet.size, kPoison);
        int size = 0;
        const bool right =
            EVP_DecryptInit_ex(context.get(), nullptr, nullptr, nullptr, nonce.data()) == 1 &&
            EVP_DecryptUpdate(context.get(), nullptr, &size, packet.aad,
                              static_cast<int>(packet.aad_size)) == 1 &&
            EVP_DecryptUpdate(context.get(), plain.data(), &size, packet.out,
                              static_cast<int>(packet.size)) == 1 &&
            EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTag, packet.tag) == 1 &&
            EVP_DecryptFinal_ex(context.get(), plain.data() + size, &size) == 1;
        if (!right || std::memcmp(plain.data(), packet.in, packet.size) != 0)
            return Error{Code::internal, sealer.name + ": packet " + std::to_string(i) + " of " +
                                             std::to_string(packet.size) +
                                             " bytes is not what OpenSSL opens; the figure would "
                                             "be worthless"};
    }
    return {};
}

measure::Sampler passes(const Sealer& sealer, std::shared_ptr<const Packets> packets,
                        const measure::Sampling& sampling) {
    return [=]() -> Result<double> {
        const OnCore pinned(0);
        // What is ready when the clock starts was not made in its time: it is used up first.
        for (const auto start = Clock::now();;) {
            DAEL_TRY(seal_all(sealer, *packets));
            if (seconds_since(start) >= sealer.warm_seconds) break;
        }
        if (sealer.mark) sealer.mark();
        const double enough = std::max(sampling.sample_seconds, 2 * sealer.warm_seconds);
        const auto start = Clock::now();
        // The clock is read after so many passes that this costs nothing.
        const std::size_t together = std::max<std::size_t>(1, (64 << 10) / packets->bytes);
        for (int done = 0;;) {
            for (std::size_t i = 0; i < together; ++i, ++done) DAEL_TRY(seal_all(sealer, *packets));
            if (const double seconds = seconds_since(start); seconds >= enough)
                return seconds / done;
        }
    };
}

namespace {

// The processors that this process may use: one of each core first, then their siblings.
std::vector<int> processors() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    std::vector<int> first, siblings;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &mask)) continue;
        std::ifstream list("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                           "/topology/thread_siblings_list");
        int of = cpu;
        if (!(list >> of)) of = cpu;
        (of == cpu || !CPU_ISSET(of, &mask) ? first : siblings).push_back(cpu);
    }
    // The first one has interrupts and whoever else is about: it comes last.
    if (!first.empty()) std::rotate(first.begin(), first.begin() + 1, first.end());
    first.insert(first.end(), siblings.begin(), siblings.end());
    return first;
}

}  // namespace

OnCore::OnCore(std::size_t number) {
    static const std::vector<int> all = processors();
    cpu_set_t mask;
    if (all.empty() || sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    before_.resize(sizeof mask);
    std::memcpy(before_.data(), &mask, sizeof mask);
    CPU_ZERO(&mask);
    CPU_SET(all[number % all.size()], &mask);
    sched_setaffinity(0, sizeof mask, &mask);  // on failure the figures are noisier, not wrong
}

OnCore::~OnCore() {
    if (before_.empty()) return;
    cpu_set_t mask;
    std::memcpy(&mask, before_.data(), sizeof mask);
    sched_setaffinity(0, sizeof mask, &mask);
}

std::uint64_t cycles() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

double cycles_per_second() {
    static const double rate = [] {
        const auto start = Clock::now();
        const std::uint64_t first = cycles();
        while (seconds_since(start) < 0.05) {
        }
        return static_cast<double>(cycles() - first) / seconds_since(start);
    }();
    return rate;
}

measure::Figures per_packet(double seconds) {
    measure::Figures figures{{"ns", seconds * 1e9}, {"mpps", 1e-6 / seconds}};
    if (cycles_per_second() > 0) figures.push_back({"cycles", seconds * cycles_per_second()});
    return figures;
}

std::vector<std::uint8_t> packet_key(std::uint64_t bits) {
    return key_bytes(Work(Point{{"mode", "gcm"}, {"bits", bits}}));
}

measure::Axis at_place(const char* where) {
    return {Point{{"where", where}, {"measure", "call"}}};
}

measure::Axis packet_key_sizes(const PacketSuite& shared) {
    return measure::axis("bits", shared.suite.options.bits.empty() ? std::vector<int>{128, 256}
                                                                   : shared.suite.options.bits);
}

std::string describe_packets(const Point& point) {
    std::string text = point.text("backend");
    const auto add = [&text](const std::string& more) {
        if (!more.empty()) text += (text.empty() ? "" : ", ") + more;
    };
    if (point.number("bits")) add("gcm-" + std::to_string(point.number("bits")));
    add(point.text("mix"));
    if (point.number("size")) add(std::to_string(point.number("size")) + " bytes");
    if (point.number("working_set"))
        add(std::to_string(point.number("working_set") >> 10) + " KiB of packets");
    if (point.number("budget"))
        add(std::to_string(point.number("budget") >> 20) + " MiB of keystream");
    if (point.number("sas")) add(std::to_string(point.number("sas")) + " SAs");
    add(point.text("arrival"));
    if (point.number("load")) add(std::to_string(point.number("load")) + "% load");
    if (point.number("threads") > 1) add(std::to_string(point.number("threads")) + " cores");
    return text;
}

const measure::Columns& packet_columns() {
    static const auto size = [](const Point& p) {
        return p.text("mix").empty() ? std::to_string(p.number("size")) : p.text("mix");
    };
    static const auto how = [](const Point& p) {
        Point rest = p;
        for (const char* field : {"backend", "mix"}) rest.set(field, std::string());
        for (const char* field : {"bits", "size"}) rest.set(field, std::uint64_t{0});
        return describe_packets(rest);
    };
    static const measure::Columns all{
        {{"by", false, [](const Point& p) { return p.text("backend"); }},
         {"AES", true, [](const Point& p) { return std::to_string(p.number("bits")); }},
         {"packet", true, size},
         {"how", false, how}},
        {"packets", "budgets", "cores", "arrivals", "latency", "parts"},
        [](const measure::Machine& machine, const std::string& where) -> std::string {
            if (where == "packets") return "Packets sealed on one core of " + machine.cpu;
            if (where == "budgets") return "By the keystream that may be in flight, one core";
            if (where == "cores") return "By the number of cores that seal packets";
            if (where == "arrivals") return "Packets opened, by SAs and by how they arrive";
            if (where == "latency") return "Latency of packets that come at random, one core";
            return "Where the time of a packet goes";
        },
        [](const measure::Figures& figures) {
            std::string text;
            for (const auto& [name, value] : figures) {
                std::array<char, 32> number{};
                std::snprintf(number.data(), number.size(), "%.4g", value);
                text += (text.empty() ? "" : "  ") + name + " " + number.data();
            }
            return text;
        }};
    return all;
}

}  // namespace dael::bench
