// SPDX-License-Identifier: Apache-2.0
// libcrypto as this library uses it: in a context of its own, which reads no configuration. What
// the process's openssl.cnf says (other default properties, other providers) is for the process;
// here it would take ciphers away, or, inside an OpenSSL provider, make that its own foundation.
#pragma once

#include <openssl/types.h>

namespace dael::core {

// The one context of this process, made at the first call and never freed, since threads' contexts
// refer to it to their end. Null, which libcrypto takes for its default one, where memory ran out.
// Thread-safe; no lock is held, so that fork() does no harm.
OSSL_LIB_CTX* libcrypto() noexcept;

}  // namespace dael::core
