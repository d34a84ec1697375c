// The files of a volume at one moment, whichever file system it is: as who mounts it read-only has
// them. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/file_contents.h"
#include "uvfs/object_attributes.h"
#include "uvfs/object_number.h"
#include "uvfs/object_state.h"

namespace mariner::uvfs {

class FilesMoment {
 public:
  struct Name {
    std::string name;
    ObjectNumber number = 0;
    std::uint32_t kind = 0;  // S_IF*; 0: not known
  };
  using Names = std::shared_ptr<const std::vector<Name>>;

  virtual ~FilesMoment() = default;

  // There is no file system that is understood, but one file with all that the volume has.
  [[nodiscard]] virtual bool is_raw() const { return false; }
  [[nodiscard]] virtual SequenceNumber at() const = 0;
  [[nodiscard]] virtual ObjectNumber root() const = 0;
  // In memory as long as this, besides what is kept to be quick.
  [[nodiscard]] virtual std::size_t blocks_held() const = 0;

  // Errors of all: of the past. kNotFound: there is no such object.
  [[nodiscard]] virtual Result<ObjectState> state(ObjectNumber number) = 0;
  // Without "." and "..", by name, each once. kInvalidArgument: it is no directory.
  [[nodiscard]] virtual Result<Names> names(ObjectNumber directory) = 0;
  // As of FileContents::open(). Not to be used without this.
  [[nodiscard]] virtual Result<FileContents> contents(ObjectNumber number) = 0;
  [[nodiscard]] virtual Result<ObjectAttributes> attributes(ObjectNumber number) = 0;

  // 0: there is none of that name.
  [[nodiscard]] Result<ObjectNumber> find(ObjectNumber directory, std::string_view name) {
    const auto all = names(directory);
    if (!all) return all.error();
    const auto found = std::ranges::lower_bound(**all, name, {}, &Name::name);
    return found == (*all)->end() || found->name != name ? ObjectNumber{0} : found->number;
  }
};

}  // namespace mariner::uvfs
