// SPDX-License-Identifier: Apache-2.0
// The system calls that a running tunnel and its guardian make, and no others, by libseccomp.
#include <fcntl.h>
#include <seccomp.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "vpn/rights.hpp"

namespace dael::vpn {
namespace {

// Sanitizers' run-time libraries ask for more: files, other processes, threads.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr int kCalls[] = {
    // Packets.
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(recvmsg),
    SCMP_SYS(recvmmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendto),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(setsockopt),
    SCMP_SYS(getsockopt),
    // The control socket, and the file of timestamps.
    SCMP_SYS(accept4),
    SCMP_SYS(accept),
    SCMP_SYS(close),
    SCMP_SYS(shutdown),
    SCMP_SYS(pwrite64),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),
    SCMP_SYS(fcntl),
    // Memory.
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(mremap),
    SCMP_SYS(brk),
    SCMP_SYS(madvise),
    SCMP_SYS(mlock),
    SCMP_SYS(munlock),
    // Time, chance, threads that wait for each other, and the end.
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(getrandom),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(rseq),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(membarrier),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(tgkill),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    // What comes in by Unix sockets is asked who it is; names of what is open.
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(lseek),
    SCMP_SYS(geteuid),
    SCMP_SYS(getuid),
};

// One thread that waits for an end, and then speaks to the kernel by netlink.
constexpr int kGuardiansCalls[] = {
    SCMP_SYS(read),       SCMP_SYS(write),           SCMP_SYS(recvfrom),  SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),     SCMP_SYS(sendmsg),         SCMP_SYS(close),     SCMP_SYS(getpid),
    SCMP_SYS(mmap),       SCMP_SYS(munmap),          SCMP_SYS(mremap),    SCMP_SYS(brk),
    SCMP_SYS(madvise),    SCMP_SYS(futex),           SCMP_SYS(exit),      SCMP_SYS(restart_syscall),
    SCMP_SYS(exit_group), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
};

}  // namespace

Result<> close_sandbox(Sandbox whose) {
    if (kSanitized) return Error{Code::unsupported, "this build is for sanitizers"};
    scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter) return Error{Code::out_of_memory, "no memory for a seccomp filter"};
    int fault = ::seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    const std::span<const int> calls =
        whose == Sandbox::guardian ? std::span<const int>(kGuardiansCalls) : kCalls;
    for (const int call : calls) {
        if (call < 0) continue;  // this machine has no such call
        if (fault == 0) fault = ::seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 0, nullptr);
    }
    if (fault == 0) fault = ::seccomp_load(filter);
    ::seccomp_release(filter);
    if (fault == 0) return {};
    // (EOPNOTSUPP: a kernel that has filters, and not for all threads at once.)
    const bool lacking = fault == -EINVAL || fault == -ENOSYS || fault == -EOPNOTSUPP;
    return Error{lacking ? Code::unsupported : Code::io,
                 std::string("the kernel takes no seccomp filter: ") + std::strerror(-fault)};
}

}  // namespace dael::vpn
