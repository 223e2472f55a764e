// SPDX-License-Identifier: Apache-2.0
#include "vpn/rights.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/text.hpp"

namespace dael::vpn {
namespace {

// LeakSanitizer attaches to the process.
#if defined(__SANITIZE_ADDRESS__)
constexpr unsigned long kTraced = 1;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr unsigned long kTraced = 1;
#else
constexpr unsigned long kTraced = 0;
#endif
#else
constexpr unsigned long kTraced = 0;
#endif

Error failure(const char* what) {
    return {Code::io, std::string("cannot ") + what + ": " + std::strerror(errno)};
}

Result<> become(const std::string& user) {
    errno = 0;
    const passwd* const entry = ::getpwnam(user.c_str());
    if (!entry)
        return Error{Code::invalid_argument, "there is no user " + app::in_quotes(user) +
                                                 "; make one, or say which with user = \"...\""};
    const uid_t uid = entry->pw_uid;
    const gid_t gid = entry->pw_gid;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(gid, gid, gid) != 0 ||
        ::setresuid(uid, uid, uid) != 0)
        return failure("become another user");
    return {};
}

}  // namespace

Result<> drop_rights(const std::string& user, std::uint32_t kept) {
    // The bounding set first, which takes a capability to change.
    for (int capability = 0; capability < 64; ++capability)
        if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1)
            (void)::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)::prctl(PR_SET_KEEPCAPS, kept != 0, 0, 0, 0);
    if (::geteuid() == 0) DAEL_TRY(become(user.empty() ? "nobody" : user));
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct left[2]{};
    left[0].effective = left[0].permitted = kept;
    if (::syscall(SYS_capset, &header, left) != 0) return failure("give up capabilities");
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failure("give up new rights");
    if (::prctl(PR_SET_DUMPABLE, kTraced) != 0) return failure("forbid core dumps");
    return {};
}

}  // namespace dael::vpn
