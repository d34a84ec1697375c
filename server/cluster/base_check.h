// Finds out whether a storage node's image holds what the log calls base, and puts right where it
// does not: of an image that an earlier version may have built anew.
//
// Such a version gave the image what is newer than the base, and did not log the base. That shows:
// the log calls the block base, and knows of a write to it that the image holds. An image that
// captures what it overwrites has logged the base of every such block. So nothing is known that the
// log does not tell, and most images need nothing but this look. Where it is so the base is logged
// out of the other node's image, which has not got as far: it would have logged it otherwise.
//
// Until that is done for all blocks, nothing that this image holds may be taken for base, and
// nothing that the log calls base may be overwritten. Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "proto/executor.h"
#include "server/volume/history_reader.h"

namespace mariner::cluster {

class BaseCheck {
 public:
  struct Parts {  // all outlive it
    volume::History& log;
    volume::Base& other;
    Executor& executor;
  };

  // Of an image of so many blocks that holds everything at or below `holds`.
  BaseCheck(Parts parts, BlockCount blocks, SequenceNumber holds)
      : parts_(parts), blocks_(blocks), holds_(holds) {}
  ~BaseCheck();  // idle() must hold
  BaseCheck(const BaseCheck&) = delete;
  BaseCheck& operator=(const BaseCheck&) = delete;

  // Whether the log may be asked; at first it may not.
  void go_on(bool may);
  // The image is emptied: it holds nobody's base.
  void give_up() { given_up_ = true; }
  // Nothing more is begun, and no more becomes known.
  void close() { closed_ = true; }

  // The image holds whatever the log calls base.
  [[nodiscard]] bool over() const { return given_up_ || next_.value >= blocks_.value; }
  [[nodiscard]] bool idle() const { return !busy_; }

 private:
  static constexpr std::uint64_t kLookBlocks = 65'536;  // 256 MiB at a time
  static constexpr auto kRetryDelay = std::chrono::seconds(1);

  [[nodiscard]] bool may_go_on() const { return may_ && !closed_ && !over(); }
  void begin();
  void look();
  void capture_next();
  void try_again();

  const Parts parts_;
  const BlockCount blocks_;
  const SequenceNumber holds_;
  Lbn next_;                      // the image holds what is base below
  Lbn looked_;                    // below this, but for:
  std::vector<BlockRange> lost_;  // the next one last
  bool may_ = false;
  bool given_up_ = false;
  bool closed_ = false;
  bool busy_ = false;
  bool retrying_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
