// What every verb of the command works with.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <string_view>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "server/client/admin_client.h"
#include "server/client/console.h"
#include "server/client/exit_code.h"
#include "server/client/sandbox.h"
#include "server/client/time_spec.h"

namespace mariner::client {

// The global flags.
struct Flags {
  bool json = false;
  bool dry_run = false;
  bool yes = false;
  bool quiet = false;
  bool no_color = false;
  std::string socket = kDefaultSocket;
};

// What a verb does once the words have been read. An error is printed by the caller.
using Action = std::function<Result<ExitCode>()>;

struct Context {
  Console& console;
  const Zone& zone;
  std::function<VersionTime()> now;
  Flags flags;
  Action action;  // of the verb that was given
  // Set by a verb that has --force and was not given it, so that "busy" can advise it.
  bool force_helps = false;
  Confine confine{};  // of a program that parses file systems

  [[nodiscard]] AdminClient client() const { return AdminClient(flags.socket); }

  // With --json prints `message` and returns true.
  bool print_json(const google::protobuf::Message& message) const;

  // The question that TEXT, a time in any form, puts to the daemon. Empty text: now.
  [[nodiscard]] Result<api::MomentSpec> moment_spec(const std::string& text) const;

  // OBJECT[@TIME], with the moment that it names, "now" if it names none.
  struct Target {
    std::string object;
    bool has_time = false;
    api::MomentSpec at;
  };
  [[nodiscard]] Result<Target> target(const std::string& text) const;

  // "#4711  2026-11-20T14:32:05.123456789+01:00  (2026-11-20T13:32:05.123456789Z)".
  [[nodiscard]] std::string moment(const api::Moment& moment) const;
  // Local time to the nanosecond, with its offset; "-" for 0.
  [[nodiscard]] std::string local_time(std::uint64_t time_ns) const;
  // UTC to the nanosecond; "-" for 0.
  [[nodiscard]] std::string utc_time(std::uint64_t time_ns) const;
  // Local time to the second; "-" for 0.
  [[nodiscard]] std::string short_time(std::uint64_t time_ns) const;

  // Asks for `name` on a terminal; true if it was typed, or with --yes. Without a terminal or with
  // --json it does not ask and says that --yes is missing.
  [[nodiscard]] bool confirmed(const std::string& name) const;

  // Says what went wrong, for people or as JSON; the exit code for it.
  [[nodiscard]] int report(const Error& error, std::string_view program) const;

  // Before the first byte of a file system is parsed, and once whatever else is needed is open.
  // Errors as of `confine`; without one nothing is given up.
  [[nodiscard]] Result<void> give_up(const SandboxRules& rules) const;

  // "Dry run: nothing was changed." at the end of a verb that had --dry-run.
  void note_dry_run() const;
};

}  // namespace mariner::client
