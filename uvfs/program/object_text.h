// What an object of a file system is like, for people and for programs.
#pragma once

#include <string>
#include <string_view>

#include "proto/files.pb.h"
#include "server/client/context.h"
#include "uvfs/object_number.h"
#include "uvfs/object_state.h"

namespace mariner::uvfs {

// "file", "directory", "link", "fifo", "socket", "character-device", "block-device".
[[nodiscard]] std::string_view kind_name(std::uint16_t mode);
// As ls -l has it: "drwxr-xr-x".
[[nodiscard]] std::string mode_text(std::uint16_t mode);
// In bytes; of a device "8, 1".
[[nodiscard]] std::string size_text(const ObjectState& object);
// Local time to the second.
[[nodiscard]] std::string time_text(const client::Context& context, const FileTime& time);

// `inode`, or `large_inode` where that has no room for it.
template <typename Message>
void set_number(ObjectNumber number, Message& to) {
  number = shown_number(number);
  if (number <= ~std::uint32_t{0}) {
    to.set_inode(static_cast<std::uint32_t>(number));
  } else {
    to.set_large_inode(number);
  }
}
void put_name(std::string_view name, api::FileName& to);
[[nodiscard]] api::FileObject to_message(const client::Context& context, const ObjectState& object,
                                         ObjectNumber number);

}  // namespace mariner::uvfs
