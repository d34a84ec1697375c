#include "server/volume/bounded_layer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::volume {
namespace {

// Blocks of one lookup: as many as take a moment, however much of them is filled.
constexpr std::uint64_t kLookupBlocksMin = 1024;
constexpr std::uint64_t kLookupBlocksMax = std::uint64_t{1} << 18;  // the next may all be filled
constexpr std::size_t kRunsMany = 4096;
constexpr std::size_t kRunsFew = 512;

}  // namespace

struct BoundedLayer::Operation {
  BlockRange blocks;
  Leaves leaves;
  std::uint64_t edges = 0;  // blocks that it has in part
  UniqueFunction<void(Done)> carry_out;
  Done done;
  UnplacedWrites::Ticket ticket;
  std::optional<ExtentLocks::LockId> lock{};
  std::uint64_t filled_before = 0;
  std::uint64_t reserved = 0;
  bool accounted = false;  // what it has changed is in what is used
};

struct BoundedLayer::Counting {
  BlockRange left;
  CountDone done;
  std::uint64_t blocks = 0;
  std::uint64_t step = kLookupBlocksMin;
};

BoundedLayer::~BoundedLayer() { CHECK_MSG(idle(), "a bounded layer is destroyed in use"); }

void BoundedLayer::close(const Error& error) { closed_ = error; }

void BoundedLayer::begin() {
  if (used_blocks_ || std::exchange(counting_, true)) return;
  count({Lbn{0}, {size_bytes() >> kBlockShift}},
        [this](Result<std::uint64_t> blocks) { counted(std::move(blocks)); });
}

// After an error who waited hears of it, and the next write tries again.
void BoundedLayer::counted(Result<std::uint64_t> blocks) {
  counting_ = false;
  if (blocks) used_blocks_ = *blocks;
  warn();
  for (const std::shared_ptr<Operation>& operation : std::exchange(waiting_, {})) {
    if (blocks) {
      enter(operation);
    } else {
      refuse(operation, blocks.error());
    }
  }
}

void BoundedLayer::refuse(const std::shared_ptr<Operation>& operation, const Error& error) {
  if (operation->lock) locks_.unlock(*operation->lock);
  unplaced_.end(operation->ticket);
  --operations_;
  operation->done(error);
}

std::optional<std::uint64_t> BoundedLayer::used_bytes() const {
  if (!used_blocks_) return std::nullopt;
  return *used_blocks_ * kBlockBytes;
}

void BoundedLayer::warn() {
  if (!nearly_full_ || !used_blocks_) return;
  const std::uint64_t used = *used_blocks_ * kBlockBytes;
  if (used < bytes_max_ / 10 * 9) return;
  std::exchange(nearly_full_, nullptr)(used);
}

void BoundedLayer::count(BlockRange range, CountDone done) {
  count_on(std::make_shared<Counting>(Counting{range, std::move(done)}));
}

void BoundedLayer::count_on(const std::shared_ptr<Counting>& counting) {
  if (closed_) return counting->done(*closed_);
  const SequenceNumber at = parts_.settled();  // 0: nothing was ever written
  if (at.value == 0 || counting->left.empty()) return counting->done(counting->blocks);
  const BlockCount part{std::min(counting->step, counting->left.count.value)};
  const BlockRange range{counting->left.first, part};
  counting->left = {Lbn{range.first.value + part.value}, {counting->left.count.value - part.value}};
  locate_all(parts_.history, {{range, at}}, [this, counting](Result<History::Located> located) {
    if (!located) return counting->done(located.error());
    for (const PastRun& run : located->runs) {
      if (run.source == PastRun::Source::kLog) counting->blocks += run.range.count.value;
    }
    const std::size_t runs = located->runs.size();
    if (runs < kRunsFew) {
      counting->step = std::min(counting->step * 4, kLookupBlocksMax);
    } else if (runs > kRunsMany) {
      counting->step = std::max(counting->step / 4, kLookupBlocksMin);
    }
    if (counting->left.empty()) return counting->done(counting->blocks);
    // In a turn of its own: much may be there.
    parts_.executor.post([this, counting] { count_on(counting); });
  });
}

