#include "net/server/supervisor.h"

#include "net/process/notify.h"

namespace sluice {

bool is_supervised(const Settings& settings) {
  return settings.supervised != Supervised::kNo && has_notify_socket();
}

void tell_supervisor(const Settings& settings, const std::string& state) {
  if (is_supervised(settings)) notify_supervisor(state);
}

}  // namespace sluice
