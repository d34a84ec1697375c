#include "replication/image_health.h"

#include <algorithm>
#include <utility>

namespace mariner::replication {

bool ImageHealth::failed(const Error& why, std::chrono::nanoseconds now) {
  if (failure_) return false;
  if (failures_++ == 0) failing_since_ = now;
  const bool often = failures_ >= options_.failures_min;
  if (!trying_ && (!often || now - failing_since_ < options_.failing_min)) return false;
  const bool soon = back_since_ && now - *back_since_ < options_.sound_after;
  rest_ = soon ? std::min(2 * rest_, options_.rest_max) : options_.rest_min;
  failure_ = why;
  failures_ = 0;
  trying_ = false;
  return true;
}

bool ImageHealth::worked(std::chrono::nanoseconds now) {
  failures_ = 0;
  trying_ = false;
  if (!std::exchange(failure_, std::nullopt)) return false;
  back_since_ = now;
  return true;
}

void ImageHealth::try_again(std::chrono::nanoseconds now) {
  failure_.reset();
  failures_ = 0;
  trying_ = true;
  back_since_ = now;
}

}  // namespace mariner::replication
