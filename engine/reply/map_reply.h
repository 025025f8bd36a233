// MapReply: a map in a reply that counts its own fields. A flat array in RESP2.
//
//   MapReply map(call.reply);
//   map.integer("cost", 1);
//   map.field("keys").array(0);
//
// Nothing else may be written to the reply while it lives, except the values of its fields.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/check.h"
#include "engine/reply/reply.h"

namespace sluice {

class MapReply {
 public:
  // The header is inserted at the end.
  explicit MapReply(Reply& reply) : reply_(reply), mark_(reply.open_array()) {}
  // The header is written now, for maps of a known size on hot paths; exactly that many fields must
  // follow.
  MapReply(Reply& reply, size_t fields) : reply_(reply), announced_(fields) { reply.map(fields); }
  ~MapReply() {
    if (announced_) {
      CHECK(fields_ == *announced_);
    } else {
      reply_.close_map(mark_, fields_);
    }
  }
  MapReply(const MapReply&) = delete;
  MapReply& operator=(const MapReply&) = delete;

  Reply& reply() { return reply_; }

  // Begins a field: exactly one value must be written to the reply that is returned.
  Reply& field(Bytes name) {
    reply_.bulk(name);
    ++fields_;
    return reply_;
  }
  void text(Bytes name, Bytes value) { field(name).bulk(value); }
  // Null if the text is empty.
  void text_or_null(Bytes name, Bytes value) {
    value.empty() ? field(name).null() : field(name).bulk(value);
  }
  void integer(Bytes name, int64_t value) { field(name).integer(value); }
  void integer_or_null(Bytes name, std::optional<int64_t> value) {
    value ? field(name).integer(*value) : field(name).null();
  }
  void count(Bytes name, uint64_t value) { integer(name, static_cast<int64_t>(value)); }
  void number(Bytes name, double value) { field(name).number(value); }
  void boolean(Bytes name, bool value) { field(name).boolean(value); }
  void null(Bytes name) { field(name).null(); }
  // An array of texts.
  template <class Texts>
  void texts(Bytes name, const Texts& values) {
    field(name).array(values.size());
    for (const auto& value : values) reply_.bulk(value);
  }

 private:
  Reply& reply_;
  size_t mark_ = 0;
  size_t fields_ = 0;
  std::optional<size_t> announced_;
};

}  // namespace sluice
