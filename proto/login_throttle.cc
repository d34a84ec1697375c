#include "proto/login_throttle.h"

#include <arpa/inet.h>

#include <algorithm>

namespace mariner {

std::string throttled_address(std::string_view endpoint) {
  std::string host(endpoint.substr(0, endpoint.rfind(':')));
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  host = host.substr(1, host.size() - 2);
  if (const auto zone = host.find('%'); zone != std::string::npos) host.resize(zone);
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string network;
  for (std::size_t i = 0; i < 8; ++i) {
    network += kDigits[address.s6_addr[i] >> 4];
    network += kDigits[address.s6_addr[i] & 15];
  }
  return network;
}

double LoginThrottle::failures_of(const Bucket& bucket, std::chrono::nanoseconds now) const {
  const double seconds = std::chrono::duration<double>(now - bucket.at).count();
  return std::max(0.0, bucket.failures - seconds * options_.failures_per_s);
}

void LoginThrottle::failed(std::string_view endpoint, std::chrono::nanoseconds now) {
  std::erase_if(buckets_, [&](const auto& entry) { return failures_of(entry.second, now) <= 0; });
  const std::string address = throttled_address(endpoint);
  if (!buckets_.contains(address) && buckets_.size() >= options_.addresses_max) {
    buckets_.erase(
        std::ranges::min_element(buckets_, {}, [](const auto& entry) { return entry.second.at; }));
  }
  Bucket& bucket = buckets_[address];
  bucket = {failures_of(bucket, now) + 1, now};
}

std::chrono::nanoseconds LoginThrottle::wait(std::string_view endpoint,
                                             std::chrono::nanoseconds now) const {
  const auto found = buckets_.find(throttled_address(endpoint));
  if (found == buckets_.end()) return {};
  const double excess = failures_of(found->second, now) - options_.failures_max;
  if (excess <= 0) return {};
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(excess / options_.failures_per_s));
}

}  // namespace mariner
