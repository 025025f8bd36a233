// How a handler says that its run has failed, and why its `signal` is aborted.
import { SluiceError } from '../errors.js'

const LONGEST_MS = 100 * 366 * 24 * 3600 * 1000  // of any duration that the server takes

/** Thrown by a handler: the job fails now, whatever retries it has left. */
export class Fatal extends SluiceError {}

/** Thrown by a handler: the run has failed, as with any other error, but the delay is chosen. */
export class Retry extends SluiceError {
  /** Before the job is pending again, in milliseconds; undefined: the queue's backoff. */
  readonly delay: number | undefined

  /** @throws RangeError - for a delay that the server would refuse, with the ends of other runs */
  constructor(message?: string, options: ErrorOptions & { delay?: number } = {}) {
    super(message, options)
    const { delay } = options
    if (delay !== undefined && !(delay >= 0 && delay <= LONGEST_MS)) {
      throw new RangeError(`a delay is 0 ms or more, not ${delay}`)
    }
    this.delay = delay === undefined ? undefined : Math.round(delay)
  }
}

/** Why `signal` is aborted: somebody cancelled the job. A result that is returned still counts. */
export class Cancelled extends SluiceError {}

/** Why `signal` is aborted: the lease is lost, so the job is another run's. No result is sent. */
export class LeaseLost extends SluiceError {}

/** Why `signal` is aborted: the worker's grace is over, and the job was given back. */
export class ShuttingDown extends SluiceError {}

/** What is sent when a run has ended. */
export type Ending =
  | { readonly kind: 'ack', readonly result: Buffer | string | null }
  | { readonly kind: 'nack', readonly mode: 'FAIL' | 'FATAL' | 'SILENT',
    readonly delay?: number | undefined, readonly error?: string }

/** The run has completed, and returned nothing. */
export const withoutResult: Ending = { kind: 'ack', result: null }

/** The run gave the job back, as if it had never been popped. */
export const givenBack: Ending = { kind: 'nack', mode: 'SILENT' }

const MOST_ERROR_BYTES = 4096

/** What a handler that threw this is answered with. */
export function endingOf(thrown: unknown, wasCancelled: boolean): Ending {
  // The server makes `cancelled` of it.
  if (thrown instanceof Cancelled || wasCancelled) return givenBack
  const error = errorText(thrown)
  if (thrown instanceof Fatal) return { kind: 'nack', mode: 'FATAL', error }
  const delay = thrown instanceof Retry ? thrown.delay : undefined
  return { kind: 'nack', mode: 'FAIL', delay, error }
}

/** The end of a job that this process cannot read, or whose result it cannot send. */
export function refused(what: 'payload' | 'result', thrown: unknown): Ending {
  return { kind: 'nack', mode: 'FATAL', error: cut(`${what}: ${messageOf(thrown)}`) }
}

/** What an error says, or anything else that was thrown. Never throws. */
export function messageOf(thrown: unknown): string {
  return readable(() => String(thrown instanceof Error ? thrown.message : thrown))
}

function errorText(thrown: unknown): string {
  if (!(thrown instanceof Error) || thrown instanceof SluiceError) return cut(messageOf(thrown))
  return cut(readable(() => `${thrown.name}: ${thrown.message}`))
}

// An object without a prototype has no text, for example.
function readable(read: () => string): string {
  try {
    return read()
  } catch {
    return 'what was thrown has no text'
  }
}

function cut(text: string): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= MOST_ERROR_BYTES) return text
  let end = MOST_ERROR_BYTES
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) --end  // not within a character
  return bytes.subarray(0, end).toString()
}
