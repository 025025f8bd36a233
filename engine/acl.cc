#include "engine/acl.h"

namespace sluice {

std::string Acl::check(const User&, const Command&, std::span<const Bytes>) const { return {}; }

bool Acl::exists(Bytes name) const { return name == "default"; }
void Acl::log_denied_login(const Client&, Bytes, int64_t) {}
std::shared_ptr<User> Acl::authenticate(Bytes, Bytes) const { return default_user_; }

}  // namespace sluice
