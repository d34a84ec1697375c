// Checks and mends random moments of a captured history (ifsck-capture), and looks at each as
// e2fsck, libext2fs and the host that wrote it would.
//
//   mariner_ifsck_moments IMAGE TRACE [--moments N] [--seed N] [--promises FILE] [--after TIME_NS]
//                         [--alike] [--at SEQUENCE]... [--keep FOLDER]
//
// Exit code 1: something is wrong, and it says what.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ifsck/moment.h"
#include "ifsck/moment_check.h"
#include "ifsck/path_check.h"
#include "ifsck/write_trace.h"
#include "tests/ifsck/file_promises.h"
#include "tests/ifsck/moment_image.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

struct Arguments {
  std::string image;
  std::string trace;
  std::string promises;
  std::string keep;  // the moments' images go there
  bool reports = false;
  bool alike = false;
  std::size_t moments = 300;
  std::uint64_t seed = 1;
  std::uint64_t after_ns = 0;
  std::vector<std::uint64_t> at;
};

struct Sums {
  std::size_t moments = 0;
  std::size_t verdicts[3] = {};
  std::size_t replayed = 0;
  std::size_t with_orphans = 0;
  std::size_t with_cut = 0;  // with orphans that are cut off
  std::size_t full = 0;
  std::size_t complained = 0;  // e2fsck
  std::size_t paths = 0;       // checked at level 3
  std::size_t disagree = 0;    // levels 2 and 3
  std::uint64_t files = 0;
  std::uint64_t unreadable = 0;
  FilePromises::Kept kept;
  std::uint64_t fewer = 0;         // contents that e2fsck -fy keeps of the moment as it was
  std::uint64_t more = 0;          // that it does not
  std::uint64_t lost_by_them = 0;  // of those: files that it damaged
  std::uint64_t lost_anyway = 0;   // e2fsck -fy on the moment as it was loses them, too
  std::vector<std::uint64_t> mended;
  std::vector<double> ms;
  std::size_t failed = 0;
};

std::string first_lines(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  while (count-- > 0 && end != std::string::npos) end = text.find('\n', end == 0 ? 0 : end + 1);
  return text.substr(0, end);
}

// Which is an empty folder then: -fn does not mind that there is none.
bool only_wants_lost_and_found(const Said& said) {
  constexpr std::string_view kWanted = "/lost+found not found.  Create? yes";
  std::size_t done = 0;
  for (std::size_t at = 0; (at = said.text.find("? yes", at)) != std::string::npos; ++at) ++done;
  return said.code == 1 && done == 1 && said.text.find(kWanted) != std::string::npos &&
         said.text.find("orphaned") == std::string::npos;
}

// That it was mounted is all that is wrong with one in which nothing was done yet: nothing is
// asked.
bool only_says_clean(const Said& said) {
  return said.code == 1 && said.text.find('?') == std::string::npos &&
         said.text.find("MODIFIED") == std::string::npos;
}

// How many files it damaged itself. A file that was being truncated has given back a block of its
// extents, which it still names: e2fsck truncates it on, meets the block, stops halfway, and then
// clears the file as corrupted. (The same words once an inode.)
std::uint64_t lost_orphans(const Said& said) {
  static constexpr std::string_view kWords = "found in orphaned inode";
  std::uint64_t count = 0;
  for (auto at = said.text.find(kWords); at != std::string::npos;
       at = said.text.find(kWords, at + kWords.size())) {
    ++count;
  }
  return count;
}

class Moments {
 public:
  Moments(TracePast& past, const Arguments& arguments)
      : past_(past),
        arguments_(arguments),
        random_(arguments.seed + 1),
        image_(past, (arguments.keep.empty() ? folder_.file("image") : arguments.keep + "/raw")) {
    if (!arguments.promises.empty()) promises_.emplace(arguments.promises);
  }

  bool run() {
    for (const SequenceNumber at : chosen()) look_at(at);
    print();
    return sums_.failed == 0;
  }

