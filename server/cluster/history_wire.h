// The questions of volume::History and their answers as bytes: a header (proto/history.proto) and,
// behind it, bytes of blocks.
//
// Parsed once, here: what comes out of decode_*() is consistent in itself and bounded, whatever was
// received.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/error.h"
#include "proto/payload.h"
#include "proto/units.h"
#include "server/volume/history.h"

namespace mariner::cluster {

// A question asks for the bytes of so many blocks at most, and for so many lookups.
inline constexpr std::uint64_t kQuestionBlocksMax = volume::History::kBytesBlocksMax;
inline constexpr std::size_t kQuestionLookupsMax = 1024;
// An answer has so many runs or extents at most; the rest is another question, or part.
inline constexpr std::size_t kAnswerRunsMax = 2048;
// A summary lists so many writes at most.
inline constexpr std::uint32_t kSummaryWritesMax = 50'000;

struct LocateQuestion {
  std::vector<volume::History::Lookup> lookups;  // 1 to kQuestionLookupsMax
};
struct ReadQuestion {
  BlockRange range;  // 1 to kQuestionBlocksMax blocks
  SequenceNumber at;
};
struct ChangedQuestion {
  SequenceNumber from;
  SequenceNumber to;
};
struct HoldQuestion {
  SequenceNumber at;
};
struct ReleaseQuestion {
  std::uint64_t held = 0;
};
struct BeforeImageQuestion {
  BlockRange range;
  PayloadSlice bytes;
};
struct MomentQuestion {
  std::variant<VersionTime, SequenceNumber> asked;
};
// Asked of a storage node, about its image.
struct BaseQuestion {
  BlockRange range;  // 1 to kQuestionBlocksMax blocks
};
// Asked of a storage node by its coordinator: the contents of now.
struct CurrentQuestion {
  BlockRange range;   // 1 to kQuestionBlocksMax blocks
  SequenceNumber at;  // once everything at or below is committed there
  Epoch epoch;        // of who asks
};
struct SummaryQuestion {
  volume::HistorySummary::Question what;  // within kSummaryWritesMax
};
struct VersionsQuestion {
  std::vector<volume::History::Since> blocks;  // 1 to kSinceMax
  SequenceNumber to;
};
struct HistoryQuestion {
  VolumeId volume;
  std::uint64_t id = 0;
  std::variant<LocateQuestion, ReadQuestion, ChangedQuestion, HoldQuestion, ReleaseQuestion,
               BeforeImageQuestion, MomentQuestion, SummaryQuestion, BaseQuestion, CurrentQuestion,
               VersionsQuestion>
      what;
};

struct FailureAnswer {
  Error error;
};
struct LocatedAnswer {
  std::vector<volume::PastRun> runs;
  SequenceNumber newest;
};
struct ReadAnswer {
  std::vector<BlockRange> base;  // ascending
  PayloadSlice bytes;
};
struct ChangedAnswer {
  std::vector<BlockRange> extents;
  bool more = false;
};
struct DoneAnswer {};
struct MomentAnswer {
  volume::History::Moment moment;
};
struct SummaryAnswer {
  volume::HistorySummary summary;
};
struct VersionsAnswer {
  volume::History::Versions versions;  // kVersionsMax at most
};
struct HistoryAnswer {
  VolumeId volume;
  std::uint64_t id = 0;
  std::variant<FailureAnswer, LocatedAnswer, ReadAnswer, ChangedAnswer, DoneAnswer, MomentAnswer,
               SummaryAnswer, VersionsAnswer>
      what;
};

// What goes into a frame. The bytes of a located answer's runs are put together, copied.
struct HistoryFrame {
  std::string header;
  PayloadSlice payload;
};
[[nodiscard]] HistoryFrame encode(const HistoryQuestion& question);
[[nodiscard]] HistoryFrame encode(const HistoryAnswer& answer);

// kProtocol, with what was expected and what was found.
[[nodiscard]] Result<HistoryQuestion> decode_question(std::string_view header, Payload payload);
[[nodiscard]] Result<HistoryAnswer> decode_answer(std::string_view header, Payload payload);

}  // namespace mariner::cluster
