// Handlers of the connection family; the rows that name them are in connection_rows.cc.
#pragma once

#include <cstddef>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;

// connection.cc
void auth_command(Call& call);
void hello_command(Call& call);
void echo_command(Call& call);
void ping_command(Call& call);
void quit_command(Call& call);
void reset_command(Call& call);
void select_command(Call& call);

// client.cc
void client_id_command(Call& call);
void client_setname_command(Call& call);
void client_getname_command(Call& call);
void client_setinfo_command(Call& call);
void client_no_touch_command(Call& call);
void client_info_command(Call& call);
void client_list_command(Call& call);
void client_kill_command(Call& call);
void client_no_evict_command(Call& call);
void client_reply_command(Call& call);
void client_unblock_command(Call& call);
void client_pause_command(Call& call);
void client_unpause_command(Call& call);
// client_tracking.cc
void client_tracking_command(Call& call);
void client_caching_command(Call& call);
void client_getredir_command(Call& call);
void client_trackinginfo_command(Call& call);

// As names of connections and of libraries are: printable, no spaces.
bool is_printable_word(Bytes text);
// Whether this is a valid name of a connection. Replies the error otherwise.
bool check_client_name(Call& call, size_t argument);

}  // namespace sluice
