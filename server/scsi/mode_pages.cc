#include "server/scsi/mode_pages.h"

#include <algorithm>
#include <initializer_list>

#include "proto/check.h"
#include "server/scsi/self_test.h"

namespace mariner::scsi {
namespace {

// A byte of a page that is not zero by default, or may be changed.
struct Field {
  std::size_t byte;
  std::uint8_t value;
  std::uint8_t changeable = 0;
};

constexpr ModePage page(std::uint8_t code, std::size_t bytes, std::initializer_list<Field> fields) {
  ModePage page{.code = code, .bytes = bytes};
  page.defaults[0] = code;
  page.defaults[1] = static_cast<std::uint8_t>(bytes - 2);
  page.changeable = page.defaults;
  for (const Field& field : fields) {
    page.defaults[field.byte] = field.value;
    page.changeable[field.byte] = field.changeable;
  }
  return page;
}

constexpr ModePage subpage(std::uint8_t code, std::uint8_t subpage, std::size_t bytes) {
  constexpr std::uint8_t kSubpage = 0x40;
  ModePage page{.code = code, .subpage = subpage, .bytes = bytes};
  page.defaults[0] = code | kSubpage;
  page.defaults[1] = subpage;
  page.defaults[3] = static_cast<std::uint8_t>(bytes - 4);
  page.changeable = page.defaults;
  return page;
}

constexpr std::size_t kFlags = 2;  // the byte with D_SENSE, and the one with DEXCPT and TEST
// Control, byte 2. GLTSD: log parameters are not saved.
constexpr std::uint8_t kNoLogSaving = 0x02;
constexpr std::uint8_t kDescriptorSense = 0x04;
constexpr std::size_t kProtection = 4;
constexpr std::uint8_t kSoftwareProtect = 0x08;
// Informational exceptions control.
constexpr std::uint8_t kExceptionsDisabled = 0x08;
constexpr std::uint8_t kExceptionTest = 0x04;
constexpr std::uint8_t kBackgroundErrors = 0x02;
constexpr std::size_t kMethod = 3;
constexpr std::uint8_t kMethodMask = 0x0F;

constexpr std::size_t kControl = 4;
constexpr std::size_t kExceptions = 7;

constexpr std::array<ModePage, kModePages> kPages = {
    // Read-write error recovery. AWRE: every write goes to a place that was free and good.
    page(0x01, 12, {{2, 0x80}}),
    // Disconnect-reconnect: no limits; bursts are as long as the login negotiates.
    page(0x02, 16, {}),
    // Verify error recovery.
    page(0x07, 12, {}),
    // Caching. WCE is 0: an acknowledged write is durable. RCD is 0: reads may be cached.
    page(0x08, 20, {}),
    // Control. One task set for all initiators, whose commands are reordered without restriction;
    // commands that a reset ends are not answered (TAS is 0); the busy timeout is unlimited.
    page(0x0A, 12,
         {{kFlags, kNoLogSaving, kDescriptorSense},
          {3, 0x10},
          {kProtection, 0, kSoftwareProtect},
          {8, 0xFF},
          {9, 0xFF},
          {10, SelfTest::kExtendedSeconds >> 8},
          {11, SelfTest::kExtendedSeconds & 0xFF}}),
    // Control extension.
    subpage(0x0A, 0x01, 32),
    // Power condition: no timer runs.
    page(0x1A, 40, {}),
    // Informational exceptions control. Reported once (REPORT COUNT).
    page(0x1C, 12,
         {{kFlags, 0, kExceptionsDisabled | kExceptionTest | kBackgroundErrors},
          {kMethod, static_cast<std::uint8_t>(ExceptionMethod::kRequest), kMethodMask},
          {11, 1}}),
    // Logical block provisioning: there are no thresholds.
    subpage(0x1C, 0x02, 16),
};
static_assert(kPages[kControl].code == 0x0A && kPages[kControl].subpage == 0);
static_assert(kPages[kExceptions].code == 0x1C && kPages[kExceptions].subpage == 0);
static_assert(std::ranges::is_sorted(kPages, [](const ModePage& a, const ModePage& b) {
  return a.code != b.code ? a.code < b.code : a.subpage < b.subpage;
}));

bool known_method(std::uint8_t method) {
  return method == static_cast<std::uint8_t>(ExceptionMethod::kNone) ||
         method == static_cast<std::uint8_t>(ExceptionMethod::kAttention) ||
         method == static_cast<std::uint8_t>(ExceptionMethod::kRequest);
}

}  // namespace

std::span<const ModePage, kModePages> mode_pages() { return kPages; }

ModeParameters::ModeParameters() {
  std::ranges::transform(kPages, pages_.begin(), &ModePage::defaults);
}

std::span<const std::uint8_t> ModeParameters::page(std::size_t index) const {
  return std::span(pages_.at(index)).first(kPages.at(index).bytes);
}

std::optional<Sense> ModeParameters::take(std::size_t index, std::span<const std::uint8_t> bytes,
                                          std::uint16_t position) {
  CHECK(bytes.size() == kPages.at(index).bytes);
  if (index == kExceptions) {
    constexpr std::uint8_t kBoth = kExceptionsDisabled | kExceptionTest;
    if ((bytes[kFlags] & kBoth) == kBoth) {
      return invalid_parameter(static_cast<std::uint16_t>(position + kFlags), std::uint8_t{3});
    }
    if (!known_method(bytes[kMethod])) {
      return invalid_parameter(static_cast<std::uint16_t>(position + kMethod), std::uint8_t{3});
    }
  }
  // The header stays ours: the initiator's has the PS bit as it likes.
  const std::size_t header = kPages[index].header_bytes();
  std::ranges::copy(bytes.subspan(header), pages_[index].begin() + header);
  return std::nullopt;
}

bool ModeParameters::descriptor_sense() const {
  return (pages_[kControl][kFlags] & kDescriptorSense) != 0;
}
bool ModeParameters::software_write_protect() const {
  return (pages_[kControl][kProtection] & kSoftwareProtect) != 0;
}
bool ModeParameters::exceptions_disabled() const {
  return (pages_[kExceptions][kFlags] & kExceptionsDisabled) != 0;
}
bool ModeParameters::exception_test() const {
  return (pages_[kExceptions][kFlags] & kExceptionTest) != 0;
}
bool ModeParameters::background_errors() const {
  return (pages_[kExceptions][kFlags] & kBackgroundErrors) != 0;
}
ExceptionMethod ModeParameters::exception_method() const {
  return static_cast<ExceptionMethod>(pages_[kExceptions][kMethod]);
}

}  // namespace mariner::scsi
