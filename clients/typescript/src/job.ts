// A job as the program that added it holds it.
import type { JobInfo, State } from './info.js'
import type { Queue, ResultOptions } from './queue.js'

/** What `Queue.add` did with the job: `added`, or what `ifdup` did. */
export type AddOutcome = 'added' | 'kept' | 'updated' | 'replaced' | 'queued'

/** What the server said when the job was added. */
export interface AddReply {
  readonly id: string
  readonly outcome: AddOutcome
  readonly state: State
  readonly position: number | null
  readonly eta: number | null
}

/** A job that was added. Its fields are as of then; `get` says how it is now. */
export class Job<Payload = unknown, Result = unknown> implements AddReply {
  readonly id: string
  readonly outcome: AddOutcome
  readonly state: State
  /** The pending jobs before it by band and rank; null unless pending. */
  readonly position: number | null
  /** In how many milliseconds it would start if nothing were added; null while unknown. */
  readonly eta: number | null
  readonly queue: Queue<Payload, Result>

  /** @internal */
  constructor(queue: Queue<Payload, Result>, reply: AddReply) {
    this.queue = queue
    this.id = reply.id
    this.outcome = reply.outcome
    this.state = reply.state
    this.position = reply.position
    this.eta = reply.eta
  }

  /** The result of its run, as `Queue.result`. */
  result(options?: ResultOptions): Promise<Result> {
    return this.queue.result(this.id, options)
  }

  /** The job as it is now; null if it is not kept. */
  get(options?: { with?: readonly ('payload' | 'result' | 'options')[] }):
  Promise<JobInfo<Payload, Result> | null> {
    return this.queue.get(this.id, options)
  }

  /** Why it waits, one code with its figures (QUEUE.md, `why`); null if it does not wait. */
  async why(): Promise<string | null> {
    return (await this.get())?.why ?? null
  }

  /** Cancels it, as `Queue.cancel`. */
  cancel(
    options?: { reason?: string, grace?: number },
  ): Promise<'cancelled' | 'signalled' | 'gone'> {
    return this.queue.cancel(this.id, options)
  }
}
