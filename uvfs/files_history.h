// What the objects of a file system were over a stretch of its history, whichever file system it
// is: found from writes, and the same as if every moment had been looked at.
//
// Many objects are asked for at once. One thread.
#pragma once

#include <cstddef>
#include <span>

#include "proto/error.h"
#include "proto/units.h"
#include "uvfs/file_contents.h"
#include "uvfs/name_history.h"
#include "uvfs/object_attributes.h"
#include "uvfs/object_history.h"
#include "uvfs/object_number.h"
#include "uvfs/object_state.h"
#include "uvfs/stretch.h"

namespace mariner::uvfs {

class FilesHistory {
 public:
  virtual ~FilesHistory() = default;

  // Those of the wanted moments that the file system was there at.
  [[nodiscard]] virtual const Stretch& stretch() const = 0;
  // Of its first moment.
  [[nodiscard]] virtual VersionTime first_time() const = 0;
  [[nodiscard]] virtual ObjectNumber root() const = 0;

  // What is asked of them below is known from then on. Numbers that no object can have are left
  // out. Errors, here and below: of the past; kLimit.
  [[nodiscard]] virtual Result<void> load(std::span<const ObjectNumber> numbers) = 0;
  // That were loaded, and are kept.
  [[nodiscard]] virtual std::size_t objects() const = 0;
  // Null: it was left out.
  [[nodiscard]] virtual const ObjectHistory* find(ObjectNumber number) const = 0;
  // Of one that was a directory at any moment; null: it was none.
  [[nodiscard]] virtual const NameHistory* names(ObjectNumber number) const = 0;

  // Of one that was found, at a moment of the stretch.
  [[nodiscard]] virtual ObjectState state(ObjectNumber number, SequenceNumber at) const = 0;
  // The same; it need not have been loaded. Errors, too, as of FileContents::open().
  [[nodiscard]] virtual Result<FileContents> contents(ObjectNumber number, SequenceNumber at) = 0;
  [[nodiscard]] virtual Result<ObjectAttributes> attributes(ObjectNumber number,
                                                            SequenceNumber at) = 0;
};

}  // namespace mariner::uvfs
