// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/provider.h>

#include <cstdlib>
#include <string>

namespace dael::test {

// A cipher's functions by their numbers, as a provider publishes them.
class Functions {
  public:
    Functions(OSSL_PROVIDER* provider, const std::string& name) {
        int no_cache = 0;
        const OSSL_ALGORITHM* a =
            OSSL_PROVIDER_query_operation(provider, OSSL_OP_CIPHER, &no_cache);
        for (; a && a->algorithm_names; ++a)
            if (std::string(a->algorithm_names).rfind(name + ":", 0) == 0 ||
                a->algorithm_names == name)
                functions_ = a->implementation;
    }
    template <class Function>
    Function* find(int id) const {
        for (const OSSL_DISPATCH* f = functions_; f && f->function_id != 0; ++f)
            if (f->function_id == id) return reinterpret_cast<Function*>(f->function);
        ADD_FAILURE() << "no function " << id;
        std::abort();
    }

  private:
    const OSSL_DISPATCH* functions_ = nullptr;
};

}  // namespace dael::test
