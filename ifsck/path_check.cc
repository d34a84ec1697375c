#include "ifsck/path_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "ifsck/directory_reader.h"
#include "ifsck/ext_inode.h"
#include "ifsck/moment_change.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

struct Entry {
  InodeNumber inode = 0;
  std::uint8_t type = 0;
};

class Visitor final : public DirectoryVisitor {
 public:
  Visitor(std::string_view wanted, std::vector<Finding>& findings)
      : wanted_(wanted), findings_(findings) {}
  void found(const Finding& finding) override { findings_.push_back(finding); }
  void dot(InodeNumber /*inode*/, bool /*parent*/) override {}
  void entry(InodeNumber inode, std::uint8_t type, std::string_view name) override {
    entries.push_back({inode, type});
    if (name == wanted_) next = entries.back();
  }
  std::vector<Entry> entries;
  Entry next;

 private:
  const std::string_view wanted_;
  std::vector<Finding>& findings_;
};

class Walker {
 public:
  Walker(const ExtContext& context, const Baseline* known) : context_(context), known_(known) {}

  Result<PathCheck> run(std::string_view path) {
    if (!path.starts_with('/')) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is no path: it begins with no /", path)};
    }
    if (const auto done = enter(EXT2_ROOT_INO, 0); !done) return done.error();
    std::string_view left = path;
    for (;;) {
      left.remove_prefix(std::min(left.find_first_not_of('/'), left.size()));
      const std::string_view name = left.substr(0, left.find('/'));
      if (name.empty()) break;
      left.remove_prefix(name.size());
      if (const auto done = step(path, name); !done) return done.error();
    }
    if (const auto done = finish(); !done) return done.error();
    return std::move(out_);
  }

 private:
  Result<void> enter(InodeNumber number, std::uint8_t type) {
    if (const auto done = prefetch(number); !done) return done;
    CheckedInode checked;
    auto bytes = read_inode(context_, number);
    if (!bytes) return bytes.error();
    if (!bytes->empty()) {
      auto inode = check_inode(context_, number, *bytes, true);
      if (!inode) return inode.error();
      checked = std::move(*inode);
    }
    if (number == EXT2_ROOT_INO && !checked.directory)
      out_.findings.push_back({.code = Code::kRoot});
    if (type != 0 && checked.kind != 0 && checked.kind != type) {
      out_.findings.push_back({.code = Code::kEntryType,
                               .inode = out_.steps.back().number,
                               .expected = checked.kind,
                               .found = type});
    }
    std::ranges::copy(checked.findings, std::back_inserter(out_.findings));
    check_places(number, checked);
    if (checked.attributes != 0) {
      const auto attributes = check_attributes(context_, number, checked.attributes);
      if (!attributes) return attributes.error();
      if (!attributes->good) {
        out_.findings.push_back(
            {.code = Code::kAttributes, .inode = number, .block = checked.attributes});
      }
    }
    out_.steps.push_back({number, std::move(checked)});
    return {};
  }

  Result<void> prefetch(InodeNumber number) const {
    if (known_ == nullptr) return {};
    std::vector<Lbn> wanted;
    for (const FsBlock block : PathCheck::likely(context_, *known_, number)) {
      const BlockRange range = context_.layout.bytes_of(block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        wanted.push_back(lbn);
      }
    }
    return context_.volume.view().prefetch(wanted);
  }

  void check_places(InodeNumber number, const CheckedInode& inode) {
    std::uint64_t claimed = 0;
    FsBlock first_claimed = 0;
    const auto look_at = [&](FsBlock first, std::uint64_t count) {
      context_.layout.for_each_structure(first, first + count, [&](FsBlock begin, FsBlock end) {
        if (claimed == 0) first_claimed = begin;
        claimed += end - begin;
      });
    };
    for (const BlockMap::Run& run : inode.map.runs) look_at(run.physical, run.count);
    for (const BlockMap::Node& node : inode.map.nodes) look_at(node.block, 1);
    if (claimed == 0) return;
    out_.findings.push_back({.code = Code::kClaimsStructure,
                             .inode = number,
                             .block = first_claimed,
                             .found = claimed});
  }

  Result<Visitor> look(std::string_view wanted) {
    Visitor visitor(wanted, out_.findings);
    const PathCheck::Step& last = out_.steps.back();
    const auto done = read_directory(
        context_,
        {.number = last.number,
         .map = &last.inode.map,
         .inlined = last.inode.inlined,
         .indexed = last.inode.indexed},
        [](std::uint64_t, FsBlock) { return true; }, visitor);
    if (!done) return done.error();
    return visitor;
  }

  // An inode that cannot be, or is not in use.
  Result<std::uint8_t> kind_of(InodeNumber number) const {
    if (number == 0 || number > context_.layout.inodes() || context_.is_reserved(number)) {
      return std::uint8_t{0};
    }
    const auto bytes = read_inode(context_, number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return std::uint8_t{0};
    const ExtInode inode(*bytes);
    if (inode.links() == 0) return std::uint8_t{0};
    return inode.type() != 0 ? inode.type() : CheckedInode::kStrange;
  }

  Result<void> step(std::string_view path, std::string_view name) {
    const Error none{ErrorCode::kNotFound,
                     fmt::format("\"{}\": there is no \"{}\" at that moment", path, name)};
    if (!out_.steps.back().inode.directory) return none;
    const auto visitor = look(name);
    if (!visitor) return visitor.error();
    if (visitor->next.inode == 0) return none;
    const auto kind = kind_of(visitor->next.inode);
    if (!kind) return kind.error();
    if (*kind == 0) {
      out_.findings.push_back({.code = Code::kEntryInode,
                               .inode = out_.steps.back().number,
                               .found = visitor->next.inode});
      return none;
    }
    const bool typed = ext2fs_has_feature_filetype(context_.fs->super) != 0;
    return enter(visitor->next.inode, typed ? visitor->next.type : std::uint8_t{0});
  }

  // A folder at the end.
  Result<void> finish() {
    if (!out_.steps.back().inode.directory) return {};
    const InodeNumber number = out_.steps.back().number;
    const auto visitor = look({});
    if (!visitor) return visitor.error();
    std::vector<Lbn> wanted;
    for (const Entry& each : visitor->entries) {
      if (each.inode == 0 || each.inode > context_.layout.inodes()) continue;
      wanted.push_back(context_.layout.inode_place(each.inode).covering_blocks().first);
    }
    if (const auto done = context_.volume.view().prefetch(wanted); !done) return done;
    const bool typed = ext2fs_has_feature_filetype(context_.fs->super) != 0;
    for (const Entry& each : visitor->entries) {
      const auto kind = kind_of(each.inode);
      if (!kind) return kind.error();
      if (*kind == 0) {
        out_.findings.push_back({.code = Code::kEntryInode, .inode = number, .found = each.inode});
      } else if (typed && *kind != each.type) {
        out_.findings.push_back(
            {.code = Code::kEntryType, .inode = number, .expected = *kind, .found = each.type});
      }
    }
    return {};
  }

  const ExtContext& context_;
  const Baseline* const known_;
  PathCheck out_;
};

}  // namespace

