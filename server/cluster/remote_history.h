// The past of a volume whose log is on another node: History's questions as messages to the logger.
//
// Sans I/O: frames go out through what up() is given and come in by received(). While the logger is
// away every question is answered with kUnavailable, those under way when it goes, too; a question
// that was so answered is not looked into later than one that is asked when it is back (the logger
// sees to that, history_session.h). Holds outlive a broken connection: they are asked for again.
// Owner's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "server/cluster/history_wire.h"
#include "server/cluster/question_slots.h"
#include "server/volume/history.h"

namespace mariner::cluster {

class RemoteHistory final : public volume::History {
 public:
  // Takes a frame, or refuses it (false) when too much waits; writable() follows then.
  using Send = UniqueFunction<bool(const HistoryFrame&)>;
  // Beyond it: kUnavailable.
  static constexpr std::size_t kQuestionsMax = 1024;

  explicit RemoteHistory(VolumeId volume);
  ~RemoteHistory() override;  // nothing may be under way

  // The logger is there, until down(). `slots`: of the connection; null: it is this one's alone.
  void up(Send send, std::shared_ptr<QuestionSlots> slots = nullptr);
  void down();
  void writable();
  // An answer for this volume. kProtocol: it answers nothing that was asked; the connection is of
  // no use any more.
  Result<void> received(HistoryAnswer answer);

  // Of a storage node: what its image holds. Fills `to` (range.count blocks).
  void read_base(BlockRange range, std::span<std::byte> to, volume::Done done);
  // Of a storage node: what the volume holds now, when everything at or below `at` is committed
  // there, for the coordinator of `epoch` (served_reads.h). Fills `to` (range.count blocks).
  void read_current(BlockRange range, SequenceNumber at, Epoch epoch, std::span<std::byte> to,
                    volume::Done done);

  void locate(std::vector<Lookup> lookups, LocateDone done) override;
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override;
  void changed(SequenceNumber from, SequenceNumber to, Portion portion, volume::Done done) override;
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override;
  void hold(SequenceNumber at, HoldDone done) override;
  void log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) override;
  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override;
  void summarize(const volume::HistorySummary::Question& question, SummaryDone done) override;

 private:
  struct Holds;
  struct HeldMoment;
  struct Locating {
    std::vector<Lookup> lookups;
    LocateDone done;
  };
  struct Reading;  // of all pieces
  struct ReadingPiece {
    std::shared_ptr<Reading> reading;
    std::size_t piece = 0;
  };
  struct Changing {
    Portion portion;
    volume::Done done;
  };
  struct Holding {
    SequenceNumber at;
    HoldDone done;  // null: it was held before the connection broke
  };
  struct Logging {
    volume::Done done;
  };
  struct Finding {
    MomentDone done;
  };
  struct Summing {
    SummaryDone done;
  };
  struct Listing {
    std::vector<Since> blocks;
    SequenceNumber to;
    VersionsDone done;
  };
  using Pending =
      std::variant<Locating, ReadingPiece, Changing, Holding, Logging, Finding, Summing, Listing>;

  struct Unsent {
    HistoryFrame frame;
    std::uint64_t question = 0;  // 0: there is no answer to it
  };

  void ask(decltype(HistoryQuestion::what) what, Pending pending);
  // In pieces, each of which `question` asks for.
  template <typename Question>
  void read_pieces(BlockRange range, std::span<std::byte> to, Question question, ReadDone done);
  template <typename Question>
  void read_whole(BlockRange range, std::span<std::byte> to, Question question, volume::Done done);
  void send(const HistoryQuestion& question);
  static void fail(Pending& pending, const Error& error);
  [[nodiscard]] bool was_sent(std::uint64_t question) const;
  void answered();
  void finish_piece(const std::shared_ptr<Reading>& reading);

  Result<void> answer(Locating& pending, const LocatedAnswer& located);
  Result<void> answer(ReadingPiece& pending, ReadAnswer& read);
  static Result<void> answer(Listing& pending, Versions& versions);

  const VolumeId volume_;
  Send send_;  // null: the logger is away
  std::shared_ptr<QuestionSlots> slots_;
  std::size_t under_way_ = 0;  // of the slots
  std::deque<Unsent> unsent_;
  std::map<std::uint64_t, Pending> pending_;
  std::uint64_t last_id_ = 0;
  // Shared with the holds, which may outlive this.
  const std::shared_ptr<Holds> holds_;
};

}  // namespace mariner::cluster
