#include "uvfs/parts/lvm_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "proto/check.h"
#include "uvfs/parts/lvm_group.h"
#include "uvfs/parts/lvm_label.h"

namespace mariner::uvfs {
namespace {

constexpr std::size_t kAreasMax = 4;                    // of a physical volume; LVM2 makes two
constexpr std::uint64_t kTextBytesMax = 16 << 20;       // of all metadata that differ
constexpr std::uint64_t kAreaReadsBytesMax = 64 << 20;  // and of all
constexpr std::size_t kPathNameBytesMax = 255;
constexpr std::size_t kAllExtentsMax = 256 * 1024;  // of all logical volumes

bool is_damage(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kLimit;
}

// As in /dev/mapper.
std::string path_name(std::string_view group, std::string_view volume) {
  std::string name;
  for (const std::string_view part : {group, volume}) {
    if (!name.empty()) name += '-';
    for (const char c : part) name.append(c == '-' ? 2 : 1, c);
  }
  return name;
}

// Metadata can have anything in their strings, and this is shown.
std::string printable(std::string_view text) {
  constexpr std::size_t kBytesMax = 300;
  std::string out(text.substr(0, kBytesMax));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

class LvmParts {
 public:
  LvmParts(ifsck::View& view, DiskParts& to) : view_(view), to_(to) {}

  Result<void> add_member(const LvmPlace& place) {
    std::vector<std::byte> head(std::min<std::uint64_t>(kLvmLabelBytes, place.on_volume.length));
    if (auto read = view_.read({place.on_volume.offset, head.size()}, head); !read) return read;
    const auto label = parse_lvm_label(head);
    if (!label) {
      if (label.error().code == ErrorCode::kCorrupt) note(place, label.error().message);
      return {};
    }
    if (!members_.emplace(label->id, place.on_volume).second) {
      note(place, "another physical volume has its UUID: this one is left out");
      return {};
    }
    const auto map = PartMap::of({&place.on_volume, 1}, view_.size_bytes());
    CHECK(map.has_value());
    bool read_one = label->metadata_areas.empty();
    for (std::size_t i = 0; i < std::min(kAreasMax, label->metadata_areas.size()); ++i) {
      const auto read = read_area(*map, label->metadata_areas[i]);
      if (read) {
        read_one = true;
      } else if (is_damage(read.error())) {
        note(place, read.error().message);
      } else {
        return read.error();
      }
    }
    if (!read_one) note(place, "none of its metadata can be read");
    return {};
  }

  void finish() {
    if (groups_.empty() && !members_.empty()) to_.notes.emplace_back("LVM2: no volume group");
    for (const auto& [id, group] : groups_) {
      if (!group_names_.insert(group.name).second) {
        leave_out(group.name, "another volume group has this name");
        continue;
      }
      if (!is_lvm_name(group.name)) {
        leave_out("?", "a volume group has a name that LVM2 does not allow");
        continue;
      }
      for (const LvmGroup::Volume& each : group.volumes) add_volume(group, each);
    }
  }

 private:
  void note(const LvmPlace& place, std::string_view what) {
    to_.notes.push_back(fmt::format("LVM2 in {}: {}", place.name, what));
  }
  void leave_out(std::string_view name, std::string_view why) {
    if (to_.left_out.size() < DiskParts::kPartsMax) {
      to_.left_out.push_back({printable(name), printable(why)});
    }
  }

  // The same text is in each physical volume of a group, and is parsed once.
  Result<void> read_area(const PartMap& member, ByteRange area) {
    auto text = read_lvm_text(view_, member, area);
    if (!text) return text.error();
    if (!*text || (*text)->empty()) return {};
    read_bytes_ += (*text)->size();
    if (read_bytes_ > kAreaReadsBytesMax) return too_much(kAreaReadsBytesMax);
    if (!texts_.insert(**text).second) return {};
    text_bytes_ += (*text)->size();
    if (text_bytes_ > kTextBytesMax) return too_much(kTextBytesMax);
    auto group = LvmGroup::parse(**text);
    if (!group) return group.error();
    const auto [known, is_new] = groups_.try_emplace(group->id, *group);
    if (!is_new && known->second.version < group->version) known->second = std::move(*group);
    return {};
  }
  static Error too_much(std::uint64_t bytes) {
    return {ErrorCode::kLimit, fmt::format("all metadata have more than {} bytes", bytes)};
  }

  void add_volume(const LvmGroup& group, const LvmGroup::Volume& volume) {
    std::string name = path_name(group.name, volume.name);
    if (!is_lvm_name(volume.name) || name.size() > kPathNameBytesMax) {
      leave_out(path_name(group.name, "?"),
                "a logical volume has a name that is too long, or that LVM2 does not allow");
      return;
    }
    if (!names_.insert(name).second) return leave_out(name, "another logical volume has this name");
    if (!volume.refused.empty()) return leave_out(name, volume.refused);
    if (to_.parts.size() >= DiskParts::kPartsMax)
      return leave_out(name, "there are too many parts");
    DiskPart part{.name = std::move(name), .type = "linear"};
    std::string why = find_extents(group, volume, part);
    if (!why.empty()) return leave_out(part.name, why);
    to_.parts.push_back(std::move(part));
  }

  // Why they are not to be had.
  std::string find_extents(const LvmGroup& group, const LvmGroup::Volume& volume, DiskPart& to) {
    extents_ += volume.segments.size();
    if (extents_ > kAllExtentsMax) return "all logical volumes have too many segments";
    for (const LvmGroup::Segment& each : volume.segments) {
      const LvmGroup::Member& member = group.members[each.member];
      const auto place = members_.find(member.id);
      if (place == members_.end()) {
        return fmt::format("its physical volume {} ({}) is not on this volume", member.name,
                           member.id);
      }
      const auto range = range_of(group, member, each, place->second.length);
      if (!range) {
        return fmt::format("extents {} to {} of {} are behind the end of it", each.first,
                           each.first + each.extents, member.name);
      }
      to.extents.push_back({place->second.offset + range->offset, range->length});
      to.bytes += range->length;
    }
    const auto map = PartMap::of(to.extents, view_.size_bytes());
    return map ? std::string() : map.error().message;
  }
  // Within the physical volume.
  static std::optional<ByteRange> range_of(const LvmGroup& group, const LvmGroup::Member& member,
                                           const LvmGroup::Segment& segment, std::uint64_t bytes) {
    if (member.start_bytes > bytes) return {};
    const std::uint64_t extents = (bytes - member.start_bytes) / group.extent_bytes;
    if (segment.first > extents || segment.extents > extents - segment.first) return {};
    return ByteRange{member.start_bytes + segment.first * group.extent_bytes,
                     segment.extents * group.extent_bytes};
  }

  ifsck::View& view_;
  DiskParts& to_;
  std::map<std::string, ByteRange> members_;  // of the volume, by UUID
  std::map<std::string, LvmGroup> groups_;    // by UUID
  std::set<std::string> texts_;
  std::set<std::string> group_names_;
  std::set<std::string> names_;  // of logical volumes
  std::uint64_t read_bytes_ = 0;
  std::uint64_t text_bytes_ = 0;
  std::size_t extents_ = 0;
};

}  // namespace

Result<void> add_lvm_parts(ifsck::View& view, const std::vector<LvmPlace>& places, DiskParts& to) {
  LvmParts parts(view, to);
  for (const LvmPlace& each : places) {
    if (auto added = parts.add_member(each); !added) return added;
  }
  parts.finish();
  return {};
}

}  // namespace mariner::uvfs