 private:
  std::vector<SequenceNumber> chosen() {
    std::vector<SequenceNumber> all;
    for (const std::uint64_t each : arguments_.at) all.push_back({each});
    if (!all.empty()) return all;
    const std::uint64_t newest = past_.reach().value().newest.value;
    const std::uint64_t oldest = past_.moment_of({arguments_.after_ns}).value().value;
    std::mt19937_64 random(arguments_.seed);
    while (all.size() < arguments_.moments) {
      all.push_back({oldest + random() % (newest - oldest + 1)});
    }
    return all;
  }

  void look_at(SequenceNumber at) {
    ++sums_.moments;
    Overlay overlay;
    const auto begun = std::chrono::steady_clock::now();
    const auto report = check_moment(past_, at, states_, overlay, {});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    if (!report) {
      fail(at, "cannot be checked: " + report.error().message);
      return;
    }
    count(*report);
    sums_.mended.push_back(count_mended(at, overlay));
    sums_.ms.push_back(took.count());
    std::string wrong;
    if (report->verdict == Verdict::kDamaged) wrong += "it is damaged after mending\n";
    wrong += look_by_level_2(at, *report);
    if (promises_) wrong += look_by_level_3(at);
    image_.go_to(at);
    const std::string raw = copy_image("raw." + std::to_string(at.value));
    image_.with(overlay, [&] { wrong += look_at_image(*report, raw); });
    if (arguments_.reports) fmt::print("moment {}: {}", at.value, describe_report(*report));
    if (!wrong.empty()) fail(at, wrong + describe_report(*report));
  }

  void count(const MomentReport& report) {
    ++sums_.verdicts[static_cast<std::size_t>(report.verdict)];
    sums_.replayed += report.replay.needed ? 1 : 0;
    sums_.full += report.full ? 1 : 0;
    const bool cut = report.replay.orphans_cut > 0;
    sums_.with_cut += cut ? 1 : 0;
    sums_.with_orphans += cut || report.replay.orphans_released > 0 ? 1 : 0;
  }

  // Blocks that differ from what replay makes of the moment.
  std::uint64_t count_mended(SequenceNumber at, const Overlay& mended) {
    Overlay replayed;
    (void)check_moment(past_, at, states_, replayed, {.mend = false, .keep = false}).value();
    std::uint64_t blocks = 0;
    mended.for_each([&](Lbn lbn, const Overlay::Block& block) {
      const Overlay::Block* const before = replayed.find(lbn);
      if (before == nullptr || *before != block) ++blocks;
    });
    return blocks;
  }

  std::string look_by_level_2(SequenceNumber at, const MomentReport& first) {
    Overlay overlay;
    const auto second = check_moment(past_, at, states_, overlay, {.level = 2});
    if (!second) return "level 2: " + second.error().message + "\n";
    const bool sound = std::ranges::all_of(
        first.findings, [](const Finding& each) { return is_derived(each.code); });
    const bool clean = second->findings_all == 0 && second->left.empty();
    if (sound == clean && second->verdict != Verdict::kDamaged) return {};
    ++sums_.disagree;
    return fmt::format("level 2 says {} with {} findings, and level 1 has {}\n",
                       verdict_name(second->verdict), second->findings_all,
                       sound ? "none of these" : "some of these");
  }

  // Some of the files that the host was promised, and their folders: who is wrong, or fine, among
  // all.
  std::string look_by_level_3(SequenceNumber at) {
    constexpr std::size_t kEach = 4;
    Overlay replayed;
    const auto all =
        check_moment(past_, at, states_, replayed,
                     {.level = 2, .mend = false, .keep = false, .findings_max = 1'000'000});
    if (!all) return "level 2: " + all.error().message + "\n";
    Moment moment(past_, at, replayed);
    if (const auto opened = moment.open(); !opened) return opened.error().message + "\n";
    const std::vector<std::string> paths = promises_->paths();
    std::string wrong;
    for (std::size_t i = 0; i < kEach; ++i) {
      std::string path = paths[random_() % paths.size()];
      if (i % 2 == 1) path.resize(std::max<std::size_t>(path.rfind('/'), 1));
      Overlay overlay;
      const auto one =
          check_moment(past_, at, states_, overlay, {.level = 3, .path = path, .mend = false});
      const auto scope = PathCheck::run(moment.context(), path);
      if (!one || !scope) {
        const bool alike = !one && !scope && one.error().code == ErrorCode::kNotFound;
        if (!alike) wrong += "level 3: " + path + ": " + (one ? "" : one.error().message) + "\n";
        continue;
      }
      ++sums_.paths;
      const bool concerned = std::ranges::any_of(
          all->findings, [&](const Finding& each) { return scope->in_scope(each); });
      const bool clean = one->verdict == Verdict::kClean;
      // (Of a folder what its entries name is looked at, too, and that is told of at other places.)
      const bool agree = concerned ? !clean : clean || all->verdict != Verdict::kClean;
      if (agree) continue;
      ++sums_.disagree;
      wrong += fmt::format("level 3 says {} of {}\n", verdict_name(one->verdict), path);
    }
    return wrong;
  }

