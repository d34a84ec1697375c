// SPDX-License-Identifier: GPL-2.0-only
// A logical unit of tgt's that is a volume of marinerd's: each command goes there as it came, with
// its data in tgt's own memory, and status, sense and residuals come back as marinerd gave them.
// Used by tgtd's one thread.
//
// - An initiator of tgt's never misses that the volume is another one (rolled back, grown): what
//   marinerd tells our one session as a unit attention, tgt tells every initiator of the unit.
//   After a session was lost it is told as a reset, because nobody knows what happened meanwhile.
// - tgt knows the size before an initiator that was told of it asks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/tgt/session.h"
#include "server/tgt/tgt_abi.h"

namespace mariner::tgt {

class Unit final : private Session::Owner {
 public:
  // Logs in, asks for size, block size and limits, and lets the reactor go on with it. Takes at
  // most some seconds. Null: `fault` says why.
  static std::unique_ptr<Unit> open(ScsiLu& lu, const std::string& volume, const Options& options,
                                    Reactor& reactor, std::string& fault);
  // Whoever still waits for an answer is told that the unit is not ready.
  ~Unit() override;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // False: it cannot be carried out by any marinerd.
  [[nodiscard]] bool submit(ScsiCmd& command);
  [[nodiscard]] std::uint64_t bytes() const { return blocks_ << block_shift_; }
  // For tgt, which wants a descriptor of what is open. It can be neither read nor sought in.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Puts marinerd's limits into tgt's page of them.
  void tell_limits(ScsiLu& lu) const;

 private:
  Unit(ScsiLu& lu, std::string volume, const Options& options, Reactor& reactor);

  bool ask(Command& command, std::span<std::uint8_t> answer, Clock::time_point until);
  std::string learn(Clock::time_point until);
  bool learn_capacity();
  std::string take_block_size();
  void refresh(Command* held);
  void refreshed();

  void answered(Command& command) override;
  [[nodiscard]] bool wanted(const Command& command) const override;
  void attention(std::uint16_t code) override;
  void came_back() override;
  void went_away(const std::string& why) override;
  void stays_away(const std::string& why) override;

  Command& fresh_command();
  void end(Command& command);
  void end_with(ScsiCmd& command, std::uint8_t key, std::uint16_t code);

  ScsiLu& lu_;
  const std::string volume_;
  const std::string portal_;
  int descriptor_ = -1;
  std::uint64_t blocks_ = 0;
  unsigned block_shift_ = 0;
  int physical_block_bytes_ = 0;
  bool read_only_ = false;
  std::array<std::uint8_t, 64> limits_{};  // marinerd's block limits page

  Session session_;
  Clock::time_point away_since_{};
  std::vector<std::unique_ptr<Command>> commands_;  // as many as were ever under way at once
  std::vector<Command*> free_;
  Command capacity_;  // READ CAPACITY(16)
  std::array<std::uint8_t, 32> capacity_answer_{};
  bool refreshing_ = false;
  bool refresh_again_ = false;
  CommandList held_;  // answered with an attention; told when the size is known
};

}  // namespace mariner::tgt