Result<PathCheck> PathCheck::run(const ExtContext& context, std::string_view path,
                                 const Baseline* known) {
  return Walker(context, known).run(path);
}

std::vector<FsBlock> PathCheck::likely(const ExtContext& context, const Baseline& known,
                                       InodeNumber number) {
  const ExtLayout& layout = context.layout;
  std::vector<FsBlock> blocks{layout.inode_place(number).offset / layout.block_bytes()};
  const GroupNumber group = layout.group_of(number);
  const auto [first, end] = context.likely_blocks(group, group + 1);
  const auto look = [&](FsBlock from, FsBlock to) {
    for (const auto& [block, owner] : known.owners.within(from, to)) {
      if (owner == number && layout.may_claim(block)) blocks.push_back(block);
    }
  };
  // (What is reserved for descriptors has an owner, too: it may be more than all else.)
  FsBlock next = first;
  layout.for_each_structure(first, end, [&](FsBlock begin, FsBlock behind) {
    look(next, begin);
    next = behind;
  });
  look(next, end);
  return blocks;
}

bool PathCheck::in_scope(const Finding& finding) const {
  if (finding.code == Code::kRoot) return true;
  const bool of_directory = finding.code == Code::kDirectoryBlock ||
                            finding.code == Code::kDirectoryHole || finding.code == Code::kDots ||
                            finding.code == Code::kEntryName;
  return (of_directory || is_of_inode(finding.code)) &&
         std::ranges::find(steps, finding.inode, &Step::number) != steps.end();
}

BlockRanges PathCheck::claims() const {
  std::vector<BlockRanges::Range> all;
  for (const Step& each : steps) {
    for (const BlockMap::Run& run : each.inode.map.runs) {
      all.push_back({run.physical, run.physical + run.count});
    }
    for (const BlockMap::Node& node : each.inode.map.nodes) {
      all.push_back({node.block, node.block + 1});
    }
  }
  return BlockRanges(std::move(all));
}

}  // namespace mariner::ifsck
