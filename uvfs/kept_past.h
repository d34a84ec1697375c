// A past of which blocks that were read are kept, up to a bound: moments never change, so who asks
// again, in a mount that is looked at for hours, need not ask the daemon.
//
// (Dissertation 4.5.3, "disk block caching".) One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ifsck/overlay.h"
#include "ifsck/past.h"

namespace mariner::uvfs {

class KeptPast final : public ifsck::Past {
 public:
  struct Options {
    std::size_t blocks_max = 16 * 1024;  // 64 MiB; those that were asked for last
    // Who asks for more at once reads through, and none of it is kept.
    std::size_t questions_max = 1024;
  };

  // `past` outlives it.
  explicit KeptPast(ifsck::Past& past) : KeptPast(past, Options{}) {}
  KeptPast(ifsck::Past& past, const Options& options) : past_(past), options_(options) {}

  // As the past says.
  [[nodiscard]] std::uint64_t size_bytes() const override { return past_.size_bytes(); }
  [[nodiscard]] Result<Reach> reach() override { return past_.reach(); }
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override {
    return past_.moment_of(time);
  }
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override {
    return past_.time_of(sequence);
  }
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

  // What is not kept is asked for in one question.
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;

 private:
  struct One {
    Question question;
    std::unique_ptr<ifsck::Overlay::Block> block;
  };
  struct Hash {
    std::size_t operator()(const Question& each) const {
      return each.block.value * 0x9e3779b97f4a7c15ULL ^ each.at.value * 0xc2b2ae3d27d4eb4fULL;
    }
  };
  void keep(const Question& question, std::span<const std::byte> block);

  ifsck::Past& past_;
  const Options options_;
  std::list<One> kept_;  // the last one that was asked for is in front
  std::unordered_map<Question, std::list<One>::iterator, Hash> places_;
};

}  // namespace mariner::uvfs
