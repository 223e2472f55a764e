// SPDX-License-Identifier: Apache-2.0
#include "measure/point.hpp"

#include <algorithm>

namespace dael::measure {

const Value* Point::find(std::string_view field) const {
    const auto found = std::ranges::find(fields_, field, &Field::first);
    return found == fields_.end() ? nullptr : &found->second;
}

Point& Point::set(std::string_view field, Value value) {
    if (const Value* found = find(field))
        *const_cast<Value*>(found) = std::move(value);
    else
        fields_.emplace_back(field, std::move(value));
    return *this;
}

Point& Point::set(const Point& other) {
    for (const auto& [field, value] : other.fields_) set(field, value);
    return *this;
}

std::uint64_t Point::number(std::string_view field) const {
    const Value* found = find(field);
    const auto* number = found ? std::get_if<std::uint64_t>(found) : nullptr;
    return number ? *number : 0;
}

const std::string& Point::text(std::string_view field) const {
    static const std::string nothing;
    const Value* found = find(field);
    const auto* text = found ? std::get_if<std::string>(found) : nullptr;
    return text ? *text : nothing;
}

std::vector<Point> product(const std::vector<Axis>& axes) {
    std::vector<Point> points{{}};
    for (const Axis& axis : axes) {
        std::vector<Point> next;
        for (const Point& point : points)
            for (const Point& part : axis) next.push_back(Point(point).set(part));
        points = std::move(next);
    }
    return points;
}

}  // namespace dael::measure
