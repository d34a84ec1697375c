// A history of a file system with a journal, in which transactions come one by one.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ifsck/commit_search.h"
#include "ifsck/write_trace.h"
#include "tests/ifsck/made_journal.h"
#include "tests/ifsck/made_volume.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {

class MadeCommits {
 public:
  // Each transaction has the root directory's inode as it is, and some other blocks that stay as
  // they are; behind it something is written that is none of the journal's.
  MadeCommits(const std::string& kind, std::size_t transactions) {
    const MadeImage& made = MadeImage::of(kind);
    TracePast before = TracePast::open(made.file("image"), made.file("trace")).value();
    Overlay overlay;
    View view(before, {}, overlay);
    MadeJournal journal(view, {.sequence = 7});
    auto trace = TraceWriter::create(folder_.file("trace"), MadeImage::kBytes).value();
    put_all(overlay, trace);
    for (std::size_t i = 0; i < transactions; ++i) {
      const std::size_t done = journal.written().size();
      const std::uint32_t transaction = journal.sequence();
      const FsBlock block =
          journal.layout().inode_place(EXT2_ROOT_INO).offset / journal.layout().block_bytes();
      for (FsBlock each = block; each < block + 3; ++each) {
        std::vector<std::byte> bytes(journal.layout().block_bytes());
        EXPECT_TRUE(view.read(journal.layout().bytes_of(each), bytes).has_value());
        journal.write(each, bytes);
      }
      journal.commit(1000 + i);
      put_transaction(journal, done, transaction, overlay, trace);
    }
    past.emplace(TracePast::open(made.file("image"), folder_.file("trace")).value());
  }

  std::optional<TracePast> past;
  std::vector<CommitSearch::Commit> commits;

 private:
  void put(Lbn lbn, const Overlay& overlay, TraceWriter& trace) {
    time_ += 1'000'000'000;
    last_ = trace.write(VersionTime{time_}, lbn, *overlay.find(lbn)).value();
  }
  void put_all(const Overlay& overlay, TraceWriter& trace) {
    overlay.for_each([&](Lbn lbn, const Overlay::Block&) { put(lbn, overlay, trace); });
  }
  void put_transaction(const MadeJournal& journal, std::size_t done, std::uint32_t transaction,
                       const Overlay& overlay, TraceWriter& trace) {
    const auto lbn_of = [&](JournalBlock block) {
      return Lbn{journal.file().bytes_of(block).offset / kBlockBytes};
    };
    std::set<Lbn> written;
    const Lbn commit = lbn_of(journal.written().back().second);
    for (; done < journal.written().size(); ++done) {
      const Lbn lbn = lbn_of(journal.written()[done].second);
      if (!written.insert(lbn).second) continue;
      put(lbn, overlay, trace);
      if (lbn == commit) commits.push_back({last_, VersionTime{time_}, transaction});
    }
    // The last block of all, which no file system here uses.
    const std::vector<std::byte> nothing(kBlockBytes);
    time_ += 1'000'000'000;
    const Lbn end{MadeImage::kBytes / kBlockBytes - 1};
    last_ = trace.write(VersionTime{time_}, end, nothing).value();
  }

  logging::test::TemporaryDirectory folder_;
  std::uint64_t time_ = 0;
  SequenceNumber last_;
};

}  // namespace mariner::ifsck
