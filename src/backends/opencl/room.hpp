// SPDX-License-Identifier: Apache-2.0
// Room in a map, made before what it is for, so that nothing is left over where memory runs out.
#pragma once

#include <utility>

namespace dael::opencl {

// An entry that takes no more memory to be given its key and its value and put in.
template <class Map>
typename Map::node_type room_in(const Map&) {
    Map one;
    one.try_emplace(typename Map::key_type{});
    return one.extract(one.begin());
}
// In place of whatever has the key.
template <class Map>
void put(Map& map, typename Map::node_type entry) {
    map.erase(entry.key());
    map.insert(std::move(entry));
}

}  // namespace dael::opencl
