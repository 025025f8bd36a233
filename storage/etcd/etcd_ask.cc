#include "storage/etcd/etcd_ask.h"

namespace sluice {

RemoteAnswer done_at(int64_t revision) {
  RemoteAnswer answer;
  answer.revision = revision;
  return answer;
}

RemoteAnswer without_effect(RemoteOutcome outcome, std::string epoch) {
  RemoteAnswer answer;
  answer.outcome = outcome;
  answer.epoch = std::move(epoch);
  return answer;
}

RemoteAnswer to_answer(const EtcdResult& result) {
  RemoteAnswer answer;
  answer.outcome = result.outcome == EtcdOutcome::kClosed      ? RemoteOutcome::kClosed
                   : result.outcome == EtcdOutcome::kCompacted ? RemoteOutcome::kCompacted
                                                               : RemoteOutcome::kUnknown;
  answer.status = result.status;
  return answer;
}

std::string end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

void compare_value(etcdserverpb::TxnRequest& transaction, const std::string& key,
                   const std::string& value) {
  etcdserverpb::Compare& compare = *transaction.add_compare();
  compare.set_key(key);
  if (value.empty()) {
    compare.set_target(etcdserverpb::Compare::CREATE);
    compare.set_create_revision(0);
  } else {
    compare.set_target(etcdserverpb::Compare::VALUE);
    compare.set_value(value);
  }
}

void get_on_failure(etcdserverpb::TxnRequest& transaction, const std::string& key) {
  transaction.add_failure()->mutable_request_range()->set_key(key);
}

std::string value_of(const etcdserverpb::TxnResponse& response, int index) {
  if (response.responses_size() <= index) return {};
  const etcdserverpb::RangeResponse& range = response.responses(index).response_range();
  return range.kvs_size() == 0 ? std::string() : range.kvs(0).value();
}

}  // namespace sluice
