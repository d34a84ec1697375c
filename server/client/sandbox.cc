#include "server/client/sandbox.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "server/client/folder_fence.h"
#include "server/client/system_call_filter.h"

namespace mariner::client {
namespace {

#ifdef MARINER_UNCONFINED
constexpr bool kConfined = false;
#else
constexpr bool kConfined = true;
#endif

constexpr const char* kVariable = "MARINER_SANDBOX";

// Owners, modes and devices of what is made, in directories that may be anybody's.
constexpr std::array kMaking = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,
                                CAP_FSETID, CAP_MKNOD,        CAP_SETFCAP};

Result<bool> is_wanted() {
  const char* const value = std::getenv(kVariable);
  if (value == nullptr || *value == '\0') return kConfined;
  if (value == std::string_view("off")) return false;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the environment has {}={}: expected off, or nothing", kVariable, value)};
}

Error refused(const Error& why) {
  return {ErrorCode::kIo,
          fmt::format("no sandbox: {}. Foreign file systems are read in one, so that what is "
                      "forged in them does no harm; {}=off in the environment reads them without",
                      why.message, kVariable)};
}

// localtime_r() looks for the zone's file again and again, and takes UTC where it finds none: but
// not with a TZ that it has loaded.
void keep_zone() {
  ::setenv("TZ", ":/etc/localtime", 0);
  ::tzset();
}

// The new bound is no higher than the one that there is.
bool bound(int resource, rlim_t most) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return false;
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
}

bool drop_capabilities(SandboxRules::Files files) {
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &head, sets.data()) != 0) return false;
  std::array<std::uint32_t, sets.size()> kept{};
  if (files == SandboxRules::Files::kMade) {
    for (const int each : kMaking) kept[CAP_TO_INDEX(each)] |= CAP_TO_MASK(each);
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    sets[i].permitted &= kept[i];
    sets[i].effective &= kept[i];
    sets[i].inheritable = 0;
  }
  return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
         ::syscall(SYS_capset, &head, sets.data()) == 0;
}

}  // namespace

Result<void> enter_sandbox(const SandboxRules& rules) {
  const auto wanted = is_wanted();
  if (!wanted) return wanted.error();
  if (!*wanted) return {};
  keep_zone();
  const auto failed = [](const char* what) { return refused(errno_error(errno, what)); };
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("dumpable");
  if (!bound(RLIMIT_CORE, 0)) return failed("the bound of core dumps");
  if (!bound(RLIMIT_DATA, kSandboxBytesMax)) return failed("the bound of memory");
  if (!drop_capabilities(rules.files)) return failed("capabilities");
  if (const auto fenced = fence_folder(rules); !fenced) return refused(fenced.error());
  if (const auto filtered = filter_system_calls(rules.files); !filtered) {
    return refused(filtered.error());
  }
  return {};
}

}  // namespace mariner::client
