// SPDX-License-Identifier: Apache-2.0
// A picture encrypted by ECB, CBC and CTR, side by side (Brno 2011): what "hides the data, but not
// that it repeats" looks like. The study draws its picture itself: a whirl of plain colours.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#ifdef DAEL_WITH_PNG
#include <png.h>
#endif

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "io/text.hpp"
#include "lab/figures.hpp"
#include "lab/study.hpp"

namespace dael::lab {
namespace {

constexpr std::array kModes{Mode::ecb, Mode::cbc, Mode::ctr};
constexpr const char* kFile = "picture.png";

using Pixel = std::array<std::uint8_t, 4>;  // red, green, blue, and as much as makes a block of 4

Pixel colour_at(double x, double y) {
    constexpr std::array<Pixel, 4> kColours{
        {{236, 240, 244, 255}, {28, 84, 138, 255}, {92, 168, 202, 255}, {12, 30, 56, 255}}};
    const double radius = std::hypot(x, y), angle = std::atan2(y, x) / 6.283185307179586;
    if (radius < 0.09) return kColours[3];
    if (radius > 0.93) return kColours[0];
    const double turn = 3 * angle + 1.6 * std::log2(radius);
    return kColours[static_cast<std::size_t>(std::floor((turn - std::floor(turn)) * 4))];
}

std::vector<std::uint8_t> draw(std::size_t side) {
    std::vector<std::uint8_t> bytes;
    bytes.reserve(4 * side * side);
    const auto middle = [side](std::size_t i) {
        return (2 * static_cast<double>(i) + 1) / static_cast<double>(side) - 1;
    };
    for (std::size_t y = 0; y < side; ++y)
        for (std::size_t x = 0; x < side; ++x) {
            const Pixel pixel = colour_at(middle(x), middle(y));
            bytes.insert(bytes.end(), pixel.begin(), pixel.end());
        }
    return bytes;
}

// Panels of side x side pixels in a row, opaque.
Result<> write_png([[maybe_unused]] const std::filesystem::path& path,
                   [[maybe_unused]] const std::vector<std::vector<std::uint8_t>>& panels,
                   [[maybe_unused]] std::size_t side) {
#ifdef DAEL_WITH_PNG
    std::vector<std::uint8_t> pixels;
    for (std::size_t y = 0; y < side; ++y)
        for (const auto& panel : panels)
            pixels.insert(pixels.end(), panel.begin() + static_cast<std::ptrdiff_t>(4 * side * y),
                          panel.begin() + static_cast<std::ptrdiff_t>(4 * side * (y + 1)));
    for (std::size_t i = 3; i < pixels.size(); i += 4) pixels[i] = 255;
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(side * panels.size());
    image.height = static_cast<png_uint_32>(side);
    image.format = PNG_FORMAT_RGBA;
    // In memory first, so that the file is put in its place like every other one.
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string file(size, '\0');
    if (!png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr))
        return Error{Code::internal, std::string("libpng: ") + image.message};
    file.resize(size);
    return write_document(path, file);
#else
    return Error{Code::unsupported, "libpng was not found when this was built"};
#endif
}

bench::Work work_of(Mode mode, std::size_t size) {
    bench::Work work(Point{
        {"mode", std::string(name(mode))}, {"direction", "encrypt"}, {"bits", std::uint64_t{128}}});
    work.backend = "auto";
    work.size = size;
    work.where = "host";
    return work;
}

}  // namespace

double repeated_blocks(std::span<const std::uint8_t> bytes) {
    std::multiset<Block> blocks;
    for (std::size_t at = 0; at + kBlockSize <= bytes.size(); at += kBlockSize) {
        Block block;
        std::memcpy(block.data(), bytes.data() + at, block.size());
        blocks.insert(block);
    }
    std::size_t repeated = 0;
    for (auto one = blocks.begin(); one != blocks.end(); one = blocks.upper_bound(*one)) {
        const std::size_t times = blocks.count(*one);
        if (times > 1) repeated += times;
    }
    return blocks.empty()
               ? 0
               : 100 * static_cast<double>(repeated) / static_cast<double>(blocks.size());
}

namespace {

Result<> run_picture(const Bench& lab) {
    const std::size_t side = lab.settings.quick ? 128 : 512;
    DAEL_LET(opened, Engine::open());
    const bench::HostEngine engine{"auto", "", std::make_shared<Engine>(std::move(opened))};
    const auto plain = std::make_shared<const std::vector<std::uint8_t>>(draw(side));
    const auto panels = std::make_shared<std::vector<std::vector<std::uint8_t>>>(1, *plain);
    const Benchmark benchmark{
        "picture",
        {measure::axis("mode", std::array{"ecb", "cbc", "ctr"})},
        {},
        [=, &lab](const Point& point) -> Result<measure::Heat> {
            const bench::Work work =
                work_of(mode_by_name(point.text("mode")).value_or(Mode::ctr), plain->size());
            const auto out = std::make_shared<std::vector<std::uint8_t>>(plain->size());
            DAEL_LET(made, bench::host_call(engine, work,
                                            bench::lay_out(work, plain->data(), out->data())));
            const auto check = [=]() -> Result<> {
                std::ranges::fill(*out, bench::kPoison);
                DAEL_TRY(made.call());
                DAEL_TRY(
                    bench::check_output(work, plain->data(), measure::fetch_from(out->data())));
                panels->push_back(*out);
                return {};
            };
            measure::Heat heat;
            Point shown = work.point();
            shown.set("study_part", std::string("picture"));
            const auto row =
                heat.enter(point.text("mode"), measure::wall_clock(made.call, lab.session.sampling),
                           check, shown, static_cast<double>(work.size), {});
            heat.describe(row, [out](double) {
                return measure::Figures{{"repeats", repeated_blocks(*out)}};
            });
            return heat;
        }};
    DAEL_TRY(lab.session.run(benchmark));
    if (panels->size() != 1 + kModes.size())
        return Error{Code::internal, "a mode has left no picture"};
    if (lab.settings.folder.empty()) {
        lab.report.skip("picture: without --out there is no place for it");
        return {};
    }
    const auto written = write_png(lab.settings.folder / kFile, *panels, side);
    if (written.code() == Code::unsupported)
        lab.report.skip("picture: " + written.error().message);
    else if (!written)
        return written;
    else
        lab.report.about.set("picture", std::string(kFile));
    return {};
}

const measure::Columns& picture_columns() {
    static const measure::Columns all = [] {
        measure::Columns columns = bench::columns("quick");
        columns.figures = [](const measure::Figures& figures) {
            return std::to_string(static_cast<int>(figures.front().second + 0.5)) +
                   "% of the blocks repeat";
        };
        return columns;
    }();
    return all;
}

}  // namespace

const Study kPicture{"picture",
                     "Brno 2011",
                     "What of a picture is still to be seen in ECB, and in CBC and CTR?",
                     run_picture,
                     [](const Point& point) { return point.text("mode"); },
                     picture_columns};

}  // namespace dael::lab
