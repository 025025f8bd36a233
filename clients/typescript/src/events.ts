// The history of a queue's jobs as an async iterator (Q.EVENTS).
import { newestEvent } from './cursor.js'
import { isTemporary, Link } from './link.js'
import { arrayOf, bytesOf, fieldName, mapOf, numberOf, textOf, type Reply } from './reply.js'
import { letManyListen, sleep } from './time.js'
import type { Word, Words } from './words.js'

/** Which events, and from where. */
export interface EventsOptions {
  /** The number of the last event that is known; `-`: from the oldest kept; `$`, the default: from
   * now on. */
  from?: number | '-' | '$'
  /** Only events of these types (`added`, `started`, `completed`, …). */
  types?: readonly string[]
  /** Only events of these jobs, at most 256. */
  ids?: readonly string[]
  /** Ends the iteration. */
  signal?: AbortSignal
}

/** One event. The numbers of a queue have no gaps and are never reused. */
export interface QueueEvent {
  readonly seq: number
  /** Unix milliseconds. */
  readonly time: number
  readonly type: string
  /** Of the job. */
  readonly id: string
  /**
   * As QUEUE.md names them (Q.EVENTS), in camel case, without `_ms`: times are milliseconds.
   * `progress` is a `Buffer`, at most the first 4096 bytes.
   */
  readonly fields: Readonly<Record<string, number | string | Buffer>>
}

const CONNECT_MS = 5000
const REPLY_MS = 5000
const BLOCK_MS = 5000
const SLACK_MS = 2000
const PAUSE_MS = 250
const COUNT = 1000

/**
 * Yields events as they happen, over a connection of its own that is opened by the first `next` and
 * closed by `link.close`, which ends it. After a lost connection it continues behind the last event
 * that it has. `ended` is called when nobody follows any more.
 */
export async function* follow(
  link: Link, queue: string, options: EventsOptions, ended: () => void,
): AsyncGenerator<QueueEvent, void, undefined> {
  const { signal } = options
  const close = (): void => link.close()
  if (signal !== undefined) letManyListen(signal)
  signal?.addEventListener('abort', close)
  if (signal?.aborted) close()
  try {
    let after = options.from === '$' ? undefined : options.from
    while (!link.closed) {
      const reply = await retried(link, signal, async () => {
        // `$` would begin anew after a lost connection.
        after ??= await newestEvent(link, queue, CONNECT_MS, REPLY_MS)
        return await link.call(wordsOf(queue, after, options), CONNECT_MS, BLOCK_MS + SLACK_MS)
      })
      for (const entry of reply === null ? [] : arrayOf(reply)) {
        if (link.closed) return
        const event = readEvent(entry)
        after = event.seq
        if (event.type !== 'none') yield event  // `none` only says how far the server has read
      }
    }
  } finally {
    signal?.removeEventListener('abort', close)
    link.close()
    ended()
  }
}

function wordsOf(queue: string, after: number | '-', options: EventsOptions): Words {
  const chosen: Word[] = []
  for (const type of options.types ?? []) chosen.push('TYPE', type)
  for (const id of options.ids ?? []) chosen.push('ID', id)
  return ['Q.EVENTS', queue, after, 'COUNT', COUNT, 'BLOCK', BLOCK_MS, ...chosen]
}

// What it reads; null after a failure that may pass.
async function retried(
  link: Link, signal: AbortSignal | undefined, read: () => Promise<Reply>,
): Promise<Reply> {
  try {
    return await read()
  } catch (error) {
    if (link.closed) return null
    if (!isTemporary(error)) throw error
    await sleep(PAUSE_MS, signal)
    return null
  }
}

function readEvent(reply: Reply): QueueEvent {
  const [seq, time, type, id, fields] = arrayOf(reply)
  const valueOf = (name: string, value: Reply): number | string | Buffer => {
    if (typeof value === 'number') return value
    return name === 'progress' ? bytesOf(value) : textOf(value)
  }
  const values = [...mapOf(fields)].map(([name, value]) =>
    [fieldName(name), valueOf(name, value)] as const)
  return {
    seq: numberOf(seq),
    time: numberOf(time),
    type: textOf(type),
    id: textOf(id),
    fields: Object.fromEntries(values),
  }
}
