// A past of which blocks that were read are kept, up to a bound: moments never change, so who asks
// again, in a mount that is looked at for hours, need not ask the daemon; nor who asks for what is
// the same at another moment close by.
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
#include "ifsck/past_behind.h"
#include "uvfs/near_moments.h"

namespace mariner::uvfs {

class KeptPast final : public ifsck::PastBehind {
 public:
  struct Options {
    std::size_t blocks_max = 16 * 1024;  // 64 MiB; those that were asked for last
    // Who asks for more at once reads through, and none of it is kept.
    std::size_t questions_max = 192;
  };

  // `past` outlives it.
  explicit KeptPast(ifsck::Past& past) : KeptPast(past, Options{}) {}
  KeptPast(ifsck::Past& past, const Options& options)
      : PastBehind(past), options_(options), near_(past) {}

  // Much will be asked as of that moment: what is kept of others nearby is used for it.
  void share(SequenceNumber at) { near_.add(at); }
  // What is not kept is asked for in one question.
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;
  void expect(std::span<const Question> questions) override;

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
  // The block, if it is kept: of that moment, or of another at which it is the same.
  [[nodiscard]] const ifsck::Overlay::Block* find(const Question& question);
  void keep(const Question& question, std::span<const std::byte> block);

  const Options options_;
  NearMoments near_;
  std::list<One> kept_;  // the last one that was asked for is in front
  std::unordered_map<Question, std::list<One>::iterator, Hash> places_;
};

}  // namespace mariner::uvfs
