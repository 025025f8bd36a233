// Handlers of the pub/sub family; the rows that name them are in pubsub_rows.cc.
#pragma once

namespace sluice {

struct Call;

void subscribe_command(Call& call);
void unsubscribe_command(Call& call);
void psubscribe_command(Call& call);
void punsubscribe_command(Call& call);
void ssubscribe_command(Call& call);
void sunsubscribe_command(Call& call);
void publish_command(Call& call);
void spublish_command(Call& call);
void pubsub_channels_command(Call& call);
void pubsub_numsub_command(Call& call);
void pubsub_numpat_command(Call& call);
void pubsub_shardchannels_command(Call& call);
void pubsub_shardnumsub_command(Call& call);

}  // namespace sluice