  std::string look_at_image(const MomentReport& report, const std::string& raw) {
    std::string wrong;
    const Said said = run_e2fsck("-fn", image_.path());
    if (said.code != 0) {
      ++sums_.complained;
      wrong +=
          fmt::format("e2fsck -fn exits with {}:\n{}\n", said.code, first_lines(said.text, 40));
    }
    // (Without -n it would also do what it does before it checks.)
    const std::string copy = copy_image("mended." + std::to_string(report.at.value));
    const Said mended = run_e2fsck("-fy", copy);
    if (mended.code != 0 && !only_wants_lost_and_found(mended) && !only_says_clean(mended)) {
      ++sums_.complained;
      wrong +=
          fmt::format("e2fsck -fy exits with {}:\n{}\n", mended.code, first_lines(mended.text, 40));
    }
    if (arguments_.keep.empty()) std::remove(copy.c_str());
    ImageFiles files(image_.path());
    files.read_all();
    sums_.files += files.files;
    sums_.unreadable += files.unreadable;
    wrong += files.complaints;
    // What it makes of the moment as it was.
    const Said made = run_e2fsck("-fy", raw);
    ImageFiles theirs(raw);
    theirs.read_all();
    wrong += compare(files, theirs, lost_orphans(made));
    if (promises_) wrong += look_at_promises(files, theirs, report);
    if (arguments_.keep.empty()) std::remove(raw.c_str());
    return wrong;
  }

  std::string look_at_promises(ImageFiles& files, ImageFiles& theirs, const MomentReport& report) {
    const FilePromises::Kept kept = promises_->look(files, report.time);
    sums_.kept.checked += kept.checked;
    sums_.kept.whole += kept.whole;
    sums_.kept.renamed += kept.renamed;
    sums_.kept.databases += kept.databases;
    if (kept.lost == 0) return {};
    const FilePromises::Kept anyway = promises_->look(theirs, report.time);
    std::uint64_t both = 0;
    for (const std::string& path : kept.broken) both += anyway.broken.contains(path) ? 1 : 0;
    sums_.lost_anyway += both;
    sums_.kept.lost += kept.lost - both;
    if (both == kept.lost) return {};
    return "promised: " + kept.complaints + "e2fsck -fy: " + anyway.complaints + "\n";
  }

  // `lost` of the files that e2fsck could have kept it has damaged.
  std::string compare(const ImageFiles& files, const ImageFiles& theirs, std::uint64_t lost) {
    std::uint64_t fewer = 0;
    std::uint64_t more = 0;
    for (const Content& each : theirs.contents) fewer += files.contents.contains(each) ? 0 : 1;
    for (const Content& each : files.contents) more += theirs.contents.contains(each) ? 0 : 1;
    sums_.fewer += fewer;
    sums_.more += more;
    sums_.lost_by_them += lost;
    if (!arguments_.alike || (fewer == 0 && more <= lost)) return {};
    return fmt::format("{} contents are missing that e2fsck -fy keeps, and {} are other ones\n",
                       fewer, more);
  }

  std::string copy_image(const std::string& name) {
    std::string copy = arguments_.keep.empty() ? folder_.file(name) : arguments_.keep + "/" + name;
    const std::string command = "cp '" + image_.path() + "' '" + copy + "'";
    CHECK(std::system(command.c_str()) == 0);
    return copy;
  }

