#include "server/client/geometry_report.h"

#include <fmt/format.h>

#include <string_view>

#include "proto/utf8.h"

namespace mariner::client {

namespace {

using Verdict = logging::GeometryExtraction::Verdict;

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRotates: return "rotates";
    case Verdict::kDoesNotRotate: return "does-not-rotate";
    case Verdict::kUnclear: break;
  }
  return "unclear";
}

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : to_utf8(text)) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace

void GeometryReport::qualify() {
  if (is_file && extraction.verdict == Verdict::kRotates) {
    extraction.verdict = Verdict::kUnclear;
    extraction.geometry.reset();
    extraction.report =
        "The disk under this file rotates, but the file lies where its file system has put it, so "
        "that its sectors say nothing about tracks: name the block device, or use the append "
        "placement for the file.";
  } else if (!is_file && !rewritten && extraction.verdict != Verdict::kRotates) {
    extraction.report +=
        " The device was only read: if it is a real rotating drive, its own buffer may have "
        "answered; --write looks past that.";
  }
}

std::string to_text(const GeometryReport& report) {
  std::string text = report.extraction.report + "\n";
  if (!report.extraction.geometry) return text;
  text += fmt::format("\n{:>4}  {:>14}  {:>10}  {:>17}\n", "zone", "first sector", "tracks",
                      "sectors per track");
  int number = 0;
  for (const logging::Zone& zone : report.extraction.geometry->zones()) {
    text += fmt::format("{:>4}  {:>14}  {:>10}  {:>17}\n", number++, zone.first_sector, zone.tracks,
                        zone.sectors_per_track);
  }
  return text + fmt::format("\nSectors have {} bytes.\n", report.sector_bytes);
}

std::string to_json(const GeometryReport& report) {
  const logging::GeometryExtraction& found = report.extraction;
  std::string json = fmt::format(
      R"({{"schema":1,"device":{},"verdict":"{}","report":{},"commands":"{}","sectors":"{}",)"
      R"("sector_bytes":{})",
      quoted(report.device), name_of(found.verdict), quoted(found.report), found.commands,
      report.sectors, report.sector_bytes);
  if (found.geometry) {
    json += fmt::format(R"(,"rotation_ns":"{}","track_skew_ns":"{}","zones":[)",
                        found.geometry->rotation().count(), found.track_skew.count());
    std::string_view comma;
    for (const logging::Zone& zone : found.geometry->zones()) {
      json += fmt::format(R"({}{{"first_sector":"{}","tracks":"{}","sectors_per_track":{}}})",
                          comma, zone.first_sector, zone.tracks, zone.sectors_per_track);
      comma = ",";
    }
    json += "]";
  }
  return json + "}\n";
}

int exit_code_of(const GeometryReport& report) {
  return report.extraction.geometry ? kExitFound : kExitNoGeometry;
}

}  // namespace mariner::client
