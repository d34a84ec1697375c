// Sense data (SPC-4 4.5): what went wrong, as a value, and its two encodings.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/error.h"

namespace mariner::scsi {

// SPC-4 4.5.6.
enum class SenseKey : std::uint8_t {
  kNoSense = 0x0,
  kNotReady = 0x2,
  kMediumError = 0x3,
  kHardwareError = 0x4,
  kIllegalRequest = 0x5,
  kUnitAttention = 0x6,
  kDataProtect = 0x7,
  kCopyAborted = 0xA,
  kAbortedCommand = 0xB,
  kMiscompare = 0xE,
};

// Additional sense code and its qualifier (SPC-4 annex F): 0xAABB is ASC AA, ASCQ BB.
enum class AdditionalSense : std::uint16_t {};

namespace asc {
inline constexpr AdditionalSense kNone{0x0000};
inline constexpr AdditionalSense kOperationInProgress{0x0016};
inline constexpr AdditionalSense kBecomingReady{0x0401};
inline constexpr AdditionalSense kInitializingCommandRequired{0x0402};
inline constexpr AdditionalSense kFormatInProgress{0x0404};
inline constexpr AdditionalSense kSelfTestInProgress{0x0409};
inline constexpr AdditionalSense kAccessStateTransition{0x040A};
inline constexpr AdditionalSense kPortInStandby{0x040B};
inline constexpr AdditionalSense kPortUnavailable{0x040C};
inline constexpr AdditionalSense kSanitizeInProgress{0x041B};
inline constexpr AdditionalSense kUnreachableCopyTarget{0x0804};
inline constexpr AdditionalSense kBackgroundSelfTestFailed{0x0B04};
inline constexpr AdditionalSense kWriteError{0x0C00};
inline constexpr AdditionalSense kThirdPartyDeviceFailure{0x0D01};
inline constexpr AdditionalSense kCopyTargetNotReachable{0x0D02};
inline constexpr AdditionalSense kIncorrectCopyTarget{0x0D03};
inline constexpr AdditionalSense kInvalidFieldInInformationUnit{0x0E03};
inline constexpr AdditionalSense kUnrecoveredReadError{0x1100};
inline constexpr AdditionalSense kParameterListLengthError{0x1A00};
inline constexpr AdditionalSense kMiscompareDuringVerify{0x1D00};
inline constexpr AdditionalSense kInvalidOpcode{0x2000};
inline constexpr AdditionalSense kLbaOutOfRange{0x2100};
inline constexpr AdditionalSense kInvalidTokenOperation{0x2300};  // the cause is not told
inline constexpr AdditionalSense kUnsupportedTokenType{0x2301};
inline constexpr AdditionalSense kTokenUnknown{0x2304};
inline constexpr AdditionalSense kTokenCorrupt{0x2305};
inline constexpr AdditionalSense kTokenExpired{0x2307};
inline constexpr AdditionalSense kTokenCancelled{0x2308};
inline constexpr AdditionalSense kTokenDeleted{0x2309};
inline constexpr AdditionalSense kInvalidTokenLength{0x230A};
inline constexpr AdditionalSense kInvalidFieldInCdb{0x2400};
inline constexpr AdditionalSense kLogicalUnitNotSupported{0x2500};
inline constexpr AdditionalSense kInvalidFieldInParameterList{0x2600};
inline constexpr AdditionalSense kInvalidReleaseOfPersistentReservation{0x2604};
inline constexpr AdditionalSense kTooManyCopyTargets{0x2606};
inline constexpr AdditionalSense kUnsupportedCopyTargetDescriptor{0x2607};
inline constexpr AdditionalSense kTooManyCopySegments{0x2608};
inline constexpr AdditionalSense kUnsupportedCopySegmentDescriptor{0x2609};
inline constexpr AdditionalSense kWriteProtected{0x2700};
inline constexpr AdditionalSense kSoftwareWriteProtected{0x2702};
inline constexpr AdditionalSense kConditionalWriteProtect{0x2706};
inline constexpr AdditionalSense kSpaceAllocationFailed{0x2707};
inline constexpr AdditionalSense kMediumMayHaveChanged{0x2800};
inline constexpr AdditionalSense kPowerOnOrReset{0x2900};
inline constexpr AdditionalSense kBusReset{0x2902};
inline constexpr AdditionalSense kDeviceReset{0x2903};
inline constexpr AdditionalSense kModeParametersChanged{0x2A01};
inline constexpr AdditionalSense kLogParametersChanged{0x2A02};
inline constexpr AdditionalSense kReservationsPreempted{0x2A03};
inline constexpr AdditionalSense kReservationsReleased{0x2A04};
inline constexpr AdditionalSense kRegistrationsPreempted{0x2A05};
inline constexpr AdditionalSense kAccessStateChanged{0x2A06};
inline constexpr AdditionalSense kCapacityChanged{0x2A09};
inline constexpr AdditionalSense kCommandSequenceError{0x2C00};
inline constexpr AdditionalSense kCommandsCleared{0x2F00};
inline constexpr AdditionalSense kCommandsClearedByDeviceServer{0x2F02};
inline constexpr AdditionalSense kFormatFailed{0x3101};
inline constexpr AdditionalSense kSanitizeFailed{0x3103};
inline constexpr AdditionalSense kSavingParametersNotSupported{0x3900};
inline constexpr AdditionalSense kMediumNotPresentTrayOpen{0x3A02};
inline constexpr AdditionalSense kSelfTestFailed{0x3E03};
inline constexpr AdditionalSense kInternalTargetFailure{0x4400};
inline constexpr AdditionalSense kMediumRemovalPrevented{0x5302};
inline constexpr AdditionalSense kInsufficientRegistrationResources{0x5504};
inline constexpr AdditionalSense kInsufficientResourcesForRodToken{0x550D};
inline constexpr AdditionalSense kFailurePredictedInTest{0x5DFF};
}  // namespace asc

// Which byte, and bit of it, of the CDB or of the parameter list is wrong (SPC-4 4.5.2.4.2).
struct FieldPointer {
  bool in_cdb = true;
  std::uint16_t byte = 0;
  std::optional<std::uint8_t> bit;  // the most significant bit of the field; none: the whole byte
};

struct Sense {
  SenseKey key = SenseKey::kNoSense;
  AdditionalSense code = asc::kNone;
  std::optional<std::uint64_t> information;  // for a disk: the LBA that the sense is about
  std::optional<FieldPointer> field;
  // Of 65,536: how much of what keeps the unit busy is done; instead of a field pointer.
  std::optional<std::uint16_t> progress{};
  // About a command that was answered with GOOD before (SPC-4 4.5.5).
  bool deferred = false;
};

// What the D_SENSE bit of the control mode page, or DESC of REQUEST SENSE, chooses.
enum class SenseFormat { kFixed, kDescriptor };

// Sense data in that format. The fixed one drops an information that needs over 32 bits.
[[nodiscard]] std::vector<std::uint8_t> encode(const Sense& sense, SenseFormat format);

// INVALID FIELD IN CDB at that place.
[[nodiscard]] Sense invalid_field_in_cdb(std::uint16_t byte,
                                         std::optional<std::uint8_t> bit = std::nullopt);
// INVALID FIELD IN PARAMETER LIST at that place.
[[nodiscard]] Sense invalid_parameter(std::uint16_t byte,
                                      std::optional<std::uint8_t> bit = std::nullopt);
// ILLEGAL REQUEST with that code.
[[nodiscard]] Sense illegal_request(AdditionalSense code);

}  // namespace mariner::scsi
