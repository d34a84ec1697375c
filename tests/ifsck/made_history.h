// A volume that was changed, round by round, and is caught at any moment in between.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ifsck/write_trace.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {

// A file system with a past: rounds of changes by debugfs and e2fsck, whose blocks are written one
// by one in any order, as a host without a journal may do. After each round it is sound.
class MadeHistory {
 public:
  static constexpr int kRounds = 3;

  MadeHistory(const std::string& options, unsigned seed) : random_(seed) {
    MadeImage::run("cp --sparse=always " + MadeImage::of(options).file("image") + " " + image(0));
    auto trace = TraceWriter::create(folder_.file("trace"), MadeImage::kBytes).value();
    for (int round = 1; round <= kRounds; ++round) {
      MadeImage::run("cp --sparse=always " + image(round - 1) + " " + image(round));
      change(image(round));
      write_difference(image(round - 1), image(round), trace);
    }
    past.emplace(TracePast::open(image(0), folder_.file("trace")).value());
  }

  // What is known of it before the first round, and after each.
  std::vector<Baseline> baselines() {
    std::vector<Baseline> known(1 + ends.size());
    for (std::size_t i = 0; i < known.size(); ++i) {
      known[i].at = i == 0 ? SequenceNumber{} : ends[i - 1];
      (void)MadeMoment(*past, known[i].at).census(&known[i]);
    }
    return known;
  }

  // What is different in a view from the first image.
  Overlay since_the_first(View& view) {
    Overlay all;
    const auto put = [&](Lbn lbn) {
      Overlay::Block block;
      (void)view.read({lbn.byte_offset(), kBlockBytes}, block).value();
      all.put(lbn, block);
    };
    for (const BlockRange& range : past->changed({}, view.at()).value()) {
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) put(lbn);
    }
    view.overlay().for_each([&](Lbn lbn, const Overlay::Block&) { put(lbn); });
    return all;
  }

  // The image before the first round, and the trace.
  [[nodiscard]] std::pair<std::string, std::string> files() const {
    return {image(0), folder_.file("trace")};
  }

  std::optional<TracePast> past;
  std::vector<SequenceNumber> ends;  // of rounds

 private:
  [[nodiscard]] std::string image(int round) const {
    return folder_.file("image" + std::to_string(round));
  }

  std::string folder() {
    const char* const folders[] = {"/", "/a", "/a/b", "/a/b/c", "/many", "/new0", "/new1", "/new2"};
    return folders[random_() % std::size(folders)];
  }
  std::string old_file() {
    return "/many/\"a file with a long name, number " + std::to_string(random_() % 600) + "\"";
  }

  void change(const std::string& image) {
    std::ofstream(folder_.file("some")) << std::string(1 + random_() % 40'000, 'n');
    std::ofstream commands(folder_.file("commands"));
    for (int i = 0; i < 3; ++i) commands << "mkdir /new" << random_() % 3 << "\n";
    for (int i = 0; i < 40; ++i) {
      const auto name = std::to_string(random_() % 30);
      switch (random_() % 9) {
        case 0: commands << "mkdir " << folder() << "/d" << name << "\n"; break;
        case 1: commands << "rmdir " << folder() << "/d" << name << "\n"; break;
        case 2:
          commands << "cd " << folder() << "\nwrite " << folder_.file("some") << " f" << name
                   << "\ncd /\n";
          break;
        case 3: commands << "rm " << folder() << "/f" << name << "\n"; break;
        case 4: commands << "rm " << old_file() << "\n"; break;
        case 5: commands << "ln " << old_file() << " " << folder() << "/l" << name << "\n"; break;
        case 6: commands << "symlink " << folder() << "/s" << name << " anywhere\n"; break;
        case 7: commands << "punch /a/large " << random_() % 6000 << "\n"; break;
        default: commands << "unlink " << folder() << "/f" << name << "\n"; break;
      }
    }
    commands.close();
    MadeImage::run("debugfs -w -f " + folder_.file("commands") + " " + image);
    MadeImage::run("e2fsck -fy " + image + " >/dev/null 2>&1; test $? -le 1");
    MadeImage::run("e2fsck -fn " + image);
  }

  void write_difference(const std::string& before, const std::string& after, TraceWriter& trace) {
    const auto read = [](const std::string& path) {
      std::ifstream in(path, std::ios::binary);
      std::vector<char> bytes(MadeImage::kBytes);
      in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      return bytes;
    };
    const std::vector<char> then = read(before);
    const std::vector<char> now = read(after);
    std::vector<std::uint64_t> changed;
    for (std::uint64_t block = 0; block < MadeImage::kBytes / kBlockBytes; ++block) {
      const auto at = static_cast<std::ptrdiff_t>(block * kBlockBytes);
      if (!std::equal(then.begin() + at, then.begin() + at + kBlockBytes, now.begin() + at)) {
        changed.push_back(block);
      }
    }
    std::ranges::shuffle(changed, random_);
    for (const std::uint64_t block : changed) {
      const auto bytes = std::as_bytes(std::span(now)).subspan(block * kBlockBytes, kBlockBytes);
      last_ = trace.write(VersionTime{++time_}, Lbn{block}, bytes).value();
    }
    ends.push_back(last_);
  }

  logging::test::TemporaryDirectory folder_;
  std::mt19937 random_;
  SequenceNumber last_;
  std::uint64_t time_ = 0;
};

}  // namespace mariner::ifsck
