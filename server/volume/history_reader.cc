#include "server/volume/history_reader.h"

#include <numeric>
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

// One read_each().
struct HistoryReader::Batch {
  // Of questions for neighbours, that only the base holds.
  struct InBase {
    std::size_t asked;  // the first of them in `asked`
    BlockRange range;
    std::size_t offset;  // in `base`
  };
  std::vector<Question> questions;
  EachDone done;
  std::vector<PayloadSlice> found{};  // for each question
  std::vector<std::size_t> asked{};   // questions that are being looked into, ascending
  Payload zeros = Payload::zeroed(kBlockBytes);
  std::vector<InBase> in_base{};
  Payload base{};
  std::size_t next = 0;       // of in_base, to read
  std::size_t under_way = 0;  // base reads, and one for read_bases() while it issues
  Result<void> result{};

  // What is asked, a block each; neighbours together.
  [[nodiscard]] std::vector<History::Lookup> lookups(bool with_bytes) const {
    std::vector<History::Lookup> out;
    for (const std::size_t i : asked) {
      const Question& question = questions[i];
      if (!out.empty() && out.back().range.end() == question.block &&
          out.back().at == question.at) {
        ++out.back().range.count.value;
      } else {
        out.push_back({{question.block, {1}}, question.at, with_bytes});
      }
    }
    return out;
  }
  void take(const std::vector<PastRun>& runs) {
    in_base.clear();
    std::size_t at = 0;
    std::size_t base_bytes = 0;
    for (const PastRun& run : runs) {
      if (run.source == PastRun::Source::kBase) {
        in_base.push_back({at, run.range, base_bytes});
        base_bytes += run.range.count.bytes();
      }
      for (std::uint64_t i = 0; i < run.range.count.value; ++i) {
        found[asked[at++]] = slice_of(run, i);
      }
    }
    if (base_bytes == 0) return;
    base = Payload::allocate(base_bytes);
    for (const InBase& each : in_base) {
      for (std::uint64_t i = 0; i < each.range.count.value; ++i) {
        found[asked[each.asked + i]] = {base, each.offset + i * kBlockBytes, kBlockBytes};
      }
    }
  }
  [[nodiscard]] PayloadSlice slice_of(const PastRun& run, std::uint64_t block) const {
    switch (run.source) {
      case PastRun::Source::kZero: return {zeros, 0, kBlockBytes};
      case PastRun::Source::kBase: break;
      case PastRun::Source::kLog:
        return {run.bytes.payload, run.bytes.offset + (run.repeated ? 0 : block * kBlockBytes),
                kBlockBytes};
    }
    return {};
  }
  // Slices that follow each other in memory are one.
  [[nodiscard]] std::vector<PayloadSlice> joined() {
    std::vector<PayloadSlice> out;
    for (PayloadSlice& each : found) {
      if (!out.empty() && out.back().payload.data() == each.payload.data() &&
          out.back().offset + out.back().length == each.offset) {
        out.back().length += each.length;
      } else {
        out.push_back(std::move(each));
      }
    }
    return out;
  }
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

void HistoryReader::read_each(std::vector<Question> questions, EachDone done) {
  CHECK(!questions.empty() && questions.size() <= History::kBytesBlocksMax);
  const auto batch =
      std::make_shared<Batch>(Batch{.questions = std::move(questions), .done = std::move(done)});
  batch->found.resize(batch->questions.size());
  batch->asked.resize(batch->questions.size());
  std::iota(batch->asked.begin(), batch->asked.end(), 0);
  ++in_flight_;
  locate(batch);
}

void HistoryReader::finish(const BatchPtr& batch, const Result<void>& result) {
  --in_flight_;
  if (!result) return batch->done(result.error());
  batch->done(batch->joined());
}

void HistoryReader::locate(const BatchPtr& batch) {
  locate_all(history_, batch->lookups(true), [this, batch](const Result<History::Located>& found) {
    if (!found) return finish(batch, found.error());
    batch->take(found->runs);
    if (batch->in_base.empty()) return finish(batch, {});
    batch->next = 0;
    read_bases(batch);
  });
}

void HistoryReader::read_bases(const BatchPtr& batch) {
  ++batch->under_way;
  while (batch->result && batch->next < batch->in_base.size() &&
         batch->under_way <= kBaseReadsMax) {
    const Batch::InBase& each = batch->in_base[batch->next++];
    ++batch->under_way;
    base_.read(each.range, batch->base.bytes().subspan(each.offset, each.range.count.bytes()),
               [this, batch](const Result<void>& read) {
                 if (!read && batch->result) batch->result = read;
                 --batch->under_way;
                 read_bases(batch);
               });
  }
  if (--batch->under_way > 0) return;
  if (!batch->result || !base_.may_move()) return finish(batch, batch->result);
  look_again(batch);
}

// As behind read_base().
void HistoryReader::look_again(const BatchPtr& batch) {
  std::vector<std::size_t> in_base;
  for (const Batch::InBase& each : batch->in_base) {
    for (std::uint64_t i = 0; i < each.range.count.value; ++i) {
      in_base.push_back(batch->asked[each.asked + i]);
    }
  }
  batch->asked = std::move(in_base);
  locate_all(history_, batch->lookups(false), [this, batch](const Result<History::Located>& now) {
    if (!now) return finish(batch, now.error());
    std::vector<std::size_t> moved;
    std::size_t at = 0;
    for (const PastRun& run : now->runs) {
      for (std::uint64_t i = 0; i < run.range.count.value; ++i, ++at) {
        if (run.source != PastRun::Source::kBase) moved.push_back(batch->asked[at]);
      }
    }
    batch->asked = std::move(moved);
    if (batch->asked.empty()) return finish(batch, {});
    locate(batch);
  });
}

}  // namespace mariner::volume
