// The actions of an operator. Irreversible ones ask for confirmation; the others offer an undo.
import { job_link, stays } from "./address";
import { is_changed, job_path, queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { body_item, body_member, entries_of, segment_of, shown, text_of } from "./bytes";
import { server_now } from "./clock";
import { ask, field } from "./dialogs";
import { h } from "./dom";
import { count, plural } from "./format";
import { act, failure, notice } from "./notices";
import type { Job } from "./types";
import { is_over } from "./words";

export interface Target {
  ref: QueueRef;
  id: string;
  // As it was last seen.
  job: Pick<Job, "state" | "pri"> & Partial<Pick<Job, "not_before">>;
  // A member of plain Redis keys, of which the queue keeps nothing once it has left them.
  adopted?: boolean;
  // Called after each change.
  changed: () => void;
}

// What of a job nobody may have changed meanwhile; an empty text is null.
export type Was = Record<string, string | number>;

function change_job(target: Target, body: object, was?: Was): Promise<Job> {
  return request<Job>(job_path(target.ref, target.id), { method: "PATCH",
    body: { ...body, was } });
}

export function may_operate(): boolean {
  if (state.may("operate")) return true;
  notice(state.lead === "yes" ? "This requires a token with the role operate."
    : "This node is not the primary: it changes nothing.", { bad: true });
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
    async () => {
      await change_job(target, { pri }, undoing ? { pri: before } : undefined);
      target.job = { ...target.job, pri };
    }, undo);
  target.changed();
}

// A delayed job becomes pending; its time can be put back while it is as it was then.
export async function run_now(target: Target): Promise<void> {
  if (!may_operate()) return;
  const at = target.job.not_before;
  let was: Was = {};
  await act(`${shown(target.id)} is no longer delayed.`, "The delay was not changed",
    async () => {
      const seen: Was = { state: "delayed", ...at == null ? {} : { not_before: at } };
      const { state, pri, attempts } = await change_job(target, { delay_ms: 0 }, seen);
      was = { state, pri, attempts };
    }, at == null ? undefined : () => void act(
      `${shown(target.id)} is delayed as before.`, "The delay was not put back",
      () => change_job(target, { at }, was)).then(target.changed));
  target.changed();
}

// A retry makes a job pending: of one that waited for its time or for other jobs it is no undo.
const can_be_put_back = (state: string | undefined) => state === "pending";
const NO_UNDO = "there is no undo for what is delayed or blocked, as it would run at once.";
const DEPENDENTS = "Jobs that need it are cancelled with it, and stay so.";
const ADOPTED = "will be removed from the Redis keys at once. No worker is told, and there is no "
  + "undo.";

// Somebody else may have put it back, and it may have run: a retry would run it once more. So it is
// retried only if its end is still the one that the cancel made.
async function put_back(target: Target, end: number): Promise<void> {
  await act(`${shown(target.id)} is waiting again, at the end of its band.`,
    "The job was not put back", async () => {
      try {
        await request(job_path(target.ref, target.id, ":retry"), { method: "POST",
          body: { was: { end } } });
      } catch (error) {
        if (!is_changed(error)) throw error;
        const { state } = await request<Job>(job_path(target.ref, target.id));
        throw new Error(state === "cancelled" ? "somebody has cancelled it once more."
          : `it is ${state} by now.`);
      }
    });
  target.changed();
}

// What a cancel has done. `end` names the end that it made, if the job is kept.
interface Cancelled {
  result?: string;
  // Its state before. What a list or a page showed may have been old.
  was?: string;
  end?: number;
}

export function cancel_job(ref: QueueRef, id: string, body: object): Promise<Cancelled> {
  return request<Cancelled>(job_path(ref, id, ":cancel"), { method: "POST", body });
}

export function cancelled_in_words(id: string, { result }: Cancelled): string {
  return result === "signalled" ? `The worker of ${shown(id)} was asked to stop.`
    : `${shown(id)} has been cancelled.`;
}

const can_undo = ({ was, end }: Cancelled) => can_be_put_back(was) && end !== undefined;

