// A volume's layer in memory, for tests: obeys the contract of volume::Layer, durability aside.
//
// Memory is taken as blocks are written. Completions run before the call returns, unless they are
// held, so that a test can look at what is under way.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/volume/layer.h"

namespace mariner::test {

class RamLayer final : public volume::Layer {
 public:
  struct Options {
    std::uint64_t size_bytes = 0;  // a multiple of 512
    bool read_only = false;
  };

  explicit RamLayer(const Options& options);
  ~RamLayer() override;

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_only() const override { return read_only_; }
  void read(ByteRange range, volume::ReadDone done) override;
  void prefetch(ByteRange range) override;
  void write(ByteRange range, PayloadSlice data, volume::Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, volume::Done done) override;
  void update(ByteRange range, volume::Change change, volume::Done done) override;
  void trim(ByteRange range, volume::TrimMode mode, volume::Done done) override;
  void flush(volume::Done done) override;
  void allocation(ByteRange range, volume::AllocationDone done) override;
  void snapshot(volume::SnapshotDone done) override;
  void settle(volume::Done done) override;

  // What a test does to it.
  void resize(std::uint64_t size_bytes) { size_bytes_ = size_bytes; }
  void set_read_only(bool read_only) { read_only_ = read_only; }
  // The next read, write, write_same, update, trim, flush, snapshot or allocation fails with this,
  // and changes nothing.
  void fail_next(Error error) { next_error_ = std::move(error); }
  // From here on completions wait; release() runs those that wait, in order, and ends the holding.
  void hold() { holding_ = true; }
  void release();
  void record_calls() {
    recording_ = true;
    calls_.clear();
  }

  // What a test asks it.
  [[nodiscard]] std::string text(ByteRange range) const;  // the bytes there
  [[nodiscard]] std::shared_ptr<RamLayer> last_snapshot() const { return last_snapshot_.lock(); }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] const std::vector<std::string>& calls() const { return calls_; }
  void clear_calls() { calls_.clear(); }

 private:
  void record(const char* what, ByteRange range);
  void complete(UniqueFunction<void()> completion);
  std::optional<Error> take_error();
  void finish(volume::Done done);
  void fail(Error error, volume::Done done);
  void copy_in(std::uint64_t offset, std::span<const std::byte> bytes);
  void copy_out(std::uint64_t offset, std::span<std::byte> bytes) const;
  void check(ByteRange range) const;

  std::uint64_t size_bytes_;
  bool read_only_;
  std::unordered_map<std::uint64_t, std::unique_ptr<std::byte[]>> blocks_;  // by LBN
  std::optional<Error> next_error_;
  bool holding_ = false;
  std::deque<UniqueFunction<void()>> held_;
  std::weak_ptr<RamLayer> last_snapshot_;
  bool recording_ = false;
  std::vector<std::string> calls_;
};

}  // namespace mariner::test
