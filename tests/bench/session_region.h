// The part of a volume that one session after another has for itself, and what each of its blocks
// may hold: what was written last and acknowledged, or, where the last write's end is unknown,
// either that or what was before it.
//
// A block has one command at a time. A write whose end is unknown leaves the block alone for as
// long as the target may still be executing it. What the first read behind that finds is what the
// block must hold from then on: a write that comes after it is late. A write that is acknowledged
// behind one whose end is unknown holds in any case. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/bench/session_stamp.h"

namespace mariner::bench {

class SessionRegion {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Options {
    std::uint32_t session = 0;  // in stamps and messages
    std::uint64_t blocks = 0;   // 1 or more
    unsigned reads = 70;        // percent of the commands
    std::uint64_t seed = 1;
  };
  struct Command {
    std::uint64_t block = 0;  // within the region
    bool write = false;
    std::uint32_t generation = 0;  // of a write
  };

  struct Loss {
    Time until{};       // the target may be executing the command
    std::string why{};  // in words
  };
  struct Finding {
    enum class Kind {
      kRight,
      kLate,  // a write whose end was unknown, though a read before did not show it
      kWrong,
    };
    Kind kind = Kind::kRight;
    std::string text{};  // in words, if it is not right
  };

  SessionRegion(const Options& options, const StampedContents& contents);

  // The next block that was never written, to be written; none: all have been begun.
  [[nodiscard]] std::optional<Command> next_to_fill();
  // Each block in turn, to be read; none: all have been begun, or the next one cannot be read yet.
  [[nodiscard]] std::optional<Command> next_to_verify(Time now);
  [[nodiscard]] bool all_verified() const { return verified_ == blocks_.size(); }  // or begun
  // A block at random, to be read or written; none: too many are under way or left alone.
  [[nodiscard]] std::optional<Command> next(Time now);
  // The bytes of a write that next() or next_to_fill() gave.
  void fill(StampedContents::Block out, const Command& write) const;

  // How a command ended; each once.
  void written(const Command& write);
  [[nodiscard]] Finding read(const Command& read, StampedContents::ConstBlock bytes);
  // Nobody knows how.
  void lost(const Command& command, Loss loss);

  // Blocks whose last write's end is unknown.
  [[nodiscard]] std::uint64_t uncertain() const { return uncertain_; }

 private:
  struct State {
    // Generations; 0: never written. Of those in between the end is unknown.
    std::uint32_t acknowledged = 0;  // or found
    std::uint32_t latest = 0;        // begun
    bool busy = false;
    bool uncertain = false;  // nobody has looked since
  };

  [[nodiscard]] SessionStamp stamp(std::uint64_t block, std::uint32_t generation) const {
    return {.session = options_.session, .generation = generation, .block = block};
  }
  [[nodiscard]] bool usable(std::uint64_t block, Time now) const;
  Command begin(std::uint64_t block, bool write);
  State& end(const Command& command);
  // What it holds is known: the generation in `acknowledged`.
  void settle(State& state);

  const Options options_;
  const StampedContents& contents_;
  std::vector<State> blocks_;
  std::uint64_t filled_ = 0;
  std::uint64_t verified_ = 0;
  std::uint64_t uncertain_ = 0;
  std::unordered_map<std::uint64_t, Loss> losses_;  // of writes, by block, since one succeeded
  std::mt19937_64 random_;
};

}  // namespace mariner::bench
