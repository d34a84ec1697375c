// A file system with a past of a few rounds of changes, as files, and what the program says of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "ifsck/write_trace.h"
#include "server/admin/json.h"
#include "tests/ifsck/made_volume.h"
#include "tests/ifsck/program/made_console.h"
#include "tests/logging/temporary_directory.h"
#include "uvfs/program/files_command.h"

namespace mariner::uvfs {

// Each block that a round changes is a write, a second after the one before. Contents are written
// before the inodes that say so, as kernels do: backwards, in a group of a file system.
class ProgramFiles : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  explicit ProgramFiles(const std::string& options = "-t ext2 -b 1024")
      : trace_(ifsck::TraceWriter::create(folder_.file("trace"), kBytes).value()) {
    ifsck::MadeImage::run("cp --sparse=always " + ifsck::MadeImage::of(options).file("image") +
                          " " + image_);
    ifsck::MadeImage::run("cp --sparse=always " + image_ + " " + now_);
  }

  // With commands of debugfs: in which {} is a folder of files to be written.
  SequenceNumber change(std::string commands) {
    for (auto at = commands.find("{}"); at != std::string::npos; at = commands.find("{}")) {
      commands.replace(at, 2, folder_.file("files"));
    }
    const std::vector<char> before = bytes();
    std::ofstream(folder_.file("commands")) << commands;
    ifsck::MadeImage::run("debugfs -w -f " + folder_.file("commands") + " " + now_);
    return record(before, bytes());
  }
  // Bytes of the volume that are others, wherever they stand: names that no host makes.
  SequenceNumber forge(const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    const std::vector<char> before = bytes();
    std::vector<char> after = before;
    for (auto at = after.begin();;) {
      at = std::search(at, after.end(), from.begin(), from.end());
      if (at == after.end()) break;
      at = std::ranges::copy(to, at).out;
    }
    std::ofstream(now_, std::ios::binary)
        .write(after.data(), static_cast<std::streamsize>(after.size()));
    return record(before, after);
  }
  SequenceNumber record(const std::vector<char>& before, const std::vector<char>& after) {
    for (std::uint64_t at = kBytes; at > 0;) {
      at -= kBlockBytes;
      if (std::equal(before.begin() + static_cast<std::ptrdiff_t>(at),
                     before.begin() + static_cast<std::ptrdiff_t>(at + kBlockBytes),
                     after.begin() + static_cast<std::ptrdiff_t>(at))) {
        continue;
      }
      last_ = trace_
                  .write(VersionTime{(last_.value + 1) * kSecond}, Lbn{at / kBlockBytes},
                         std::as_bytes(std::span(after)).subspan(at, kBlockBytes))
                  .value();
    }
    return last_;
  }
  // A file for `write {}/NAME PATH`.
  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_.file("files"));
    std::ofstream(folder_.file("files/" + name)) << text;
  }

  int run(std::vector<std::string> words) {
    const ifsck::Utc zone;
    words.insert(words.end(), {"--image", image_, "--trace", folder_.file("trace")});
    return run_as_is(words, zone);
  }
  int run_as_is(const std::vector<std::string>& words, const Zone& zone) {
    return run_files_command(
        words, made_.console(), zone, [this] { return VersionTime{(last_.value + 1) * kSecond}; },
        confine_);
  }
  // What it prints; it is to succeed.
  std::string say(const std::vector<std::string>& words) {
    EXPECT_EQ(run(words), 0) << made_.take_errors();
    return made_.take();
  }
  template <typename Message>
  Message ask(std::vector<std::string> words) {
    words.emplace_back("--json");
    Message message;
    const std::string json = say(words);
    EXPECT_TRUE(admin::from_answer_json(json, message).has_value()) << json;
    return message;
  }
  // The error that it ends with.
  std::string refuse(int code, const std::vector<std::string>& words) {
    EXPECT_EQ(run(words), code);
    return made_.take_errors();
  }
  static std::string at(const std::string& path, SequenceNumber moment) {
    return path + "@#" + std::to_string(moment.value);
  }
  std::string read_host(const std::string& name) const {
    std::ifstream in(folder_.file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  logging::test::TemporaryDirectory folder_;
  const std::string image_ = folder_.file("image");
  ifsck::MadeConsole made_;
  client::Confine confine_;  // none: this process may go on as it is

 private:
  static constexpr std::uint64_t kBytes = ifsck::MadeImage::kBytes;

  [[nodiscard]] std::vector<char> bytes() const {
    std::ifstream in(now_, std::ios::binary);
    std::vector<char> all(kBytes);
    in.read(all.data(), static_cast<std::streamsize>(all.size()));
    return all;
  }

  const std::string now_ = folder_.file("now");
  ifsck::TraceWriter trace_;
  SequenceNumber last_;
};

}  // namespace mariner::uvfs
