// Time zones by name, for tests: SystemZone with TZ set.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "server/client/zone.h"

namespace mariner {

// Sets TZ while it lives. One at a time.
class ZoneOf final : public Zone {
 public:
  explicit ZoneOf(const char* name) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    setenv("TZ", name, 1);
  }
  ~ZoneOf() override {
    if (before_) {
      setenv("TZ", before_->c_str(), 1);
    } else {
      unsetenv("TZ");
    }
  }
  ZoneOf(const ZoneOf&) = delete;
  ZoneOf& operator=(const ZoneOf&) = delete;

  [[nodiscard]] std::int64_t offset_s(std::int64_t utc_s) const override {
    return system_.offset_s(utc_s);
  }

 private:
  std::optional<std::string> before_;
  SystemZone system_;
};

}  // namespace mariner
