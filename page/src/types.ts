// Responses of the API, as far as the page uses them: see HTTP.md and /api/v1/openapi.json.

export type Role = "read" | "operate" | "admin";

export interface Session {
  // Null: a token is required and none was given.
  role: Role | null;
  // The user, after a log-in by password.
  user: string | null;
  user_base64?: string;
  // Whether the server has tokens; without any, only this machine may read.
  tokens: boolean;
  // The server's RESP ports without and with TLS; null: none, or not to be shown.
  port: number | null;
  tls_port: number | null;
  // Whether a connection to them must log in; null: not to be shown.
  password_needed: boolean | null;
  // The server's clock in unix milliseconds.
  now: number;
}

export interface Distribution {
  count: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
  mean: number;
}

// The greatest value of a bucket, and its count.
export type Bucket = [number, number];

export interface Counts {
  pending: number;
  active: number;
  delayed: number;
  blocked: number;
  waiting: number;
}

export interface Stats extends Counts {
  waiting_pops: number;
  slots: number;
  max_active: number;
  utilization: number | null;
  by_priority: Record<string, number>;
  added: number;
  started: number;
  completed: number;
  failed: number;
  expired: number;
  cancelled: number;
  reclaimed: number;
  rejected: Record<string, number>;
  wait_ms: Distribution;
  run_ms: Distribution;
  oldest_ms: number | null;
  rates: { added: number; completed: number };
  timer_lag_ms: number;
  since: number;
  // Ended jobs that are kept.
  kept?: Record<string, number>;
  // The queue shows these plain Redis keys.
  adopted?: { pending: Item[]; active: Item };
}

// A text, or bytes that are not UTF-8.
export type Item = string | { base64: string };

// Members that may hold any bytes: if they are not UTF-8, `x` is null and `x_base64` is present.
export interface Named {
  name: string | null;
  name_base64?: string;
}

export interface QueueLine extends Named {
  db: number;
  stats: Stats;
  paused?: string;
  // 0: no limit.
  max_waiting?: number;
  max_total?: number;
}

export type Config = Record<string, string | number | boolean>;

export interface QueueAnswer extends QueueLine {
  // The server's clock in unix milliseconds.
  now: number;
  config: Config | null;
  // What each field is while nobody sets it; only with=defaults.
  defaults?: Config | null;
}

export interface Band extends Named, Counts {
  completed: number;
  failed: number;
  wait_ms: Distribution;
  run_ms: Distribution;
  oldest_ms: number | null;
  wait_buckets?: Bucket[];
}

export type Pause = "none" | "in" | "out" | "all";

export interface Group extends Named, Counts {
  slots: number;
  max_active: number;
  utilization: number | null;
  // In force; not of the sum of the others.
  paused?: Pause;
}

// What a job has of its own, by the names with which one adds a job; null: as the queue has it.
export interface Options {
  boost_ms: number;
  ttl_ms: number;
  lease_ms: number | null;
  max_run_ms: number | null;
  retry: number | null;
  backoff: number[] | null;
}

export interface Job {
  id: string | null;
  id_base64?: string;
  state: string;
  position: number | null;
  eta_ms: number | null;
  why: string | null;
  pri: string;
  group: string | null;
  group_base64?: string;
  keys: Item[];
  tags: Record<string, string | null>;
  cost: number;
  // Null: nothing tells it, as with a score that is no time.
  enqueued: number | null;
  not_before: number | null;
  ttl_left_ms: number | null;
  lease_ms: number;
  max_run_ms: number;
  attempts: number;
  crashes: number;
  retries_left: number | null;
  needs: Item[];
  after?: Item[];
  dependents?: Item[];
  dependents_count?: number;
  // Null: of a member of plain Redis keys.
  options?: Options | null;
  lease: number | null;
  worker: string | null;
  worker_base64?: string;
  deadline: number | null;
  started: number | null;
  cancel: string | null;
  cancel_base64?: string;
  finished: number | null;
  run_ms: number | null;
  error: string | null;
  error_base64?: string;
  progress: string | null;
  progress_base64?: string;
  successor: boolean;
  payload?: string | null;
  payload_base64?: string;
  result?: string | null;
  result_base64?: string;
}

export interface QueueEvent {
  seq: number;
  time: number;
  type: string;
  id: string | null;
  id_base64?: string;
  fields: Record<string, string | number | null>;
}

export interface Lease {
  id: string | null;
  id_base64?: string;
  started: number;
}

export interface Worker extends Named {
  leases: Lease[];
  active?: number;
  waiting_pops?: number;
  completed?: number;
  failed?: number;
  // Unix milliseconds of its last word; null: not since the server's start.
  seen?: number | null;
  quiet?: boolean;
}

export interface GroupMember {
  name: string;
  // It has not caught up yet, and answers no reads.
  starting: boolean;
  host: string;
  // 0: not served.
  port: number;
  tls_port: number;
  http_port: number;
  // The last unit of the journal that it has applied.
  lsn: number;
  // Null: not told.
  version: string | null;
  // From the primary's.
  config_differs: boolean;
  users_differ: boolean;
}

export interface Group {
  node: string;
  role: "starting" | "standby" | "taking" | "primary" | "resigning";
  epoch: number;
  // Null: nobody leads.
  primary: string | null;
  lag_ms: number;
  age_ms: number;
  last_takeover_ms: number;
  members: GroupMember[];
}
