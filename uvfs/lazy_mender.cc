#include "uvfs/lazy_mender.h"

#include <utility>

#include "ifsck/moment_check.h"

namespace mariner::uvfs {

Result<bool> LazyMender::mend(SequenceNumber at, ifsck::Overlay& overlay) {
  if (!states_ || checks_++ >= kStatesMax) {
    states_.emplace();
    checks_ = 1;
  }
  ifsck::Overlay mended;
  const auto report =
      ifsck::check_moment(past_, at, *states_, mended, {.level = 2, .progress = {}});
  if (!report) {
    const ErrorCode code = report.error().code;
    const bool about_contents = code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt ||
                                code == ErrorCode::kInvalidArgument || code == ErrorCode::kLimit;
    if (about_contents) return false;
    return report.error();
  }
  if (report->repairs.empty() && report->completed.empty()) return false;
  if (mended_.size() >= kMomentsMax) mended_.clear();
  mended_.insert(at);
  overlay = std::move(mended);
  return true;
}

}  // namespace mariner::uvfs
