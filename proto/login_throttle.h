// Slows down whoever guesses: addresses from which authentication failed too often are refused for
// a while, before anything is compared. Of iSCSI logins, and of nodes that enrol.
//
// Each address has a bucket of failures that empties with time. Executor's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace mariner {

class LoginThrottle {
 public:
  struct Options {
    double failures_max = 20;  // at once
    double failures_per_s = 1;
    std::size_t addresses_max = 4096;  // that are remembered: the one that failed first goes
  };
  LoginThrottle() : LoginThrottle(Options{}) {}
  explicit LoginThrottle(const Options& options) : options_(options) {}

  // `endpoint`: "192.0.2.7:51234"; the port does not count, and of an IPv6 address only its network
  // does (64 bits): a host has as many as it likes.
  void failed(std::string_view endpoint, std::chrono::nanoseconds now);
  // How long this address has to wait before it may try; 0: it may.
  [[nodiscard]] std::chrono::nanoseconds wait(std::string_view endpoint,
                                              std::chrono::nanoseconds now) const;

 private:
  struct Bucket {
    double failures = 0;
    std::chrono::nanoseconds at{0};
  };
  [[nodiscard]] double failures_of(const Bucket& bucket, std::chrono::nanoseconds now) const;

  const Options options_;
  std::map<std::string, Bucket> buckets_;
};

// The address without its port; of an IPv6 address its first 64 bits, in hexadecimal.
[[nodiscard]] std::string throttled_address(std::string_view endpoint);

}  // namespace mariner
