#include "server/scsi/mode.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kAllPages = 0x3F;
constexpr std::uint8_t kAllSubpages = 0xFF;
constexpr std::uint8_t kPageCodeMask = 0x3F;
constexpr std::uint8_t kSubpageFormat = 0x40;
constexpr std::uint8_t kWriteProtect = 0x80;  // device-specific parameter
constexpr std::uint8_t kDpoFua = 0x10;
constexpr std::size_t kShortDescriptorBytes = 8;
constexpr std::size_t kLongDescriptorBytes = 16;

Bytes block_descriptor(bool long_lba, const Geometry& geometry) {
  if (long_lba) {  // SBC-3 6.5.2.3
    Bytes descriptor(kLongDescriptorBytes);
    store_be(&descriptor[0], geometry.block_count);
    store_be(&descriptor[12], geometry.block_bytes);
    return descriptor;
  }
  Bytes descriptor(kShortDescriptorBytes);
  store_be(&descriptor[0],
           static_cast<std::uint32_t>(std::min<std::uint64_t>(geometry.block_count, 0xFFFF'FFFF)));
  store_be24(&descriptor[5], geometry.block_bytes);
  return descriptor;
}

// Walks a parameter list; every read is checked against its end.
struct ListReader {
  std::span<const std::uint8_t> list;
  std::size_t at = 0;

  [[nodiscard]] bool has(std::size_t bytes) const { return list.size() - at >= bytes; }
  [[nodiscard]] std::uint16_t position(std::size_t offset = 0) const {
    return static_cast<std::uint16_t>(at + offset);
  }
};

// The block descriptor of a list may only repeat what the disk is: a volume is not reformatted.
std::optional<Sense> check_descriptor(ListReader& reader, std::size_t bytes, bool long_lba,
                                      const Geometry& geometry) {
  const std::size_t expected = long_lba ? kLongDescriptorBytes : kShortDescriptorBytes;
  if (bytes == 0) return std::nullopt;
  if (bytes != expected) return invalid_parameter(reader.position());
  if (!reader.has(bytes)) return illegal_request(asc::kParameterListLengthError);
  const std::uint8_t* p = reader.list.data() + reader.at;
  const Bytes own = block_descriptor(long_lba, geometry);
  const std::size_t count_bytes = long_lba ? 8 : 4;
  // A number of blocks of zero means "as it is" (SBC-3 6.5.2.2).
  const bool count_is_zero = std::all_of(p, p + count_bytes, [](auto byte) { return byte == 0; });
  for (std::size_t i = count_is_zero ? count_bytes : 0; i < bytes; ++i) {
    if (p[i] != own[i]) return invalid_parameter(reader.position(i));
  }
  reader.at += bytes;
  return std::nullopt;
}

// The index of the page of which this is the beginning, or what is wrong with it.
std::variant<Sense, std::size_t> identify(const ListReader& reader) {
  const std::uint8_t* p = reader.list.data() + reader.at;
  const auto code = static_cast<std::uint8_t>(p[0] & kPageCodeMask);
  const bool is_subpage = (p[0] & kSubpageFormat) != 0;
  const std::uint8_t subpage = is_subpage ? p[1] : std::uint8_t{0};
  if (is_subpage && !reader.has(4)) return illegal_request(asc::kParameterListLengthError);
  bool code_is_known = false;
  for (std::size_t i = 0; i < mode_pages().size(); ++i) {
    const ModePage& page = mode_pages()[i];
    if (page.code != code) continue;
    if (page.subpage == subpage && is_subpage == (page.subpage != 0)) return i;
    code_is_known = true;
  }
  if (!code_is_known) return invalid_parameter(reader.position(), std::uint8_t{5});
  // Of a page that exists, a subpage that does not; subpage 0 in the long format is none either.
  if (is_subpage) return invalid_parameter(reader.position(1));
  return invalid_parameter(reader.position(), std::uint8_t{6});
}

// Takes one page from the list into `parameters`, or says what is wrong with it.
std::optional<Sense> take_page(ListReader& reader, ModeParameters& parameters) {
  if (!reader.has(2)) return illegal_request(asc::kParameterListLengthError);
  const auto identified = identify(reader);
  if (const auto* sense = std::get_if<Sense>(&identified)) return *sense;
  const std::size_t index = std::get<std::size_t>(identified);
  const ModePage& page = mode_pages()[index];
  const std::span<const std::uint8_t> current = parameters.page(index);
  const std::uint8_t* p = reader.list.data() + reader.at;
  // The length, in the one or the two last bytes of the header.
  for (std::size_t i = page.subpage == 0 ? 1 : 2; i < page.header_bytes(); ++i) {
    if (p[i] != current[i]) return invalid_parameter(reader.position(i));
  }
  if (!reader.has(current.size())) return illegal_request(asc::kParameterListLengthError);
  for (std::size_t i = page.header_bytes(); i < current.size(); ++i) {
    const auto forbidden = static_cast<std::uint8_t>((p[i] ^ current[i]) & ~page.changeable[i]);
    if (forbidden != 0) {
      return invalid_parameter(reader.position(i),
                               static_cast<std::uint8_t>(std::bit_width(forbidden) - 1));
    }
  }
  const auto bytes = reader.list.subspan(reader.at, current.size());
  if (auto sense = parameters.take(index, bytes, reader.position())) return sense;
  reader.at += current.size();
  return std::nullopt;
}

// What MODE SENSE returns of the page with this index.
std::span<const std::uint8_t> sensed(std::size_t index, PageControl control,
                                     const ModeParameters& parameters) {
  const ModePage& page = mode_pages()[index];
  switch (control) {
    case PageControl::kChangeable: return std::span(page.changeable).first(page.bytes);
    case PageControl::kDefault: return std::span(page.defaults).first(page.bytes);
    case PageControl::kCurrent:
    case PageControl::kSaved: break;  // refused before
  }
  return parameters.page(index);
}

}  // namespace

std::variant<Sense, std::vector<std::uint8_t>> mode_sense(const ModeSense& command,
                                                          const ModeState& state,
                                                          const Geometry& geometry) {
  if (command.control == PageControl::kSaved) {
    return illegal_request(asc::kSavingParametersNotSupported);
  }
  const bool all_pages = command.page == kAllPages;
  const bool all_subpages = command.subpage == kAllSubpages;
  const auto wanted = [&](const ModePage& page) {
    return (all_pages || page.code == command.page) &&
           (all_subpages || page.subpage == command.subpage);
  };
  if (std::ranges::none_of(mode_pages(), wanted)) {
    const bool code_is_known =
        all_pages || std::ranges::find(mode_pages(), command.page, &ModePage::code) !=
                         std::ranges::end(mode_pages());
    if (!code_is_known) return invalid_field_in_cdb(2, std::uint8_t{5});
    return invalid_field_in_cdb(3);
  }
  // All pages of one subpage are asked for by 00h and FFh only (SPC-4 table 197).
  if (all_pages && command.subpage != 0 && !all_subpages) return invalid_field_in_cdb(3);

  const Bytes descriptor =
      command.block_descriptors ? block_descriptor(command.long_lba, geometry) : Bytes{};
  Bytes data(command.ten ? 8 : 4);
  data.insert(data.end(), descriptor.begin(), descriptor.end());
  for (std::size_t i = 0; i < mode_pages().size(); ++i) {
    if (!wanted(mode_pages()[i])) continue;
    const auto page = sensed(i, command.control, state.parameters);
    data.insert(data.end(), page.begin(), page.end());
  }

  const auto device_specific =
      static_cast<std::uint8_t>((state.write_protected ? kWriteProtect : 0) | kDpoFua);
  if (command.ten) {
    store_be(&data[0], static_cast<std::uint16_t>(data.size() - 2));
    data[3] = device_specific;
    data[4] = command.block_descriptors && command.long_lba ? 1 : 0;
    store_be(&data[6], static_cast<std::uint16_t>(descriptor.size()));
  } else {
    data[0] = static_cast<std::uint8_t>(data.size() - 1);
    data[2] = device_specific;
    data[3] = static_cast<std::uint8_t>(descriptor.size());
  }
  return data;
}

std::variant<Sense, ModeParameters> mode_select(const ModeSelect& command,
                                                std::span<const std::byte> list,
                                                const ModeParameters& current,
                                                const Geometry& geometry) {
  ModeParameters parameters = current;
  if (command.parameter_bytes == 0) return parameters;  // not an error (SPC-4 6.11)
  const std::size_t header_bytes = command.ten ? 8 : 4;
  // Shorter than the CDB says when the initiator announced less: a list cut short.
  if (list.size() < command.parameter_bytes || command.parameter_bytes < header_bytes) {
    return illegal_request(asc::kParameterListLengthError);
  }
  ListReader reader{{reinterpret_cast<const std::uint8_t*>(list.data()), command.parameter_bytes}};
  const std::uint8_t* header = reader.list.data();
  const bool long_lba = command.ten && (header[4] & 1) != 0;
  const std::size_t descriptor_bytes = command.ten ? load_be<std::uint16_t>(header + 6) : header[3];
  // The mode data length is reserved here; the medium type can only be ours. The device-specific
  // parameter is ignored: hosts send back what MODE SENSE told them (SBC-3 6.5.1).
  const std::size_t medium_type_at = command.ten ? 2 : 1;
  if (header[medium_type_at] != 0) {
    return invalid_parameter(static_cast<std::uint16_t>(medium_type_at));
  }
  reader.at = header_bytes;
  if (auto sense = check_descriptor(reader, descriptor_bytes, long_lba, geometry)) {
    return *std::move(sense);
  }
  while (reader.at < reader.list.size()) {
    if (auto sense = take_page(reader, parameters)) return *std::move(sense);
  }
  return parameters;
}

}  // namespace mariner::scsi
