// A file system to which somebody has written anything, moment by moment: its history is searched,
// and what is found is read. What was in the root directory at each moment is what a look at that
// moment finds.
//
// The input: changes, each of three bytes of where (little endian; the highest bit: by another
// write than the one before) and one that is put there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/bytes.h"
#include "proto/check.h"
#include "tests/fuzz/made_image.h"
#include "tests/fuzz/made_moments.h"
#include "uvfs/ext_history.h"
#include "uvfs/moment_tree.h"
#include "uvfs/open_history.h"
#include "uvfs/path_search.h"

using namespace mariner;
using namespace mariner::uvfs;
using ifsck::ImageKind;
using ifsck::MadeMoments;

namespace {

constexpr std::size_t kMomentsMax = 12;
constexpr std::size_t kReadMax = 30;  // versions whose contents are read
constexpr std::uint64_t kSmall = 1 << 20;
constexpr std::uint64_t kWithJournal = 4 << 20;
constexpr const char* kSome =
    "symlink /link one/file\nea_set \"/one/file 3\" user.note something\n";
constexpr ImageKind kKinds[] = {
    {kSmall, "-O ^has_journal,^extents,^64bit,^metadata_csum,^flex_bg,^uninit_bg", kSome},
    {kSmall, "-O ^has_journal,metadata_csum,inline_data -I 256", kSome},
    {kWithJournal, "-J size=1", kSome},
};

void read(OpenHistory& history, const PathHistory& found, std::size_t& left) {
  for (const Incarnation& one : found.incarnations) {
    for (const FileVersion& version : one.versions) {
      if (left == 0) return;
      --left;
      const SequenceNumber at = version.from.at;
      auto contents = history.contents(one.inode, at);
      (void)history.files->attributes(one.inode, at);
      if (!contents) continue;
      std::vector<std::byte> bytes(5000);
      (void)contents->read(contents->size() / 2, bytes);
      (void)contents->link_target();
    }
  }
}

std::set<std::string> names_at(const std::vector<PathHistory>& all, SequenceNumber at) {
  std::set<std::string> names;
  for (const PathHistory& each : all) {
    if (each.path.size() < 2 || each.path.find('/', 1) != std::string::npos) continue;
    const bool there = std::ranges::any_of(each.incarnations, [at](const Incarnation& one) {
      return one.from.at <= at && at < one.end.at;
    });
    if (there) names.insert(each.path.substr(1));
  }
  return names;
}

// As far as they can be in a path.
std::set<std::string> names_of(MomentTree& tree) {
  std::set<std::string> names;
  const auto root = tree.object(EXT2_ROOT_INO);
  const auto all = tree.names(EXT2_ROOT_INO);
  if (!root || !all) return names;
  for (const MomentTree::Name& each : **all) {
    if (each.name.find('/') == std::string::npos && tree.object(each.number)) {
      names.insert(each.name);
    }
  }
  return names;
}

void search(const std::string& image, std::span<const std::byte> input) {
  MadeMoments past(image, kMomentsMax);
  std::size_t moment = 0;
  for (; input.size() >= 4; input = input.subspan(4)) {
    const std::uint32_t place = load_le<std::uint32_t>(input.data()) & 0xffffff;
    if ((place & 0x800000) != 0) moment = std::min(moment + 1, kMomentsMax - 1);
    past.put(moment, (place & 0x7fffff) % image.size(), input[3]);
  }
  auto history = open_history(past, {{0}, {kMomentsMax}});
  if (!history) return;  // no file system, or none that is understood
  const auto* const ext = dynamic_cast<const ExtHistory*>(history->files.get());
  if (ext == nullptr) return;  // it is taken for another one
  for (const bool every_write : {false, true}) {
    const auto found = PathSearch(*history->files, {.every_write = every_write}).find_below("/");
    if (!found) continue;
    std::size_t left = kReadMax;
    for (const PathHistory& each : *found) read(*history, each, left);
    if (!every_write || history->replayed != nullptr) continue;
    for (SequenceNumber at = history->files->stretch().first; at.value <= kMomentsMax;
         at = at.next()) {
      const auto tree = MomentTree::open(past, at);
      if (!tree || !((*tree)->context().layout == ext->context().layout)) continue;
      CHECK(names_at(*found, at) == names_of(**tree));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> images = [] {
    std::vector<std::string> made;
    for (const ImageKind& kind : kKinds) made.push_back(ifsck::make_image(kind));
    return made;
  }();
  for (const std::string& each : images) search(each, std::as_bytes(std::span(data, size)));
  return 0;
}
