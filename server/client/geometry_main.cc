// mariner-geometry: finds the tracks of a rotating log disk, or says that there are none.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <string>

#include "logging/geometry_extraction.h"
#include "logging/timed_device.h"
#include "server/client/exit_code.h"
#include "server/client/geometry_report.h"

namespace {

using mariner::Result;
using mariner::logging::extract_geometry;
using mariner::logging::GeometryExtraction;
using mariner::logging::TimedDevice;
using mariner::logging::TimedDisk;

// Shows on the terminal which sector is looked at.
class ShownDisk final : public TimedDisk {
 public:
  ShownDisk(TimedDisk& disk, std::uint64_t sectors)
      : disk_(disk), sectors_(sectors), shown_(isatty(STDERR_FILENO) == 1) {}
  ~ShownDisk() override {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }

  Result<Time> access(std::uint64_t sector) override {
    Result<Time> done = disk_.access(sector);
    ++commands_;
    if (shown_ && done && *done >= next_) {
      next_ = *done + std::chrono::milliseconds(200);
      std::cerr << fmt::format("\r\x1b[K{} commands, at sector {} of {}", commands_, sector,
                               sectors_)
                << std::flush;
    }
    return done;
  }

 private:
  TimedDisk& disk_;
  const std::uint64_t sectors_;
  const bool shown_;
  std::uint64_t commands_ = 0;
  Time next_{0};
};

int fail(const mariner::Error& error) {
  std::cerr << "mariner-geometry: " << error.message << "\n";
  return static_cast<int>(mariner::client::exit_code_of(error.code) ==
                                  mariner::client::ExitCode::kUsage
                              ? mariner::client::ExitCode::kUsage
                              : mariner::client::ExitCode::kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  bool write = false;
  bool json = false;
  CLI::App app("Finds the tracks of a rotating log disk, or says that there are none.",
               "mariner-geometry");
  app.add_option("DEVICE", path, "A block device, or a file")->required();
  app.add_flag("--write", write,
               "Write each sector back that was read, past the drive's buffer; needs the device "
               "for itself");
  app.add_flag("--json", json, "Print one JSON object");
  app.set_version_flag("--version", "mariner-geometry " MARINER_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(mariner::client::ExitCode::kUsage);
  }

  const auto device =
      TimedDevice::open(path, write ? TimedDevice::Access::kRewrite : TimedDevice::Access::kRead);
  if (!device) return fail(device.error());
  TimedDevice& disk = **device;
  const auto extraction = [&] {
    ShownDisk shown(disk, disk.sectors());
    return extract_geometry(shown,
                            {.sectors = disk.sectors(), .sector_bytes = disk.sector_bytes()});
  }();
  if (!extraction) return fail(extraction.error());
  mariner::client::GeometryReport report{.device = path,
                                         .sectors = disk.sectors(),
                                         .sector_bytes = disk.sector_bytes(),
                                         .is_file = disk.is_file(),
                                         .rewritten = write,
                                         .extraction = *extraction};
  report.qualify();
  std::cout << (json ? to_json(report) : to_text(report)) << std::flush;
  if (!std::cout) return static_cast<int>(mariner::client::ExitCode::kFailed);
  return mariner::client::exit_code_of(report);
}
