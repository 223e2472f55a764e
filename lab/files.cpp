// SPDX-License-Identifier: Apache-2.0
// Eight files from 59 to 885 MB, as Rosenberg encrypted them (Tartu 2007), through programs: what
// is left of a cipher's speed once there are files, and what they cost without a cipher.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include <unistd.h>

#include <openssl/crypto.h>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "io/filter.hpp"
#include "io/text.hpp"
#include "lab/kernel_device.hpp"
#include "lab/spawn.hpp"
#include "lab/study.hpp"
#include "measure/device.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

namespace fs = std::filesystem;
using measure::DeviceBuffer;
using measure::Heat;
using measure::MemoryKind;

struct File {
    std::uint64_t megabytes;
    const char* data;  // "ramp" (0 to 255), "constant", "random"
};
constexpr std::array<File, 8> kEight{{{59, "ramp"},
                                      {118, "constant"},
                                      {177, "random"},
                                      {295, "ramp"},
                                      {443, "constant"},
                                      {590, "random"},
                                      {738, "ramp"},
                                      {885, "random"}}};
constexpr std::uint64_t kQuickScale = 64;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kRoom = 16;  // that a chunk may grow by

// The folder that the files lie in, gone with all that is in it when the study is over.
class TemporaryFolder {
  public:
    static Result<std::shared_ptr<TemporaryFolder>> make(const fs::path& beside) {
        std::error_code status;
        const fs::path base = beside.empty() ? fs::temp_directory_path(status) : beside;
        std::string name = (base / "daelstrom-lab-XXXXXX").string();
        if (status || !mkdtemp(name.data()))
            return Error{Code::io, "cannot make a folder in " + app::in_quotes(base.string()) +
                                       "; give --out one that can be written"};
        auto folder = std::make_shared<TemporaryFolder>();
        folder->folder_ = name;
        return folder;
    }
    TemporaryFolder() = default;
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code status;
        fs::remove_all(folder_, status);
    }
    fs::path at(const char* name) const { return folder_ / name; }

  private:
    fs::path folder_;
};

// One way to get a file through, from `in` to `out`, which is not there.
struct Way {
    std::string name, backend;
    bool encrypts = true;
    std::function<Result<Spent>(const fs::path& in, const fs::path& out)> run;
};

// The program's own way with files, and `work` on each chunk.
Result<> pass(const fs::path& in, const fs::path& out, bool pinned, const app::Work& work) {
    DAEL_LET(input, app::Input::open(in.string()));
    app::OutputOptions to;
    to.path = out.string();
    DAEL_LET(output, app::Output::open(to, input));
    app::Progress progress(app::Show::never, "", input.remaining());
    app::FilterOptions options;
    options.pinned = pinned;
    DAEL_TRY(app::filter(input, output, progress, options, work));
    return output.commit();
}

// Chunks that go to a device and come back as they were.
struct Crossing {
    bench::DeviceUnderTest subject;
    measure::DeviceClock clock;
    DeviceBuffer memory;
    Result<> cross(app::FilterChunk& chunk) const {
        Memory& device = subject.device.memory;
        return clock.run([&](Stream s) -> Result<> {
            DAEL_TRY(device.copy_in(memory.data(), chunk.data, chunk.size, s));
            return device.copy_out(chunk.data, memory.data(), chunk.size, s);
        });
    }
};

Result<std::shared_ptr<Crossing>> open_crossing(const char* device) {
    DAEL_LET(subject, bench::DeviceUnderTest::open(device));
    DAEL_LET(clock, measure::DeviceClock::create(subject.device));
    DAEL_LET(memory, DeviceBuffer::allocate(subject.device, MemoryKind::device,
                                            app::FilterOptions{}.chunk + kRoom));
    return std::make_shared<Crossing>(Crossing{subject, clock, memory});
}

// The provider for OpenSSL, where it was built or is installed; empty: nowhere.
fs::path provider_folder(const fs::path& program) {
    std::error_code status;
    const std::string modules = OpenSSL_version(OPENSSL_MODULES_DIR);  // MODULESDIR: "..."
    const auto from = modules.find('"'), to = modules.rfind('"');
    std::vector<fs::path> folders{program.parent_path().parent_path() / "provider"};
    if (from != modules.npos && to > from)
        folders.emplace_back(modules.substr(from + 1, to - from - 1));
    for (const fs::path& folder : folders)
        if (fs::exists(folder / "daelstrom.so", status)) return folder;
    return {};
}

// Whether an OpenCL device is a GPU, for which its turn is worth the time.
bool is_gpu(const char* backend) {
    if (backend != std::string_view("opencl")) return true;
    const auto kernels = open_opencl_kernels();
    return kernels && !(*kernels)->is_cpu();
}

std::string hexadecimal(const std::vector<std::uint8_t>& bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        text += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return text;
}

