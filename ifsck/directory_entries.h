// Entries of a directory that change, come and go.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "ifsck/directory_maker.h"
#include "ifsck/mend_work.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct PlacedEntry {
  InodeNumber inode = 0;
  std::uint8_t type = 0;
  std::string_view name;
  int dot = 0;  // 1: it is "."; 2: ".."; by its place
};
using ChangeEntry = std::function<std::optional<Named>(const PlacedEntry&)>;

// All entries of a directory for which `visit(entry)` says so name something else, or nothing (0),
// from then on. True: something was changed. Errors: of the past alone.
[[nodiscard]] Result<bool> change_entries(MendWork& work, InodeNumber directory,
                                          const ChangeEntry& visit);

// False: there is no room, and none to be had.
[[nodiscard]] Result<bool> add_name(MendWork& work, InodeNumber directory, std::string_view name,
                                    const Named& named);

// ".." is to be `parent`. True: it was not.
[[nodiscard]] Result<bool> set_parent(MendWork& work, InodeNumber directory, InodeNumber parent);

}  // namespace mariner::ifsck