export function ask_to_cancel(target: Target): void {
  if (!may_operate()) return;
  if (target.adopted) {
    const chosen = new Map([[target.id, target.job.state]]);
    return ask_for_chosen(target.ref, "cancel", chosen, target.changed, true);
  }
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
        : `${shown(target.id)} will not run. ${can_be_put_back(target.job.state)
          ? "You can put it back, but at the end of its band." : `It is ${target.job.state}: `
            + NO_UNDO} ${DEPENDENTS}`,
      active ? field("Time to finish", grace) : null,
      field("Reason", reason),
    ].filter((each) => each !== null),
    confirm: "Cancel the job",
    danger: true,
    done: async () => {
      const body: Record<string, unknown> = { reason: reason.value || "by hand" };
      if (active && grace.value !== "") body.grace_ms = Number(grace.value);
      const done = await cancel_job(target.ref, target.id, body);
      notice(cancelled_in_words(target.id, done), {
        undo: can_undo(done) ? () => void put_back(target, done.end!) : undefined });
      target.changed();
    },
  });
}

export function ask_to_retry(target: Target): void {
  if (!may_operate()) return;
  ask({
    title: "Retry this job?",
    content: [`${shown(target.id)} waits again under the same id, at the end of its band.`],
    confirm: "Retry",
    done: async () => {
      await request(job_path(target.ref, target.id, ":retry"), { method: "POST", body: {} });
      notice(`${shown(target.id)} is waiting again.`);
      target.changed();
    },
  });
}

export interface Counted {
  count: number;
  cursor: string | null;
}

// The most jobs that one call changes, and that are counted before.
const MOST_A_CALL = 1000;
const MOST_COUNTED = 10_000;

// The options that are the job's own, by the names with which one adds a job, and in words. Those
// that it was not given are the queue's, also for the new job.
function own_options(job: Job): [Record<string, number | number[]>, string] {
  const own = Object.entries(job.options ?? {}).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const]);
  // No boost and no TTL are what a job has that was given none.
  const told = own.filter(([name, value]) => value !== 0 || !["boost_ms", "ttl_ms"].includes(name));
  return [Object.fromEntries(own),
    told.map(([name, value]) => `, ${name} ${[value].flat().join(":")}`).join("")];
}

// A new job with all that this one was given, but its id, its needs and its delay. `job`: with its
// payload and its options.
export function ask_to_run_again(ref: QueueRef, job: Job): void {
  if (!may_operate()) return;
  const [own, told] = own_options(job);
  // No request can name a tag by such bytes.
  const [tags, odd] = [true, false].map((plain) => entries_of(job.tags).filter(([name]) =>
    (text_of(name) !== null) === plain));
  ask({
    title: "Run it again as a new job?",
    content: [`The new job has the same payload, priority, group, keys, tags and cost${told}. `
      + "It has an id of its own, and waits for no time and no other job.",
    odd.length > 0 && "Left out, as no request can name it: "
      + odd.map(([name]) => `the tag ${shown(name)}`).join(", ")].filter((each) => each !== false),
    confirm: "Run it again",
    done: async () => {
      const body: Record<string, unknown> = { pri: job.pri, keys: job.keys, cost: job.cost,
        ...own, tags: Object.fromEntries(tags.map(([name, value]) =>
          [text_of(name), body_item(value)])) };
      for (const name of ["payload", "group"]) {
        const segment = segment_of(job, name);
        if (segment) Object.assign(body, body_member(name, segment));
      }
      body.payload ??= "payload_base64" in body ? undefined : "";
      const added = await request<Job>(queue_path(ref, "/jobs"), { method: "POST", body });
      const id = segment_of(added, "id") ?? "";
      notice(`${shown(id)} was added.`);
      location.hash = job_link(ref, id);
    },
  });
}

// What will happen to several and to one, and what has happened.
export type Verb = "retry" | "cancel" | "purge";
const CHOSEN: Record<Verb, [string, string, string]> = {
  retry: ["will wait again under the same ids, at the end of their bands.",
    "will wait again under the same id, at the end of its band.", "wait again"],
  cancel: ["will not run; the workers of those that run are asked to stop.",
    "will not run; if it runs, its worker is asked to stop.", "cancelled"],
  purge: ["and their results will be removed. There is no undo.",
    "and its result will be removed. There is no undo.", "purged"],
};

// A call looks at 10,000 jobs, where texts are compared at 2,000 or fewer: of those that a filter
// selects the first may be far behind others.
const MOST_COUNTS = 20;

