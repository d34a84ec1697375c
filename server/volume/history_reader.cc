#include "server/volume/history_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::volume {

using index::LocatedRun;

void ZeroBase::read(BlockRange range, std::span<std::byte> to, Done done) {
  CHECK(to.size() == range.count.bytes());
  std::memset(to.data(), 0, to.size());
  done({});
}

// One read() and what it still waits for.
struct HistoryReader::Operation {
  HistoryReader* reader = nullptr;
  SequenceNumber at;
  Done done;
  Result<void> result;
  std::size_t waiting = 1;  // one for read() itself, so that nothing completes while it issues
};

HistoryReader::~HistoryReader() {
  CHECK_MSG(in_flight_ == 0, "a history reader is destroyed in use");
}

void HistoryReader::finished(const std::shared_ptr<Operation>& operation,
                             const Result<void>& result) {
  if (!result && operation->result) operation->result = result;
  CHECK(operation->waiting > 0);
  if (--operation->waiting > 0) return;
  --operation->reader->in_flight_;
  operation->done(std::move(operation->result));
}

void HistoryReader::read(BlockRange range, SequenceNumber at, std::span<std::byte> to, Done done) {
  CHECK(to.size() == range.count.bytes());
  auto operation = std::make_shared<Operation>();
  operation->reader = this;
  operation->at = at;
  operation->done = std::move(done);
  ++in_flight_;
  locate(range, at, to, operation);
  finished(operation, {});
}

// Reads what the index names, in the moment in which it does.
void HistoryReader::locate(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                           const std::shared_ptr<Operation>& operation) {
  ++operation->waiting;
  auto runs = std::make_shared<std::vector<LocatedRun>>();
  index_.consult(
      [runs, range, at](const index::VersionLookup& lookup) { *runs = lookup.locate(range, at); },
      [this, runs, range, to, operation](const Result<void>& looked) {
        if (looked) {
          for (const LocatedRun& run : *runs) {
            read_run(run,
                     to.subspan((run.range.first - range.first).bytes(), run.range.count.bytes()),
                     operation);
          }
        }
        finished(operation, looked);
      });
}

logging::LogRead HistoryReader::log_read_of(const LocatedRun& run, std::span<std::byte> to) const {
  return {run.location, volume_, run.sequence, run.payload_block, to};
}

void HistoryReader::read_run(const LocatedRun& run, std::span<std::byte> to,
                             const std::shared_ptr<Operation>& operation) {
  switch (run.source) {
    case LocatedRun::Source::kZero: std::memset(to.data(), 0, to.size()); return;
    case LocatedRun::Source::kBase: return read_base(run.range, to, operation);
    case LocatedRun::Source::kLog: break;
  }
  ++operation->waiting;
  // A repeated run is one block: read it to the front, then copy it over the rest.
  const std::span<std::byte> stored = run.repeated ? to.first(kBlockBytes) : to;
  log_.read(log_read_of(run, stored), [this, operation, to, run](const Result<void>& r) {
    if (!r) return read_elsewhere(run, to, r.error(), operation);
    if (run.repeated) {
      for (std::size_t at = kBlockBytes; at < to.size(); at += kBlockBytes) {
        std::memcpy(to.data() + at, to.data(), kBlockBytes);
      }
    }
    finished(operation, r);
  });
}

// The log could not give `run`: `error`, unless the index says by now that it stands elsewhere.
void HistoryReader::read_elsewhere(const LocatedRun& run, std::span<std::byte> to,
                                   const Error& error,
                                   const std::shared_ptr<Operation>& operation) {
  auto now = std::make_shared<std::vector<LocatedRun>>();
  index_.consult([now, range = run.range, at = operation->at](
                     const index::VersionLookup& lookup) { *now = lookup.locate(range, at); },
                 [this, now, run, to, error, operation](const Result<void>& looked) {
                   const auto is_same = [&](const LocatedRun& part) {
                     return part.source == run.source && part.location == run.location;
                   };
                   if (!looked || std::ranges::any_of(*now, is_same))
                     return finished(operation, error);
                   for (const LocatedRun& part : *now) {
                     read_run(part,
                              to.subspan((part.range.first - run.range.first).bytes(),
                                         part.range.count.bytes()),
                              operation);
                   }
                   finished(operation, {});
                 });
}

void HistoryReader::read_base(BlockRange range, std::span<std::byte> to,
                              const std::shared_ptr<Operation>& operation) {
  ++operation->waiting;
  base_.read(range, to, [this, range, to, operation](const Result<void>& result) {
    if (!result || !base_.may_move()) return finished(operation, result);
    // What was overwritten meanwhile has become a before-image first: look again.
    auto now = std::make_shared<std::vector<LocatedRun>>();
    index_.consult(
        [now, range](const index::VersionLookup& lookup) {
          *now = lookup.locate(range, SequenceNumber{0});
        },
        [this, now, range, to, operation](const Result<void>& looked) {
          for (const LocatedRun& run : *now) {
            if (!looked || run.source != LocatedRun::Source::kLog) continue;
            read_run(run,
                     to.subspan((run.range.first - range.first).bytes(), run.range.count.bytes()),
                     operation);
          }
          finished(operation, looked);
        });
  });
}

}  // namespace mariner::volume
