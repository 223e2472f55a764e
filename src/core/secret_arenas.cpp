// SPDX-License-Identifier: Apache-2.0
#include "core/secret_arenas.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

// Under AddressSanitizer, use after release is found here too.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24  // Linux 5.18
#endif

namespace dael::core {
namespace {

constexpr std::size_t kFirstArena = 2 * SecretArenas::kLargest;
constexpr std::size_t kLargestArena = std::size_t{64} << 20;

std::size_t system_page() noexcept {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t whole_pages(std::size_t size) noexcept {
    return (size + system_page() - 1) / system_page() * system_page();
}

constexpr std::size_t divide_up(std::size_t size, std::size_t unit) noexcept {
    return (size + unit - 1) / unit;
}

// Objects of a page for those of `size` bytes, a multiple of the grain.
constexpr std::uint64_t all_free(std::size_t size) noexcept {
    const std::size_t objects = SecretArenas::kPage / size;
    return objects == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << objects) - 1;
}

// Gives the system back what is in pages that hold nothing. Locked ones it takes back since Linux
// 5.18; before, they stay until the arena goes. Pages larger than ours it cannot take one by one.
void drop(std::uint8_t* memory, std::size_t size) noexcept {
    if (system_page() > SecretArenas::kPage) return;
    if (madvise(memory, size, MADV_DONTNEED_LOCKED) != 0)
        (void)madvise(memory, size, MADV_DONTNEED);
}

}  // namespace

void* map_secret(std::size_t size) noexcept {
    const std::size_t pages = whole_pages(size);
    void* memory = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    // Before anything is in it: only then do neighbours become one mapping of the kernel's.
    (void)madvise(memory, pages, MADV_DONTDUMP);
    return memory;
}

bool unmap_secret(void* memory, std::size_t size) noexcept {
    return munmap(memory, whole_pages(size)) == 0;
}

// Best effort: an unprivileged process may lock little, and a key that can be used but might be
// swapped serves its owner better than none. Pages are locked once there is something in them.
void lock_secret(void* memory, std::size_t size) noexcept {
    for (size = whole_pages(size); size >= system_page(); size = whole_pages(size / 2)) {
        if (mlock2(memory, size, MLOCK_ONFAULT) == 0 || size == system_page()) return;
    }
}

struct SecretArenas::Arena {
    Arena* next;
    std::size_t count;    // pages, those of this description among them
    std::size_t taken;    // of them, without the description's
    std::size_t lowest;   // none before it is free
    std::size_t longest;  // no free run is longer

    std::uint8_t* memory() noexcept { return reinterpret_cast<std::uint8_t*>(this); }
    Page* pages() noexcept { return reinterpret_cast<Page*>(this + 1); }
    std::size_t own() const noexcept {
        return divide_up(sizeof(Arena) + count * sizeof(Page), kPage);
    }
};

SecretArenas::Arena* SecretArenas::arena_of(const std::uint8_t* memory) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    for (Arena* arena = first_; arena; arena = arena->next)
        if (at - reinterpret_cast<std::uintptr_t>(arena) < arena->count * kPage) return arena;
    return nullptr;
}

SecretArenas::Arena* SecretArenas::add_arena() noexcept {
    // A quarter of what there is: few arenas, and little that is mapped without need.
    std::size_t size = std::clamp(std::bit_ceil(mapped_ / 4), kFirstArena, kLargestArena);
    void* memory = map_secret(size);
    for (; !memory && size > kFirstArena; memory = map_secret(size)) size /= 2;
    if (!memory) return nullptr;
    lock_secret(memory, size);
    auto* const arena = new (memory) Arena{nullptr, size / kPage, 0, 0, size / kPage};
    for (std::size_t i = 0; i < arena->count; ++i)
        new (arena->pages() + i) Page{arena->memory() + i * kPage, 0, nullptr, nullptr, false};
    arena->lowest = arena->own();
    Arena** end = &first_;
    while (*end) end = &(*end)->next;
    *end = arena;
    mapped_ += size;
    return arena;
}

