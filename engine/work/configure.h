// Q.CONFIG: changes of a queue's configuration, and how they take effect.
#pragma once

#include <span>
#include <utility>

#include "engine/base/status.h"
#include "engine/work/queue_work.h"

namespace sluice {

Status configure_queue(QueueWork& work, ConfigLevel level, Bytes pattern,
                       std::span<const std::pair<Bytes, Bytes>> fields);
Status reset_queue_config(QueueWork& work, ConfigLevel level, Bytes pattern);
// Records a change that has been made in `config`, and applies the first part of it; timers
// continue where it concerns very many groups or keys.
void config_changed(QueueWork& work, ConfigLevel level, Bytes pattern, const ConfigChange& change);
// Applies the next part of changes that are in progress.
void continue_reconfiguring(QueueWork& work);

}  // namespace sluice
