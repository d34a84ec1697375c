#include "server/scsi/log_pages.h"

#include <algorithm>
#include <array>
#include <span>

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kSupportedPages = 0x00;
constexpr std::uint8_t kWriteErrors = 0x02;
constexpr std::uint8_t kReadErrors = 0x03;
constexpr std::uint8_t kVerifyErrors = 0x05;
constexpr std::uint8_t kNonMediumErrors = 0x06;
constexpr std::uint8_t kSelfTestResults = 0x10;
constexpr std::uint8_t kPerformance = 0x19;
constexpr std::uint8_t kExceptions = 0x2F;
constexpr std::uint8_t kAllSubpages = 0xFF;
constexpr std::uint8_t kNotSaved = 0x80;          // DS
constexpr std::uint8_t kLogSubpageFormat = 0x40;  // SPF

constexpr auto kPages =
    std::to_array<std::uint8_t>({kSupportedPages, kWriteErrors, kReadErrors, kVerifyErrors,
                                 kNonMediumErrors, kSelfTestResults, kPerformance, kExceptions});

// The parameter control byte (SPC-4 7.3.2.2.2): TSD, and the format.
enum class Format : std::uint8_t {
  kBoundedCounter = 0x20,
  kUnboundedCounter = 0x22,
  kBinaryList = 0x23,
};

struct Parameter {
  std::uint16_t code;
  Format format;
  Bytes value;
};
using Parameters = std::vector<Parameter>;

bool has_page(std::uint8_t page, const Statistics& statistics) {
  if (page == kPerformance && !statistics.knows_times()) return false;
  return std::ranges::find(kPages, page) != kPages.end();
}

// The PC field is of interest to counters only (SPC-4 6.8).
bool has_counters(std::uint8_t page) {
  return page != kSupportedPages && page != kSelfTestResults && page != kExceptions;
}

void append(Bytes& to, std::uint64_t value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  store_be(&to[at], value);
}

Bytes number(std::uint64_t value) {
  Bytes bytes;
  append(bytes, value);
  return bytes;
}

Parameters error_counters(const Statistics::Medium& medium) {
  return {{0x0005, Format::kBoundedCounter, number(medium.bytes)},
          {0x0006, Format::kBoundedCounter, number(medium.uncorrected_errors)}};
}

Parameters self_test_results(const SelfTest& self_test) {
  const auto reports = self_test.reports();
  Parameters parameters;
  for (std::size_t i = 0; i < SelfTest::kReportsMax; ++i) {
    Bytes value(16);
    if (i < reports.size()) {
      const SelfTest::Report& report = reports[i];
      value[0] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(report.kind) << 5 |
                                           static_cast<std::uint8_t>(report.outcome));
      store_be(&value[2], report.hours);
      store_be(&value[4], report.first_failure);
      value[12] = static_cast<std::uint8_t>(report.sense.key);
      store_be(&value[13], static_cast<std::uint16_t>(report.sense.code));
    }
    parameters.push_back(
        {static_cast<std::uint16_t>(i + 1), Format::kBinaryList, std::move(value)});
  }
  return parameters;
}

// Times count in microseconds. Commands have no priorities, so nothing is weighted.
Parameters performance(const Statistics& statistics) {
  constexpr std::uint64_t kNegativeExponent = 6;
  constexpr std::uint64_t kInteger = 1;
  const auto intervals = [](std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(time / std::chrono::microseconds(1));
  };
  const Statistics::Commands& reads = statistics.read_commands();
  const Statistics::Commands& writes = statistics.write_commands();
  Bytes access;
  for (const std::uint64_t value :
       {reads.count, writes.count, writes.blocks, reads.blocks, intervals(reads.time),
        intervals(writes.time), std::uint64_t{0}, std::uint64_t{0}}) {
    append(access, value);
  }
  return {{0x0001, Format::kUnboundedCounter, std::move(access)},
          {0x0002, Format::kUnboundedCounter, number(intervals(statistics.idle_time()))},
          {0x0003, Format::kBinaryList, number(kNegativeExponent << 32 | kInteger)}};
}

Parameters exceptions(AdditionalSense exception) {
  constexpr std::uint8_t kNoTemperature = 0xFF;
  Bytes value(4);
  store_be(&value[0], static_cast<std::uint16_t>(exception));
  value[2] = kNoTemperature;
  return {{0x0000, Format::kBinaryList, std::move(value)}};
}

