// Search by id: in the open queue, else in the whole database; and by name for queues, groups,
// workers, and tags as name=value.
import { ApiError, job_path, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of, segment_of_text, shown } from "./bytes";
import { h, replace, show } from "./dom";
import { words_of_error } from "./notices";
import type { Group, Job, Named, QueueLine } from "./types";
import { job_link, queue_link } from "./address";
import { state_pill } from "./view";

interface Filter {
  by: "group" | "worker" | "tag";
  value: string;
}

const MOST_QUEUES = 100;
// Groups, workers and tags are searched for in this many queues, those with the most jobs.
const MOST_LOOKED_INTO = 10;
const AT_ONCE = 4;
const MOST_HITS = 12;

export class Search {
  readonly input = h("input", { type: "search", placeholder: "Find a job, a group…",
    "aria-label": "Find a job, queue, group, worker or tag", autocomplete: "off",
    spellcheck: "false" });
  private readonly hits = h("div.hits", { hidden: true, role: "status" });
  readonly root = h("form.search", { role: "search", submit: (event: Event) => {
    event.preventDefault();
    void this.run();
  } }, this.input, this.hits);
  private abort: AbortController | null = null;

  // `here`: the open queue, if there is one.
  constructor(private here: () => QueueRef | null, private db: () => number) {
    this.input.addEventListener("input", () => { if (!this.input.value) this.close(); });
    document.addEventListener("click", (event) => {
      if (!this.root.contains(event.target as Node)) this.close();
    });
  }

  close(): void {
    this.abort?.abort();
    show(this.hits, false);
  }

  private say(...content: (Node | string)[]): void {
    replace(this.hits, ...content);
    show(this.hits, true);
  }

  private async job(ref: QueueRef, id: string, signal: AbortSignal): Promise<Job | null> {
    try {
      return await request<Job>(job_path(ref, id), { signal });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  private async run(): Promise<void> {
    const text = this.input.value;
    if (!text) return;
    this.close();
    const abort = this.abort = new AbortController();
    const id = segment_of_text(text);
    this.say(h("p", {}, "Looking…"));
    try {
      const here = this.here();
      if (here && is_addressable(id) && await this.job(here, id, abort.signal)) {
        return this.go(job_link(here, id));
      }
      await this.run_everywhere(text, id, here, abort.signal);
    } catch (error) {
      if (!abort.signal.aborted) this.say(h("p", {}, words_of_error(error)));
    }
  }

  private async run_everywhere(text: string, id: string, but: QueueRef | null,
                               signal: AbortSignal): Promise<void> {
    const db = this.db();
    const path = `/api/v1/queues?limit=${MOST_QUEUES}${db ? `&db=${db}` : ""}`;
    const { queues, cursor } = await request<{ queues: QueueLine[]; cursor: string | null }>(
      path, { signal });
    const names = queues.map((line) => segment_of(line, "name") ?? "");
    const hits: HTMLElement[] = names.filter((name) =>
      shown(name).toLowerCase().includes(text.toLowerCase()))
      .map((name) => h("a", { href: queue_link({ queue: name, db }) }, h("span", {}, "queue"),
        h("bdi", {}, shown(name))));
    const left = is_addressable(id)
      ? names.filter((name) => name !== but?.queue && is_addressable(name)) : [];
    const look = async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) {
        const ref = { queue: name, db };
        const job = await this.job(ref, id, signal);
        if (job) hits.push(h("a", { href: job_link(ref, id) }, state_pill(job.state),
          h("bdi", {}, shown(name)), " / ", h("bdi", {}, shown(id))));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, look));
    for (const ref of this.busiest(queues, but)) hits.push(...await this.inside(ref, text, signal));
    if (signal.aborted) return;
    for (const hit of hits) hit.addEventListener("click", () => this.close());
    if (hits.length > 0) return this.say(...hits.slice(0, MOST_HITS));
    this.say(h("p", {}, cursor === null ? "Nothing found with this id or name."
      : `Nothing found in the first ${MOST_QUEUES} queues.`));
  }

  // Where to search for names: the open queue, else the largest ones.
  private busiest(queues: QueueLine[], here: QueueRef | null): QueueRef[] {
    if (here) return [here];
    const size = ({ stats }: QueueLine) => stats.waiting + stats.active;
    return [...queues].sort((a, b) => size(b) - size(a)).slice(0, MOST_LOOKED_INTO)
      .map((line) => ({ queue: segment_of(line, "name") ?? "", db: this.db() }))
      .filter(({ queue }) => is_addressable(queue));
  }

  // Data of a queue that the user may not read counts as not found.
  private async ask<T>(path: string, nothing: T, signal: AbortSignal): Promise<T> {
    try {
      return await request<T>(path, { signal });
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return nothing;
      throw error;
    }
  }

  // Groups and workers whose names contain the text, and the tag that it names.
  private async inside(ref: QueueRef, text: string, signal: AbortSignal): Promise<HTMLElement[]> {
    const [{ groups }, { workers }] = await Promise.all([
      this.ask<{ groups: Group[] }>(queue_path(ref, "/groups"), { groups: [] }, signal),
      this.ask<{ workers: Named[] }>(queue_path(ref, "/workers"), { workers: [] }, signal)]);
    const hit = (filter: Filter) => h("a", { href: queue_link(ref, { [filter.by]: filter.value }) },
      h("span.pill", {}, filter.by), h("bdi", {}, shown(ref.queue)), " / ",
      h("bdi", {}, shown(filter.value)));
    const named = (list: Named[], by: Filter["by"]) => list.map((each) => segment_of(each, "name"))
      .filter((name): name is string => name !== null && name !== ""
        && shown(name).toLowerCase().includes(text.toLowerCase()))
      .map((value) => hit({ by, value }));
    const hits = [...named(groups, "group"), ...named(workers, "worker")];
    if (!/^[^=]+=./.test(text)) return hits;
    const tag: Filter = { by: "tag", value: segment_of_text(text) };
    const path = `${queue_path(ref, "/jobs", { limit: "1" })}&tag=${tag.value}`;
    const { jobs } = await this.ask<{ jobs: Job[] }>(path, { jobs: [] }, signal);
    return jobs.length > 0 ? [...hits, hit(tag)] : hits;
  }

  private go(link: string): void {
    this.close();
    this.input.blur();
    location.hash = link;
  }
}
