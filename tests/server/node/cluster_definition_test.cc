#include "server/node/cluster_definition.h"

#include <gtest/gtest.h>

#include <string>

namespace mariner::node {
namespace {

class ClusterDefinition : public ::testing::Test {
 protected:
  ClusterDefinition() {
    meta_.set_id(3);
    meta_.set_name("db1");
    meta_.set_size_bytes(64u << 20);
    meta_.set_block_size(512);
    meta_.set_uuid("0123456789abcdef");
    meta_.set_state(meta::Volume::READY);
    meta_.mutable_cluster()->set_logger(3);
    meta_.mutable_cluster()->add_storages(1);
    meta_.mutable_cluster()->add_storages(2);
  }
  std::string error() const {
    const Result<void> r = check_definition(meta_, reader_);
    return r ? "" : r.error().message;
  }

  meta::Volume meta_;
  DefinitionReader reader_{{1}, false, true, false, [](replication::NodeId node) {
                             return node.value >= 1 && node.value <= 3;
                           }};
};

TEST_F(ClusterDefinition, OneThatMakesSense) { EXPECT_EQ(error(), ""); }

TEST_F(ClusterDefinition, NumbersNamesAndSizes) {
  meta_.set_id(0x8000'0000);
  EXPECT_NE(error().find("a number that none is given"), std::string::npos);
  meta_.set_id(3);
  meta_.set_name("no good");
  EXPECT_NE(error().find("a name that is none"), std::string::npos);
  meta_.set_name("db1");
  meta_.set_size_bytes(4097);
  EXPECT_NE(error().find("has 4097 bytes"), std::string::npos);
  meta_.set_size_bytes(64u << 20);
  meta_.set_block_size(1024);
  EXPECT_NE(error().find("expected 512 or 4096"), std::string::npos);
}

TEST_F(ClusterDefinition, NodesThatAreKnownAndHaveTheirRoles) {
  meta_.mutable_cluster()->set_logger(9);
  EXPECT_NE(error().find("names node 9, which has no [[cluster.node]]"), std::string::npos);
  meta_.mutable_cluster()->set_logger(1);
  EXPECT_NE(error().find("as its logger: it has not the role"), std::string::npos);
  reader_.logs = true;
  EXPECT_EQ(error(), "");
  reader_.stores = false;
  EXPECT_NE(error().find("as a storage node: it has not the role"), std::string::npos);
  reader_.stores = true;
  meta_.mutable_cluster()->set_storages(1, 1);
  EXPECT_NE(error().find("as a storage node twice"), std::string::npos);
  meta_.mutable_cluster()->clear_storages();
  EXPECT_NE(error().find("expected one or two"), std::string::npos);
}

TEST_F(ClusterDefinition, TargetsThatAreKnownAndHaveTheRole) {
  meta_.mutable_cluster()->add_targets(3);
  meta_.mutable_cluster()->add_targets(2);
  EXPECT_EQ(error(), "") << "a target need not store it";
  meta_.mutable_cluster()->add_targets(1);
  EXPECT_NE(error().find("names node 1, this one, as a target: it has not the role \"target\""),
            std::string::npos);
  reader_.serves = true;
  EXPECT_EQ(error(), "");
  meta_.mutable_cluster()->set_targets(2, 3);
  EXPECT_NE(error().find("names node 3 as a target twice"), std::string::npos);
  meta_.mutable_cluster()->set_targets(2, 9);
  EXPECT_NE(error().find("names node 9, which has no [[cluster.node]]"), std::string::npos);
}

}  // namespace
}  // namespace mariner::node
