// ifsck-capture: copies the history of a daemon's volume into an image and a trace of writes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "ifsck/program/history_capture.h"
#include "ifsck/program/remote_past.h"

namespace {

using mariner::Result;
using mariner::ifsck::Capture;
using mariner::ifsck::capture_history;
using mariner::ifsck::CaptureOptions;
using mariner::ifsck::Past;
using mariner::ifsck::RemotePast;

struct Arguments {
  mariner::client::PastClient::Options source;
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // 0: the newest
  std::string image;
  std::string trace;
};

Result<Capture> capture(const Arguments& arguments) {
  Result<RemotePast> past = RemotePast::open(arguments.source);
  if (!past) return past.error();
  const Result<Past::Reach> reach = past->reach();
  if (!reach) return reach.error();
  const CaptureOptions options{
      .from = {std::max(arguments.from, reach->oldest.value)},
      .to = {arguments.to == 0 ? reach->newest.value : arguments.to},
      .image = arguments.image,
      .trace = arguments.trace,
  };
  return capture_history(*past, options);
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  CLI::App app(
      "Copies the history of a volume into an image, which is what it begins with, and a "
      "trace of the writes that followed.");
  app.add_option("volume", arguments.source.volume, "Its name")->required();
  app.add_option("--socket", arguments.source.socket, "The admin socket of the daemon")
      ->capture_default_str();
  app.add_option("--image", arguments.image, "The file to make of the beginning")->required();
  app.add_option("--trace", arguments.trace, "The file to make of the writes")->required();
  app.add_option("--from", arguments.from,
                 "Begin with what the volume was after this sequence number (default: the oldest "
                 "that is kept)");
  app.add_option("--to", arguments.to, "The last write (default: the newest)");
  CLI11_PARSE(app, count, words);
  const Result<Capture> captured = capture(arguments);
  if (!captured) {
    fmt::print(stderr, "ifsck-capture: {}\n", captured.error().message);
    return 1;
  }
  fmt::print("{} blocks in the image, {} writes of {} blocks in the trace", captured->image_blocks,
             captured->records - captured->pieces, captured->written_blocks);
  if (captured->pieces > 0) fmt::print(", {} pieces more than writes", captured->pieces);
  fmt::print("\n");
  return 0;
}
