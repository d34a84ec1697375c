// The names in a directory, while it changes: which object each of them was at every moment.
//
// It is fed with the directory's blocks, or with all of its names, in the order of the moments at
// which they changed; of the many names only those that come and go take room. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proto/units.h"
#include "uvfs/object_number.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class NameHistory {
 public:
  // From a moment on; until the next one, or for ever.
  struct Span {
    Instant from;
    ObjectNumber inode = 0;  // 0: nobody has the name
    friend bool operator==(const Span&, const Span&) = default;
  };
  // From a moment on the block has these entries (all of a block that is one of a directory, as far
  // as it is one); moments never decrease. Where a name is twice, the first is meant.
  void set(const Instant& at, std::uint64_t logical, std::span<const std::byte> block);
  // The same where a directory is not told block by block: these are all of its names, or, unless
  // `whole`, those that can be read.
  using Entry = std::pair<std::string, ObjectNumber>;
  void set_all(const Instant& at, std::vector<Entry> entries, bool whole = true);
  // The directory has no such block any more. / It is none.
  void forget(const Instant& at, std::uint64_t logical);
  void forget_all(const Instant& at);

  // Null: nobody ever had it. Ascending.
  [[nodiscard]] const std::vector<Span>* find(std::string_view name) const;
  [[nodiscard]] ObjectNumber find(std::string_view name, SequenceNumber at) const;
  // By name.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [name, one] : names_) {
      if (!one.spans.empty()) visit(std::string_view(name), std::span<const Span>(one.spans));
    }
  }
  // A block was none of a directory, at any of the moments: names may be missing.
  [[nodiscard]] bool is_damaged() const { return damaged_; }
  // Moments behind the first one at which any name changed, ascending, each once.
  [[nodiscard]] std::vector<Instant> changes() const;

 private:
  struct Name {
    std::map<std::uint64_t, ObjectNumber> holders;  // by block
    std::vector<Span> spans;
  };

  void replace(const Instant& at, std::uint64_t logical, std::vector<Entry> entries);
  void settle(const Instant& at, Name& name);

  std::map<std::string, Name, std::less<>> names_;
  std::unordered_map<std::uint64_t, std::vector<Entry>> blocks_;  // by name
  std::optional<SequenceNumber> first_;                           // of what was told
  SequenceNumber last_;
  bool damaged_ = false;
};

}  // namespace mariner::uvfs