SecretArenas::Page* SecretArenas::take(std::size_t pages) noexcept {
    const auto in = [pages](Arena& arena) noexcept -> Page* {
        if (arena.longest < pages) return nullptr;
        std::size_t i = arena.lowest;
        while (i < arena.count && arena.pages()[i].taken) ++i;
        arena.lowest = i;
        for (std::size_t run = 0; i < arena.count; ++i) {
            run = arena.pages()[i].taken ? 0 : run + 1;
            if (run < pages) continue;
            Page* const first = arena.pages() + (i + 1 - pages);
            for (Page* page = first; page != first + pages; ++page) page->taken = true;
            arena.taken += pages;
            return first;
        }
        arena.longest = pages - 1;
        return nullptr;
    };
    for (Arena* arena = first_; arena; arena = arena->next)
        if (Page* const page = in(*arena)) return page;
    Arena* const fresh = add_arena();
    return fresh ? in(*fresh) : nullptr;
}

void SecretArenas::give_back(Arena& arena, Page* first, std::size_t pages) noexcept {
    for (Page* page = first; page != first + pages; ++page) page->taken = false;
    arena.taken -= pages;
    arena.lowest = std::min(arena.lowest, static_cast<std::size_t>(first - arena.pages()));
    arena.longest = arena.count;
    drop(first->memory, pages * kPage);
    if (arena.taken != 0 || &arena == first_) return;
    // Nothing is left in it. Where the system will not have it back, it serves again.
    Arena** link = &first_;
    while (*link != &arena) link = &(*link)->next;
    Arena* const next = arena.next;
    const std::size_t size = arena.count * kPage;
    ASAN_UNPOISON_MEMORY_REGION(arena.memory(), size);
    if (!unmap_secret(&arena, size)) return;
    *link = next;
    mapped_ -= size;
}

void SecretArenas::link(Page*& head, Page* page) noexcept {
    page->previous = nullptr;
    page->next = head;
    if (head) head->previous = page;
    head = page;
}

void SecretArenas::unlink(Page*& head, Page* page) noexcept {
    (page->previous ? page->previous->next : head) = page->next;
    if (page->next) page->next->previous = page->previous;
}

std::uint8_t* SecretArenas::allocate(std::size_t size) noexcept {
    size = divide_up(std::max<std::size_t>(size, 1), kGrain) * kGrain;
    std::uint8_t* memory = nullptr;
    if (size > kShared) {
        Page* const page = take(divide_up(size, kPage));
        if (!page) return nullptr;
        memory = page->memory;
    } else {
        Page*& head = with_room_[size / kGrain - 1];
        if (!head) {
            Page* const page = take(1);
            if (!page) return nullptr;
            page->free = all_free(size);
            ASAN_POISON_MEMORY_REGION(page->memory, kPage);
            link(head, page);
        }
        memory = head->memory + static_cast<std::size_t>(std::countr_zero(head->free)) * size;
        head->free &= head->free - 1;
        if (head->free == 0) unlink(head, head);
    }
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memory;
}

bool SecretArenas::release(std::uint8_t* memory, std::size_t size) noexcept {
    Arena* const arena = arena_of(memory);
    if (!arena) return false;
    size = divide_up(std::max<std::size_t>(size, 1), kGrain) * kGrain;
    ASAN_POISON_MEMORY_REGION(memory, size);
    const auto offset = static_cast<std::size_t>(memory - arena->memory());
    Page* const page = arena->pages() + offset / kPage;
    if (size > kShared) {
        give_back(*arena, page, divide_up(size, kPage));
        return true;
    }
    Page*& head = with_room_[size / kGrain - 1];
    if (page->free == 0) link(head, page);
    page->free |= std::uint64_t{1} << offset % kPage / size;
    // The last page with room for this size stays, so that a key that comes and goes costs nothing.
    if (page->free != all_free(size) || (head == page && !page->next)) return true;
    unlink(head, page);
    page->free = 0;
    give_back(*arena, page, 1);
    return true;
}

}  // namespace dael::core
