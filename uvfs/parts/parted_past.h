// A volume, or a part of it that is chosen once it is known what there is. One thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ifsck/past.h"
#include "proto/error.h"
#include "uvfs/parts/part_past.h"

namespace mariner::uvfs {

class PartedPast final : public ifsck::Past {
 public:
  explicit PartedPast(std::unique_ptr<ifsck::Past> volume) : volume_(std::move(volume)) {}

  [[nodiscard]] ifsck::Past& volume() { return *volume_; }
  // From here on questions are of the part. Errors as of PartPast::open(); then nothing changes.
  [[nodiscard]] Result<void> choose(std::span<const ByteRange> extents) {
    auto part = PartPast::open(*volume_, extents);
    if (!part) return part.error();
    part_.emplace(std::move(*part));
    return {};
  }

  [[nodiscard]] std::uint64_t size_bytes() const override {
    return part_ ? part_->size_bytes() : volume_->size_bytes();
  }
  [[nodiscard]] Result<Reach> reach() override { return volume_->reach(); }
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override {
    return volume_->moment_of(time);
  }
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override {
    return volume_->time_of(sequence);
  }
  [[nodiscard]] Result<SequenceNumber> first_break(SequenceNumber from,
                                                   SequenceNumber to) override {
    return volume_->first_break(from, to);
  }
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override {
    return current().read(questions, to);
  }
  void expect(std::span<const Question> questions) override { current().expect(questions); }
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override {
    return current().changed(from, to);
  }
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override {
    return current().versions(blocks, from, to);
  }

 private:
  [[nodiscard]] ifsck::Past& current() { return part_ ? static_cast<Past&>(*part_) : *volume_; }

  std::unique_ptr<ifsck::Past> volume_;
  std::optional<PartPast> part_;
};

}  // namespace mariner::uvfs
