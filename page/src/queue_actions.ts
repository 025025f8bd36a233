// What an operator does with a whole queue: make it, pause it, delete it.
import { overview_link, queue_link, stays } from "./address";
import { queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { may_operate } from "./actions";
import { is_addressable, segment_of_text, shown } from "./bytes";
import { ask, field } from "./dialogs";
import { h } from "./dom";
import { plural } from "./format";
import { act, failure, notice } from "./notices";
import { path_with_rule, take_back } from "./rules";
import type { Pause, QueueAnswer } from "./types";

const PAUSES: Record<Pause, string> = {
  none: "runs", in: "accepts no new jobs", out: "hands out no jobs", all: "is paused" };

const NOT_CHANGED = "The pause was not changed";

const pause_in_words = (of: string, next: Pause) =>
  `${shown(of)} ${PAUSES[next]}${next === "none" ? " again" : " now"}.`;

// `before`: what is changed, and nothing else that somebody has set meanwhile; "": no rule sets it.
// `group`: a segment; else the whole queue. `back`: what an undo sets.
export async function set_pause(ref: QueueRef, before: Pause | "", next: Pause,
                                changed: () => void, group: string | null = null,
                                back: Pause = before || "none"): Promise<void> {
  if (!may_operate()) return;
  const path = queue_path(ref, "", { was: `paused=${before}` });
  const undo = before === "" && group !== null ? () => unset_pause(ref, group, next, back, changed)
    : () => set_pause(ref, next, back, changed, group);
  await act(pause_in_words(group ?? ref.queue, next), NOT_CHANGED,
    () => request(group === null ? path : path_with_rule(path, "group", group),
      { method: "PATCH", body: { paused: next } }),
    back === next ? undefined : () => void undo());
  changed();
}

// The undo of a pause that no rule of the group had set. `back`: what is in force then.
async function unset_pause(ref: QueueRef, group: string, set: Pause, back: Pause,
                           changed: () => void): Promise<void> {
  try {
    const is_gone = await take_back(ref, "group", group, "paused", set, back);
    // No request removes one field of a rule.
    const rest = is_gone ? "" : ` Its rule has more settings and stays, with paused ${back}: until `
      + "it is removed, patterns do not decide whether this group is paused.";
    notice(pause_in_words(group, back) + rest, {
      undo: () => void set_pause(ref, is_gone ? "" : back, set, changed, group, back) });
  } catch (error) {
    failure(NOT_CHANGED, error);
  }
  changed();
}

export function ask_to_pause(ref: QueueRef, before: Pause | "", changed: () => void,
                             group: string | null = null): void {
  if (!may_operate()) return;
  const what = h("select", { name: "pause" },
    h("option", { value: "out" }, "hand out no jobs (running jobs continue)"),
    h("option", { value: "in" }, "accept no new jobs"),
    h("option", { value: "all" }, "both"));
  ask({
    title: group === null ? `Pause ${shown(ref.queue)}?` : `Pause the group ${shown(group)}?`,
    content: [field(group === null ? "The queue should" : "For this group the queue should", what)],
    confirm: "Pause",
    danger: true,
    done: () => set_pause(ref, before, what.value as Pause, changed, group),
  });
}

// `now`: the pause in force, which a rule for several groups may set; `before`: as in set_pause.
export function ask_to_resume(ref: QueueRef, now: Pause, before: Pause | "", changed: () => void,
                              group: string): void {
  if (!may_operate()) return;
  ask({
    title: `Resume the group ${shown(group)}?`,
    content: [`Now the queue ${PAUSES[now]} for this group.`],
    confirm: "Resume",
    done: () => set_pause(ref, before, "none", changed, group, now),
  });
}

// A queue begins with its first setting. `wanted`: a name to begin with.
export function ask_to_make(db: number, wanted = ""): void {
  if (!may_operate()) return;
  const name = h("input", { name: "name", autocomplete: "off", spellcheck: "false",
    value: shown(wanted) });
  const cap = h("input", { name: "max_active", type: "number", min: 0, placeholder: "no limit" });
  ask({
    title: "Make a queue",
    content: [field("Name", name),
      field("Jobs that may run at once (max_active)", cap, "Everything else can be set later.")],
    confirm: "Make it",
    done: async () => {
      // No field can hold every name, but that of the address may be wanted as it is.
      const queue = name.value === shown(wanted) ? wanted : segment_of_text(name.value);
      const ref = { queue, db };
      if (ref.queue === "") throw new Error("A queue needs a name.");
      if (!is_addressable(ref.queue)) throw new Error("This name cannot be part of an address.");
      const { config } = await request<QueueAnswer>(queue_path(ref));
      if (config !== null) throw new Error("This queue exists already.");
      const path = queue_path(ref, "", { create: "true", was: "max_active=0" });
      await request(path, { method: "PATCH", body: { max_active: Number(cap.value) || 0 } });
      location.hash = queue_link(ref);
    },
  });
}

interface Deletion {
  waiting: number;
  active: number;
}

// The name must be typed; what would be lost is counted before.
export async function ask_to_delete(ref: QueueRef): Promise<void> {
  if (!may_operate()) return;
  const path = (query: Record<string, string>) => queue_path(ref, "", query);
  const here = stays();
  let lost: Deletion;
  try {
    lost = await request<Deletion>(path({ dry_run: "true" }), { method: "DELETE" });
  } catch (error) {
    return failure("The queue cannot be deleted", error);
  }
  if (!here()) return;
  const typed = h("input", { name: "name", autocomplete: "off", spellcheck: "false" });
  ask({
    title: `Delete ${shown(ref.queue)}?`,
    content: [`${plural(lost.waiting, "waiting job")} and ${plural(lost.active, "active job")} `
      + "will be deleted, with everything that has ended, the events and the settings. There is "
      + "no undo.", field(`Type ${shown(ref.queue)} to confirm`, typed)],
    confirm: "Delete the queue",
    danger: true,
    done: async () => {
      if (segment_of_text(typed.value) !== ref.queue && typed.value !== shown(ref.queue)) {
        typed.focus();
        throw new Error("This is not the name of the queue.");
      }
      await request(path({ confirm: "true" }), { method: "DELETE" });
      notice(`${shown(ref.queue)} has been deleted.`);
      location.hash = overview_link(ref.db);
    },
  });
}
