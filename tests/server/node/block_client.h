// Reads and writes the first unit of targets with SCSI commands, without the network.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/iscsi/target_directory.h"
#include "server/scsi/sense.h"
#include "tests/server/node/loop_thread.h"

namespace mariner::node::testing {

class BlockClient {
 public:
  // Both outlive it. It comes through this target port.
  BlockClient(LoopThread& loop, iscsi::TargetDirectory& targets, std::uint16_t target_port = 1)
      : loop_(loop), targets_(targets), target_port_(target_port) {}

  // 4 KiB, all of one byte, of a target whose LUN has blocks of 512 bytes.
  scsi::Response write(const std::string& iqn, std::uint64_t block, char byte);
  scsi::Response read(const std::string& iqn, std::uint64_t block);
  // The same as write(), in as many commands as the block has blocks of the LUN, all of them before
  // any is answered. How many were good.
  std::size_t write_parts(const std::string& iqn, std::uint64_t block, char byte);
  // The byte that a good answer to read() is made of; nothing if it is not good, or of several.
  static std::optional<char> byte_of(const scsi::Response& response);
  // Nothing: it has no sense data.
  static std::optional<scsi::SenseKey> sense_key_of(const scsi::Response& response);

 private:
  struct Request {
    std::array<std::uint8_t, 16> cdb;
    Payload data;
  };
  // All at once.
  std::vector<scsi::Response> execute(const std::string& iqn, const std::vector<Request>& requests);

  LoopThread& loop_;
  iscsi::TargetDirectory& targets_;
  const std::uint16_t target_port_;
};

}  // namespace mariner::node::testing
