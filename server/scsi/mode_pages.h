// The mode pages of a disk as a table: what each says by default and which of its bits MODE SELECT
// may change; and their current values (SPC-4 7.5, SBC-3 6.5).
//
// There is no page of the transport's own (18h, 19h): iSCSI negotiates what they would hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "server/scsi/sense.h"

namespace mariner::scsi {

inline constexpr std::size_t kModePageBytesMax = 40;

// Whole pages, with their headers of two bytes or, for a subpage, four. The header of `changeable`
// is that of the page, as MODE SENSE returns it.
struct ModePage {
  std::uint8_t code = 0;
  std::uint8_t subpage = 0;
  std::size_t bytes = 0;
  std::array<std::uint8_t, kModePageBytesMax> defaults{};
  std::array<std::uint8_t, kModePageBytesMax> changeable{};

  [[nodiscard]] std::size_t header_bytes() const { return subpage == 0 ? 2 : 4; }
};

inline constexpr std::size_t kModePages = 9;
// In order of code and subpage: the order in which MODE SENSE returns them.
[[nodiscard]] std::span<const ModePage, kModePages> mode_pages();

// How informational exceptions are reported (MRIE, SBC-3 6.5.8); others are refused.
enum class ExceptionMethod : std::uint8_t {
  kNone = 0,       // they stand in the log page only
  kAttention = 2,  // a unit attention for every initiator
  kRequest = 6,    // in the data of REQUEST SENSE
};

// The current values of all pages: defaults until MODE SELECT changes them.
class ModeParameters {
 public:
  ModeParameters();

  // Of the page with this index in mode_pages().
  [[nodiscard]] std::span<const std::uint8_t> page(std::size_t index) const;
  // Takes these bytes for the whole page; the caller has checked them against `changeable`. What
  // contradicts itself is refused, as a field of a page that begins at `position` of the list.
  [[nodiscard]] std::optional<Sense> take(std::size_t index, std::span<const std::uint8_t> bytes,
                                          std::uint16_t position);

  [[nodiscard]] bool descriptor_sense() const;        // D_SENSE
  [[nodiscard]] bool software_write_protect() const;  // SWP
  [[nodiscard]] bool exceptions_disabled() const;     // DEXCPT
  [[nodiscard]] bool exception_test() const;          // TEST
  [[nodiscard]] bool background_errors() const;       // EBACKERR
  [[nodiscard]] ExceptionMethod exception_method() const;

  friend bool operator==(const ModeParameters&, const ModeParameters&) = default;

 private:
  std::array<std::array<std::uint8_t, kModePageBytesMax>, kModePages> pages_;
};

}  // namespace mariner::scsi
