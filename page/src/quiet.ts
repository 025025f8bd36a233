// A quiet worker is given no new jobs of a queue; what it runs continues.
import { may_operate } from "./actions";
import { queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { shown } from "./bytes";
import { act } from "./notices";
import { path_with_rule, take_back } from "./rules";
import { value_text } from "./setting_fields";
import type { Config } from "./types";

type Back = () => Promise<unknown>;

// In one queue. Returns what takes it back.
async function set_quiet(ref: QueueRef, worker: string, quiet: boolean): Promise<Back> {
  const path = (rest: string, query = {}) =>
    path_with_rule(queue_path(ref, rest, query), "worker", worker);
  const set = (next: boolean, was: string) => request(path("", { was: `quiet=${was}` }),
    { method: "PATCH", body: { quiet: next } });
  // What a rule for this worker says; "": there is no such rule. What somebody has set meanwhile is
  // not overwritten.
  const before = value_text((await request<Config>(path("/config"))).quiet);
  // An undo would take back what somebody else has done.
  if (before === value_text(quiet)) throw new Error("somebody else has done it already.");
  await set(quiet, before);
  return () => before !== "" ? set(!quiet, value_text(quiet))
    : take_back(ref, "worker", worker, "quiet", quiet, !quiet);
}

async function take_all_back(backs: Back[]): Promise<void> {
  for (const back of backs.splice(0).reverse()) await back();
}

// In all these queues, or in none. `worker`: a segment; `changed`: called after each change.
export async function turn_quiet(refs: QueueRef[], worker: string, quiet: boolean,
                                 changed: () => void): Promise<void> {
  if (!may_operate()) return;
  const backs: Back[] = [];
  const change = async (now: boolean, what: () => Promise<void>, undo?: () => void) => {
    await act(`${shown(worker)} ${now ? "gets no new jobs now" : "gets jobs again"}.`,
      "The worker was not changed", what, undo);
    changed();
  };
  await change(quiet, async () => {
    try {
      for (const ref of refs) backs.push(await set_quiet(ref, worker, quiet));
    } catch (error) {
      await take_all_back(backs);
      throw error;
    }
  }, () => void change(!quiet, () => take_all_back(backs)));
}

export function verb_of_quiet(quiet: boolean): string {
  return quiet ? "Give it jobs" : "Make it quiet";
}
