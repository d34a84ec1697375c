#include "server/client/system_call_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <vector>

namespace mariner::client {
namespace {

// What works on memory, on what is open, on this process's own threads and signals.
constexpr const char* kAllowed[] = {
    // memory
    "brk", "munmap", "mremap", "madvise",
    // what is open
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "lseek", "close", "fstat", "newfstatat", "fstatfs", "fsync", "fdatasync",
    "ftruncate", "getdents64", "dup", "dup2", "dup3", "pipe2", "poll", "ppoll", "epoll_create1",
    "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "timerfd_create", "timerfd_settime",
    // connections
    "connect", "sendto", "sendmsg", "recvfrom", "recvmsg", "shutdown", "getsockopt", "setsockopt",
    "getsockname", "getpeername",
    // time
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    // threads and signals
    "futex", "set_robust_list", "set_tid_address", "rseq", "sched_yield", "sched_getaffinity",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "sigaltstack",
    "restart_syscall", "exit", "exit_group",
    // who and where this is
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrlimit", "uname",
    "sysinfo", "getrandom"};

// libc and libraries go on without these.
constexpr const char* kUnknown[] = {"clone3",      "statx",        "openat2",   "faccessat2",
                                    "close_range", "epoll_pwait2", "membarrier"};

// Nothing that these programs do, or a library for them, comes near these.
constexpr const char* kFatal[] = {"execve",
                                  "execveat",
                                  "vfork",
                                  "ptrace",
                                  "process_vm_readv",
                                  "process_vm_writev",
                                  "pidfd_getfd",
                                  "process_madvise",
                                  "kcmp",
                                  "mount",
                                  "pivot_root",
                                  "chroot",
                                  "setns",
                                  "unshare",
                                  "open_tree",
                                  "move_mount",
                                  "fsopen",
                                  "fsconfig",
                                  "fsmount",
                                  "fspick",
                                  "mount_setattr",
                                  "init_module",
                                  "finit_module",
                                  "delete_module",
                                  "kexec_load",
                                  "kexec_file_load",
                                  "bpf",
                                  "perf_event_open",
                                  "userfaultfd",
                                  "io_uring_setup",
                                  "io_uring_enter",
                                  "io_uring_register",
                                  "add_key",
                                  "request_key",
                                  "keyctl",
                                  "open_by_handle_at",
                                  "setuid",
                                  "setgid",
                                  "setreuid",
                                  "setregid",
                                  "setresuid",
                                  "setresgid",
                                  "setgroups",
                                  "capset",
                                  "personality",
                                  "iopl",
                                  "ioperm",
                                  "modify_ldt",
                                  "reboot",
                                  "swapon",
                                  "swapoff",
                                  "acct",
                                  "quotactl",
                                  "clock_settime",
                                  "settimeofday",
                                  "clock_adjtime",
                                  "adjtimex"};

// Of SandboxRules::Files; what opens files has conditions, below.
constexpr const char* kMakes[] = {"mkdirat",   "mknodat",  "symlinkat", "linkat",   "unlinkat",
                                  "renameat2", "renameat", "fchmod",    "fchmodat", "chmod",
                                  "fchown",    "fchownat", "fsetxattr", "utimensat"};
constexpr const char* kKeeps[] = {"openat",    "open",   "rename",   "renameat",
                                  "renameat2", "unlink", "unlinkat", "rmdir"};

using Conditions = std::vector<scmp_arg_cmp>;

scmp_arg_cmp equals(unsigned argument, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value, .datum_b = 0};
}
// Of the bits in `mask` just those of `value` are set.
scmp_arg_cmp has(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

class Filter {
 public:
  Filter() : filter_(seccomp_init(SCMP_ACT_ERRNO(EPERM))) {}
  ~Filter() {
    if (filter_ != nullptr) seccomp_release(filter_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  // A call that this machine's kernel has under no such name is refused anyway.
  void add(std::uint32_t action, const char* name, const Conditions& conditions = {}) {
    const int call = seccomp_syscall_resolve_name(name);
    if (call < 0 || error_ != 0) return;
    error_ = seccomp_rule_add_array(filter_, action, call, static_cast<unsigned>(conditions.size()),
                                    conditions.data());
  }
  void allow(const char* name, const Conditions& conditions = {}) {
    add(SCMP_ACT_ALLOW, name, conditions);
  }
  void set(scmp_filter_attr attribute, std::uint32_t value) {
    if (error_ == 0) error_ = seccomp_attr_set(filter_, attribute, value);
  }
  // errno; 0: it holds.
  int load() {
    if (filter_ == nullptr) return ENOMEM;
    if (error_ == 0) error_ = seccomp_load(filter_);
    return -error_;
  }

 private:
  const scmp_filter_ctx filter_;
  int error_ = 0;
};

void allow_with_conditions(Filter& filter) {
  // Nothing that was written is executed.
  for (const char* each : {"mmap", "mprotect"}) filter.allow(each, {has(2, PROT_EXEC, 0)});
  // Threads, no processes and no namespaces.
  constexpr std::uint64_t kSpaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  filter.allow("clone", {has(0, CLONE_THREAD | kSpaces, CLONE_THREAD)});
  constexpr std::uint64_t kType = ~static_cast<std::uint64_t>(SOCK_CLOEXEC | SOCK_NONBLOCK);
  filter.allow("socket",
               {equals(0, AF_UNIX), has(1, kType & 0xffffffff, SOCK_STREAM), equals(2, 0)});
  // abort()
  filter.allow("tgkill", {equals(0, static_cast<std::uint64_t>(::getpid()))});
  for (const std::uint64_t each : {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD, F_DUPFD_CLOEXEC}) {
    filter.allow("fcntl", {equals(1, each)});
  }
  for (const std::uint64_t each : {std::uint64_t{FIONBIO}, std::uint64_t{FIONREAD},
                                   std::uint64_t{TCGETS}, std::uint64_t{TIOCGWINSZ}}) {
    filter.allow("ioctl", {equals(1, each)});
  }
  filter.allow("prlimit64", {equals(0, 0), equals(2, 0)});  // asks
}

void allow_files(Filter& filter, SandboxRules::Files files) {
  if (files == SandboxRules::Files::kKept) {
    for (const char* each : kKeeps) filter.allow(each);
  }
  if (files != SandboxRules::Files::kMade) return;
  for (const char* each : kMakes) filter.allow(each);
  // Neither a file that is there already nor a device is ever opened.
  for (const std::uint64_t each : {O_DIRECTORY, O_CREAT | O_EXCL, O_PATH}) {
    filter.allow("openat", {has(2, each, each)});
  }
}

}  // namespace

Result<void> filter_system_calls(SandboxRules::Files files) {
  Filter filter;
  filter.set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  filter.set(SCMP_FLTATR_CTL_TSYNC, 1);
  filter.set(SCMP_FLTATR_API_SYSRAWRC, 1);
  for (const char* each : kAllowed) filter.allow(each);
  for (const char* each : kUnknown) filter.add(SCMP_ACT_ERRNO(ENOSYS), each);
  for (const char* each : kFatal) filter.add(SCMP_ACT_KILL_PROCESS, each);
  allow_with_conditions(filter);
  allow_files(filter, files);
  const int error = filter.load();
  if (error != 0) return errno_error(error, "seccomp");
  return {};
}

}  // namespace mariner::client
