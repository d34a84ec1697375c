// Which targets exist and who may use them: what login, SendTargets and the session list need.
//
// Implemented by the node. Called on the Executor's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "server/iscsi/chap.h"
#include "server/scsi/target_device.h"

namespace mariner::iscsi {

// Where else a target is to be used (RFC 7143 11.13.5, status class 1).
struct Redirection {
  std::string address;  // "192.0.2.1:3260", "[2001:db8::1]:3260"
  bool permanent = false;
};

class TargetDirectory {
 public:
  virtual ~TargetDirectory() = default;

  // The names of the targets that `initiator` may discover, in order. `account` is the name of the
  // account that has logged in for that; empty if none had to.
  [[nodiscard]] virtual std::vector<std::string> discoverable(std::string_view initiator,
                                                              std::string_view account) const = 0;

  // Where `target`, which open() has given, is to be used instead by who comes through `portal`
  // ("192.0.2.1:3260"). Nothing: here. Who comes through that very portal is served.
  [[nodiscard]] virtual std::optional<Redirection> redirection(std::string_view target,
                                                               std::string_view portal) const = 0;

  // The device behind `target`. kNotFound: no such target (login status 0x0203). kReadOnly is not
  // used; kInvalidArgument: this initiator may not use it (0x0202); kUnavailable: starting,
  // importing or being deleted (0x0301).
  [[nodiscard]] virtual Result<std::shared_ptr<scsi::TargetDevice>> open(
      std::string_view target, std::string_view initiator) = 0;

  // The accounts of which one is to log in by CHAP, to this target or, if that is empty, to a
  // discovery session. None: no authentication is asked for. kUnavailable when they cannot be had.
  [[nodiscard]] virtual Result<std::vector<ChapAccount>> accounts(
      std::string_view target, std::string_view initiator) const = 0;
};

}  // namespace mariner::iscsi