void BoundedLayer::submit(ByteRange range, Leaves leaves, UniqueFunction<void(Done)> carry_out,
                          Done done) {
  const auto operation = std::make_shared<Operation>(Operation{range.covering_blocks(), leaves, 0,
                                                               std::move(carry_out),
                                                               std::move(done), unplaced_.begin()});
  operation->edges = operation->blocks.count.value - range.inner_blocks().count.value;
  ++operations_;
  if (used_blocks_) return enter(operation);
  waiting_.push_back(operation);
  begin();
}

void BoundedLayer::enter(const std::shared_ptr<Operation>& operation) {
  locks_.exclusive(operation->blocks, [this, operation](ExtentLocks::LockId lock) {
    operation->lock = lock;
    count(operation->blocks, [this, operation](const Result<std::uint64_t>& filled) {
      if (!filled) return refuse(operation, filled.error());
      operation->filled_before = *filled;
      admit(operation);
    });
  });
}

void BoundedLayer::admit(const std::shared_ptr<Operation>& operation) {
  std::uint64_t growth = operation->blocks.count.value - operation->filled_before;
  if (operation->leaves == Leaves::kEdges) growth = std::min(growth, operation->edges);
  if (operation->leaves == Leaves::kNoMore) growth = 0;
  if (growth > 0 && (*used_blocks_ + reserved_blocks_ + growth) * kBlockBytes > bytes_max_) {
    return refuse(operation, {ErrorCode::kNoSpace,
                              "the overlay holds " + std::to_string(*used_blocks_ * kBlockBytes) +
                                  " bytes of at most " + std::to_string(bytes_max_)});
  }
  operation->reserved = growth;
  reserved_blocks_ += growth;
  operation->carry_out(
      [this, operation](Result<void> result) { carried_out(operation, std::move(result)); });
  unplaced_.end(operation->ticket);
}

// What is durable may have to wait for others until it is in the history.
void BoundedLayer::carried_out(const std::shared_ptr<Operation>& operation, Result<void> result) {
  if (result && operation->leaves == Leaves::kAllFilled) {
    *used_blocks_ += operation->reserved;
    reserved_blocks_ -= operation->reserved;
    operation->accounted = true;
    warn();
  }
  operation->done(std::move(result));
  parts_.below.settle([this, operation](const Result<void>&) { leave(operation); });
}

void BoundedLayer::leave(const std::shared_ptr<Operation>& operation) {
  const auto end = [this, operation] {
    locks_.unlock(*operation->lock);
    --operations_;
  };
  if (operation->accounted) return end();
  count(operation->blocks, [this, operation, end](const Result<std::uint64_t>& filled) {
    reserved_blocks_ -= operation->reserved;
    // What cannot be told counts as it did.
    if (filled) *used_blocks_ += *filled - operation->filled_before;
    warn();
    end();
  });
}

void BoundedLayer::write(ByteRange range, PayloadSlice data, Done done) {
  submit(
      range, Leaves::kAllFilled,
      [this, range, data = std::move(data)](Done carried_out) mutable {
        parts_.below.write(range, std::move(data), std::move(carried_out));
      },
      std::move(done));
}

void BoundedLayer::write_same(ByteRange range, PayloadSlice pattern, Done done) {
  const Leaves leaves = all_zero(pattern.bytes()) ? Leaves::kEdges : Leaves::kAllFilled;
  submit(
      range, leaves,
      [this, range, pattern = std::move(pattern)](Done carried_out) mutable {
        parts_.below.write_same(range, std::move(pattern), std::move(carried_out));
      },
      std::move(done));
}

void BoundedLayer::update(ByteRange range, Change change, Done done) {
  submit(
      range, Leaves::kUnknown,
      [this, range, change = std::move(change)](Done carried_out) mutable {
        parts_.below.update(range, std::move(change), std::move(carried_out));
      },
      std::move(done));
}

void BoundedLayer::trim(ByteRange range, TrimMode mode, Done done) {
  submit(
      range, mode == TrimMode::kUnmap ? Leaves::kNoMore : Leaves::kEdges,
      [this, range, mode](Done carried_out) {
        parts_.below.trim(range, mode, std::move(carried_out));
      },
      std::move(done));
}

void BoundedLayer::settle(Done done) {
  unplaced_.when_placed(
      [this, done = std::move(done)]() mutable { parts_.below.settle(std::move(done)); });
}

}  // namespace mariner::volume
