#include <string>
#include <utility>

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

}  // namespace

HistoryFrame encode(const HistoryQuestion& question) {
  return encoded<wire::HistoryQuestion>(
      question.volume, question.id, question.what,
      [](const auto& each, auto& out, PayloadSlice& payload) { put(each, out, payload); });
}

Result<HistoryQuestion> decode_question(std::string_view header, Payload payload) {
  const Result<wire::HistoryQuestion> read = parsed<wire::HistoryQuestion>(header);
  if (!read) return read.error();
  const wire::HistoryQuestion& from = *read;
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

}  // namespace mariner::cluster
