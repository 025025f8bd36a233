// The native queue's commands (QUEUE.md); their rows are in rows.cc.
#pragma once

#include "engine/execution/call.h"

namespace sluice {

void q_add_command(Call& call);
void q_pop_command(Call& call);
void q_ack_command(Call& call);
void q_nack_command(Call& call);
void q_touch_command(Call& call);
void q_cancel_command(Call& call);
void q_move_command(Call& call);
void q_retry_command(Call& call);
void q_purge_command(Call& call);
void q_get_command(Call& call);
void q_list_command(Call& call);
void q_stats_command(Call& call);
void q_events_command(Call& call);
void q_log_command(Call& call);
void q_config_command(Call& call);
bool q_config_only_reads(std::span<const Bytes> args);
void q_adopt_command(Call& call);

// `Q.CANCEL queue WHERE ...`, and so on: args[2] is the word WHERE.
void cancel_where(Call& call);
void nack_where(Call& call);
void retry_where(Call& call);
void purge_where(Call& call);

}  // namespace sluice