  static std::string describe_report(const MomentReport& report) {
    std::string text = fmt::format(
        "{} at level 1, {}, {} changed blocks since {}, {} findings, {} repairs, {} left{}{}\n",
        verdict_name(report.verdict), report.full ? "in full" : "by change", report.changed_blocks,
        report.since.value, report.findings_all, report.repairs.size(), report.left.size(),
        report.journal_damage.empty() ? "" : ", the journal: ", report.journal_damage);
    for (std::size_t i = 0; i < std::min<std::size_t>(30, report.findings.size()); ++i) {
      text += "  found: " + describe(report.findings[i]) + "\n";
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(30, report.left.size()); ++i) {
      text += "  left: " + describe(report.left[i]) + "\n";
    }
    return text;
  }

  void fail(SequenceNumber at, const std::string& what) {
    if (++sums_.failed > 5) return;
    fmt::print("moment {}: {}\n", at.value, what);
  }

  void print() {
    if (sums_.mended.empty()) return;
    std::ranges::sort(sums_.ms);
    std::uint64_t all_mended = 0;
    for (const std::uint64_t each : sums_.mended) all_mended += each;
    std::uint64_t of_repairable = sums_.verdicts[1] + sums_.verdicts[2];
    fmt::print(
        "moments {} clean {} repairable {} damaged {} replayed {} with orphans {} cut {} full {} | "
        "e2fsck complains {} "
        "unreadable {} of {} files, level 3 of {} paths, levels disagree {} | promised {} "
        "(databases {}) whole {} "
        "lost+found {} lost {} lost-anyway {} | fewer {} more {} than e2fsck, which lost {} | "
        "mended mean {:.1f} "
        "of-repairable {:.1f} max {} | "
        "ms "
        "median {:.1f} max {:.1f} | failed {}\n",
        sums_.moments, sums_.verdicts[0], sums_.verdicts[1], sums_.verdicts[2], sums_.replayed,
        sums_.with_orphans, sums_.with_cut, sums_.full, sums_.complained, sums_.unreadable,
        sums_.files, sums_.paths, sums_.disagree, sums_.kept.checked, sums_.kept.databases,
        sums_.kept.whole, sums_.kept.renamed, sums_.kept.lost, sums_.lost_anyway, sums_.fewer,
        sums_.more, sums_.lost_by_them,
        static_cast<double>(all_mended) / static_cast<double>(sums_.mended.size()),
        of_repairable == 0 ? 0.0
                           : static_cast<double>(all_mended) / static_cast<double>(of_repairable),
        *std::ranges::max_element(sums_.mended), sums_.ms[sums_.ms.size() / 2], sums_.ms.back(),
        sums_.failed);
  }

  TracePast& past_;
  const Arguments& arguments_;
  const logging::test::TemporaryDirectory folder_;
  std::mt19937_64 random_;
  MomentImage image_;
  std::optional<FilePromises> promises_;
  KnownStates states_;
  Sums sums_;
};

}  // namespace
}  // namespace mariner::ifsck

int main(int count, char** words) {
  mariner::ifsck::Arguments arguments;
  CLI::App app("Checks and mends random moments of a captured history, and what they become.");
  app.add_option("image", arguments.image)->required();
  app.add_option("trace", arguments.trace)->required();
  app.add_option("--moments", arguments.moments)->capture_default_str();
  app.add_option("--seed", arguments.seed)->capture_default_str();
  app.add_option("--promises", arguments.promises, "What the host was told is durable");
  app.add_flag("--alike", arguments.alike,
               "What e2fsck -fy makes of a moment has to have the same in its files");
  app.add_option("--after", arguments.after_ns, "No moment before this time, in nanoseconds");
  app.add_option("--at", arguments.at, "These moments");
  app.add_option("--keep", arguments.keep, "A folder for the images of moments");
  app.add_flag("--reports", arguments.reports, "Print what is found at each");
  CLI11_PARSE(app, count, words);
  auto past = mariner::ifsck::TracePast::open(arguments.image, arguments.trace);
  if (!past) {
    fmt::print(stderr, "{}\n", past.error().message);
    return 2;
  }
  return mariner::ifsck::Moments(*past, arguments).run() ? 0 : 1;
}
