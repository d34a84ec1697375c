// CHECK: assertions of what only a bug in Mariner can break. On in every build.
//
// Never CHECK what a disk, a peer or a user can cause: return an Error for those.
#pragma once

namespace mariner {

// Prints file, line, expression and message to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const char* message) noexcept;

}  // namespace mariner

#define CHECK(expression)                             \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? static_cast<void>(0)                         \
       : ::mariner::check_failed(__FILE__, __LINE__, #expression, ""))

#define CHECK_MSG(expression, message)                \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? static_cast<void>(0)                         \
       : ::mariner::check_failed(__FILE__, __LINE__, #expression, message))
