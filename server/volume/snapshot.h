// A moment of a volume that is kept readable for a while, without a name and without a copy: as
// long as somebody holds the layer, the log gives up nothing that the moment needs.
//
// A volume that is short of room, or closed, drops all of them at once: what they read fails from
// then on, rather than showing what the history has no longer. Owner's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "server/volume/layer.h"

namespace mariner::volume {

// Opens a snapshot of a settled moment of one volume.
using OpenSnapshot = std::function<Result<std::shared_ptr<Layer>>(SequenceNumber at)>;

// Which moments the snapshots of a volume need. Outlives the volume where snapshots do.
class SnapshotPins {
 public:
  using Id = std::uint64_t;

  Id add(SequenceNumber at);
  void remove(Id id) { pins_.erase(id); }
  [[nodiscard]] bool holds(Id id) const { return pins_.contains(id); }
  // At or after `from`.
  [[nodiscard]] std::optional<SequenceNumber> oldest(SequenceNumber from) const;
  [[nodiscard]] bool any_at(SequenceNumber moment) const;
  // False: there were none.
  bool drop_all();

 private:
  std::map<Id, SequenceNumber> pins_;  // bounded by those who hold snapshots
  Id last_ = 0;
};

// Keeps a moment as a snapshot does, for who reads it in another way.
class SnapshotPin {
 public:
  SnapshotPin(SequenceNumber at, std::shared_ptr<SnapshotPins> pins)
      : pins_(std::move(pins)), pin_(pins_->add(at)) {}
  ~SnapshotPin() { pins_->remove(pin_); }
  SnapshotPin(const SnapshotPin&) = delete;
  SnapshotPin& operator=(const SnapshotPin&) = delete;
  // False: it was dropped. What was read since may be of a later time.
  [[nodiscard]] bool holds() const { return pins_->holds(pin_); }

 private:
  const std::shared_ptr<SnapshotPins> pins_;
  const SnapshotPins::Id pin_;
};

class Snapshot final : public Layer {
 public:
  // The volume's layer of the moment; null when the volume is gone.
  using OpenView = std::function<std::shared_ptr<Layer>()>;

  Snapshot(std::uint64_t size_bytes, SequenceNumber at, std::shared_ptr<SnapshotPins> pins,
           OpenView open_view)
      : size_bytes_(size_bytes),
        pins_(std::move(pins)),
        pin_(pins_->add(at)),
        open_view_(std::move(open_view)) {}
  ~Snapshot() override { pins_->remove(pin_); }

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_only() const override { return true; }
  void read(ByteRange range, ReadDone done) override;
  void write(ByteRange range, PayloadSlice data, Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, Done done) override;
  void update(ByteRange range, Change change, Done done) override;
  void trim(ByteRange range, TrimMode mode, Done done) override;
  void flush(Done done) override { done({}); }
  void allocation(ByteRange range, AllocationDone done) override;
  void snapshot(SnapshotDone done) override;
  void settle(Done done) override { done({}); }

 private:
  // Null when it was dropped.
  [[nodiscard]] std::shared_ptr<Layer> view() const;

  const std::uint64_t size_bytes_;
  const std::shared_ptr<SnapshotPins> pins_;
  const SnapshotPins::Id pin_;
  const OpenView open_view_;
};

}  // namespace mariner::volume
