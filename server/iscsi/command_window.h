// The CmdSN window of a session (RFC 7143, 4.2.2.1): which command comes next, and how many more
// the initiator may send.
//
// The window has a place for each outstanding command: MaxCmdSN moves on only when one is answered,
// so the width bounds what a session can make us keep. Numbers compare by serial arithmetic.
#pragma once

#include <cstdint>

#include "proto/check.h"

namespace mariner::iscsi {

// `a` is before `b` in serial number arithmetic (4.2.2.1; RFC 1982).
[[nodiscard]] constexpr bool serial_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

class CommandWindow {
 public:
  enum class Verdict : std::uint8_t {
    kAccepted,  // the next one: it has a place until release()
    kOutside,   // a duplicate, or beyond MaxCmdSN: to be ignored silently
    kGap,       // skips a number. Nothing can fill it: a session has one connection, in order
  };

  CommandWindow(std::uint32_t first_cmd_sn, std::uint32_t width)
      : exp_(first_cmd_sn), width_(width) {
    CHECK(width > 0);
  }

  // A non-immediate command has arrived. (Immediate ones neither count nor need a place.)
  [[nodiscard]] Verdict accept(std::uint32_t cmd_sn) {
    if (serial_before(cmd_sn, exp_) || serial_before(max_cmd_sn(), cmd_sn))
      return Verdict::kOutside;
    if (cmd_sn != exp_) return Verdict::kGap;
    ++exp_;
    ++outstanding_;
    return Verdict::kAccepted;
  }

  // An accepted command has been answered, or never will be.
  void release() {
    CHECK(outstanding_ > 0);
    --outstanding_;
  }

  // True if the command `cmd_sn` may still arrive. Task management may abort it then: if it is the
  // next one, it counts as received from now on (11.6.1, case b).
  bool abort_unreceived(std::uint32_t cmd_sn, std::uint32_t before_cmd_sn) {
    if (serial_before(cmd_sn, exp_) || serial_before(max_cmd_sn(), cmd_sn) ||
        !serial_before(cmd_sn, before_cmd_sn)) {
      return false;
    }
    if (cmd_sn == exp_) {
      static_cast<void>(accept(cmd_sn));
      release();
    }
    return true;
  }

  [[nodiscard]] std::uint32_t exp_cmd_sn() const { return exp_; }
  // ExpCmdSN - 1 when the window is closed.
  [[nodiscard]] std::uint32_t max_cmd_sn() const { return exp_ + (width_ - outstanding_) - 1; }
  [[nodiscard]] std::uint32_t outstanding() const { return outstanding_; }

 private:
  std::uint32_t exp_;
  std::uint32_t width_;
  std::uint32_t outstanding_ = 0;
};

}  // namespace mariner::iscsi
