#include "server/cluster/history_wire.h"

#include <cstring>
#include <optional>
#include <utility>

#include "proto/check.h"
#include "proto/history.pb.h"

namespace mariner::cluster {
namespace {

using volume::History;
using volume::HistorySummary;
using volume::PastRun;
constexpr std::size_t kTextBytesMax = 1024;

Error wrong(std::string what) {
  return Error{ErrorCode::kProtocol, "a message about the history " + std::move(what)};
}

void put(const BlockRange& range, wire::Blocks& out) {
  out.set_first(range.first.value);
  out.set_count(range.count.value);
}

// Nothing: it is empty, or no volume has such blocks.
std::optional<BlockRange> range_of(const wire::Blocks& from) {
  constexpr std::uint64_t kBlocksMax = UINT64_MAX / kBlockBytes;
  if (from.count() == 0 || from.count() > kBlocksMax || from.first() > kBlocksMax - from.count()) {
    return std::nullopt;
  }
  return BlockRange{{from.first()}, {from.count()}};
}

template <typename Ranges>
std::optional<std::vector<BlockRange>> ranges_of(const Ranges& from) {
  std::vector<BlockRange> out;
  if (static_cast<std::size_t>(from.size()) > kAnswerRunsMax) return std::nullopt;
  for (const wire::Blocks& each : from) {
    const auto range = range_of(each);
    if (!range) return std::nullopt;
    out.push_back(*range);
  }
  return out;
}

// ---- questions

void put(const LocateQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  for (const History::Lookup& lookup : q.lookups) {
    auto& one = *out.mutable_locate()->add_lookups();
    put(lookup.range, *one.mutable_range());
    one.set_at(lookup.at.value);
    one.set_with_bytes(lookup.with_bytes);
  }
}
void put(const ReadQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  put(q.range, *out.mutable_read()->mutable_range());
  out.mutable_read()->set_at(q.at.value);
}
void put(const ChangedQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  out.mutable_changed()->set_from(q.from.value);
  out.mutable_changed()->set_to(q.to.value);
}
void put(const HoldQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  out.mutable_hold()->set_at(q.at.value);
}
void put(const ReleaseQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  out.mutable_release()->set_held(q.held);
}
void put(const BeforeImageQuestion& q, wire::HistoryQuestion& out, PayloadSlice& payload) {
  put(q.range, *out.mutable_before_image()->mutable_range());
  payload = q.bytes;
}

void put(const MomentQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  if (const auto* time = std::get_if<VersionTime>(&q.asked)) {
    out.mutable_moment()->set_time(time->ns);
  } else {
    out.mutable_moment()->set_sequence(std::get<SequenceNumber>(q.asked).value);
  }
}
void put(const BaseQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  put(q.range, *out.mutable_base()->mutable_range());
}
void put(const CurrentQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  put(q.range, *out.mutable_current()->mutable_range());
  out.mutable_current()->set_at(q.at.value);
  out.mutable_current()->set_epoch(q.epoch.value);
}
void put(const SummaryQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  wire::HistoryQuestion::Summary& to = *out.mutable_summary();
  to.set_from(q.what.from.value);
  to.set_to(q.what.to.value);
  to.set_start(q.what.start.ns);
  to.set_width(q.what.width_ns);
  to.set_columns(q.what.columns);
  to.set_writes_max(q.what.writes_max);
}

void put(const VersionsQuestion& q, wire::HistoryQuestion& out, PayloadSlice& /*payload*/) {
  wire::HistoryQuestion::Versions& to = *out.mutable_versions();
  for (const History::Since& each : q.blocks) {
    to.add_blocks(each.block.value);
    to.add_after(each.after.value);
  }
  to.set_to(q.to.value);
}

Result<VersionsQuestion> versions_of(const wire::HistoryQuestion::Versions& from) {
  const auto count = static_cast<std::size_t>(from.blocks_size());
  if (count == 0 || count > History::kSinceMax || from.after_size() != from.blocks_size()) {
    return wrong("asks for the versions of " + std::to_string(count) + " blocks behind " +
                 std::to_string(from.after_size()) + " moments: expected as many, 1 to " +
                 std::to_string(History::kSinceMax));
  }
  VersionsQuestion out{{}, {from.to()}};
  for (int i = 0; i < from.blocks_size(); ++i) {
    out.blocks.push_back({{from.blocks(i)}, {from.after(i)}});
  }
  return out;
}

Result<SummaryQuestion> summary_of(const wire::HistoryQuestion::Summary& from) {
  if (from.to() < from.from()) return wrong("asks backwards");
  if (from.columns() > HistorySummary::kColumnsMax || from.writes_max() > kSummaryWritesMax) {
    return wrong("asks for a summary of " + std::to_string(from.columns()) + " columns and " +
                 std::to_string(from.writes_max()) + " writes: expected at most " +
                 std::to_string(HistorySummary::kColumnsMax) + " and " +
                 std::to_string(kSummaryWritesMax));
  }
  return SummaryQuestion{{{from.from()},
                          {from.to()},
                          {from.start()},
                          from.width(),
                          from.columns(),
                          from.writes_max()}};
}

Result<LocateQuestion> locate_of(const wire::HistoryQuestion::Locate& from) {
  LocateQuestion out;
  std::uint64_t blocks = 0;
  const auto count = static_cast<std::size_t>(from.lookups_size());
  if (count == 0 || count > kQuestionLookupsMax) {
    return wrong("asks for " + std::to_string(count) + " lookups: expected 1 to " +
                 std::to_string(kQuestionLookupsMax));
  }
  for (const auto& lookup : from.lookups()) {
    const auto range = range_of(lookup.range());
    if (!range) return wrong("asks for blocks that no volume has");
    if (lookup.with_bytes()) blocks += range->count.value;
    if (blocks > kQuestionBlocksMax) {
      return wrong("asks for the bytes of more than " + std::to_string(kQuestionBlocksMax) +
                   " blocks");
    }
    out.lookups.push_back({*range, {lookup.at()}, lookup.with_bytes()});
  }
  return out;
}

// Of blocks whose bytes are asked for.
Result<BlockRange> read_range_of(const wire::Blocks& from) {
  const auto range = range_of(from);
  if (range && range->count.value <= kQuestionBlocksMax) return *range;
  return wrong("reads " + std::to_string(from.count()) + " blocks: expected 1 to " +
               std::to_string(kQuestionBlocksMax));
}

// ---- answers

void put(const FailureAnswer& a, wire::HistoryAnswer& out, PayloadSlice& /*payload*/) {
  out.mutable_failure()->set_code(static_cast<std::uint32_t>(a.error.code));
  out.mutable_failure()->set_message(a.error.message.substr(0, kTextBytesMax));
}
void put(const LocatedAnswer& a, wire::HistoryAnswer& out, PayloadSlice& payload) {
  std::size_t bytes = 0;
  out.mutable_located()->set_newest(a.newest.value);
  bool one_piece = true;  // as who read them from a log has them
  for (const PastRun& each : a.runs) {
    auto& run = *out.mutable_located()->add_runs();
    put(each.range, *run.mutable_range());
    run.set_source(static_cast<wire::HistoryAnswer::Run::Source>(each.source));
    run.set_repeated(each.repeated);
    run.set_sequence(each.sequence.value);
    run.set_has_bytes(each.bytes.length > 0);
    if (each.bytes.length == 0) continue;
    if (bytes == 0) payload = each.bytes;
    one_piece = one_piece && each.bytes.payload.data() == payload.payload.data() &&
                each.bytes.offset == payload.offset + bytes;
    bytes += each.bytes.length;
  }
  payload.length = bytes;
  if (bytes == 0 || one_piece) return;
  payload = {Payload::allocate(bytes), 0, bytes};
  std::size_t at = 0;
  for (const PastRun& each : a.runs) {
    if (each.bytes.length == 0) continue;
    std::memcpy(payload.payload.data() + at, each.bytes.bytes().data(), each.bytes.length);
    at += each.bytes.length;
  }
}
void put(const ReadAnswer& a, wire::HistoryAnswer& out, PayloadSlice& payload) {
  out.mutable_read();
  for (const BlockRange& range : a.base) put(range, *out.mutable_read()->add_base());
  payload = a.bytes;
}
void put(const ChangedAnswer& a, wire::HistoryAnswer& out, PayloadSlice& /*payload*/) {
  out.mutable_changed()->set_more(a.more);
  for (const BlockRange& range : a.extents) put(range, *out.mutable_changed()->add_extents());
}
void put(const DoneAnswer& /*a*/, wire::HistoryAnswer& out, PayloadSlice& /*payload*/) {
  out.mutable_done();
}

void put(const index::IndexMoment& moment, wire::HistoryMoment& out) {
  out.set_sequence(moment.sequence.value);
  out.set_time(moment.time.ns);
}
index::IndexMoment moment_of(const wire::HistoryMoment& from) {
  return {{from.sequence()}, {from.time()}};
}
void put(const MomentAnswer& a, wire::HistoryAnswer& out, PayloadSlice& /*payload*/) {
  put(a.moment.at, *out.mutable_moment()->mutable_at());
  put(a.moment.oldest, *out.mutable_moment()->mutable_oldest());
  put(a.moment.newest, *out.mutable_moment()->mutable_newest());
  out.mutable_moment()->set_last_rollback(a.moment.last_rollback.value);
  out.mutable_moment()->set_is_kept(a.moment.is_kept);
}

void put(const std::vector<HistorySummary::Write>& writes,
         google::protobuf::RepeatedPtrField<wire::HistorySummary::Write>& out) {
  for (const HistorySummary::Write& write : writes) {
    wire::HistorySummary::Write& one = *out.Add();
    one.set_type(static_cast<std::uint32_t>(write.type));
    one.set_sequence(write.sequence.value);
    one.set_time(write.time.ns);
    one.set_epoch(write.epoch.value);
    put(write.extent, *one.mutable_extent());
    one.set_target(write.target.value);
  }
}
void put_behind(const std::string& bytes, PayloadSlice& payload) {
  if (bytes.empty()) return;
  payload = {Payload::allocate(bytes.size()), 0, bytes.size()};
  std::memcpy(payload.payload.data(), bytes.data(), bytes.size());
}

void put(const SummaryAnswer& a, wire::HistoryAnswer& out, PayloadSlice& payload) {
  out.mutable_summary();
  const HistorySummary& from = a.summary;
  wire::HistorySummary summary;
  summary.set_writes(from.writes);
  summary.set_bytes(from.bytes);
  summary.set_distinct_bytes(from.distinct_bytes);
  for (const HistorySummary::Column& column : from.columns) {
    wire::HistorySummary::Column& one = *summary.add_columns();
    one.set_writes(column.writes);
    one.set_bytes(column.bytes);
  }
  put(from.list, *summary.mutable_list());
  put(from.rollbacks, *summary.mutable_rollbacks());
  summary.set_truncated(from.truncated);
  put_behind(summary.SerializeAsString(), payload);
}

void put(const VersionsAnswer& a, wire::HistoryAnswer& out, PayloadSlice& payload) {
  out.mutable_versions();
  wire::HistoryVersions versions;
  for (const History::Version& each : a.versions.list) {
    versions.add_blocks(each.block.value);
    versions.add_sequences(each.at.sequence.value);
    versions.add_times(each.at.time.ns);
  }
  versions.set_more(a.versions.more);
  put_behind(versions.SerializeAsString(), payload);
}

Result<VersionsAnswer> versions_of(const Payload& payload) {
  wire::HistoryVersions from;
  const int count = from.ParseFromArray(payload.data(), static_cast<int>(payload.size()))
                        ? from.blocks_size()
                        : -1;
  if (count < 0 || count != from.sequences_size() || count != from.times_size() ||
      static_cast<std::size_t>(count) > History::kVersionsMax || (count == 0 && from.more())) {
    return wrong("has versions that make no sense");
  }
  VersionsAnswer out;
  out.versions.more = from.more();
  for (int i = 0; i < count; ++i) {
    out.versions.list.push_back({{from.blocks(i)}, {{from.sequences(i)}, {from.times(i)}}});
  }
  return out;
}

// False: there are too many, or one that no volume has.
bool take(const google::protobuf::RepeatedPtrField<wire::HistorySummary::Write>& from,
          std::uint32_t most, std::vector<HistorySummary::Write>& out) {
  if (static_cast<std::uint32_t>(from.size()) > most) return false;
  for (const auto& write : from) {
    // (A void or a rollback has no extent.)
    const auto range = range_of(write.extent());
    if ((!range && write.extent().count() != 0) || write.type() > UINT8_MAX) return false;
    out.push_back({static_cast<logging::RecordType>(write.type()),
                   {write.sequence()},
                   {write.time()},
                   {write.epoch()},
                   range.value_or(BlockRange{}),
                   {write.target()}});
  }
  return true;
}

Result<SummaryAnswer> summary_of(const Payload& payload) {
  wire::HistorySummary from;
  if (!from.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return wrong("has a summary that cannot be read");
  }
  SummaryAnswer out;
  HistorySummary& to = out.summary;
  to.writes = from.writes();
  to.bytes = from.bytes();
  to.distinct_bytes = from.distinct_bytes();
  to.truncated = from.truncated();
  for (const auto& column : from.columns()) to.columns.push_back({column.writes(), column.bytes()});
  if (to.columns.size() > HistorySummary::kColumnsMax ||
      !take(from.list(), kSummaryWritesMax, to.list) ||
      !take(from.rollbacks(), HistorySummary::kRollbacksMax, to.rollbacks)) {
    return wrong("has a summary that makes no sense");
  }
  return out;
}

Result<LocatedAnswer> located_of(const wire::HistoryAnswer::Located& from, const Payload& payload) {
  LocatedAnswer out;
  out.newest = {from.newest()};
  if (from.runs_size() == 0 || static_cast<std::size_t>(from.runs_size()) > kAnswerRunsMax) {
    return wrong("has " + std::to_string(from.runs_size()) + " runs: expected 1 to " +
                 std::to_string(kAnswerRunsMax));
  }
  std::size_t at = 0;
  for (const auto& run : from.runs()) {
    const auto range = range_of(run.range());
    if (!range || !wire::HistoryAnswer::Run::Source_IsValid(run.source())) {
      return wrong("has a run that makes no sense");
    }
    PastRun one{
        *range, static_cast<PastRun::Source>(run.source()), run.repeated(), {run.sequence()}};
    if ((run.repeated() || run.has_bytes()) && one.source != PastRun::Source::kLog) {
      return wrong("has bytes of a run that is not in the log");
    }
    if (run.has_bytes()) {
      const std::uint64_t blocks = run.repeated() ? 1 : range->count.value;
      if (blocks > (payload.size() - at) / kBlockBytes) {
        return wrong("has " + std::to_string(payload.size()) + " bytes, fewer than its runs");
      }
      one.bytes = {payload, at, blocks * kBlockBytes};
      at += one.bytes.length;
    }
    out.runs.push_back(std::move(one));
  }
  if (at != payload.size()) {
    return wrong("has " + std::to_string(payload.size()) + " bytes: expected " +
                 std::to_string(at));
  }
  return out;
}

template <typename Message, typename What>
HistoryFrame encoded(VolumeId volume, std::uint64_t id, const What& what) {
  Message out;
  HistoryFrame frame;
  out.set_volume(volume.value);
  out.set_id(id);
  std::visit([&](const auto& each) { put(each, out, frame.payload); }, what);
  frame.header = out.SerializeAsString();
  return frame;
}

}  // namespace

HistoryFrame encode(const HistoryQuestion& question) {
  return encoded<wire::HistoryQuestion>(question.volume, question.id, question.what);
}
HistoryFrame encode(const HistoryAnswer& answer) {
  return encoded<wire::HistoryAnswer>(answer.volume, answer.id, answer.what);
}

Result<HistoryQuestion> decode_question(std::string_view header, Payload payload) {
  wire::HistoryQuestion from;
  if (!from.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return wrong("cannot be read (" + std::to_string(header.size()) + " bytes)");
  }
  HistoryQuestion out{{from.volume()}, from.id(), {}};
  if (out.volume.value == 0) return wrong("names no volume");
  if (!from.has_before_image() && payload.size() != 0) {
    return wrong("asks, and has " + std::to_string(payload.size()) + " bytes of blocks");
  }
  switch (from.body_case()) {
    case wire::HistoryQuestion::kLocate: {
      Result<LocateQuestion> locate = locate_of(from.locate());
      if (!locate) return locate.error();
      out.what = std::move(*locate);
      return out;
    }
    case wire::HistoryQuestion::kRead: {
      const Result<BlockRange> range = read_range_of(from.read().range());
      if (!range) return range.error();
      out.what = ReadQuestion{*range, {from.read().at()}};
      return out;
    }
    case wire::HistoryQuestion::kChanged:
      if (from.changed().to() < from.changed().from()) return wrong("asks backwards");
      out.what = ChangedQuestion{{from.changed().from()}, {from.changed().to()}};
      return out;
    case wire::HistoryQuestion::kHold: out.what = HoldQuestion{{from.hold().at()}}; return out;
    case wire::HistoryQuestion::kRelease:
      out.what = ReleaseQuestion{from.release().held()};
      return out;
    case wire::HistoryQuestion::kBeforeImage: {
      const auto range = range_of(from.before_image().range());
      if (!range || range->count.value > History::kBeforeImageBlocksMax ||
          payload.size() != range->count.bytes()) {
        return wrong("has a before-image of " +
                     std::to_string(from.before_image().range().count()) + " blocks with " +
                     std::to_string(payload.size()) + " bytes");
      }
      const std::size_t bytes = payload.size();
      out.what = BeforeImageQuestion{*range, {std::move(payload), 0, bytes}};
      return out;
    }
    case wire::HistoryQuestion::kMoment:
      if (from.moment().has_time()) {
        out.what = MomentQuestion{VersionTime{from.moment().time()}};
      } else {
        out.what = MomentQuestion{SequenceNumber{from.moment().sequence()}};
      }
      return out;
    case wire::HistoryQuestion::kBase: {
      const Result<BlockRange> range = read_range_of(from.base().range());
      if (!range) return range.error();
      out.what = BaseQuestion{*range};
      return out;
    }
    case wire::HistoryQuestion::kCurrent: {
      const Result<BlockRange> range = read_range_of(from.current().range());
      if (!range) return range.error();
      out.what = CurrentQuestion{*range, {from.current().at()}, {from.current().epoch()}};
      return out;
    }
    case wire::HistoryQuestion::kSummary: {
      Result<SummaryQuestion> summary = summary_of(from.summary());
      if (!summary) return summary.error();
      out.what = *summary;
      return out;
    }
    case wire::HistoryQuestion::kVersions: {
      Result<VersionsQuestion> versions = versions_of(from.versions());
      if (!versions) return versions.error();
      out.what = *std::move(versions);
      return out;
    }
    case wire::HistoryQuestion::BODY_NOT_SET: break;
  }
  return wrong("asks nothing that is understood here");
}

Result<HistoryAnswer> decode_answer(std::string_view header, Payload payload) {
  wire::HistoryAnswer from;
  if (!from.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return wrong("cannot be read (" + std::to_string(header.size()) + " bytes)");
  }
  HistoryAnswer out{{from.volume()}, from.id(), {}};
  if (!from.has_located() && !from.has_read() && !from.has_summary() && !from.has_versions() &&
      payload.size() != 0) {
    return wrong("answers with " + std::to_string(payload.size()) + " bytes of blocks too many");
  }
  switch (from.body_case()) {
    case wire::HistoryAnswer::kFailure:
      if (from.failure().code() > static_cast<std::uint32_t>(ErrorCode::kMiscompare)) {
        return wrong("has the error code " + std::to_string(from.failure().code()));
      }
      out.what = FailureAnswer{{static_cast<ErrorCode>(from.failure().code()),
                                from.failure().message().substr(0, kTextBytesMax)}};
      return out;
    case wire::HistoryAnswer::kLocated: {
      Result<LocatedAnswer> located = located_of(from.located(), payload);
      if (!located) return located.error();
      out.what = std::move(*located);
      return out;
    }
    case wire::HistoryAnswer::kRead: {
      auto base = ranges_of(from.read().base());
      if (!base) return wrong("has parts of the base that make no sense");
      const std::size_t bytes = payload.size();
      out.what = ReadAnswer{std::move(*base), {std::move(payload), 0, bytes}};
      return out;
    }
    case wire::HistoryAnswer::kChanged: {
      auto extents = ranges_of(from.changed().extents());
      if (!extents) return wrong("has extents that make no sense");
      out.what = ChangedAnswer{std::move(*extents), from.changed().more()};
      return out;
    }
    case wire::HistoryAnswer::kDone: out.what = DoneAnswer{}; return out;
    case wire::HistoryAnswer::kMoment:
      out.what = MomentAnswer{{moment_of(from.moment().at()),
                               moment_of(from.moment().oldest()),
                               moment_of(from.moment().newest()),
                               {from.moment().last_rollback()},
                               from.moment().is_kept()}};
      return out;
    case wire::HistoryAnswer::kSummary: {
      Result<SummaryAnswer> summary = summary_of(payload);
      if (!summary) return summary.error();
      out.what = *std::move(summary);
      return out;
    }
    case wire::HistoryAnswer::kVersions: {
      Result<VersionsAnswer> versions = versions_of(payload);
      if (!versions) return versions.error();
      out.what = *std::move(versions);
      return out;
    }
    case wire::HistoryAnswer::BODY_NOT_SET: break;
  }
  return wrong("answers nothing that is understood here");
}

}  // namespace mariner::cluster
