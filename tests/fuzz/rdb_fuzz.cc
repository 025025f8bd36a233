// libFuzzer target: arbitrary bytes with a correct checksum are rejected or are a value; the value
// that RESTORE creates is used, dumped and restored again, without a memory error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/commands/complete_engine.h"
#include "engine/rdb/crc64.h"
#include "engine/rdb/value.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"

namespace {

std::string with_footer(const uint8_t* data, size_t size) {
  std::string payload(reinterpret_cast<const char*>(data), size);
  payload += static_cast<char>(sluice::rdb::kVersion);
  payload += '\0';
  uint64_t crc = sluice::rdb::crc64(payload);
  for (int i = 0; i < 8; ++i, crc >>= 8) payload += static_cast<char>(crc);
  return payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  if (size > 4096) return 0;
  const std::string payload = with_footer(data, size);
  OwnedEntry value;
  if (rdb::read_payload(payload, 1 << 16, "k", value) != rdb::PayloadFault::kNone) return 0;
  test::QuietServer port;
  CompleteEngine engine(port, 7);
  Execution execution(engine);
  test::EngineSession session(engine, execution);
  if (session.run({"RESTORE", "k", "0", payload}) != "+OK\r\n") return 0;
  // Accepted values are usable completely.
  session.run({"XINFO", "STREAM", "k", "FULL"});
  session.run({"XADD", "k", "MAXLEN", "~", "3", "*", "name", "value"});
  session.run({"XGROUP", "CREATE", "k", "g", "0"});
  session.run({"XREADGROUP", "GROUP", "g", "c", "COUNT", "2", "STREAMS", "k", ">"});
  session.run({"XAUTOCLAIM", "k", "g", "d", "0", "0"});
  session.run({"XTRIM", "k", "MAXLEN", "1"});
  const std::string dumped = session.run({"DUMP", "k"});
  const size_t begin = dumped.find("\r\n") + 2;
  const Bytes again = Bytes(dumped).substr(begin, dumped.size() - begin - 2);
  CHECK(session.run({"RESTORE", "k", "0", again, "REPLACE"}) == "+OK\r\n");
  return 0;
}
