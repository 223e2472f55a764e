// SPDX-License-Identifier: Apache-2.0
// libcrypto as this library uses it: in a context of its own, which reads no configuration. What
// the process's openssl.cnf says (other default properties, other providers) is for the process;
// here it would take ciphers away, or, inside an OpenSSL provider, make that its own foundation.
#pragma once

#include <openssl/types.h>

namespace dael::core {

// The one context of this process, made at the first call and never freed, since threads' contexts
// refer to it to their end. A child of fork() has one of its own: of its parent's a thread that is
// not there may hold the locks. What the parent has fetched works there, but nothing is fetched
// from it. Null, which libcrypto takes for its default one, where memory ran out. Thread-safe, and
// without a lock.
OSSL_LIB_CTX* libcrypto() noexcept;

}  // namespace dael::core
