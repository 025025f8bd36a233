// Requests of etcd's messages through EtcdClient, and the parts that several requests share.
#pragma once

#include <etcd.pb.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "storage/etcd/etcd_client.h"
#include "storage/remote_log.h"

namespace sluice {

inline constexpr const char* kEtcdRange = "/etcdserverpb.KV/Range";
inline constexpr const char* kEtcdTxn = "/etcdserverpb.KV/Txn";

template <typename Response>
void ask_etcd(EtcdClient& client, const char* method, const google::protobuf::MessageLite& request,
              EtcdPatience patience, std::function<void(const EtcdResult&, Response&)> then) {
  client.call(method, request.SerializeAsString(), patience,
              [then = std::move(then)](const EtcdResult& result, const std::string& bytes) {
                Response response;
                if (result.outcome == EtcdOutcome::kOk && !response.ParseFromString(bytes)) {
                  then({EtcdOutcome::kUnknown, io_error("etcd sent an answer that cannot be read")},
                       response);
                } else {
                  then(result, response);
                }
              });
}

RemoteAnswer done_at(int64_t revision);
RemoteAnswer without_effect(RemoteOutcome outcome, std::string epoch = {});
// The answer of a result that is not kOk.
RemoteAnswer to_answer(const EtcdResult& result);

// Behind the last key that begins with this. REQUIRES: its last byte is not 0xff.
std::string end_of_prefix(std::string prefix);

// The key is there with this value; empty: it is not there.
void compare_value(etcdserverpb::TxnRequest& transaction, const std::string& key,
                   const std::string& value);
void get_on_failure(etcdserverpb::TxnRequest& transaction, const std::string& key);
// The value of one of the keys that a failed transaction read, in their order; empty: not there.
std::string value_of(const etcdserverpb::TxnResponse& response, int index);

}  // namespace sluice