export async function count_all(path: string, where: object): Promise<Counted> {
  const known: Counted = { count: 0, cursor: null };
  for (let call = 0; call < MOST_COUNTS; ++call) {
    const cursor = known.cursor === null ? {} : { cursor: known.cursor };
    const step = await request<Counted>(path, { method: "POST",
      body: { where, dry_run: true, ...cursor } });
    known.count += step.count;
    known.cursor = step.cursor;
    if (known.cursor === null || known.count >= MOST_COUNTED) break;
  }
  return known;
}

export function counted_in_words({ count, cursor }: Counted, from: string): string {
  if (cursor === null) return plural(count, `${from} job`);
  return count === 0 ? `An unknown number of ${from} jobs` : `more than ${plural(count,
    `${from} job`)}`;
}

// The same for all jobs of a selection: they are counted, then the user is asked, then they are
// changed call by call. What comes after the count is neither counted nor changed.
export async function ask_for_all(ref: QueueRef, verb: Verb, from: string, where: object,
                                  filters: string, changed: () => void,
                                  adopted = false): Promise<void> {
  if (!may_operate()) return;
  const path = queue_path(ref, `/jobs:${verb}`);
  const here = stays();
  // A score of plain Redis keys need not be a time.
  const which = adopted ? where : until_now(where);
  let known: Counted;
  try {
    known = await count_all(path, which);
  } catch (error) {
    return failure("The jobs could not be counted", error);
  }
  const many = counted_in_words(known, from);
  if (!here()) return;
  if (known.count === 0 && known.cursor === null) return notice(`No such job is ${from}.`);
  const asked = verb === "cancel" && from === "active" && !adopted;
  const said = (count: number) => asked
    ? `The workers of ${plural(count, "job")} were asked to stop`
    : `${plural(count, "job")} ${CHOSEN[verb][2]}`;
  ask({
    title: `${named(verb)} these ${from} jobs of ${shown(ref.queue)}?`,
    content: [`${many} ${adopted ? ADOPTED : CHOSEN[verb][many.startsWith("1 ") ? 1 : 0]}`,
      filters && `Only these: ${filters}.`].filter((each) => each !== ""),
    confirm: `${named(verb)} them`,
    danger: verb !== "retry",
    done: (stopped) => change_all(path, verb, which, said,
      known.cursor === null ? known.count : Infinity, stopped).finally(changed),
  });
}

export const named = (verb: Verb) => verb[0].toUpperCase() + verb.slice(1);

function until_now(where: { until_ms?: number }): object {
  return { ...where, until_ms: Math.min(where.until_ms ?? Infinity, Math.floor(server_now())) };
}

// Changes at most `most` jobs, until it is stopped. `step`: what one request changes, from a cursor
// on (null: from the beginning), after `count` others.
export async function change_in_steps(
    step: (cursor: string | null, count: number) => Promise<Counted>,
    said: (count: number) => string, most: number, stopped: () => boolean): Promise<void> {
  let cursor: string | null = null;
  let count = 0;
  try {
    do {
      const done: Counted = await step(cursor, count);
      cursor = done.cursor;
      count += done.count;
    } while (cursor !== null && count < most && !stopped());
  } catch (error) {
    if (count === 0) throw error;
    throw new Error(`${said(count)}, then: ${error instanceof Error ? error.message : error}`);
  }
  notice(`${said(count)}${cursor !== null && count < most ? "; then it was stopped" : ""}.`);
}

function change_all(path: string, verb: Verb, where: object, said: (count: number) => string,
                    most: number, stopped: () => boolean): Promise<void> {
  const reason = verb === "cancel" ? { reason: "by hand" } : {};
  return change_in_steps((cursor, count) => {
    const bounded = { ...where, limit: Math.min(MOST_A_CALL, most - count) };
    const body = { where: bounded, ...reason, ...cursor === null ? {} : { cursor } };
    return request<Counted>(path, { method: "POST", body });
  }, said, most, stopped);
}

interface Outcome extends Cancelled {
  id: string | null;
  id_base64?: string;
  status: number;
  error?: { detail: string };
}

