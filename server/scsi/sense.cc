#include "server/scsi/sense.h"

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

constexpr std::uint8_t kFixedCurrent = 0x70;
constexpr std::uint8_t kDescriptorCurrent = 0x72;
constexpr std::uint8_t kDeferred = 0x01;  // in either format
constexpr std::uint8_t kValid = 0x80;
constexpr std::size_t kFixedBytes = 18;

// The three bytes of a field pointer: SKSV, C/D, BPV and bit, then the byte's number.
void store_field(std::uint8_t* to, const FieldPointer& field) {
  to[0] = static_cast<std::uint8_t>(0x80 | (field.in_cdb ? 0x40 : 0) |
                                    (field.bit ? 0x08 | (*field.bit & 7) : 0));
  store_be(to + 1, field.byte);
}

bool has_specific(const Sense& sense) { return sense.field || sense.progress; }

// The three sense-key specific bytes.
void store_specific(std::uint8_t* to, const Sense& sense) {
  if (sense.field) return store_field(to, *sense.field);
  to[0] = 0x80;  // SKSV
  store_be(to + 1, *sense.progress);
}

std::vector<std::uint8_t> encode_fixed(const Sense& sense) {
  std::vector<std::uint8_t> data(kFixedBytes);
  data[0] = kFixedCurrent;
  if (sense.deferred) data[0] |= kDeferred;
  if (sense.information && *sense.information <= 0xFFFF'FFFF) {
    data[0] |= kValid;
    store_be(&data[3], static_cast<std::uint32_t>(*sense.information));
  }
  data[2] = static_cast<std::uint8_t>(sense.key);
  data[7] = kFixedBytes - 8;
  store_be(&data[12], static_cast<std::uint16_t>(sense.code));
  if (has_specific(sense)) store_specific(&data[15], sense);
  return data;
}

std::vector<std::uint8_t> encode_descriptors(const Sense& sense) {
  std::vector<std::uint8_t> data(8);
  data[0] = kDescriptorCurrent;
  if (sense.deferred) data[0] |= kDeferred;
  data[1] = static_cast<std::uint8_t>(sense.key);
  store_be(&data[2], static_cast<std::uint16_t>(sense.code));
  if (sense.information) {  // SPC-4 4.5.2.2
    const std::size_t at = data.size();
    data.resize(at + 12);
    data[at + 1] = 0x0A;
    data[at + 2] = kValid;
    store_be(&data[at + 4], *sense.information);
  }
  if (has_specific(sense)) {  // SPC-4 4.5.2.4
    const std::size_t at = data.size();
    data.resize(at + 8);
    data[at] = 0x02;
    data[at + 1] = 0x06;
    store_specific(&data[at + 4], sense);
  }
  data[7] = static_cast<std::uint8_t>(data.size() - 8);
  return data;
}

}  // namespace

std::vector<std::uint8_t> encode(const Sense& sense, SenseFormat format) {
  return format == SenseFormat::kFixed ? encode_fixed(sense) : encode_descriptors(sense);
}

Sense invalid_field_in_cdb(std::uint16_t byte, std::optional<std::uint8_t> bit) {
  return {SenseKey::kIllegalRequest, asc::kInvalidFieldInCdb, std::nullopt,
          FieldPointer{.in_cdb = true, .byte = byte, .bit = bit}};
}

Sense invalid_parameter(std::uint16_t byte, std::optional<std::uint8_t> bit) {
  return {SenseKey::kIllegalRequest, asc::kInvalidFieldInParameterList, std::nullopt,
          FieldPointer{.in_cdb = false, .byte = byte, .bit = bit}};
}

Sense illegal_request(AdditionalSense code) { return {SenseKey::kIllegalRequest, code}; }

}  // namespace mariner::scsi
