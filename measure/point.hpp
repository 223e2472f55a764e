// SPDX-License-Identifier: Apache-2.0
// A point is what is measured, as named fields: {"mode": "ctr", "size": 4096, ...}. An axis is a
// list of points with some of the fields; a benchmark's points are the product of its axes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dael::measure {

using Value = std::variant<std::uint64_t, std::string>;

class Point {
  public:
    using Field = std::pair<std::string, Value>;

    Point() = default;
    Point(std::initializer_list<Field> fields) : fields_(fields) {}

    // In the place that the field has already, else at the end.
    Point& set(std::string_view field, Value value);
    Point& set(const Point& other);  // every field of the other one

    std::uint64_t number(std::string_view field) const;     // 0 where it has none
    const std::string& text(std::string_view field) const;  // empty where it has none
    const std::vector<Field>& fields() const noexcept { return fields_; }

    friend bool operator==(const Point&, const Point&) = default;

  private:
    const Value* find(std::string_view field) const;
    std::vector<Field> fields_;
};

using Axis = std::vector<Point>;

// One field, its values.
template <class Values>
Axis axis(const std::string& field, const Values& values) {
    Axis points;
    for (const auto& value : values) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
            points.push_back({{field, static_cast<std::uint64_t>(value)}});
        else
            points.push_back({{field, std::string(value)}});
    }
    return points;
}

// Every combination, the last axis the fastest. Where two axes have a field, the later one counts.
std::vector<Point> product(const std::vector<Axis>& axes);

}  // namespace dael::measure
