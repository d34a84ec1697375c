#include "server/volume/history_summary.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "index/merged_extents.h"

namespace mariner::volume {
namespace {

struct Summing {
  HistorySummary::Question question;
  HistorySummary out;
  UniqueFunction<void(Result<HistorySummary>)> done;
  index::MergedExtents extents;  // until a rollback comes
  bool rolled_back = false;

  void add(const index::IndexedWrite& write);
  void finish(const std::vector<BlockRange>& changed) {
    for (const BlockRange& extent : changed) out.distinct_bytes += extent.count.bytes();
    done(std::move(out));
  }
};

void Summing::add(const index::IndexedWrite& write) {
  rolled_back = rolled_back || write.type == logging::RecordType::kRollback;
  if (!rolled_back) extents.add(write.extent);
  const bool stored = write.type == logging::RecordType::kWrite;
  const std::uint64_t bytes = stored ? write.extent.count.bytes() : 0;
  ++out.writes;
  out.bytes += bytes;
  if (!out.columns.empty() && write.time >= question.start) {
    const std::uint64_t column = (write.time.ns - question.start.ns) / question.width_ns;
    HistorySummary::Column& in = out.columns[std::min(column, out.columns.size() - 1)];
    ++in.writes;
    in.bytes += bytes;
  }
  const auto list = [&](std::vector<HistorySummary::Write>& to, std::uint32_t most) {
    if (to.size() < most) {
      to.push_back({write.type, write.sequence, write.time, write.epoch, write.extent,
                    write.target_sequence});
    } else {
      out.truncated = true;
    }
  };
  if (write.type == logging::RecordType::kRollback) {
    list(out.rollbacks, HistorySummary::kRollbacksMax);
  }
  if (question.writes_max > 0) {
    list(out.list, std::min(question.writes_max, HistorySummary::kWritesMax));
  }
}

}  // namespace

void summarize(index::StoredIndex& index, const HistorySummary::Question& question,
               UniqueFunction<void(Result<HistorySummary>)> done) {
  const auto summing = std::make_shared<Summing>();
  summing->question = question;
  summing->done = std::move(done);
  if (question.width_ns != 0) {
    summing->out.columns.resize(std::min(question.columns, HistorySummary::kColumnsMax));
  }
  index.for_each(
      question.from, question.to,
      [summing](const index::IndexedWrite& write) {
        summing->add(write);
        return true;
      },
      [&index, summing](const Result<void>& visited) {
        if (!visited) return summing->done(visited.error());
        if (!summing->rolled_back && !index.is_kept(summing->question.from)) {
          // Then that is what was written: it need not be looked up once more.
          return summing->finish(summing->extents.take());
        }
        summing->extents = {};
        index.changed(summing->question.from, summing->question.to,
                      [summing](const Result<std::vector<BlockRange>>& changed) {
                        if (!changed) return summing->done(changed.error());
                        summing->finish(*changed);
                      });
      });
}

}  // namespace mariner::volume
