// VOLUME:PATH[@TIME], as it is typed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "server/client/context.h"

namespace mariner::uvfs {

struct ObjectName {
  std::string volume;  // empty: of an image
  std::string path;
  std::optional<std::string> time;
  // Of a volume with parts, the one that the path is within: "/p2" (FileSource::choose_part()).
  std::string part{};

  // Its path is within that part ("" of a volume without). kInvalidArgument: it is not.
  [[nodiscard]] Result<void> enter(const std::string& chosen);
  // As it was typed: "/p2/etc/passwd".
  [[nodiscard]] std::string full_path() const;
  [[nodiscard]] std::string full_path(std::string_view within) const;
  // How it is typed at that moment: for a shell.
  [[nodiscard]] std::string at(SequenceNumber moment) const;
};

struct ObjectNameRule {
  bool image = false;      // there is no volume: PATH[@TIME]
  bool path_less = false;  // VOLUME alone is its root directory
};

// The first ':' ends the volume's name; what is behind the last '@' is a time unless it has a '/'.
// kInvalidArgument: no such name, a path that is not absolute, or a time that is none.
[[nodiscard]] Result<ObjectName> parse_object_name(const client::Context& context,
                                                   std::string_view text,
                                                   const ObjectNameRule& rule);

// What a shell takes for `text`, whatever is in it: 'a b', or $'a\xff'.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace mariner::uvfs
