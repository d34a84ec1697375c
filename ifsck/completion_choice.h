// What of the operations that were under way at a moment can be completed from a later one without
// taking anything away that was whole.
//
// An inode is whole that is in use, has a name, and has nothing wrong with itself. Nothing that was
// done to it afterwards is done to it here: it is not removed, nothing is put in its place or into
// its blocks, and it keeps its names. Hosts write back in any order, and a host that was told that
// a file is safe finds it as it was.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ifsck/block_ranges.h"
#include "ifsck/completion.h"
#include "ifsck/inode_check.h"
#include "ifsck/moment_change.h"
#include "ifsck/name_changes.h"
#include "proto/error.h"

namespace mariner::ifsck {

class CompletionChoice {
 public:
  // What becomes of an inode.
  enum class Role : std::uint8_t {
    kNone,
    kCreate,   // it has a name already: the inode follows, with its blocks
    kVanish,   // it is gone already: its names go, too
    kRemove,   // it was there before, has no name any more, and is not there later
    kAttach,   // it has no name yet: it gets those that it has later
    kNames,    // it had one name too many, or too few
    kContent,  // blocks that say where others are, are missing: all is as later
  };
  // An inode at all three moments.
  struct Trio {
    const CheckedInode* then = nullptr;
    const CheckedInode* now = nullptr;
    const CheckedInode* later = nullptr;
  };
  using Place = std::pair<InodeNumber, std::string>;  // a directory, and a name in it
  struct Going {
    Role role = Role::kNone;
    std::set<Place> gains;
    bool drops = false;  // the names that it does not have later
  };

  // `request` outlives it. Who has to `stay` does not go. Errors: of the past alone.
  [[nodiscard]] static Result<CompletionChoice> make(const CompletionRequest& request,
                                                     const std::set<InodeNumber>& stay);

  // Findings that nothing can be done about here, and that are not undone without loss.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }
  [[nodiscard]] const std::map<InodeNumber, Going>& going() const { return going_; }
  [[nodiscard]] const Trio& trio(InodeNumber number) const { return trios_.at(number); }
  // What directories gain and lose until later.
  [[nodiscard]] const std::map<InodeNumber, NameChanges>& names() const { return names_; }
  [[nodiscard]] bool is_dirty(FsBlock block) const { return dirty_.contains(block); }

  // Blocks are taken from the later moment.
  [[nodiscard]] bool takes_blocks(InodeNumber number) const;
  // A name that is not there now is to be.
  [[nodiscard]] bool gains(InodeNumber directory, const DirectoryName& name) const;
  // One that is not there later is to go: its inode drops it, or is not there and somebody else
  // gets the name.
  [[nodiscard]] bool drops(InodeNumber directory, const DirectoryName& name) const;
  // One that an inode got or lost; empty: none.
  [[nodiscard]] std::string name_of(InodeNumber number) const;

 private:
  // Who has which blocks at the moment: stretches that may overlap, where they must not.
  class Claims {
   public:
    void add(FsBlock begin, std::uint64_t count, InodeNumber inode, bool shared) {
      stretches_.push_back({begin, begin + count, inode, shared, 0});
    }
    void close();
    // Calls `visit(inode)` for who else has one of [begin, begin + count); what is shared on both
    // sides (attributes) does not count.
    template <typename Visit>
    void for_each_other(FsBlock begin, std::uint64_t count, InodeNumber inode, bool shared,
                        Visit visit) const;

   private:
    struct Stretch {
      FsBlock begin = 0;
      FsBlock end = 0;
      InodeNumber inode = 0;
      bool shared = false;
      FsBlock ends_so_far = 0;
    };
    std::vector<Stretch> stretches_;
  };
  struct PlacedName {
    InodeNumber directory = 0;
    DirectoryName name;
  };
  struct Links {
    std::uint64_t names = 0;  // that there are
    std::uint64_t said = 0;
  };
  // What another one that goes needs of an inode.
  enum class Need : std::uint8_t { kNothing, kBlocks };

  explicit CompletionChoice(const CompletionRequest& request) : request_(&request) {}

  Result<void> prepare();
  Result<void> collect_names();
  Result<void> collect_begun(InodeNumber number, const Trio& trio, const NameChanges& changes);
  Result<void> add_named();
  void take_findings();
  void choose();
  // True: something can be done about it, or needs not be.
  bool complete(const Finding& finding);

  [[nodiscard]] bool lives_on(const Trio& trio) const;
  [[nodiscard]] bool was_there(const Trio& trio) const;
  [[nodiscard]] bool is_whole(InodeNumber number) const;
  [[nodiscard]] bool may_follow(InodeNumber number) const;
  [[nodiscard]] bool was_written(InodeNumber number, const BlockMap::Node& node) const;
  [[nodiscard]] Role role_of(InodeNumber number) const;
  [[nodiscard]] std::optional<Going> plan(InodeNumber number) const;
  [[nodiscard]] std::optional<Going> plan_names(InodeNumber number) const;
  [[nodiscard]] bool may_gain(const PlacedName& name) const;
  [[nodiscard]] static bool satisfies(const Going& going, Need need);
  bool add(InodeNumber number);
  template <typename Visit>
  void for_each_needed(InodeNumber number, const Going& going, Visit visit) const;
  // Of all that go since the last call, and of these.
  void add_followers();
  void add_followers_of(InodeNumber number);
  void add_replacing(const PlacedName& name);
  [[nodiscard]] std::uint64_t contents_of(InodeNumber number) const;
  [[nodiscard]] const std::vector<PlacedName>& gained(InodeNumber number) const;
  [[nodiscard]] const std::vector<PlacedName>& lost(InodeNumber number) const;

  const CompletionRequest* request_;
  std::optional<MomentChange> now_;
  std::optional<MomentChange> later_;
  BlockRanges dirty_;  // at either
  std::map<InodeNumber, Trio> trios_;
  Claims claims_;  // now
  std::deque<CheckedInode> unchanged_;
  std::map<InodeNumber, std::vector<DirectoryName>> begun_;  // by directory
  std::map<InodeNumber, NameChanges> names_;                 // by directory
  std::map<InodeNumber, std::vector<PlacedName>> lost_;      // by inode
  std::map<InodeNumber, std::vector<PlacedName>> gained_;
  std::map<Place, std::set<InodeNumber>> lost_by_;  // who has the name now, and not later
  std::map<Place, std::set<InodeNumber>> gained_by_;

  std::set<InodeNumber> stuck_;  // something is wrong with them later, or they have to stay
  // What is wrong with them by themselves, now.
  std::map<InodeNumber, std::set<Finding::Code>> wrong_;
  std::set<InodeNumber> unattached_;  // now
  std::map<InodeNumber, Links> links_;
  std::set<InodeNumber> replacing_;  // their last change was to take somebody's name

  std::map<InodeNumber, Going> going_;
  std::deque<InodeNumber> new_;  // of these: whose followers were not looked for
  std::uint64_t blocks_ = 0;
  std::uint64_t given_up_ = 0;
};

}  // namespace mariner::ifsck
