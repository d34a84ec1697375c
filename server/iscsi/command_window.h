// The CmdSN window of a session (RFC 7143, 4.2.2.1): which commands have come, and how many more
// the initiator may send.
//
// The window has a place for each outstanding command: MaxCmdSN moves on only when one is answered,
// so the width bounds what a session can make us keep. A number may come before an earlier one, by
// another connection or because the earlier one was damaged. Numbers compare by serial arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/check.h"

namespace mariner::iscsi {

// `a` is before `b` in serial number arithmetic (4.2.2.1; RFC 1982).
[[nodiscard]] constexpr bool serial_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

class CommandWindow {
 public:
  enum class Verdict : std::uint8_t {
    kNext,     // every number before it has come
    kAhead,    // a number before it has not
    kOutside,  // a duplicate, or beyond MaxCmdSN: to be ignored silently
  };

  CommandWindow(std::uint32_t first_cmd_sn, std::uint32_t width)
      : exp_(first_cmd_sn), width_(width) {
    CHECK(width > 0);
  }

  // What this number would be, of a non-immediate command. (Immediate ones neither count nor need
  // a place.)
  [[nodiscard]] Verdict look(std::uint32_t cmd_sn) const {
    if (serial_before(cmd_sn, exp_) || serial_before(max_cmd_sn(), cmd_sn))
      return Verdict::kOutside;
    if (cmd_sn == exp_) return Verdict::kNext;
    const std::size_t at = cmd_sn - exp_;
    return at < ahead_.size() && ahead_[at].received ? Verdict::kOutside : Verdict::kAhead;
  }

  // The command of this number has come: it has a place until release(). Requires that look() does
  // not say kOutside.
  void receive(std::uint32_t cmd_sn) {
    if (cmd_sn == exp_ && ahead_.empty()) {
      ++exp_;
      ++outstanding_;
      return;
    }
    const std::size_t at = cmd_sn - exp_;
    if (ahead_.size() <= at) ahead_.resize(at + 1);
    CHECK(!ahead_[at].received);
    ahead_[at].received = true;
    std::size_t come = 0;
    for (; come < ahead_.size() && ahead_[come].received; ++come) {
      ++exp_;
      if (!ahead_[come].released) ++outstanding_;
    }
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(come));
  }

  // A received command has been answered, or never will be.
  void release(std::uint32_t cmd_sn) {
    if (serial_before(cmd_sn, exp_)) {
      CHECK(outstanding_ > 0);
      --outstanding_;
      return;
    }
    const std::size_t at = cmd_sn - exp_;
    CHECK(at < ahead_.size() && ahead_[at].received && !ahead_[at].released);
    ahead_[at].released = true;
  }

  // True if the command `cmd_sn` may still come, and is before `before_cmd_sn`. Task management may
  // abort it then: it counts as received and answered from now on (11.6.1, case b).
  bool abort_unreceived(std::uint32_t cmd_sn, std::uint32_t before_cmd_sn) {
    if (!serial_before(cmd_sn, before_cmd_sn) || look(cmd_sn) == Verdict::kOutside) return false;
    plug(cmd_sn);
    return true;
  }

  // Every number before `cmd_sn` that may still come counts as received and answered (4.2.3.3, of
  // requests to the whole target). A `cmd_sn` that no request may have, beyond the window, is
  // before nothing that comes.
  void abort_all_unreceived(std::uint32_t cmd_sn) {
    // Each number plugged moves the window on: what bounds us is where it ended before.
    if (serial_before(max_cmd_sn() + 1, cmd_sn)) return;
    while (serial_before(exp_, cmd_sn)) plug(exp_);
  }

  [[nodiscard]] std::uint32_t exp_cmd_sn() const { return exp_; }
  // ExpCmdSN - 1 when the window is closed. Never moves back.
  [[nodiscard]] std::uint32_t max_cmd_sn() const { return exp_ + (width_ - outstanding_) - 1; }
  // Of those before ExpCmdSN.
  [[nodiscard]] std::uint32_t outstanding() const { return outstanding_; }

 private:
  struct Ahead {
    bool received = false;
    bool released = false;
  };

  void plug(std::uint32_t cmd_sn) {
    receive(cmd_sn);
    release(cmd_sn);
  }

  std::uint32_t exp_;
  std::uint32_t width_;
  std::uint32_t outstanding_ = 0;
  std::vector<Ahead> ahead_;  // of ExpCmdSN, which has not come, and those after it
};

}  // namespace mariner::iscsi
