// A program that reads what it does not trust gives up, for good, what it does not need.
//
// Refused from then on: other programs, sockets but connections to unix sockets (a reading of the
// past that has ended is opened again), signals to other processes, memory that could be executed,
// opening files but in the one folder that is named, memory beyond kSandboxBytesMax, core dumps,
// and capabilities. What was open stays open. A call that a library may try for no need of ours
// fails (EPERM, ENOSYS); one that only an intruder has a use for ends the process (SIGSYS).
//
// The kernel's seccomp filter refuses; Landlock, where the kernel has it, keeps what is opened
// within the folder. Not part of it: what a unix socket leads to, and attributes (mode, owner) of
// files elsewhere while something is restored, which neither of them can tell apart by path.
#pragma once

#include <cstdint>
#include <functional>

#include "proto/error.h"

namespace mariner::client {

// Private memory of the process. What uvfs and ifsck may hold by their own bounds
// (BlockTimelines::kVersionsMax, kInodeSlicesMax, PathSearch::kObjectsMax, RecheckMemory) is less
// than half of it.
inline constexpr std::uint64_t kSandboxBytesMax = std::uint64_t{8} << 30;

struct SandboxRules {
  enum class Files {
    kNone,  // nothing is opened any more
    kMade,  // directories, and files that were not there: what restores a tree
    kKept,  // files are read, written, replaced and removed: what keeps a few of its own
  };
  Files files = Files::kNone;
  int folder = -1;  // an open directory, in which all of that happens
};

// Of the whole process; before its first thread begins. Needs no privileges, and takes them away:
// but for kMade, which keeps those that owners, modes and devices of what it makes take. kIo: the
// kernel refuses; the message says what, and how to do without. Does nothing in builds with
// sanitizers, whose run time needs more, and where the environment has MARINER_SANDBOX=off.
// kInvalidArgument: MARINER_SANDBOX is something else.
[[nodiscard]] Result<void> enter_sandbox(const SandboxRules& rules);

// How a program confines itself: enter_sandbox(); nothing in tests, which run it within themselves.
using Confine = std::function<Result<void>(const SandboxRules& rules)>;

}  // namespace mariner::client
