// Moves bytes for third-party copies, whichever command asked for them: from a layer, or from
// nowhere (zeros), to a logical unit, without the network.
//
// In pieces, in order, one piece of a job at a time, so that what was moved is always the beginning
// of what was asked for. What is not stored in the source is trimmed in the destination. Before
// each write, in the same turn, it is asked whether the job was aborted and whether the
// destination's reservations admit its initiator: whoever is fenced off writes nothing more. Nor
// does anybody while the destination is being sanitized, or has lost its medium.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "server/scsi/copy_unit.h"
#include "server/scsi/target_device.h"
#include "server/volume/layer.h"

namespace mariner::scsi {

class CopyEngine : public std::enable_shared_from_this<CopyEngine> {
 public:
  // Monotonic.
  using Clock = std::function<std::chrono::nanoseconds()>;

  struct Run {
    std::shared_ptr<volume::Layer> source;  // null: zeros
    std::uint64_t from = 0;                 // byte offsets; all multiples of 512
    std::shared_ptr<CopyUnit> destination;
    std::uint64_t to = 0;
    std::uint64_t bytes = 0;
  };
  enum class End {
    kDone,
    kOutOfTime,
    kAborted,
    kFenced,
    kNoMedium,
    kUnreadable,  // with the layer's error
    kUnwritable,
  };
  struct Ended {
    End how = End::kDone;
    std::optional<Error> error;
  };
  struct Job {
    NexusId from;
    std::optional<std::uint32_t> id;  // its list identifier
    std::optional<TaskTag> tag{};     // of the command that waits for it
    bool background = false;          // its command was answered already
    std::vector<Run> runs;
    // Stops between two pieces after so long; none: never.
    std::optional<std::chrono::nanoseconds> time_max;
    // After each piece of a run, and with no bytes for an empty run.
    UniqueFunction<void(std::uint64_t bytes, bool run_complete)> moved;
    UniqueFunction<void(const Ended&)> done;  // once, perhaps before start() returns
  };
  // Which of them.
  struct Selection {
    const NexusId* from = nullptr;  // of any initiator
    std::optional<std::uint32_t> id;
    std::optional<TaskTag> tag{};  // and those that have none: each of them may be it
    bool background_too = true;
  };

  explicit CopyEngine(Clock clock) : clock_(std::move(clock)) {}

  void start(Job job);
  // None of the selected ones begins another write. What they have given to a layer is covered by
  // its settle(). False: none was selected. `ended` runs when the last of them has ended.
  bool abort(const Selection& selection, UniqueFunction<void()> ended = nullptr);
  [[nodiscard]] std::size_t in_background() const;

 private:
  struct Active;

  void go(const std::shared_ptr<Active>& active);
  void step(const std::shared_ptr<Active>& active);
  void look(const std::shared_ptr<Active>& active);
  void copy_piece(const std::shared_ptr<Active>& active, ByteRange from, ByteRange to);
  void zero_piece(const std::shared_ptr<Active>& active, ByteRange to);
  void moved(const std::shared_ptr<Active>& active, std::uint64_t bytes);
  void end(const std::shared_ptr<Active>& active, Ended how);
  [[nodiscard]] static std::optional<End> forbidden(const Active& active);

  const Clock clock_;
  std::vector<std::shared_ptr<Active>> active_;  // bounded by the commands that begin them
};

}  // namespace mariner::scsi
