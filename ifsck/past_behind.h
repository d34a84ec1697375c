// Another past, asked as it is: for those that change one thing about it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ifsck/past.h"

namespace mariner::ifsck {

class PastBehind : public Past {
 public:
  // `past` outlives it.
  explicit PastBehind(Past& past) : past_(past) {}
  [[nodiscard]] std::uint64_t size_bytes() const override { return past_.size_bytes(); }
  [[nodiscard]] Result<Reach> reach() override { return past_.reach(); }
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override {
    return past_.moment_of(time);
  }
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override {
    return past_.time_of(sequence);
  }
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override {
    return past_.read(questions, to);
  }
  void expect(std::span<const Question> questions) override { past_.expect(questions); }
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override {
    return past_.changed(from, to);
  }
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override {
    return past_.versions(blocks, from, to);
  }
  [[nodiscard]] Result<SequenceNumber> first_break(SequenceNumber from,
                                                   SequenceNumber to) override {
    return past_.first_break(from, to);
  }

 protected:
  [[nodiscard]] Past& behind() { return past_; }
  [[nodiscard]] const Past& behind() const { return past_; }

 private:
  Past& past_;
};

}  // namespace mariner::ifsck
