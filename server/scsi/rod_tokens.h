// The ROD tokens of a node: which data each stands for, and until when.
//
// A token stands for ranges of a snapshot (volume::Layer::snapshot()), so nothing is copied when it
// is made, and the moment stays readable while the token lives. It may be used at any logical unit
// of the node by whoever holds it and may read the unit that it was made of. Tokens are in memory
// only: after a restart they are unknown.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/extended_copy.h"
#include "server/scsi/rod_token.h"
#include "server/scsi/sense.h"
#include "server/volume/layer.h"

namespace mariner::scsi {

// What a token stands for.
struct Rod {
  CopyTarget unit;  // which it was made of
  std::shared_ptr<volume::Layer> moment;
  std::vector<ByteRange> ranges;  // in the order in which they follow each other
  std::uint64_t bytes = 0;        // of them all
};

class RodTokens {
 public:
  // Monotonic.
  using Clock = std::function<std::chrono::nanoseconds()>;

  // The third-party copy page tells these.
  static constexpr std::chrono::seconds kInactivityDefault{60};
  static constexpr std::chrono::seconds kInactivityMax{600};
  static constexpr std::chrono::seconds kLifetimeMax{3600};
  // A unit that has that many loses the one that was not used for longest; with that many in all,
  // no more are made.
  static constexpr std::size_t kOfUnitMax = 256;
  static constexpr std::size_t kMax = 2048;
  // Of which it is remembered how they ended.
  static constexpr std::size_t kEndedMax = 4096;

  explicit RodTokens(Clock clock, SecureRandom random = system_random)
      : clock_(std::move(clock)), random_(std::move(random)) {}

  // A token for `rod`, made of a unit of this identity; INSUFFICIENT RESOURCES TO CREATE ROD TOKEN
  // if there are too many.
  std::variant<Sense, RodTokenBytes> create(Rod rod, const Identity& unit,
                                            std::uint32_t block_bytes,
                                            std::chrono::seconds inactivity);

  // A token in use: it does not end by itself, and its time begins anew when the use ends.
  class Use {
   public:
    Use(RodTokens& tokens, std::uint64_t identifier, std::shared_ptr<const Rod> rod);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    [[nodiscard]] const Rod& rod() const { return *rod_; }
    // Ends the token with the use, because its initiator said so, or because its moment is gone.
    void delete_token() { ending_ = asc::kTokenDeleted; }
    void cancel_token() { ending_ = asc::kTokenCancelled; }

   private:
    const std::weak_ptr<RodTokens*> tokens_;
    const std::uint64_t identifier_;
    const std::shared_ptr<const Rod> rod_;
    AdditionalSense ending_ = asc::kNone;
  };
  // INVALID TOKEN OPERATION with what is wrong (SPC-4 5.17.6.5.2.3) for one that is not valid.
  std::variant<Sense, std::shared_ptr<Use>> use(std::span<const std::uint8_t, 512> token);

  // Ends those whose time is over, so that they do not hold history: now and then.
  void expire();
  // The management tokens of those that were made of this unit.
  [[nodiscard]] std::vector<std::uint8_t> report(const std::vector<std::uint8_t>& naa) const;
  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }

 private:
  struct Token {
    RodTokenBytes bytes{};
    std::shared_ptr<const Rod> rod;
    std::chrono::nanoseconds inactivity{0};
    std::chrono::nanoseconds created{0};
    std::chrono::nanoseconds used{0};
    std::size_t uses = 0;  // under way
  };
  struct Past {
    RodTokenBytes bytes{};
    AdditionalSense how{};
  };

  void end(std::map<std::uint64_t, Token>::iterator token, AdditionalSense how);
  void make_room_of(const CopyTarget& unit);
  void used(std::uint64_t identifier, AdditionalSense ending);

  const Clock clock_;
  const SecureRandom random_;
  std::map<std::uint64_t, Token> tokens_;  // by their identifiers
  std::deque<Past> past_;
  std::uint64_t last_ = 0;
  const std::shared_ptr<RodTokens*> self_ = std::make_shared<RodTokens*>(this);
};

}  // namespace mariner::scsi