Result<std::vector<Way>> find_ways(const Bench& lab, const std::shared_ptr<TemporaryFolder>& folder,
                                   const bench::Work& work) {
    std::vector<Way> ways;
    const auto say = [&lab](std::string line) { lab.report.skip(std::move(line)); };
    const auto add = [&](std::string name, std::string backend, bool encrypts,
                         std::vector<std::string> words, bool ends_with_output) {
        const auto run = [folder, words, ends_with_output](const fs::path& in,
                                                           const fs::path& out) {
            std::vector<std::string> all = words;
            if (ends_with_output)
                all.insert(all.end(), {in.string(), "-o", out.string()});
            else
                all.insert(all.end(), {"-in", in.string(), "-out", out.string()});
            return run_program(all, folder->at("said"));
        };
        ways.push_back({std::move(name), std::move(backend), encrypts, run});
    };
    ways.push_back({"read and written", "", false, [](const fs::path& in, const fs::path& out) {
                        return spend([&] {
                            return pass(in, out, false,
                                        [](app::FilterChunk&) { return Result<>(); });
                        });
                    }});
    const std::string key = hexadecimal(bench::key_bytes(work));
    const fs::path key_file = folder->at("key");
    if (!(std::ofstream(key_file) << key << '\n' << std::flush))
        return Error{Code::io, "cannot write " + app::in_quotes(key_file.string())};
    const std::string program = lab.settings.program.string();
    if (program.empty()) say("daelstrom encrypt: the program daelstrom is not beside this one");
    const auto add_daelstrom = [&](const char* backend) {
        if (!program.empty())
            add("daelstrom encrypt", backend, true,
                {program, "encrypt", "--quiet", "--mode=ecb", "--key-file=" + key_file.string(),
                 std::string("--backend=") + backend},
                true);
    };
    for (const char* backend : {"auto", "cpu"}) add_daelstrom(backend);
    for (const char* device : {"cuda", "opencl"}) {
        auto crossing = open_crossing(device);
        if (!crossing) {
            say(std::string(device) + ": " + crossing.error().message);
            continue;
        }
        if (!is_gpu(device)) {
            say(std::string(device) + ": a processor that plays a device would take minutes");
        } else {
            measure::describe_device(lab.report.machine, (*crossing)->subject.device.info);
            add_daelstrom(device);
        }
        ways.push_back({"read, copied there and back, written", (*crossing)->subject.name, false,
                        [crossing = *crossing](const fs::path& in, const fs::path& out) {
                            return spend([&] {
                                return pass(in, out, true, [&](app::FilterChunk& chunk) {
                                    return crossing->cross(chunk);
                                });
                            });
                        }});
    }
    if (const auto there = run_program({"openssl", "version"}, folder->at("said")); !there) {
        say("openssl enc: " + there.error().message);
        return ways;
    }
    add("openssl enc -none", "", false, {"openssl", "enc", "-none"}, false);
    const std::vector<std::string> enc{"openssl", "enc", "-aes-128-ecb", "-K", key};
    add("openssl enc", "openssl", true, enc, false);
    const fs::path provider = provider_folder(lab.settings.program);
    if (provider.empty()) {
        say("openssl enc with daelstrom's provider: daelstrom.so was not built or installed; "
            "build it: cmake --build --preset dev --target daelstrom_provider");
    } else {
        const std::vector<std::string> with{"-provider-path", provider.string(), "-provider",
                                            "daelstrom",      "-provider",       "default"};
        // One that was built otherwise, with a sanitizer say, openssl cannot load.
        std::vector<std::string> list{"openssl", "list", "-providers"}, words = enc;
        list.insert(list.end(), with.begin(), with.end());
        if (const auto loaded = run_program(list, folder->at("said")); !loaded) {
            say("openssl enc with daelstrom's provider: " + loaded.error().message);
            return ways;
        }
        words.insert(words.end(), with.begin(), with.end());
        words.insert(words.end(), {"-propquery", "?provider=daelstrom"});
        add("openssl enc, daelstrom's provider", "provider", true, words, false);
    }
    return ways;
}

Result<> write_file(const fs::path& path, std::uint64_t size, const std::string& data) {
    std::ofstream file(path, std::ios::binary);
    std::vector<std::uint8_t> piece(kPiece, 0xaa);
    for (std::size_t i = 0; data == "ramp" && i < piece.size(); ++i)
        piece[i] = static_cast<std::uint8_t>(i);
    measure::Team team(1);
    for (std::uint64_t at = 0; at < size; at += kPiece) {
        if (data == "random") measure::fill_random(team, piece.data(), piece.size(), at);
        const auto count = std::min<std::uint64_t>(kPiece, size - at);
        file.write(reinterpret_cast<const char*>(piece.data()),
                   static_cast<std::streamsize>(count));
    }
    if (file.flush()) return {};
    return Error{Code::io, "cannot write " + app::in_quotes(path.string())};
}

measure::Fetch fetch_from_file(const fs::path& path) {
    return [path](std::uint64_t at, std::uint8_t* bytes, std::size_t size) -> Result<> {
        std::ifstream file(path, std::ios::binary);
        file.seekg(static_cast<std::streamoff>(at));
        if (file.read(reinterpret_cast<char*>(bytes), static_cast<std::streamsize>(size)))
            return {};
        return Error{Code::internal, app::in_quotes(path.string()) + " is too short"};
    };
}