Parameters parameters_of(std::uint8_t page, const LogState& state, const Statistics& statistics) {
  switch (page) {
    case kWriteErrors: return error_counters(statistics.writes());
    case kReadErrors: return error_counters(statistics.reads());
    case kVerifyErrors: return error_counters(statistics.verifications());
    case kNonMediumErrors:
      return {{0x0000, Format::kBoundedCounter, number(statistics.other_errors())}};
    case kSelfTestResults: return self_test_results(state.self_test);
    case kPerformance: return performance(statistics);
    default: return exceptions(state.exception);
  }
}

// What every counter was at first. The idle time is one, too.
const Statistics& defaults() {
  static const Statistics kDefaults(nullptr);
  return kDefaults;
}

Bytes finish(std::uint8_t first, std::uint8_t subpage, const Bytes& body) {
  Bytes data(4);
  data[0] = first;
  data[1] = subpage;
  store_be(&data[2], static_cast<std::uint16_t>(body.size()));
  data.insert(data.end(), body.begin(), body.end());
  return data;
}

// Page 00h, or with its subpage FFh the same with subpages: that subpage is the only one.
Bytes supported(bool subpages, const Statistics& statistics) {
  Bytes body;
  for (const std::uint8_t page : kPages) {
    if (!has_page(page, statistics)) continue;
    body.push_back(page);
    if (!subpages) continue;
    body.push_back(0);
    if (page == kSupportedPages) body.insert(body.end(), {kSupportedPages, kAllSubpages});
  }
  if (subpages) return finish(kLogSubpageFormat | kSupportedPages, kAllSubpages, body);
  return finish(kSupportedPages, 0, body);
}

}  // namespace

std::variant<Sense, std::vector<std::uint8_t>> log_sense(const LogSense& command,
                                                         const LogState& state) {
  if (!has_page(command.page, state.statistics)) return invalid_field_in_cdb(2, std::uint8_t{5});
  const bool of_pages = command.page == kSupportedPages;
  if (command.subpage != 0 && !(of_pages && command.subpage == kAllSubpages)) {
    return invalid_field_in_cdb(3);
  }
  if (of_pages) {
    if (command.parameter_pointer != 0) return invalid_field_in_cdb(5);
    return supported(command.subpage == kAllSubpages, state.statistics);
  }

  bool initial = false;
  if (has_counters(command.page)) {
    switch (command.control) {
      case LogSense::Control::kThresholds:
      case LogSense::Control::kDefaultThresholds: return invalid_field_in_cdb(2, std::uint8_t{7});
      case LogSense::Control::kCumulative: break;
      case LogSense::Control::kDefaultCumulative: initial = true; break;
    }
  }
  const Parameters parameters =
      parameters_of(command.page, state, initial ? defaults() : state.statistics);
  if (command.parameter_pointer > parameters.back().code) return invalid_field_in_cdb(5);
  Bytes body;
  for (const Parameter& parameter : parameters) {
    if (parameter.code < command.parameter_pointer) continue;
    const std::size_t at = body.size();
    body.resize(at + 4);
    store_be(&body[at], parameter.code);
    body[at + 2] = static_cast<std::uint8_t>(parameter.format);
    body[at + 3] = static_cast<std::uint8_t>(parameter.value.size());
    body.insert(body.end(), parameter.value.begin(), parameter.value.end());
  }
  return finish(kNotSaved | command.page, 0, body);
}

std::variant<Sense, LogReset> log_select(const LogSelect& command, const Statistics& statistics) {
  if (!has_page(command.page, statistics)) return invalid_field_in_cdb(2, std::uint8_t{5});
  if (command.subpage != 0 && command.subpage != kAllSubpages) return invalid_field_in_cdb(3);
  LogReset reset;
  // Page 00h means all of them, but only in its subpage 00h (SPC-4 table 185).
  if (command.page != kSupportedPages) {
    reset.page = command.page;
  } else if (command.subpage != 0) {
    return reset;
  }
  reset.reports = command.reset;
  reset.counters = command.reset || command.control == LogSense::Control::kDefaultCumulative;
  return reset;
}

void apply(const LogReset& reset, Statistics& statistics, SelfTest& self_test) {
  const auto meant = [&](std::uint8_t page) { return !reset.page || *reset.page == page; };
  if (reset.reports && meant(kSelfTestResults)) self_test.clear();
  if (!reset.counters) return;
  if (meant(kWriteErrors)) statistics.reset_writes();
  if (meant(kReadErrors)) statistics.reset_reads();
  if (meant(kVerifyErrors)) statistics.reset_verifications();
  if (meant(kNonMediumErrors)) statistics.reset_other_errors();
  if (meant(kPerformance)) statistics.reset_commands();
}

}  // namespace mariner::scsi
