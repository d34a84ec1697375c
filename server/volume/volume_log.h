// The logger's part of one volume: turns its stamped writes into log records, and durable records
// into index entries.
//
// The log finishes records in any order. Invariants: a record is in the index only when it is on
// stable storage; writes come into the index in the order of their numbers, so that one may be
// acknowledged before it is there, but is there when it is settled; before-images and rebases come
// into the index in the order in which they were logged, and their callers hear of it then. When
// the index has no room, writes wait for it before they are logged. Owner's thread only.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "index/stored_index.h"
#include "logging/log_writer.h"
#include "replication/participant.h"
#include "server/volume/base_map.h"
#include "server/volume/kept_judge.h"
#include "server/volume/unapplied_bytes.h"

namespace mariner::volume {

// The log record of a stamped write.
logging::Record record_of(const replication::WriteMessage& message);

// Where the images of a volume are: who takes before-images out of their way, and of what.
enum class Images {
  kNone,       // a writable view, a journal
  kHere,       // one, which keeps what it holds under zeros
  kElsewhere,  // several, which may log the same before-image each, and keep nothing under zeros
};

class VolumeLog final : public replication::LoggerParticipant {
 public:
  struct Parts {  // all outlive it
    logging::LogWriter& writer;
    index::StoredIndex& index;
    const BaseMap& base;
  };
  VolumeLog(VolumeId volume, Epoch epoch, Parts parts, Images images = Images::kNone)
      : volume_(volume),
        epoch_(epoch),
        writer_(parts.writer),
        index_(parts.index),
        base_(parts.base),
        images_(images) {}
  ~VolumeLog() override { *alive_ = false; }

  void log(const replication::WriteMessage& message,
           UniqueFunction<void(Result<void>)> done) override;
  void log_void(const replication::VoidMessage& message,
                UniqueFunction<void(Result<void>)> done) override;

  // The log needs no room any more for before-images that this has brought about.
  void applied(SequenceNumber through) override;
  // What a start found in the log that no image holds.
  void found(const UnappliedBytes& unapplied);

  // Makes `bytes`, what the base holds for `range`, durable and indexed as a before-image; with
  // `replaces` in the place of earlier ones.
  void log_before_image(BlockRange range, PayloadSlice bytes, bool replaces,
                        UniqueFunction<void(Result<void>)> done);

  // Makes what the kept moments of `shown` show durable and indexed; no bytes where it is zeros.
  void log_kept(const KeptShown& shown, PayloadSlice bytes,
                UniqueFunction<void(Result<void>)> done);

  // History::writes_at_once()
  [[nodiscard]] double writes_at_once() const { return writer_.records_of_a_batch(); }

  // Makes the image the base of `range`, durably and in the index: its before-images are void.
  void log_rebase(BlockRange range, UniqueFunction<void(Result<void>)> done);

  // Writes that wait for room in the index fail with this, and whatever else comes. No room is kept
  // for before-images any more.
  void close(const Error& error);

  [[nodiscard]] VolumeId volume() const { return volume_; }
  // Payload that the history has: of writes and before-images.
  [[nodiscard]] std::uint64_t payload_bytes() const { return payload_bytes_; }
  void count_payload(std::uint64_t recovered) { payload_bytes_ += recovered; }
  void uncount_payload(std::uint64_t given_up) {
    payload_bytes_ -= std::min(given_up, payload_bytes_);
  }

  // Appends in flight: the owner waits for 0 before it destroys this.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  using Done = UniqueFunction<void(Result<void>)>;
  // A record that the log has not finished, or that waits for one before it.
  struct Entry {
    logging::Record record;
    std::uint64_t set_aside = 0;  // LogWriter::append()
    bool finished = false;
    Result<logging::LoggedAt> result = logging::LoggedAt{};
    Done done;
  };
  // In the order in which they go into the index.
  struct Queue {
    std::deque<Entry> entries;
    std::uint64_t first = 0;  // number of the first of them
  };

  void append_write(const logging::Record& record, PayloadSlice payload, logging::Urgency urgency,
                    Done done);
  void append_base(const logging::Record& record, PayloadSlice payload, logging::Urgency urgency,
                   Done done);
  // A write that waits for room in the index.
  struct Held {
    replication::WriteMessage message;
    Done done;
  };

  static Entry& finish(Queue& queue, std::uint64_t number, Result<logging::LoggedAt> result);
  void index(Entry& entry);
  [[nodiscard]] bool may_replace_base(const logging::Record& record) const;
  // The room that before-images may take which this write brings about, when the index has it.
  [[nodiscard]] std::uint64_t room_for_before_images(const logging::Record& record) const;
  void append_held();

  const VolumeId volume_;
  const Epoch epoch_;
  logging::LogWriter& writer_;
  index::StoredIndex& index_;
  const BaseMap& base_;
  const Images images_;
  UnappliedBytes set_aside_;  // of what is in the index
  SequenceNumber applied_;
  Queue writes_;  // bounded by the coordinator's admission
  Queue bases_;
  std::deque<Held> held_;  // bounded as writes_
  std::optional<Error> closed_;
  std::size_t in_flight_ = 0;
  std::uint64_t payload_bytes_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::volume
