// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/engine.hpp>

int main() {
    return dael::Engine::open({}) ? 0 : 1;
}