// That what a way made is the file's ciphertext with its padding, or the file itself.
Result<> check_file(const bench::Work& work, const Way& way, const fs::path& in,
                    const fs::path& out) {
    std::error_code status;
    const std::uint64_t wanted = work.size + (way.encrypts ? kBlockSize : 0);
    if (fs::file_size(out, status) != wanted || status)
        return Error{Code::internal, way.name + ": the output has not " + std::to_string(wanted) +
                                         " bytes; the figure would be worthless"};
    std::vector<std::uint8_t> plain(work.size);
    DAEL_TRY(fetch_from_file(in)(0, plain.data(), plain.size()));
    return way.encrypts ? bench::check_output(work, plain.data(), fetch_from_file(out))
                        : bench::check_opened(work, plain.data(), fetch_from_file(out));
}

Result<Heat> heat_of(const std::shared_ptr<TemporaryFolder>& folder, const std::vector<Way>& ways,
                     const Point& point) {
    bench::Work work(point);
    const fs::path in = folder->at("in"), out = folder->at("out");
    std::error_code status;
    const auto space = fs::space(in.parent_path(), status);
    if (!status && space.available < 3 * work.size)
        return Error{Code::out_of_memory, "too little room on the disk for a file of " +
                                              app::format_size(static_cast<double>(work.size))};
    DAEL_TRY(write_file(in, work.size, work.data));
    Heat heat;
    std::size_t ceiling = 0;
    for (const Way& way : ways) {
        const auto once = [=, run = way.run]() -> Result<Spent> {
            std::error_code none;
            fs::remove(out, none);
            return run(in, out);
        };
        const auto check = [=]() -> Result<> {
            DAEL_TRY(once());
            return check_file(work, way, in, out);
        };
        const auto cpu = std::make_shared<std::vector<double>>();
        const auto sample = [=]() -> Result<double> {
            DAEL_LET(spent, once());
            cpu->push_back(spent.cpu_seconds);
            return spent.seconds;
        };
        work.backend = way.backend;
        Point shown = work.point();
        shown.set("study_part", std::string(way.encrypts ? "encrypted" : "no cipher"));
        shown.set("program", way.name);
        std::vector<std::size_t> against;
        if (&way != &ways.front()) against.push_back(ceiling);
        const std::size_t row = heat.enter(way.name, sample, check, shown,
                                           static_cast<double>(work.size), std::move(against));
        if (&way == &ways.front()) ceiling = row;
        heat.describe(row, [cpu](double seconds) {
            const double used = measure::spread(*cpu).median;
            return measure::Figures{{"cpu_seconds", used}, {"load", used / seconds}};
        });
    }
    heat.keep(folder);
    return heat;
}

Result<> run_files(const Bench& lab) {
    DAEL_LET(folder, TemporaryFolder::make(lab.settings.folder));
    const bench::Work work(
        Point{{"mode", "ecb"}, {"direction", "encrypt"}, {"bits", std::uint64_t{128}}});
    DAEL_LET(ways, find_ways(lab, folder, work));
    const std::uint64_t scale = lab.settings.scale * (lab.settings.quick ? kQuickScale : 1);
    measure::Axis files;
    for (const File& file : kEight) {
        const std::uint64_t size = file.megabytes * 1'000'000 / scale / kBlockSize * kBlockSize;
        files.push_back({{"size", std::max<std::uint64_t>(size, kBlockSize)}, {"data", file.data}});
    }
    const Benchmark benchmark{"files",
                              {{Point{{"mode", "ecb"},
                                      {"direction", "encrypt"},
                                      {"bits", std::uint64_t{128}},
                                      {"where", "files"}}},
                               files},
                              {},
                              [&](const Point& point) { return heat_of(folder, ways, point); }};
    // Each way has just run, to be checked.
    measure::Sampling sampling = lab.session.sampling;
    sampling.warm_up = false;
    measure::Session session{lab.report, sampling, lab.session.describe, lab.session.progress};
    return session.run(benchmark);
}

const measure::Columns& files_columns() {
    static const measure::Columns all{
        {{"program", false, [](const Point& p) { return p.text("program"); }},
         {"backend", false, [](const Point& p) { return p.text("backend"); }},
         {"file", true,
          [](const Point& p) { return app::format_size(static_cast<double>(p.number("size"))); }},
         {"of", false, [](const Point& p) { return p.text("data"); }}},
        {"files"},
        [](const measure::Machine&, const std::string&) -> std::string {
            return "Files, which the system still has in memory, AES-128-ECB";
        },
        [](const measure::Figures& figures) {
            std::array<char, 64> text{};
            std::snprintf(text.data(), text.size(), "CPU %.3g s, load %.2f", figures.front().second,
                          figures.back().second);
            return std::string(text.data());
        }};
    return all;
}

}  // namespace

const Study kFiles{"files",
                   "Tartu 2007",
                   "What is left of a cipher's speed when programs encrypt files with it?",
                   run_files,
                   describe_fields,
                   files_columns};

}  // namespace dael::lab
