// The invitations of a cluster that wait for their nodes. In memory: a restart ends all of them.
//
// Of a secret only the SHA-256 is kept. It is good for one node and for an hour. One that was used
// is remembered, so that whoever comes second is told, and does not take it for a mistake: somebody
// else may have joined in his place. One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "proto/login_throttle.h"

namespace mariner::peer {

class InvitationBook {
 public:
  struct Options {
    std::chrono::nanoseconds life = std::chrono::hours(1);
    std::size_t open_max = 64;
    // Wrong secrets of one address: more are refused for a while without a look.
    LoginThrottle::Options throttle{
        .failures_max = 10, .failures_per_s = 0.1, .addresses_max = 1024};
  };
  InvitationBook() : InvitationBook(Options{}) {}
  explicit InvitationBook(const Options& options);

  // Invites `node`, whose name has been checked; returns the secret. An earlier invitation of the
  // same node that waits still ends with that. kLimit when too many wait.
  [[nodiscard]] Result<std::string> invite(const std::string& node, std::chrono::nanoseconds now);

  // The node that the secret invites, once. `address`: who brings it, with a port. kNotFound when
  // there is no such invitation, or it was used or has ended: the message says which. kBusy when
  // too much was wrong that came from there.
  [[nodiscard]] Result<std::string> redeem(std::string_view secret, std::string_view address,
                                           std::chrono::nanoseconds now);

  [[nodiscard]] std::chrono::nanoseconds life() const { return options_.life; }
  // Those that wait for their nodes.
  [[nodiscard]] std::size_t open(std::chrono::nanoseconds now) const;

 private:
  static constexpr std::size_t kHashBytes = 32;
  static constexpr std::size_t kRememberedMax = 1024;
  using Hash = std::array<unsigned char, kHashBytes>;
  enum class State : std::uint8_t { kWaits, kUsed, kReplaced };
  struct Entry {
    Hash hash{};
    std::string node;
    std::chrono::nanoseconds ends{0};
    State state = State::kWaits;

    [[nodiscard]] bool open(std::chrono::nanoseconds now) const {
      return state == State::kWaits && now < ends;
    }
  };
  static Hash hash_of(std::string_view secret);
  [[nodiscard]] Error wrong(const Entry* entry) const;

  const Options options_;
  LoginThrottle throttle_;
  std::deque<Entry> entries_;  // oldest first
};

}  // namespace mariner::peer
