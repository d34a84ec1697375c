#include "server/volume/history_reader.h"

#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::volume {

// One read() and what it still waits for.
struct HistoryReader::Operation {
  HistoryReader* reader = nullptr;
  SequenceNumber at;
  Done done;
  Result<void> result;
  std::size_t waiting = 1;
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
  ask(range, to, operation);
  finished(operation, {});
}

void HistoryReader::ask(BlockRange range, std::span<std::byte> to,
                        const std::shared_ptr<Operation>& operation) {
  ++operation->waiting;
  history_.read(range, operation->at, to,
                [this, range, to, operation](const Result<std::vector<BlockRange>>& in_base) {
                  if (!in_base) return finished(operation, in_base.error());
                  for (const BlockRange& part : *in_base) {
                    read_base(part,
                              to.subspan((part.first - range.first).bytes(), part.count.bytes()),
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
    // What only the base holds when somebody looks who was asked after the base was read was there
    // when it was read. The rest has become a before-image meanwhile.
    locate_all(history_, {{range, operation->at}},
               [this, range, to, operation](const Result<History::Located>& now) {
                 if (!now) return finished(operation, now.error());
                 for (const PastRun& run : now->runs) {
                   if (run.source == PastRun::Source::kBase) continue;
                   ask(run.range,
                       to.subspan((run.range.first - range.first).bytes(), run.range.count.bytes()),
                       operation);
                 }
                 finished(operation, {});
               });
  });
}

}  // namespace mariner::volume
