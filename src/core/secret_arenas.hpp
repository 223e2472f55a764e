// SPDX-License-Identifier: Apache-2.0
// The mappings that secrets share, and the pages in them.
//
// An arena is one mapping, cut into pages of 4 KiB, whose first ones describe the others. A page
// holds objects of one size, or is part of a run that one object takes. What is free is zero.
// Arenas grow with what there is of them, so that they are few. Nothing here is locked against
// other threads: that is for who calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dael::core {

// Whole pages of the system's, zeroed and left out of core dumps; null when there are none.
void* map_secret(std::size_t size) noexcept;
// False where the system refuses, which it may where this would leave more mappings than a process
// may have.
bool unmap_secret(void* memory, std::size_t size) noexcept;
// As much of the beginning as may be locked.
void lock_secret(void* memory, std::size_t size) noexcept;

class SecretArenas {
  public:
    static constexpr std::size_t kGrain = 64;            // sizes and addresses are multiples of it
    static constexpr std::size_t kPage = 4096;           // whatever the system's are
    static constexpr std::size_t kShared = 2048;         // larger objects have pages of their own,
    static constexpr std::size_t kLargest = 256u << 10;  // and the largest mappings of their own

    // Null when memory ran out. `size` is not above kLargest.
    std::uint8_t* allocate(std::size_t size) noexcept;
    // `memory` is wiped, and came from allocate(size); false where it lies in no arena.
    bool release(std::uint8_t* memory, std::size_t size) noexcept;

  private:
    struct Arena;
    // What an arena knows of one of its pages.
    struct Page {
        std::uint8_t* memory;
        std::uint64_t free;     // a bit for each object that nobody has, in a page for several
        Page *previous, *next;  // pages of this size with room, as a list
        bool taken;
    };
    using Pages = std::array<Page*, kShared / kGrain>;  // the first of each list, by size

    Arena* arena_of(const std::uint8_t* memory) const noexcept;
    Arena* add_arena() noexcept;
    // Neighbouring pages that nobody has, in the first arena with as many.
    Page* take(std::size_t pages) noexcept;
    void give_back(Arena& arena, Page* first, std::size_t pages) noexcept;
    void link(Page*& head, Page* page) noexcept;
    void unlink(Page*& head, Page* page) noexcept;

    Arena* first_ = nullptr;  // oldest first
    std::size_t mapped_ = 0;  // bytes of all arenas
    Pages with_room_{};
};

}  // namespace dael::core