// For jobs that were chosen one by one. `chosen`: their ids and states; `adopted`: see Target.
export function ask_for_chosen(ref: QueueRef, verb: Verb, chosen: Map<string, string>,
                               changed: () => void, adopted = false): void {
  if (!may_operate()) return;
  const ids = [...chosen.keys()];
  const lost = verb !== "cancel" ? [] : ids.filter((id) =>
    ["delayed", "blocked"].includes(chosen.get(id)!));
  const [several, one, told] = CHOSEN[verb];
  const name = named(verb);
  const single = ids.length === 1;
  ask({
    title: single ? `${name} this job?` : `${name} ${plural(ids.length, "job")}?`,
    content: [single ? `${shown(ids[0])} ${adopted ? ADOPTED : one}`
      : `${plural(ids.length, "job")} ${adopted ? ADOPTED : several}`,
      lost.length > 0 && `${count(lost.length)} of ${count(ids.length)} cannot be put back: `
        + NO_UNDO, verb === "cancel" && !adopted && DEPENDENTS].filter((each) => each !== false),
    confirm: single ? `${name} it` : `${name} them`,
    danger: verb !== "retry",
    done: async () => {
      const body: Record<string, unknown> = { ids: ids.map(body_item) };
      if (verb === "cancel") body.reason = "by hand";
      const { jobs } = await request<{ jobs: Outcome[] }>(queue_path(ref, `/jobs:${verb}`),
        { method: "POST", body });
      const refused = jobs.filter(({ status }) => status >= 400);
      const asked = jobs.filter(({ result }) => result === "signalled");
      const done = jobs.filter((each) => !refused.includes(each) && !asked.includes(each));
      // What had ended before, still runs or is not kept is not put back.
      const again = done.filter(can_undo);
      if (done.length > 0) {
        notice(`${plural(done.length, "job")} ${told}.`, again.length > 0
          ? { undo: () => void retry_all(ref, again, changed) } : {});
      }
      if (asked.length > 0) {
        notice(`The workers of ${plural(asked.length, "job")} were asked to stop.`);
      }
      if (refused.length > 0) {
        notice(`${plural(refused.length, "job")} not: ${refused[0].error?.detail ?? ""}`,
          { bad: true });
      }
      changed();
    },
  });
}

// As put_back, for several.
async function retry_all(ref: QueueRef, cancelled: Outcome[], changed: () => void): Promise<void> {
  try {
    const { jobs } = await request<{ jobs: Outcome[] }>(queue_path(ref, "/jobs:retry"), {
      method: "POST", body: { ids: cancelled.map((each) => body_item(segment_of(each, "id") ?? "")),
        was: cancelled.map(({ end }) => ({ end })) } });
    const rest = jobs.filter(({ status }) => status >= 400).length;
    if (rest < jobs.length) {
      notice(`${plural(jobs.length - rest, "job")} wait again, at the end of their bands.`);
    }
    if (rest > 0) {
      notice(`${plural(rest, "job")} not put back: no longer cancelled, or no longer kept.`,
        { bad: true });
    }
  } catch (error) {
    failure("They were not put back", error);
  }
  changed();
}

export function ask_to_purge(target: Target): void {
  ask_for_chosen(target.ref, "purge", new Map([[target.id, target.job.state]]), target.changed);
}

// The buttons for a job in this state.
export function job_buttons(target: Target, bands: string[]): HTMLElement[] {
  if (!state.may("operate")) return [];
  const { job } = target;
  const button = (text: string, click: () => void, style: "button" | "button.danger" = "button",
                  key = "") => h(style, { click, title: key ? `${text} (${key})` : text }, text);
  if (is_over(job.state)) {
    return [button("Retry…", () => ask_to_retry(target), "button", "r"),
      button("Purge…", () => ask_to_purge(target), "button.danger")];
  }
  const cancel = button("Cancel…", () => ask_to_cancel(target), "button.danger", "c");
  if (job.state === "active") return [cancel];
  const names = bands.includes(job.pri) ? bands : [job.pri, ...bands];
  const choice = h("select", { "aria-label": "Priority",
    change: () => void set_priority(target, choice.value) },
    ...names.map((band) => h("option", { value: band, selected: band === job.pri }, band)));
  const now = button("Run now", () => void run_now(target), "button", "r");
  if (job.state === "delayed") return [now, choice, cancel];
  return [button("To the front", () => ask_to_move(target, "front"), "button", "f"),
    button("To the back", () => ask_to_move(target, "back"), "button", "b"), choice, cancel];
}
