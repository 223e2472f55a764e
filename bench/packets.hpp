// SPDX-License-Identifier: Apache-2.0
// The suite "packets": AES-GCM over packets as ESP has them (RFC 4106), on one core and on several,
// with keystream made ahead of time and without. bench/README.md says what is measured.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <daelstrom/keystream.hpp>

#include "bench/suite.hpp"
#include "measure/memory.hpp"

namespace dael::bench {

// Bytes of packets that stay in a core's cache: the working set where nothing else is said.
inline constexpr std::size_t kHotPackets = 16 << 10;

// How long packets are, in turn: one size, or IMIX.
struct Mix {
    std::string name;  // "imix"; empty: of one size
    std::vector<std::size_t> sizes;

    static Mix of(std::size_t size) { return {"", {size}}; }
    static Mix imix();  // 7 of 64, 4 of 570 and 1 of 1500 bytes
    static Mix of(const Point& point);
    double mean() const;
    Point point() const;  // its fields
};

// Packets side by side in memory, and where they are sealed to. Nobody moves: a list is for those
// who were given it when it was made.
struct Packets {
    measure::HostBuffer in, out;
    std::vector<SaPacket> list;
    std::size_t bytes = 0;  // of all packets

    // So many of them that they fill `working_set` bytes, and at least one of each size.
    static Result<std::shared_ptr<Packets>> make(const Mix& mix, std::size_t working_set);

  private:
    std::vector<std::uint8_t> beside_;  // AADs, IVs and tags
};

constexpr std::size_t kBurst = 64;  // packets that one call gets, as one poll of a queue yields
constexpr std::array<std::uint8_t, 4> kSalt{0xda, 0xe1, 0x57, 0x01};

// Seals packets: writes out, IV and tag of each. Every call takes new IVs.
using SealPackets = std::function<Result<>(std::span<const SaPacket>)>;

struct Sealer {
    std::string name;  // "OpenSSL EVP"
    SealPackets seal;
    std::size_t burst = kBurst;
    double warm_seconds = 0;  // works so long before each sample's clock starts
    std::array<std::uint8_t, 4> salt = kSalt;
    // Of a table: told when the clock of a sample starts; what became of packets since then.
    std::function<void()> mark = {};
    std::function<SaCounters()> since = {};
};

// The libraries called directly. Of what this build or this machine lacks: unsupported.
Result<Sealer> memcpy_sealer();
Result<Sealer> evp_sealer(std::span<const std::uint8_t> key);
Result<Sealer> ipsec_mb_sealer(std::span<const std::uint8_t> key, bool bursts);
Result<Sealer> tomcrypt_sealer(std::span<const std::uint8_t> key, bool plugged);
// Engine::run of batches, on one thread.
Result<Sealer> batch_sealer(std::span<const std::uint8_t> key);

// Where keystream comes from: a filler of a backend, or nowhere.
struct KeystreamSource {
    std::string name;  // "keystream by cuda"
    std::shared_ptr<Engine> engine;
    std::shared_ptr<SaFiller> filler;
    SaTableOptions::Plan plan = SaTableOptions::Plan::direct;
};
Result<KeystreamSource> direct_source();
Result<KeystreamSource> filled_source(const std::string& backend, int threads);

// A table of one core, with so many sending SAs that take turns burst by burst.
Result<Sealer> table_sealer(const KeystreamSource& source, std::span<const std::uint8_t> key,
                            int sas = 1, std::size_t budget = 0);
Result<SaTable> open_table(const KeystreamSource& source, std::size_t budget);
// What became of packets between two points in time; `memory` as it is at the second.
SaCounters between(const SaCounters& before, const SaCounters& after);
// Of one table, or of some that worked beside each other: how packets were served, and what was
// brought for them where a packet takes so many seconds (of some tables: in turn).
measure::Figures served(std::span<const SaCounters> tables, double seconds);
measure::Figures served(const Sealer& sealer, double seconds);

// Opened with OpenSSL: whether each packet of the list says what went in, under the IV and tag that
// it was sealed with. `sealed`: how many of the list, from the first on.
Result<> check_sealed(const Sealer& sealer, const Packets& packets,
                      std::span<const std::uint8_t> key, std::size_t sealed);
Result<> seal_all(const Sealer& sealer, const Packets& packets);
// All packets, again and again until a sample is long enough; the seconds of one pass. The thread
// stays on one core meanwhile.
measure::Sampler passes(const Sealer& sealer, std::shared_ptr<const Packets> packets,
                        const measure::Sampling& sampling);
// What a rate is by the packet: ns, cycles of the time-stamp counter, millions a second.
measure::Figures per_packet(double seconds);
// Keeps the calling thread on one core until destroyed: the number-th of those that the process may
// use, hyperthreads of a core that is counted already last.
class OnCore {
  public:
    explicit OnCore(std::size_t number);
    ~OnCore();
    OnCore(const OnCore&) = delete;
    OnCore& operator=(const OnCore&) = delete;

  private:
    std::vector<unsigned char> before_;
};
double cycles_per_second();  // 0: this processor has no such counter
std::uint64_t cycles() noexcept;

std::vector<std::uint8_t> packet_key(std::uint64_t bits);

// What all of the suite's benchmarks share.
struct PacketSuite {
    const Suite& suite;
    bool quick = false;
    measure::Sampling sampling;
    std::vector<KeystreamSource> sources;  // direct first, then fillers
};

measure::Axis at_place(const char* where);
measure::Axis packet_key_sizes(const PacketSuite& shared);

Benchmark packets_one_core(std::shared_ptr<PacketSuite> shared);
Benchmark packets_budgets(std::shared_ptr<PacketSuite> shared);
Benchmark packets_cores(std::shared_ptr<PacketSuite> shared);
Benchmark packets_sas(std::shared_ptr<PacketSuite> shared);
Benchmark packets_latency(std::shared_ptr<PacketSuite> shared);
Benchmark packets_parts(std::shared_ptr<PacketSuite> shared);
Result<std::vector<Benchmark>> packet_suite(const Suite& suite);

std::string describe_packets(const Point& point);
const measure::Columns& packet_columns();

}  // namespace dael::bench
