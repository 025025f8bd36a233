// Strings: whole values, and parts of them.
#include <algorithm>
#include <cstring>

#include "engine/keyspace/database.h"

namespace sluice {

void Database::put_string(const KeyRef& key, Bytes value, int64_t expire_ms) {
  put_string(key, keyspace().entries.find(key.key, key.hash), value, expire_ms);
}

void Database::put_string(const KeyRef& key, Entry* found, Bytes value, int64_t expire_ms,
                          LentWord* lent) {
  if (unit_->recording) record_string(key.key, value, expire_ms, lent);
  const bool takes = lent != nullptr && Entry::can_take(lent->block, key.key, value);
  if (found != nullptr && found->type() == Type::kString) {
    const int64_t old_expire_ms = found->expire_ms();
    Entry* entry = takes ? Entry::take_string(lent->block, key.key, value, old_expire_ms)
                         : Entry::assign_string(found, value);
    entry->set_string_form(StringForm::kByText);
    if (unit_->write_s != 0) entry->set_access_s(unit_->write_s);
    if (entry != found) mutable_keyspace().entries.replace(found, entry, key.hash);
    if (takes) discard(found);
    if (old_expire_ms != expire_ms) {
      if (old_expire_ms != 0) untrack_expiry(key, old_expire_ms);
      if (expire_ms != 0) track_expiry(key, expire_ms);
      entry->set_expire_ms(expire_ms);
    }
  } else {
    if (found != nullptr) {
      unlink(key, found);
      discard(found);
    }
    Entry* entry = takes ? Entry::take_string(lent->block, key.key, value, expire_ms)
                         : Entry::make_string(key.key, value, expire_ms);
    insert_entry(key, entry, found != nullptr);
    if (expire_ms != 0) track_expiry(key, expire_ms);
  }
  touched(key.key);
}

void Database::record_string(Bytes key, Bytes value, int64_t expire_ms, LentWord* lent) {
  if (lent != nullptr && !lent->record.empty() && unit_->record_count == 0) {
    ByteBuffer begin;
    EffectEncoder(begin).begin_put_string(index_, key, value.size());
    const Bytes made = lent->record.view();
    if (made.size() == begin.size() + value.size() && made.starts_with(begin.view())) {
      unit_->records = std::move(lent->record);
      return unit_->record().end_put_string(expire_ms);
    }
  }
  unit_->record().put_string(index_, key, value, expire_ms);
}

void Database::write_string(const KeyRef& key, Entry* found, size_t offset, Bytes bytes,
                            size_t size) {
  if (unit_->recording) unit_->record().write_string(index_, key.key, offset, bytes, size);
  if (found == nullptr) {
    found = Entry::make_string(key.key, {}, 0);
    insert_entry(key, found);
  }
  Entry* entry = Entry::write_string(found, offset, bytes, size);
  entry->set_string_form(StringForm::kBuffer);
  if (entry != found) mutable_keyspace().entries.replace(found, entry, key.hash);
  touched(key.key);
}

void Database::record_differences(const KeyRef& key, Bytes old, Bytes value) {
  constexpr size_t kWorthARecord = 16;  // this many equal bytes end a part
  constexpr size_t kBlock = 64;
  const size_t common = std::min(old.size(), value.size());
  const auto record = [&](size_t from, size_t to) {
    const Bytes part = value.substr(from, to - from);
    unit_->record().write_string(index_, key.key, from, part, value.size());
  };
  const auto next_difference = [&](size_t at) {
    const auto same = [&](size_t count) {
      return at + count <= common && std::memcmp(&old[at], &value[at], count) == 0;
    };
    while (same(kBlock)) at += kBlock;
    while (same(1)) ++at;
    return at;
  };
  size_t from = next_difference(0);
  // Records the whole rest, so that at replay no new byte is taken from another state.
  if (old.size() != value.size()) return record(from, value.size());
  while (from < common) {
    size_t end = from + 1;
    for (size_t at = end; at < common && at - end < kWorthARecord; ++at) {
      if (old[at] != value[at]) end = at + 1;
    }
    record(from, end);
    from = next_difference(end);
  }
}

void Database::change_string(const KeyRef& key, Entry* found, Bytes value) {
  if (unit_->recording) record_differences(key, found->string(), value);
  Entry* entry = Entry::write_string(found, 0, value, value.size());
  entry->set_string_form(StringForm::kBuffer);
  if (entry != found) mutable_keyspace().entries.replace(found, entry, key.hash);
  touched(key.key);
}

}  // namespace sluice
