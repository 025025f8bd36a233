#include "net/io/request_batch.h"

namespace sluice {

bool RequestBatch::parse(RespParser& parser, InputBuffer& input, bool ahead) {
  clear();
  const size_t limit = ahead ? items.size() : 1;
  std::span<char> rest = input.rest();
  while (count < limit && !rest.empty()) {
    // Inline requests are decoded in place, so they cannot be given back.
    if (count != 0 && rest[0] != '*') break;
    const size_t first = arguments.size();
    const RespParser::Result result = parser.parse_append(rest, arguments);
    if (result.outcome == RespParser::Outcome::kRequest) {
      items[count++] = {first, arguments.size() - first, result.bytes, {}};
    } else if (result.outcome == RespParser::Outcome::kSkipped) {
      if (count == 0) {
        input.skip(result.bytes);
      } else {
        items[count - 1].bytes += result.bytes;
      }
    } else {
      input.need(result.bytes);
      end = result.outcome;
      break;
    }
    rest = rest.subspan(result.bytes);
  }
  for (Item& item : std::span(items).first(count)) {
    item.request = Request({arguments.data() + item.first_argument, item.argument_count});
  }
  return count != 0;
}

void RequestBatch::fetch_ahead(Engine& engine, int database) {
  if (count < 2) return;
  for (Item& item : std::span(items).first(count)) prefetch.add(engine, database, item.request);
  prefetch.fetch();
}

}  // namespace sluice
