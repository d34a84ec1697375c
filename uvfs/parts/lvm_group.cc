#include "uvfs/parts/lvm_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "uvfs/parts/lvm_label.h"

namespace mariner::uvfs {
namespace {

constexpr std::size_t kNameBytesMax = 127;
constexpr std::uint64_t kExtentsMax = 1ULL << 32;  // of a member or a volume, as in LVM2
constexpr std::uint64_t kSectorsMax = 1ULL << 52;
constexpr std::size_t kSegmentsMax = 64 * 1024;  // of a volume

Error corrupt(std::string what) { return {ErrorCode::kCorrupt, std::move(what)}; }

// "ABCDEF-GHIJ-..." of the text, as labels have it.
std::string without_dashes(std::string_view id) {
  std::string out(id);
  std::erase(out, '-');
  return out;
}

std::optional<std::uint64_t> number(const LvmNode& node, std::string_view name, std::uint64_t max) {
  const auto value = node.number(name);
  return value && *value <= max ? value : std::nullopt;
}

class GroupReader {
 public:
  explicit GroupReader(LvmGroup& group) : group_(group) {}

  Result<void> read(const LvmNode& node) {
    group_.name = node.key;
    const auto id = node.string("id");
    const auto version = node.number("seqno");
    const auto extent = number(node, "extent_size", kSectorsMax);
    if (!id || !version || !extent || *extent == 0) {
      return corrupt(fmt::format("{} has no id, no seqno or no extent_size", group_.name));
    }
    group_.id = without_dashes(*id);
    group_.version = *version;
    group_.extent_bytes = *extent * kLvmSectorBytes;
    if (const LvmNode* const all = node.section("physical_volumes")) {
      for (const LvmNode& each : all->children) read_member(each);
    }
    if (const LvmNode* const all = node.section("logical_volumes")) {
      find_snapshots(*all);
      for (const LvmNode& each : all->children) read_volume(each);
    }
    return {};
  }

 private:
  // One that makes no sense is not there, and what is on it is refused.
  void read_member(const LvmNode& node) {
    const auto id = node.string("id");
    const auto start = number(node, "pe_start", kSectorsMax);
    const auto extents = number(node, "pe_count", kExtentsMax);
    if (!id || !start || !extents) return;
    if (!members_.emplace(node.key, group_.members.size()).second) return;
    group_.members.push_back({node.key, without_dashes(*id), *start * kLvmSectorBytes, *extents});
  }

  // A snapshot is a hidden volume that names its origin and where changes are kept.
  void find_snapshots(const LvmNode& volumes) {
    for (const LvmNode& volume : volumes.children) {
      for (const LvmNode& segment : volume.children) {
        const auto store = segment.string("cow_store");
        if (segment.is_section && store) snapshots_.emplace(*store, volume.key);
      }
    }
  }

  void read_volume(const LvmNode& node) {
    if (!node.is_section || !node.lists("status", "VISIBLE")) return;
    LvmGroup::Volume volume{.name = node.key};
    volume.refused = read_segments(node, volume.segments);
    if (snapshots_.contains(node.key)) {
      volume.refused = "it is a snapshot: what has changed of another volume";
    }
    if (!volume.refused.empty()) volume.segments.clear();
    group_.volumes.push_back(std::move(volume));
  }

  // Why they are not understood.
  std::string read_segments(const LvmNode& volume, std::vector<LvmGroup::Segment>& to) const {
    const auto count = volume.number("segment_count");
    if (!count || *count == 0 || *count > kSegmentsMax) return "it has no segments, or too many";
    std::vector<std::pair<std::uint64_t, const LvmNode*>> ordered;
    for (const LvmNode& each : volume.children) {
      if (!each.is_section || !each.key.starts_with("segment")) continue;
      const auto start = number(each, "start_extent", kExtentsMax);
      if (!start) return fmt::format("its {} begins nowhere", each.key);
      ordered.emplace_back(*start, &each);
    }
    if (ordered.size() != *count) {
      return fmt::format("it has {} segments, and is said to have {}", ordered.size(), *count);
    }
    std::ranges::stable_sort(ordered, {}, &std::pair<std::uint64_t, const LvmNode*>::first);
    std::uint64_t end = 0;
    for (const auto& [start, node] : ordered) {
      if (start != end) return fmt::format("its {} does not follow the one before", node->key);
      LvmGroup::Segment segment;
      std::string why = read_segment(*node, segment);
      if (!why.empty()) return fmt::format("its {} {}", node->key, why);
      end += segment.extents;
      to.push_back(segment);
    }
    return {};
  }

  std::string read_segment(const LvmNode& node, LvmGroup::Segment& to) const {
    const auto type = node.string("type");
    if (!type) return "has no type";
    if (*type != "striped" && *type != "linear") return fmt::format("is of the type {}", *type);
    const auto stripes = node.number("stripe_count");
    if (!stripes) return "has no stripe_count";
    if (*stripes != 1) return fmt::format("has {} stripes", *stripes);
    const auto extents = number(node, "extent_count", kExtentsMax);
    if (!extents || *extents == 0) return "has no extents";
    const LvmNode* const place = node.list("stripes");
    if (place == nullptr || place->values.size() != 2) return "is nowhere";
    const auto* const on = std::get_if<std::string>(&place->values[0]);
    const auto* const first = std::get_if<std::int64_t>(&place->values[1]);
    if (on == nullptr || first == nullptr || *first < 0) return "is nowhere";
    const auto member = members_.find(*on);
    if (member == members_.end()) {
      return fmt::format("is on {}, which is no physical volume", *on);
    }
    const LvmGroup::Member& one = group_.members[member->second];
    to = {member->second, static_cast<std::uint64_t>(*first), *extents};
    if (to.first <= one.extents && to.extents <= one.extents - to.first) return {};
    return fmt::format("has extents {} to {} of {}, which has {}", to.first, to.first + to.extents,
                       *on, one.extents);
  }

  LvmGroup& group_;
  std::map<std::string, std::size_t> members_;    // by name
  std::map<std::string, std::string> snapshots_;  // by where changes are kept
};

}  // namespace

bool is_lvm_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("+_.-").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kNameBytesMax && name != "." && name != ".." &&
         !name.starts_with('-') && std::ranges::all_of(name, allowed);
}

Result<LvmGroup> LvmGroup::parse(std::string_view text) {
  const auto root = LvmNode::parse(text);
  if (!root) return root.error();
  const auto found = std::ranges::find_if(root->children, &LvmNode::is_section);
  if (found == root->children.end()) return corrupt("there is no volume group in it");
  LvmGroup group;
  if (const auto done = GroupReader(group).read(*found); !done) return done.error();
  return group;
}

}  // namespace mariner::uvfs
