// SPDX-License-Identifier: Apache-2.0
// What a program may do around OpenSSL, and the provider lives with: free its library context
// before its threads end, forbid itself system calls, load the module into another OpenSSL, set a
// number that means "never".
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <fstream>
#include <semaphore>
#include <thread>

#include "evp.hpp"
#include "support/child.hpp"

namespace {

using namespace dael::test;

// A context per tenant and a pool of threads: a thread has random numbers by way of the provider,
// tells OpenSSL that it is done with the context, and ends when that is long gone.
bool ends_after_its_context() {
    mallopt(M_PERTURB, 0x5a);  // what is freed is written over
    Side side = loaded();
    if (!side.daelstrom || !side.standard) return false;
    std::binary_semaphore used{0}, freed{0};
    bool sealed = false;
    std::thread thread([&] {
        Bytes key(16, 1), fixed(4, 2), out(64);
        int made = 0;
        auto x = context(), y = context();
        auto cipher = fetch(side, "AES-128-GCM");
        sealed = EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), nullptr, nullptr) == 1 &&
                 // As libssl does for TLS 1.2; and an IV that is made.
                 EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_GCM_SET_IV_FIXED, 4, fixed.data()) > 0 &&
                 EVP_EncryptInit_ex2(y.get(), cipher.get(), key.data(), nullptr, nullptr) == 1 &&
                 EVP_EncryptUpdate(y.get(), out.data(), &made, key.data(), 16) == 1;
        x.reset();
        y.reset();
        cipher.reset();
        OPENSSL_thread_stop_ex(side.library);
        used.release();
        freed.acquire();
    });
    used.acquire();
    OSSL_PROVIDER_unload(side.daelstrom);
    OSSL_PROVIDER_unload(side.standard);
    OSSL_LIB_CTX_free(side.library);
    freed.release();
    thread.join();
    return sealed;
}
TEST(Host, FreesItsContextBeforeItsThreadsEnd) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a child under ThreadSanitizer may start no threads";
#endif
    prepare();
    expect_in_a_child(ends_after_its_context);
}

bool filters_are_told() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("Seccomp_filters:", 0) == 0) return true;
    return false;
}
// From here on clone() is the end of the process.
bool forbid_threads() {
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 2, 0),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435, 1, 0),  // clone3
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    sock_fprog program{5, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
Bytes made_by(const Side& side, const char* name, std::size_t size) {
    Bytes room(size), key(32, 3);
    int made = 0;
    auto x = context();
    if (EVP_EncryptInit_ex2(x.get(), fetch(side, name).get(), key.data(), key.data(), nullptr) !=
            1 ||
        EVP_EncryptUpdate(x.get(), room.data(), &made, room.data(), static_cast<int>(size)) != 1)
        return {};
    return room;
}

TEST(Host, ForbidsItselfThreads) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
#endif
    if (!filters_are_told()) GTEST_SKIP() << "this kernel does not say how many filters there are";
    constexpr std::size_t kSizes[] = {1000, 100000, 300000, 1 << 20};
    const auto all_are_right = [&] {
        for (const char* name : {"AES-128-CTR", "AES-256-GCM", "AES-128-CBC"})
            for (const std::size_t size : kSizes)
                if (made_by(ours(), name, size) != made_by(theirs(), name, size)) return false;
        return true;
    };
    ASSERT_TRUE(ours().daelstrom && theirs().standard);
    ASSERT_TRUE(all_are_right());  // the parent has threads, and goes on to have them
    expect_in_a_child([&] {
        if (!forbid_threads()) return true;  // not here
        return all_are_right();
    });
    EXPECT_TRUE(all_are_right());
}

const char* version_told = "";
int tell_version(const OSSL_CORE_HANDLE*, OSSL_PARAM params[]) {
    OSSL_PARAM* const p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_CORE_VERSION);
    return !p || OSSL_PARAM_set_utf8_ptr(p, version_told);
}
TEST(Host, IsOfTheVersionThatItsCoreSays) {
    ASSERT_TRUE(ours().daelstrom);
    const char* const folder = std::getenv("DAELSTROM_PROVIDER_FOLDER");
    const std::string path = std::string(folder ? folder : DAEL_PROVIDER_FOLDER) + "/daelstrom.so";
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    const auto init = reinterpret_cast<OSSL_provider_init_fn*>(dlsym(module, "OSSL_provider_init"));
    ASSERT_NE(init, nullptr);
    const OSSL_DISPATCH core[] = {
        {OSSL_FUNC_CORE_GET_PARAMS, reinterpret_cast<void (*)()>(&tell_version)}, {0, nullptr}};
    const std::string same = std::to_string(OPENSSL_VERSION_MAJOR) + ".99.1",
                      later = std::to_string(OPENSSL_VERSION_MAJOR + 1) + ".0.0";
    for (const auto& [version, taken] :
         {std::pair{same.c_str(), true}, {later.c_str(), false}, {"", false}}) {
        version_told = version;
        const OSSL_DISPATCH* out = nullptr;
        void* context = nullptr;
        EXPECT_EQ(init(reinterpret_cast<const OSSL_CORE_HANDLE*>(1), core, &out, &context), taken)
            << version;
        for (; taken && out && out->function_id != 0; ++out)
            if (out->function_id == OSSL_FUNC_PROVIDER_TEARDOWN)
                reinterpret_cast<OSSL_FUNC_provider_teardown_fn*>(out->function)(context);
    }
    ERR_clear_error();
}

// In a process of its own, since the settings of the first count.
TEST(Host, DISABLED_NeverIsNever) {
    const auto before = counter("daelstrom-parallel-updates");
    for (const char* name : {"AES-256-CTR", "AES-256-GCM"})
        EXPECT_EQ(made_by(ours(), name, 3 << 20), made_by(theirs(), name, 3 << 20));
    EXPECT_EQ(counter("daelstrom-parallel-updates"), before);
    EXPECT_GE(counter("daelstrom-threshold"), std::uint64_t{1} << 40);
}
TEST(Host, SaysNeverByAHugeThreshold) {
    for (const char* threshold : {"2305843009213693952", "9223372036854775807", "1099511627776"}) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("DAELSTROM_PROVIDER_THRESHOLD", threshold, 1);
            execl("/proc/self/exe", "host", "--gtest_brief=1",
                  "--gtest_filter=Host.DISABLED_NeverIsNever", "--gtest_also_run_disabled_tests",
                  static_cast<char*>(nullptr));
            _exit(127);
        }
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << threshold;
    }
}

}  // namespace
