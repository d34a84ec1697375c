#include "proto/check.h"

#include <cstdio>
#include <cstdlib>

namespace mariner {

void check_failed(const char* file, int line, const char* expression,
                  const char* message) noexcept {
  std::fprintf(stderr, "CHECK failed at %s:%d: %s %s\n", file, line, expression, message);
  std::abort();
}

}  // namespace mariner
