// Search by id: in the queue that is open, else in all of the database; and queues by name.
import { ApiError, job_path, request } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of, segment_of_text, shown } from "./bytes";
import { h, replace, show } from "./dom";
import { words_of_error } from "./notices";
import type { Job, QueueLine } from "./types";
import { job_link, queue_link, state_pill } from "./view";

const MOST_QUEUES = 100;
const AT_ONCE = 4;
const MOST_HITS = 12;

export class Search {
  readonly input = h("input", { type: "search", placeholder: "Find a job by its id",
    "aria-label": "Find a job or a queue", autocomplete: "off", spellcheck: "false" });
  private readonly hits = h("div.hits", { hidden: true, role: "status" });
  readonly root = h("form.search", { role: "search", submit: (event: Event) => {
    event.preventDefault();
    void this.run();
  } }, this.input, this.hits);
  private abort: AbortController | null = null;

  // `here`: the queue that is open, if there is one.
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
    if (signal.aborted) return;
    for (const hit of hits) hit.addEventListener("click", () => this.close());
    if (hits.length > 0) return this.say(...hits.slice(0, MOST_HITS));
    this.say(h("p", {}, cursor === null ? "Nothing has this id, and no queue this name."
      : `Nothing found in the first ${MOST_QUEUES} queues.`));
  }

  private go(link: string): void {
    this.close();
    this.input.blur();
    location.hash = link;
  }
}
