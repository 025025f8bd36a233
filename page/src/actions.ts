// The actions of an operator. Irreversible ones ask for confirmation; the others offer an undo.
import { job_path, queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { body_member, segment_of_text, shown } from "./bytes";
import { h } from "./dom";
import { act, ask, failure, field, notice } from "./notices";
import type { Job } from "./types";
import { is_over } from "./words";

export interface Target {
  ref: QueueRef;
  id: string;
  job: Pick<Job, "state" | "pri">;
  // Called after each change.
  changed: () => void;
}

function change_job(target: Target, body: object): Promise<Job> {
  return request<Job>(job_path(target.ref, target.id), { method: "PATCH", body });
}

function may_operate(): boolean {
  if (state.may("operate")) return true;
  notice("This requires a token with the role operate.", { bad: true });
  return false;
}

export function ask_to_move(target: Target, place: "front" | "back"): void {
  if (!may_operate()) return;
  const where = place === "front" ? "before" : "behind";
  ask({
    title: place === "front" ? "Move to the front?" : "Move to the back?",
    content: [`${shown(target.id)} moves ${where} everything in its band. Its present position is `
      + "lost; there is no undo."],
    confirm: place === "front" ? "Move to the front" : "Move to the back",
    done: async () => {
      await change_job(target, { place });
      notice(`${shown(target.id)} moved to the ${place}.`);
      target.changed();
    },
  });
}

// A change of band can be undone exactly: the job keeps its time and number.
export async function set_priority(target: Target, pri: string, undoing = false): Promise<void> {
  if (!may_operate()) return;
  const before = target.job.pri;
  const undo = undoing ? undefined : () => void set_priority(
    { ...target, job: { ...target.job, pri } }, before, true);
  await act(`${shown(target.id)} is now in ${pri}.`, "The priority was not changed",
    () => change_job(target, { pri }), undo);
  target.changed();
}

async function put_back(target: Target): Promise<void> {
  await act(`${shown(target.id)} is waiting again, at the end of its band.`,
    "The job was not put back",
    () => request(job_path(target.ref, target.id, ":retry"), { method: "POST", body: {} }));
  target.changed();
}

export function ask_to_cancel(target: Target): void {
  if (!may_operate()) return;
  const active = target.job.state === "active";
  const reason = h("input", { name: "reason", maxlength: 512, placeholder: "by hand" });
  const grace = h("select", { name: "grace" },
    h("option", { value: "" }, "the rest of its lease"),
    h("option", { value: "5000" }, "5 seconds"), h("option", { value: "30000" }, "30 seconds"),
    h("option", { value: "0" }, "none: revoke the lease now"));
  ask({
    title: active ? "Cancel a running job?" : "Cancel this job?",
    content: [
      active ? `The worker of ${shown(target.id)} will be asked to stop. If it acknowledges `
        + "the job in time, the job still counts as completed."
        : `${shown(target.id)} will not run. You can put it back, but at the end of its band.`,
      active ? field("Time to finish", grace) : null,
      field("Reason", reason),
    ].filter((each) => each !== null),
    confirm: "Cancel the job",
    danger: true,
    done: async () => {
      const body: Record<string, unknown> = { reason: reason.value || "by hand" };
      if (active && grace.value !== "") body.grace_ms = Number(grace.value);
      const { result } = await request<{ result: string }>(
        job_path(target.ref, target.id, ":cancel"), { method: "POST", body });
      const told = result === "signalled";
      notice(told ? `The worker of ${shown(target.id)} was asked to stop.`
        : `${shown(target.id)} has been cancelled.`,
      told || active ? {} : { undo: () => void put_back(target) });
      target.changed();
    },
  });
}

export function ask_to_retry(target: Target): void {
  if (!may_operate()) return;
  ask({
    title: "Retry this job?",
    content: [`${shown(target.id)} will wait again as a new job, at the end of its band.`],
    confirm: "Retry",
    done: async () => {
      await request(job_path(target.ref, target.id, ":retry"), { method: "POST", body: {} });
      notice(`${shown(target.id)} is waiting again.`);
      target.changed();
    },
  });
}

// --- Queues ---

export type Pause = "none" | "in" | "out" | "all";

const PAUSES: Record<Pause, string> = {
  none: "runs", in: "accepts no new jobs", out: "hands out no jobs", all: "is paused" };

export async function set_pause(ref: QueueRef, before: Pause, next: Pause, changed: () => void) {
  if (!may_operate()) return;
  await act(`${shown(ref.queue)} ${PAUSES[next]}${next === "none" ? " again" : " now"}.`,
    "The queue was not changed",
    () => request(queue_path(ref), { method: "PATCH", body: { paused: next } }),
    before === next ? undefined : () => void set_pause(ref, next, before, changed));
  changed();
}

export function ask_to_pause(ref: QueueRef, before: Pause, changed: () => void): void {
  if (!may_operate()) return;
  const what = h("select", { name: "pause" },
    h("option", { value: "out" }, "hand out no jobs (running jobs continue)"),
    h("option", { value: "in" }, "accept no new jobs"),
    h("option", { value: "all" }, "both"));
  ask({
    title: `Pause ${shown(ref.queue)}?`,
    content: [field("The queue should", what)],
    confirm: "Pause",
    danger: true,
    done: () => set_pause(ref, before, what.value as Pause, changed),
  });
}

export function ask_to_add(ref: QueueRef, bands: string[], changed: () => void): void {
  if (!may_operate()) return;
  const id = h("input", { name: "id", placeholder: "chosen by the queue", autocomplete: "off" });
  const payload = h("textarea", { name: "payload", rows: 5, spellcheck: "false" });
  const pri = h("select", { name: "pri" }, h("option", { value: "" }, "default"),
    ...bands.map((band) => h("option", { value: band }, band)));
  const group = h("input", { name: "group", autocomplete: "off" });
  const delay = h("input", { name: "delay", type: "number", min: 0, step: "any",
    placeholder: "0" });
  ask({
    title: `Add a job to ${shown(ref.queue)}`,
    content: [field("Id", id), field("Payload", payload),
      h("div.pair", {}, field("Priority", pri), field("Group", group)),
      field("Delay in seconds", delay)],
    confirm: "Add",
    done: async () => {
      const body: Record<string, unknown> = { payload: payload.value };
      if (id.value) Object.assign(body, body_member("id", segment_of_text(id.value)));
      if (pri.value) body.pri = pri.value;
      if (group.value) body.group = group.value;
      if (Number(delay.value) > 0) body.delay_ms = Math.round(Number(delay.value) * 1000);
      const added = await request<Job>(queue_path(ref, "/jobs"), { method: "POST", body });
      const own = added.id === null ? null : segment_of_text(added.id);
      notice(`Added ${added.id ?? "a job"}.`, {
        undo: own === null ? undefined : () => void act(`${shown(own)} has been cancelled.`,
          "The job was not removed", () => request(job_path(ref, own, ":cancel"),
            { method: "POST", body: { reason: "added by mistake" } })).then(changed),
      });
      changed();
    },
  });
}

interface Counted {
  count: number;
  cursor: string | null;
}

// The most jobs that one call changes.
const MOST_A_CALL = 1000;

// The same for all jobs in a state: they are counted, then the user is asked, then they are changed
// call by call. If the count is known, no more are changed than the user was told: the walk begins
// with those that ended first.
export async function ask_for_all(ref: QueueRef, verb: "retry" | "purge", from: string,
                                  changed: () => void): Promise<void> {
  if (!may_operate()) return;
  const path = queue_path(ref, `/jobs:${verb}`);
  const where = { state: [from] };
  let known: Counted;
  try {
    known = await request<Counted>(path, { method: "POST", body: { where, dry_run: true } });
  } catch (error) {
    return failure("The jobs could not be counted", error);
  }
  const many = known.cursor === null ? `${known.count}` : `more than ${known.count}`;
  if (known.count === 0 && known.cursor === null) return notice(`No job is ${from}.`);
  ask({
    title: verb === "retry" ? `Retry all ${from} jobs?` : `Remove all ${from} jobs?`,
    content: [`${many} ${from} jobs ${verb === "retry" ? "will wait again, as new jobs."
      : "and their results will be removed. There is no undo."}`],
    confirm: verb === "retry" ? "Retry them" : "Remove them",
    danger: verb === "purge",
    done: async () => {
      let cursor: string | null = null;
      let count = 0;
      const told = known.cursor === null ? known.count : Infinity;
      do {
        const bounded = { ...where, limit: Math.min(MOST_A_CALL, told - count) };
        const body: object = cursor === null ? { where: bounded } : { where: bounded, cursor };
        const step: Counted = await request<Counted>(path, { method: "POST", body });
        cursor = step.cursor;
        count += step.count;
      } while (cursor !== null && count < told);
      notice(`${count} jobs ${verb === "retry" ? "are waiting again" : "were removed"}.`);
      changed();
    },
  });
}

// The buttons for a job in this state.
export function job_buttons(target: Target, bands: string[]): HTMLElement[] {
  if (!state.may("operate")) return [];
  const { job } = target;
  const button = (text: string, click: () => void, style: "button" | "button.danger" = "button",
                  key = "") => h(style, { click, title: key ? `${text} (${key})` : text }, text);
  if (is_over(job.state)) return [button("Retry", () => ask_to_retry(target), "button", "r")];
  const cancel = button("Cancel…", () => ask_to_cancel(target), "button.danger", "c");
  if (job.state === "active") return [cancel];
  const names = bands.includes(job.pri) ? bands : [job.pri, ...bands];
  const choice = h("select", { "aria-label": "Priority",
    change: () => void set_priority(target, choice.value) },
    ...names.map((band) => h("option", { value: band, selected: band === job.pri }, band)));
  return [button("To the front", () => ask_to_move(target, "front"), "button", "f"),
    button("To the back", () => ask_to_move(target, "back"), "button", "b"), choice, cancel];
}
