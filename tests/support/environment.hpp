// SPDX-License-Identifier: Apache-2.0
// Variables of the environment, for a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace dael::test {

// Sets a variable, or unsets it where the value is null, while it lives.
class Environment {
  public:
    Environment(const char* variable, const char* value) : variable_(variable) {
        if (const char* old = std::getenv(variable)) old_ = old;
        set(value);
    }
    ~Environment() { set(old_ ? old_->c_str() : nullptr); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    void set(const char* value) const {
        if (value)
            setenv(variable_, value, 1);
        else
            unsetenv(variable_);
    }
    const char* variable_;
    std::optional<std::string> old_;
};

}  // namespace dael::test
