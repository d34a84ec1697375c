#include "server/volume/layer_copy.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "server/volume/data_runs.h"

namespace mariner::volume {
namespace {

constexpr std::uint64_t kPieceBytes = 1u << 20;       // of one read
constexpr std::uint64_t kLookBytes = 64u << 20;       // whose allocation is asked for at once
constexpr std::uint64_t kUnflushedBytes = 64u << 20;  // so that no flush holds the worker for long
static_assert(kCopyPortionBytes % kPieceBytes == 0 && kLookBytes % kPieceBytes == 0);

class Copying : public std::enable_shared_from_this<Copying> {
 public:
  Copying(LayerCopy copy, Done done) : copy_(std::move(copy)), done_(std::move(done)) {
    CHECK(copy_.to.size_bytes() >= copy_.from->size_bytes());
  }

  // Begins what can be begun. Whatever ends comes back to it, in a turn of its own.
  void go_on() {
    if (result_ && waiting_ == 0 && !writing_ && !read_.empty()) write_read();
    if (result_ && waiting_ == 0 && read_.empty()) read_next();
    if (waiting_ > 0 || writing_) return;
    if (result_ && !flushed_) return flush();
    done_(std::move(result_));
  }

 private:
  struct Piece {
    std::uint64_t offset = 0;
    PayloadSlice bytes;
  };

  [[nodiscard]] std::uint64_t size() const { return copy_.from->size_bytes(); }

  void came(const Result<void>& result) {
    if (!result && result_) result_ = result;
    if (waiting_ > 1) {
      --waiting_;
      return;
    }
    copy_.executor.post([self = shared_from_this()] {
      --self->waiting_;
      self->go_on();
    });
  }

  // The next portion of what is stored, or where more of it is; nothing at the end.
  void read_next() {
    if (pieces_.empty() && looked_at_ == size()) return;
    if (copy_.may_go_on) result_ = copy_.may_go_on();
    if (!result_) return;
    if (pieces_.empty()) return look();
    ++waiting_;
    std::uint64_t bytes = 0;
    while (!pieces_.empty() && bytes + pieces_.front().length <= kCopyPortionBytes) {
      const ByteRange piece = pieces_.front();
      pieces_.pop_front();
      bytes += piece.length;
      read_.push_back({piece.offset, {}});
      ++waiting_;
      copy_.from->read(
          piece, [self = shared_from_this(), i = read_.size() - 1](Result<PayloadSlice> read) {
            if (!read) return self->came(read.error());
            self->read_[i].bytes = *std::move(read);
            self->came({});
          });
    }
    came({});
  }

  void look() {
    const ByteRange range{looked_at_, std::min(kLookBytes, size() - looked_at_)};
    ++waiting_;
    copy_.from->allocation(
        range, [self = shared_from_this(), range](const Result<std::vector<Allocation>>& found) {
          if (!found) return self->came(found.error());
          for (const Allocation& each : *found) {
            if (each.mapped) self->add(each.range);
          }
          self->looked_at_ = range.end();
          if (self->pieces_.empty() && !self->writing_) self->report(range.end());
          self->came({});
        });
  }

  // What is stored within a piece is read with what is between.
  void add(ByteRange range) {
    while (range.length > 0) {
      const std::uint64_t end =
          std::min(range.end(), (range.offset / kPieceBytes + 1) * kPieceBytes);
      const bool same_piece =
          !pieces_.empty() && pieces_.back().offset / kPieceBytes == range.offset / kPieceBytes;
      if (!same_piece) pieces_.push_back({range.offset, 0});
      pieces_.back().length = end - pieces_.back().offset;
      range = {end, range.end() - end};
    }
  }

  void write_read() {
    writing_ = true;
    copy_.worker.run(
        [this, read = std::exchange(read_, {})]() -> Result<void> {
          for (const Piece& piece : read) {
            if (Result<void> r = write(piece); !r) return r;
          }
          written_to_ = read.back().offset + read.back().bytes.length;
          if (unflushed_ < kUnflushedBytes) return {};
          unflushed_ = 0;
          return copy_.to.flush();
        },
        [self = shared_from_this()](const Result<void>& written) {
          self->writing_ = false;
          if (!written && self->result_) self->result_ = written;
          if (written) self->report(self->written_to_);
          self->go_on();
        });
  }

  // On the worker.
  Result<void> write(const Piece& piece) {
    return for_each_data_run(
        piece.bytes.bytes(), [&](std::size_t at, logging::ConstBytes run) -> Result<void> {
          const ByteRange range{piece.offset + at, run.size()};
          Result<void> r = copy_.to.write(range.offset, {&run, 1}, logging::Durability::kVolatile);
          if (!r) return r;
          copy_.to.start_writeback(range);
          unflushed_ += run.size();
          return {};
        });
  }

  void flush() {
    writing_ = true;
    copy_.worker.run([this] { return copy_.to.flush(); },
                     [self = shared_from_this()](Result<void> flushed) {
                       self->writing_ = false;
                       self->flushed_ = true;
                       if (flushed) self->report(self->size());
                       self->result_ = std::move(flushed);
                       self->go_on();
                     });
  }

  void report(std::uint64_t bytes) {
    if (copy_.progress) copy_.progress(bytes, size());
  }

  LayerCopy copy_;
  Done done_;
  Result<void> result_;
  std::uint64_t looked_at_ = 0;
  std::deque<ByteRange> pieces_;  // stored, not asked for yet: of one look
  std::vector<Piece> read_;       // or being read
  std::size_t waiting_ = 0;       // for so many answers of the layer
  bool writing_ = false;
  bool flushed_ = false;
  // The worker's, while it writes.
  std::uint64_t written_to_ = 0;
  std::uint64_t unflushed_ = 0;
};

}  // namespace

void copy_layer(LayerCopy copy, Done done) {
  std::make_shared<Copying>(std::move(copy), std::move(done))->go_on();
}

}  // namespace mariner::volume
