// Gives back all jobs that a worker runs, for a machine that is dead.
import { change_in_steps, count_all, counted_in_words, may_operate } from "./actions";
import type { Counted } from "./actions";
import { stays } from "./address";
import { queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { body_member, shown } from "./bytes";
import { ask, field } from "./dialogs";
import { h } from "./dom";
import { plural } from "./format";
import { failure, notice } from "./notices";

// `worker`: its name, a segment. The jobs are counted, then the user is asked; what the worker
// begins until then is given back too.
export async function ask_to_give_back(ref: QueueRef, worker: string,
                                       changed: () => void): Promise<void> {
  if (!may_operate()) return;
  const path = queue_path(ref, "/jobs:nack");
  const where = body_member("worker", worker);
  const here = stays();
  let known: Counted;
  try {
    known = await count_all(path, where);
  } catch (error) {
    return failure("The jobs could not be counted", error);
  }
  if (!here()) return;
  if (known.count === 0 && known.cursor === null) return notice(`${shown(worker)} runs nothing.`);
  const how = h("select", { name: "mode" },
    h("option", { value: "lost" }, "as if their leases had run out"),
    h("option", { value: "fail" }, "as failed: each uses one of its retries"),
    h("option", { value: "silent" }, "as if they had never been taken"));
  ask({
    title: `Give back the jobs of ${shown(worker)}?`,
    content: [`${counted_in_words(known, "active")} of ${shown(ref.queue)}, and what it begins `
      + "meanwhile, will wait for another worker, or end if no try is left. If this one is not "
      + "dead, what it reports of them will be refused. There is no undo.",
    field("Their runs end", how)],
    confirm: "Give them back",
    danger: true,
    done: (stopped) => give_back(path, { where, mode: how.value }, stopped).finally(changed),
  });
}

function give_back(path: string, body: object, stopped: () => boolean): Promise<void> {
  return change_in_steps((cursor) => request<Counted>(path, { method: "POST",
    body: cursor === null ? body : { ...body, cursor } }),
  (count) => `${plural(count, "job")} given back`, Infinity, stopped);
}
