#include "server/client/folder_fence.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace mariner::client {
namespace {

// What Debian 12's headers do not have yet.
constexpr std::uint64_t kTruncate = 1u << 14;     // version 3
constexpr std::uint64_t kDeviceIoctl = 1u << 15;  // version 5
constexpr std::uint64_t kAbstractSockets = 1u << 0;
constexpr std::uint64_t kSignals = 1u << 1;
struct Ruleset {
  std::uint64_t handled_files;
  std::uint64_t handled_net;  // version 4
  std::uint64_t scoped;       // version 6
};

constexpr int kVersionMin = 2;
constexpr std::uint64_t kAllOfVersion2 = (LANDLOCK_ACCESS_FS_REFER << 1) - 1;

std::uint64_t allowed(SandboxRules::Files files) {
  constexpr std::uint64_t kFiles = LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                   LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                   kTruncate;
  switch (files) {
    case SandboxRules::Files::kNone: return 0;
    case SandboxRules::Files::kKept: return kFiles | LANDLOCK_ACCESS_FS_READ_FILE;
    case SandboxRules::Files::kMade:
      return kFiles | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_CHAR |
             LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_FIFO |
             LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;
  }
  return 0;
}

}  // namespace

Result<bool> fence_folder(const SandboxRules& rules) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < kVersionMin) return false;
  Ruleset all{.handled_files = kAllOfVersion2, .handled_net = 0, .scoped = 0};
  if (version >= 3) all.handled_files |= kTruncate;
  if (version >= 5) all.handled_files |= kDeviceIoctl;
  if (version >= 6) all.scoped = kAbstractSockets | kSignals;
  // (An older kernel takes the longer struct, as long as what it does not know is zero.)
  const auto ruleset =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0));
  if (ruleset < 0) return errno_error(errno, "landlock_create_ruleset");
  const landlock_path_beneath_attr below{.allowed_access = allowed(rules.files) & all.handled_files,
                                         .parent_fd = rules.folder};
  Result<bool> fenced = true;
  if (below.allowed_access != 0 &&
      ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below, 0) != 0) {
    fenced = errno_error(errno, "landlock_add_rule");
  } else if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
    fenced = errno_error(errno, "landlock_restrict_self");
  }
  ::close(ruleset);
  return fenced;
}

}  // namespace mariner::client
