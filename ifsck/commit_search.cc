#include "ifsck/commit_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "ifsck/journal_block.h"
#include "ifsck/journal_file.h"
#include "ifsck/moment.h"
#include "ifsck/volume_ranges.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kReadAtOnce = 1024;

class CommitSearcher {
 public:
  CommitSearcher(Past& past, SequenceNumber from, SequenceNumber to, std::size_t versions_max)
      : past_(past),
        from_(from),
        to_(to),
        versions_max_(versions_max),
        moment_(past, to, overlay_) {}

  Result<CommitSearch> run() {
    if (const auto opened = moment_.open(); !opened) return opened.error();
    const ExtContext& context = moment_.context();
    if (!ext2fs_has_feature_journal(context.fs->super)) return std::move(search_);
    auto file = JournalFile::open(context.volume, context.layout);
    // (On a device of its own: nothing is known of it.)
    if (!file) {
      if (file.error().code == ErrorCode::kInvalidArgument) return std::move(search_);
      return file.error();
    }
    if (const auto parsed = parse(*file); !parsed) return parsed.error();
    search_.journal = true;
    if (const auto read = look(*file); !read) return read.error();
    for (const auto& [transaction, commit] : found_) search_.commits.push_back(commit);
    std::ranges::sort(search_.commits, {}, &CommitSearch::Commit::at);
    return std::move(search_);
  }

 private:
  Result<void> parse(const JournalFile& file) {
    std::vector<std::byte> bytes(JournalSuperblock::kBytes);
    ByteRange first = file.bytes_of(0);
    first.length = bytes.size();
    if (const auto read = moment_.view().read(first, bytes); !read) return read;
    auto super = JournalSuperblock::parse(bytes, file.block_bytes(), file.blocks());
    if (!super) return super.error();
    super_ = *super;
    block_bytes_ = file.block_bytes();
    return {};
  }

  // Where in one of the volume's blocks there are blocks of the log. (Not of all: a journal may be
  // said to have all blocks that there are.)
  void place(const JournalFile& file, Lbn lbn) {
    const ExtLayout& layout = moment_.context().layout;
    const auto [first, end] = layout.within({lbn, BlockCount{1}});
    for (FsBlock each = first; each < end; ++each) {
      const auto block = file.find(each);
      const std::uint64_t offset = layout.bytes_of(each).offset;
      // (One that is larger begins in its first one.)
      if (!block || *block < super_.first || *block >= super_.log_end ||
          offset / kBlockBytes != lbn.value) {
        continue;
      }
      places_[lbn].push_back(offset % kBlockBytes);
    }
  }

  Result<void> look(const JournalFile& file) {
    const auto changed = past_.changed(from_, to_);
    if (!changed) return changed.error();
    std::vector<Lbn> blocks;
    for_each_block(*changed, [&](Lbn lbn) {
      place(file, lbn);
      if (places_.contains(lbn)) blocks.push_back(lbn);
    });
    auto versions = past_.versions(blocks, from_, to_);
    if (!versions) return versions.error();
    std::ranges::sort(*versions, {}, &Past::Version::sequence);
    std::span<const Past::Version> left(*versions);
    if (left.size() > versions_max_) {
      search_.some_skipped = true;
      left = left.last(versions_max_);
    }
    while (!left.empty()) {
      const auto some = left.first(std::min(left.size(), kReadAtOnce));
      left = left.subspan(some.size());
      if (const auto read = read_versions(some); !read) return read;
    }
    return {};
  }

  Result<void> read_versions(std::span<const Past::Version> versions) {
    std::vector<Past::Question> questions;
    for (const Past::Version& each : versions) questions.push_back({each.block, each.sequence});
    std::vector<std::byte> bytes(questions.size() * kBlockBytes);
    if (const auto read = past_.read(questions, bytes); !read) return read;
    for (std::size_t i = 0; i < versions.size(); ++i) {
      const auto block = std::span(bytes).subspan(i * kBlockBytes, kBlockBytes);
      for (const std::uint64_t at : places_.at(versions[i].block)) {
        take(block.subspan(at, std::min<std::size_t>(block_bytes_, kBlockBytes - at)), versions[i]);
      }
    }
    return {};
  }

  // (Versions come in the order of their writes: the first that has a transaction's record is its
  // own, where several of the journal's blocks are in one of the volume's.)
  void take(std::span<const std::byte> block, const Past::Version& version) {
    const JournalHead head = JournalHead::of(block);
    if (!head.is_one() || head.kind != JournalHead::Kind::kCommit) return;
    // (Of a larger one only the beginning is here.)
    if (block.size() == block_bytes_ && !commit_is_right(super_, block)) return;
    found_.try_emplace(head.sequence,
                       CommitSearch::Commit{version.sequence, version.time, head.sequence});
  }

  Past& past_;
  const SequenceNumber from_;
  const SequenceNumber to_;
  const std::size_t versions_max_;
  Overlay overlay_;
  Moment moment_;
  JournalSuperblock super_;
  std::size_t block_bytes_ = 0;
  std::map<Lbn, std::vector<std::uint64_t>> places_;  // of those that changed
  std::map<std::uint32_t, CommitSearch::Commit> found_;
  CommitSearch search_;
};

}  // namespace

Result<CommitSearch> CommitSearch::run(Past& past, SequenceNumber from, SequenceNumber to,
                                       std::size_t versions_max) {
  return CommitSearcher(past, from, to, versions_max).run();
}

}  // namespace mariner::ifsck
