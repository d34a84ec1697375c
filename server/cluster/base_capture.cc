#include "server/cluster/base_capture.h"

#include <memory>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::cluster {

using volume::History;
using volume::PastRun;

namespace {

// One call, and what it still waits for.
struct BaseCapture {
  History& log;
  BlockRange range;
  Payload held;  // by the other image
  volume::Done done;
  Result<void> result{};
  std::size_t waiting = 1;

  void finished(const Result<void>& r) {
    if (!r && result) result = r;
    if (--waiting == 0) done(std::move(result));
  }
};

void log_base(const std::shared_ptr<BaseCapture>& capture, const std::vector<PastRun>& now) {
  for (const PastRun& run : now) {
    if (run.source != PastRun::Source::kBase) continue;
    ++capture->waiting;
    const std::size_t offset = (run.range.first - capture->range.first).bytes();
    capture->log.log_before_image(
        run.range, {capture->held, offset, run.range.count.bytes()},
        [capture](const Result<void>& logged) { capture->finished(logged); });
  }
  capture->finished({});
}

}  // namespace

void capture_base(History& log, volume::Base& other, BlockRange range, volume::Done done) {
  CHECK(range.count.value <= History::kBeforeImageBlocksMax);
  const auto capture = std::make_shared<BaseCapture>(
      BaseCapture{log, range, Payload::allocate(range.count.bytes()), std::move(done)});
  other.read(range, capture->held.bytes(), [capture](const Result<void>& read) {
    if (!read) return capture->finished(read);
    locate_all(capture->log, {{capture->range, SequenceNumber{0}}},
               [capture](const Result<History::Located>& now) {
                 if (!now) return capture->finished(now.error());
                 log_base(capture, now->runs);
               });
  });
}

}  // namespace mariner::cluster
