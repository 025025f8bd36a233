// The bands of a queue as lanes: the number of waiting jobs, and the first jobs of each.
import { queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { segment_of, shown } from "./bytes";
import { BAND_COLOURS } from "./charts";
import { KeyedList, h, replace, set_class, set_text } from "./dom";
import { plural, short_count } from "./format";
import { series_of } from "./history";
import type { Visibility } from "./live";
import type { Band, Job } from "./types";
import { Panel, job_anchor } from "./view";
import { wait_in_words } from "./words";

// As many as a lane has room for; each costs the server some microseconds a second and viewer.
const SHOWN_JOBS = 10;

interface Lane {
  root: HTMLElement;
  count: HTMLElement;
  wait: HTMLElement;
  rest: HTMLElement;
  visible: boolean;
  jobs: KeyedList<Job, { root: HTMLElement; group: HTMLElement }>;
  heads: Job[];
}

export class LanesPanel {
  private readonly panel = new Panel("Bands, most urgent first");
  readonly root = this.panel.root;
  private readonly list: KeyedList<Band, Lane>;
  private made = 0;

  constructor(private ref: QueueRef, private visibility: Visibility) {
    this.panel.body.classList.add("lanes");
    this.list = new KeyedList<Band, Lane>(this.panel.body,
      (band) => segment_of(band, "name") ?? "", (key) => this.make(key),
      (lane, band) => this.update(lane, band));
  }

  private make(key: string): Lane {
    const jobs = h("div.chips");
    const lane: Lane = {
      root: h("div.lane", { "data-band": this.made++ % BAND_COLOURS }),
      count: h("strong"), wait: h("small"), rest: h("span.rest"), visible: false, heads: [],
      jobs: new KeyedList<Job, { root: HTMLElement; group: HTMLElement }>(jobs,
        (job) => segment_of(job, "id") ?? "", (id) => {
          const group = h("small");
          return { root: h("div.chip", {}, job_anchor(this.ref, id), group), group };
        }, (chip, job) => set_text(chip.group, shown(segment_of(job, "group")))),
    };
    lane.root.append(h("header", {}, h("bdi", {}, shown(key)), lane.count, lane.wait),
      jobs, lane.rest);
    this.visibility.watch(lane.root, (visible) => { lane.visible = visible; });
    return lane;
  }

  // Reads the first jobs of the lanes in view, except empty lanes.
  async ask(bands: Band[], signal: AbortSignal): Promise<void> {
    await Promise.all(bands.map(async (band) => {
      const lane = this.list.get(segment_of(band, "name") ?? "");
      if (!lane?.visible) return;
      if (band.pending === 0) {
        lane.heads = [];
        return;
      }
      const query = { state: "pending", pri: band.name ?? "", by: "rank",
        limit: String(SHOWN_JOBS), progress_bytes: "0" };
      const { jobs } = await request<{ jobs: Job[] }>(queue_path(this.ref, "/jobs", query),
        { signal });
      lane.heads = jobs;
    }));
  }

  draw(bands: Band[]): void {
    this.list.render(bands);
    if (bands.length === 0) replace(this.panel.body, h("p.dim", {}, "There are no bands yet."));
  }

  private update(lane: Lane, band: Band): void {
    set_text(lane.count, `${short_count(band.pending)} pending`);
    const { recent } = series_of(this.ref.db, this.ref.queue);
    set_text(lane.wait, wait_in_words(recent.of(segment_of(band, "name") ?? "")));
    set_class(lane.root, "idle", band.pending === 0);
    lane.jobs.render(lane.heads);
    const rest = band.pending - lane.heads.length;
    set_text(lane.rest, lane.heads.length === 0 ? (band.pending === 0 ? "no jobs waiting" : "")
      : rest > 0 ? `and ${plural(rest, "more", "more")}` : "");
  }

  find(id: string): Job | undefined {
    for (const lane of this.list.values()) {
      const found = lane.heads.find((job) => segment_of(job, "id") === id);
      if (found) return found;
    }
    return undefined;
  }
}
