#include "server/scsi/copy_ledger.h"

#include <algorithm>
#include <utility>

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kInBytes = 0x00;
constexpr std::uint8_t kInBlocks = 0xF1;
constexpr std::size_t kHeaderBytes = 32;
// When it is worth to ask again, in milliseconds, and what is said of a copy that has ended.
constexpr std::uint32_t kAskAgainMs = 100;
constexpr std::uint32_t kHasEnded = 0xFFFF'FFFE;

// The header with its sense data; AVAILABLE DATA is for the caller.
Bytes shared_header(const CopyReport& report) {
  Bytes data(kHeaderBytes);
  data[4] = report.service_action;
  data[5] = static_cast<std::uint8_t>(report.state);
  store_be(&data[6], report.operations);
  store_be(&data[8], report.under_way() ? kAskAgainMs : kHasEnded);
  const bool terminated = report.state == CopyReport::State::kTerminated;
  if (terminated) {
    data[12] = static_cast<std::uint8_t>(Status::kTaskAborted);
  } else if (!report.under_way()) {
    data[12] = static_cast<std::uint8_t>(report.outcome.status);
    const Bytes& sense = report.outcome.sense;
    const std::size_t field_bytes = (sense.size() + 3) / 4 * 4;
    data[13] = static_cast<std::uint8_t>(field_bytes);
    data[14] = static_cast<std::uint8_t>(sense.size());
    data.resize(kHeaderBytes + field_bytes);
    std::ranges::copy(sense, data.begin() + kHeaderBytes);
  }
  data[15] = report.block_bytes != 0 ? kInBlocks : kInBytes;
  store_be(&data[16], report.transferred / std::max<std::uint32_t>(1, report.block_bytes));
  store_be(&data[24], report.segments_done);
  return data;
}

void store_available(Bytes& data) {
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
}

}  // namespace

std::shared_ptr<CopyReport> CopyLedger::begin(const NexusId& from, std::uint32_t id,
                                              CopyReport report) {
  if (const auto known = find(from, id)) {
    if (known->under_way()) return nullptr;
    forget(from, id);
  }
  make_room(from);
  auto begun = std::make_shared<CopyReport>(std::move(report));
  entries_.push_back({from, id, begun});
  return begun;
}

void CopyLedger::make_room(const NexusId& from) {
  const auto drop_oldest = [&](auto&& of) {
    const auto oldest = std::ranges::find_if(
        entries_, [&](const Entry& e) { return !e.report->under_way() && of(e); });
    if (oldest != entries_.end()) entries_.erase(oldest);
  };
  const auto own = [&](const Entry& entry) { return entry.from == from; };
  if (static_cast<std::size_t>(std::ranges::count_if(entries_, own)) >= kRememberedOfOneMax) {
    drop_oldest(own);
  }
  if (entries_.size() >= kRememberedMax) drop_oldest([](const Entry&) { return true; });
}

std::shared_ptr<CopyReport> CopyLedger::find(const NexusId& from, std::uint32_t id) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.id == id && entry.from == from; });
  return found == entries_.end() ? nullptr : found->report;
}

void CopyLedger::forget(const NexusId& from, std::uint32_t id) {
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.id == id && entry.from == from && !entry.report->under_way();
  });
}

void CopyLedger::forget_all() {
  std::erase_if(entries_, [](const Entry& entry) { return !entry.report->under_way(); });
}

Bytes copy_failure(const Response& outcome) {
  constexpr std::size_t kStatusAt = 56;
  constexpr std::size_t kSenseAt = 60;
  Bytes data(kSenseAt + outcome.sense.size());
  data[kStatusAt] = static_cast<std::uint8_t>(outcome.status);
  store_be(&data[kStatusAt + 2], static_cast<std::uint16_t>(outcome.sense.size()));
  std::ranges::copy(outcome.sense, data.begin() + kSenseAt);
  store_available(data);
  return data;
}

Bytes copy_status_lid4(const CopyReport& report) {
  Bytes data = shared_header(report);
  store_available(data);
  return data;
}

Bytes rod_token_information(const CopyReport& report) {
  Bytes data = shared_header(report);
  const std::size_t length_at = data.size();
  data.resize(length_at + 4);
  using State = CopyReport::State;
  if (report.token && (report.state == State::kDone || report.state == State::kPartly)) {
    data.resize(data.size() + 2);  // of an EXTENDED COPY only
    data.insert(data.end(), report.token->begin(), report.token->end());
    store_be(&data[length_at], static_cast<std::uint32_t>(2 + report.token->size()));
  }
  store_available(data);
  return data;
}

}  // namespace mariner::scsi
