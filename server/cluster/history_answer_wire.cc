#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/history.pb.h"
#include "server/cluster/history_wire.h"
#include "server/cluster/history_wire_parts.h"

namespace mariner::cluster {
namespace {

using history_wire::encoded;
using history_wire::parsed;
using history_wire::put;
using history_wire::range_of;
using history_wire::wrong;
using volume::History;
using volume::HistorySummary;
using volume::PastRun;
constexpr std::size_t kTextBytesMax = 1024;

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

}  // namespace

HistoryFrame encode(const HistoryAnswer& answer) {
  return encoded<wire::HistoryAnswer>(
      answer.volume, answer.id, answer.what,
      [](const auto& each, auto& out, PayloadSlice& payload) { put(each, out, payload); });
}

Result<HistoryAnswer> decode_answer(std::string_view header, Payload payload) {
  const Result<wire::HistoryAnswer> read = parsed<wire::HistoryAnswer>(header);
  if (!read) return read.error();
  const wire::HistoryAnswer& from = *read;
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
