#include "engine/reply/reply.h"

#include <utility>

#include "engine/reply/statistics.h"

namespace sluice {

namespace {

// Writes type, number, CR LF and returns the end. `to` has room for kMaxHeader bytes.
constexpr size_t kMaxHeader = kMaxIntegerText + 3;
inline char* put_header(char* to, char type, int64_t value) {
  *to++ = type;
  to += format_i64(to, value);
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

// Most bulk strings are as short as the names of fields: then the header has one digit, and the
// bytes are copied by two moves that overlap, without a call.
constexpr size_t kShort = 9;

template <size_t kStep>
void copy_by_two(char* to, Bytes bytes) {
  std::memcpy(to, bytes.data(), kStep);
  std::memcpy(to + bytes.size() - kStep, bytes.data() + bytes.size() - kStep, kStep);
}

// REQUIRES: at most kShort bytes.
char* put_short_bulk(char* to, Bytes bytes) {
  const size_t size = bytes.size();
  const char header[4] = {'$', static_cast<char>('0' + size), '\r', '\n'};
  std::memcpy(to, header, sizeof(header));
  to += sizeof(header);
  if (size >= 8) {
    copy_by_two<8>(to, bytes);
  } else if (size >= 4) {
    copy_by_two<4>(to, bytes);
  } else if (size >= 2) {
    copy_by_two<2>(to, bytes);
  } else if (size == 1) {
    *to = bytes[0];
  }
  return to + size;
}

}  // namespace

void Reply::decimal(double value) {
  protocol() == 2 ? bulk(format_long_double(value)) : number(value);
}

void RespReply::header(char type, int64_t value) {
  char* to = out_.grow(kMaxHeader);
  out_.advance(static_cast<size_t>(put_header(to, type, value) - to));
}

void RespReply::insert_header(size_t mark, char type, size_t value) {
  char text[kMaxHeader];
  const char* end = put_header(text, type, static_cast<int64_t>(value));
  out_.insert(mark, {text, static_cast<size_t>(end - text)});
}

void RespReply::simple(Bytes text) {
  char* to = out_.grow(text.size() + 3);
  to[0] = '+';
  std::memcpy(to + 1, text.data(), text.size());
  to[text.size() + 1] = '\r';
  to[text.size() + 2] = '\n';
  out_.advance(text.size() + 3);
}

void Reply::count_error(Bytes message) { error_counts_->add(message); }

void Reply::repeat_error(Bytes message) {
  ErrorCounts* const counts = std::exchange(error_counts_, nullptr);
  error(message);
  error_counts_ = counts;
}

void RespReply::error(Bytes message) {
  note_error(message);
  char* to = out_.grow(message.size() + 3);
  to[0] = '-';
  for (size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    to[i + 1] = c == '\r' || c == '\n' ? ' ' : c;
  }
  to[message.size() + 1] = '\r';
  to[message.size() + 2] = '\n';
  out_.advance(message.size() + 3);
}

void RespReply::integer(int64_t value) { header(':', value); }

void RespReply::bulk(Bytes bytes) {
  char* const begin = out_.grow(kMaxHeader + bytes.size() + 2);
  char* to = begin;
  if (bytes.size() <= kShort) {
    to = put_short_bulk(to, bytes);
  } else {
    to = put_header(to, '$', static_cast<int64_t>(bytes.size()));
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
  to[0] = '\r';
  to[1] = '\n';
  out_.advance(static_cast<size_t>(to + 2 - begin));
}

void RespReply::null() { out_.append(protocol_ == 2 ? Bytes("$-1\r\n") : Bytes("_\r\n")); }
void RespReply::null_array() { out_.append(protocol_ == 2 ? Bytes("*-1\r\n") : Bytes("_\r\n")); }
void RespReply::array(size_t count) { header('*', static_cast<int64_t>(count)); }

void RespReply::map(size_t pairs) {
  if (protocol_ == 2) return array(pairs * 2);
  header('%', static_cast<int64_t>(pairs));
}

void RespReply::set(size_t count) {
  header(protocol_ == 2 ? '*' : '~', static_cast<int64_t>(count));
}
void RespReply::push(size_t count) {
  header(protocol_ == 2 ? '*' : '>', static_cast<int64_t>(count));
}

void RespReply::number(double value) { number_text(format_double(value)); }
void RespReply::decimal(double value) { number_text(format_long_double(value)); }

void RespReply::number_text(Bytes text) {
  if (protocol_ == 2) return bulk(text);
  out_.push(',');
  out_.append(text);
  out_.append("\r\n");
}

void RespReply::boolean(bool value) {
  if (protocol_ == 2) return integer(value ? 1 : 0);
  out_.append(value ? Bytes("#t\r\n") : Bytes("#f\r\n"));
}

void RespReply::big_number(Bytes digits) {
  if (protocol_ == 2) return bulk(digits);
  out_.push('(');
  out_.append(digits);
  out_.append("\r\n");
}

void RespReply::verbatim(Bytes format, Bytes text) {
  if (protocol_ == 2) return bulk(text);
  header('=', static_cast<int64_t>(text.size() + 4));
  std::string padded(format.substr(0, 3));
  padded.resize(3, ' ');
  out_.append(padded);
  out_.push(':');
  out_.append(text);
  out_.append("\r\n");
}

void RespReply::close_array(size_t mark, size_t count) { insert_header(mark, '*', count); }

void RespReply::close_map(size_t mark, size_t pairs) {
  if (protocol_ == 2) return insert_header(mark, '*', pairs * 2);
  insert_header(mark, '%', pairs);
}

}  // namespace sluice
